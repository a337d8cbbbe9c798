"""The strip below or beside the maps: a statistic by query, or q·k by dimension of the query and key at the cursor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.attention.map_source import MapChoice
from inspector.analysis.attention.pair import Pair, keeps_pairs, pair_of
from inspector.analysis.rank_correlation import spearman
from inspector.gui.panel.attention.drawing import spoken
from inspector.gui.panel.attention.on_request import QUERIES_AND_KEYS
from inspector.gui.panel.attention.reading import AttentionReading
from inspector.gui.panel.channel_choice import chosen, distinct, offer
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plain_text import clean

Array = npt.NDArray[Any]
AGAINST, NOTHING_BESIDE = "against", "Nothing is drawn beside the map"
PAIR, BY_DIMENSION = "pair", "q·k by dimension"
NOT_KEPT = "Queries and keys were not kept"
TO_KEEP = "Choose q·k by dimension in Strip, above, to compute them"
OF_TWO = "q·k by dimension is that of one run, not of the difference of two"
NO_PAIR = "q·k by dimension: there is no such query or key"
QUERIES = "attention/queries"


class AttentionStrip(AttentionReading):
    """What is drawn beside the maps by query or by dimension."""

    def _offer_strips(self) -> None:
        """The statistics of the place, and the pair at the cursor."""
        texts = distinct({channel.signal: channel.title for channel in self.statistics()})
        if texts or self._keeps_pairs():
            texts[PAIR] = BY_DIMENSION
        other = self._beside_here()
        if other is not None:
            texts[AGAINST] = f"weight against {self._title_of(other)}"
        offer(self.which, texts)

    @property
    def _of_pair(self) -> bool:
        """Whether the strip is that of a pair."""
        return bool(self.which.currentData() == PAIR)

    @property
    def _against(self) -> bool:
        """Whether the strip compares the weights of a query with what is drawn beside them."""
        return bool(self.which.currentData() == AGAINST)

    def _beside_here(self) -> MapChoice | None:
        """The map beside that of the one head, where it is over the same queries and keys."""
        both = [choice for _, choice in self.choices()]
        here = self._map()
        if len(both) != 2 or here is None or both[0].heads == both[1].heads or self.options.chosen("beside") == "":
            return None
        return both[1] if self._shape(both[1].heads[0][0]) == self._shape(here) else None

    def _title_of(self, choice: MapChoice) -> str:
        assert self.capture is not None
        return clean(self.capture.channel(choice.heads[0][0], self.frame).title)

    def against(self, at: Position) -> tuple[int, Array, Array, MapChoice] | None:
        """(query, its weights, what is beside them (key,) each, the map beside); the last query without one. Keys that
        are masked, or not known, are left out."""
        other, here = self._beside_here(), self.choices()
        if other is None:
            return None
        source, second = (self.levels.source(self.capture, one) for one in (here[0][1], other))
        query = min(at.step if at.step is not None else source.shape[0] - 1, source.shape[0] - 1)
        weights, numbers = (one.rows(query, query + 1)[0].astype(np.float64) for one in (source, second))
        known = np.isfinite(weights) & np.isfinite(numbers)
        return query, weights[known], numbers[known], other

    def _draw_against(self, at: Position) -> None:
        found = self.against(at)
        if found is None:
            self.page.pair.show_pair(NOTHING_BESIDE, np.zeros(0))
            return
        query, weights, numbers, other = found
        title, size = self._title_of(other), "the size of " if other.signed else ""
        if not len(weights):
            self.page.pair.show_pair(
                f"{spoken(self.step_names(), query)}: {title} is not known here", weights, self._nearest(query, other)
            )
            return
        rho = spearman(weights, np.abs(numbers))
        order = "no rank correlation" if math.isnan(rho) else f"ρ = {rho:.2f}".replace("-", "−")
        said = (
            f"{spoken(self.step_names(), query)}, {len(weights)} keys: {order} (ranks of weight and of {size}{title})"
        )
        self.page.pair.show_points(said, weights, numbers, ("weight", "beside it"))

    def _nearest(self, query: int, other: MapChoice) -> str:
        """Of which queries there are numbers beside the weights: of a map that takes a pass for each query of some."""
        finite = np.isfinite(self.levels.pyramid(self.capture, other).largest_by_query)
        known = np.flatnonzero(finite & self.levels.source(self.capture, other).known_queries())
        if not len(known):
            return ""
        nearest = int(known[np.argmin(np.abs(known - query))])
        return f"of {len(known)} queries it is; the nearest is {spoken(self.step_names(), nearest)}"

    def _keeps_pairs(self) -> bool:
        return self.capture is not None and not self.differs and keeps_pairs(self.capture, self._map_name(), self.frame)

    @property
    def can_ask(self) -> bool:
        """Whether more can be computed for the run that is shown: it has ended, and its model is open or can be."""
        return self.capture is not None and not self.growing and not self.differs and self.remaining.can_be_asked

    def _ask_for_pairs(self, _index: int = 0) -> None:
        """Queries and keys are computed when the user chooses what is made of them."""
        if self._of_pair and self.can_ask and not self._keeps_pairs() and self._why_no_pair() == NOT_KEPT:
            self.wanted.emit((QUERIES_AND_KEYS,))

    def _map_name(self) -> str:
        return f"{self.place()}:attention"

    def _draw_strip(self, head: int) -> None:
        """The statistic that is chosen; the bars of a pair are drawn with the cursor (`_mark`)."""
        self.page.as_pair = self._of_pair or self._against
        channel = chosen(self.which, self.statistics())
        self.page.with_strip = channel is not None or self.page.as_pair
        if channel is None or self.capture is None:
            return
        values = self.capture.block(channel.name, self.frame, (slice(head, head + 1),))[0]
        self.trace.setData(np.arange(len(values)), values.astype(np.float64))
        self.strip.mark_gaps(gaps_of(self.capture, channel.name, self.frame, x=1, y=None, at={0: head}))
        self.strip.label_left({"1": "", "step": "steps"}.get(channel.unit, channel.unit))
        self.strip.step_axis.set_names(self.step_names())
        self.strip.fit_left(values, centred=self.differs)

    def _pair(self, at: Position) -> Pair | None:
        """The pair at the cursor: without a query the last one, without a key the one with the largest score."""
        if not self._keeps_pairs():
            return None
        assert self.capture is not None
        return pair_of(self.capture, self._map_name(), self.frame, self.head(), at.step, at.key)

    def _draw_pair(self, at: Position) -> None:
        """Bars, or why there are none."""
        pair = self._pair(at)
        if pair is None:
            why = self._why_no_pair()
            to_do = TO_KEEP if self.can_ask else self.remaining.needed.why
            self.page.pair.show_pair(why, np.zeros(0), to_do if why == NOT_KEPT else "")
            return
        self.page.pair.show_pair(self._pair_title(pair), pair.products)

    def _why_no_pair(self) -> str:
        if self.differs:
            return OF_TWO
        if self._keeps_pairs():
            return NO_PAIR
        name = f"{self.place()}:{QUERIES}"
        refused = (one.reason for one in getattr(self.capture, "refusals", ()) if one.channel == name)
        return next(refused, NOT_KEPT)

    def _pair_title(self, pair: Pair) -> str:
        """The pair, and its sum with what is added to it."""
        assert self.capture is not None
        channel = self._map()
        keys = () if channel is None else self.capture.labels(channel.domain("key"), self.frame)
        words = f"{spoken(self.step_names(), pair.query)} → {spoken(keys, pair.key)}"
        added = f" + bias {short(pair.bias)}" if pair.bias else ""
        total = f"Σ {short(float(pair.products.sum(dtype=np.float64)))}{added}"
        score = f" = {short(pair.score)}" if pair.bias else ""
        return f"{BY_DIMENSION}, head {self.head()}, {words}: {total}{score}{' (masked)' if pair.masked else ''}"

    def data(self) -> dict[str, Array]:
        """Also the products of the pair that is shown."""
        found = super().data()
        pair = self._pair(self.looking.position) if self._of_pair else None
        if pair is not None:
            found[f"{self.place()}:q·k of head {self.head()}, query {pair.query}, key {pair.key}"] = pair.products
        both = self.against(self.looking.position) if self._against else None
        if both is not None:
            query, weights, numbers, other = both
            name = f"{self.place()}:head {self.head()}, query {query}"
            found |= {f"{name}: weight": weights, f"{name}: {self._title_of(other)}": numbers}
        return found
