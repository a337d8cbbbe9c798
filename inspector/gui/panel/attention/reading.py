"""What is read in maps of attention: the weight under the cursor with its rank, profiles, statistics, all numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.attention.map_source import MapChoice
from inspector.analysis.attention.strongest import rank_in_row
from inspector.gui.panel.attention.drawing import (
    alignment_sentence,
    spoken,
)
from inspector.gui.panel.attention.parts import AttentionParts
from inspector.gui.panel.axes_of_data import DataAxes
from inspector.gui.panel.base import measured
from inspector.gui.panel.exact import exact_at
from inspector.gui.panel.map_options import ALIGNMENT, MAP
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.maps.head_map import HeadMap
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plain_text import clean
from inspector.records import Channel

Array = npt.NDArray[Any]
Head = tuple[str, int]
"""(place, number)"""
MARGIN = "attention/mask_margin"


class AttentionReading(AttentionParts):
    """The numbers of the panel of attention."""

    def _profiles(self, choice: MapChoice, at: Position) -> tuple[Array, Array, tuple[str, str]]:
        """(weights of the query, weights of the key, titles); the latter by what is stored of a large map.

        Without a query the mean over all queries that may attend to a key, without a key the largest weight of each
        query: what a map is like at first sight.
        """
        source, pyramid = self.levels.source(self.capture, choice), self.levels.pyramid(self.capture, choice)
        queries, keys = source.shape
        row, column, below, beside = pyramid.mean_by_key, pyramid.largest_by_query, "mean", "largest"
        if at.step is not None and at.step < queries:
            row, below = source.rows(at.step, at.step + 1)[0], "of the query"
        if at.key is not None and at.key < keys:
            fine = pyramid.levels[0]
            column = np.repeat(fine.largest[:, at.key // fine.factor].astype(np.float32), fine.factor)[:queries]
            beside = "of the key"
        return row, column, (below, beside)

    def _heading(self, one: HeadMap, head: Head, choice: MapChoice, at: Position, *, short: bool = False) -> str:
        """What the map is, and what is read at the cursor; `short`: an alignment in fewer words."""
        name = f"{head[0]}, head {head[1]}"
        channel = self.capture.channel(choice.heads[0][0], self.frame)  # type: ignore[union-attr]
        if channel.kind == "attention" and channel.title != "attention":
            name += f", {clean(channel.title)}"  # what a scan is equivalent to
        elif channel.kind != "attention":
            number = choice.heads[0][1]
            name = clean(channel.title) + (
                f", {channel.dims[0]} {number}" if number >= 0 else f", {clean(channel.place)}"
            )
        if len(choice.heads) > 1:
            name = f"{choice.together} of {len(choice.heads)} heads"
        if channel.computed:
            name += ", computed from kept Q and K"
        if choice.without_first:
            name += ", without the first key"
        if one in self._alignments:
            return f"{name}   {alignment_sentence(self._alignments[one], short=short)}"
        if self.view.currentText() == ALIGNMENT and choice.signed:
            name += ", no alignment of weights of either sign"
        problem = "" if self.levels.pyramid(self.capture, choice).complete else clean(self.levels.reader.problem)
        read = problem or self._reading(choice, at)
        return f"{name}   {read}" if read else name

    def _reading(self, choice: MapChoice, at: Position) -> str:
        """Query, key, weight and rank in the row, in words."""
        source = self.levels.source(self.capture, choice)
        q, k = at.step, at.key
        if q is None or k is None or q >= source.shape[0] or k >= source.shape[1]:
            return ""
        row = source.rows(q, q + 1)[0]
        words = spoken(self._query_names(source.shape[0]), q), spoken(self._key_names(choice, source.shape[1]), k)
        if np.isneginf(row[k]):
            return f"{words[0]} → {words[1]}: masked"
        fixed = " (fixed)" if self.looking.cursor.fixed else ""
        read = f"{words[0]} → {words[1]}: "
        if not np.isfinite(row[k]):  # a number that is not known says why
            name, head = choice.heads[0]
            place = (q, k) if head < 0 else (head, q, k)  # maps of a whole model have no heads
            return f"{read}{measured(exact_at(self.capture, name, self.frame, *place), '1')}{fixed}"  # type: ignore[arg-type]
        rank, count = rank_in_row(row, k)
        order = "" if choice.signed else f", rank {rank} of {count}"
        return f"{read}{short(row[k])}{order}{fixed}"

    # -- numbers

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The weight at query and key with its rank, and every statistic of the head at the query."""
        rows: list[tuple[str, str]] = []
        channel, head = self._map(), self.head()
        q, k = position.step, position.key
        if channel is not None and self.capture is not None and q is not None and k is not None:
            queries, keys = self._shape(channel)
            if q < queries and k < keys:
                rows += [*self._weight_rows(channel, head, q, k), *self._beside_rows(channel, head, q, k)]
        for channel in self.statistics():
            assert self.capture is not None
            if q is not None and q < self.capture.extent(channel.name, self.frame)[1]:
                cell = exact_at(self.capture, channel.name, self.frame, head, q)
                if channel.signal == MARGIN and not isinstance(cell, str) and np.isnan(cell):
                    continue  # no key of that query is masked by a finite number
                rows.append((f"{channel.title} [{q}], head {head}", measured(cell, channel.unit)))
        return rows

    def _weight_rows(self, channel: Channel, head: int, q: int, k: int) -> list[tuple[str, str]]:
        """The stored weight, whatever is drawn, and its rank among those of its query."""
        number = self._number(channel, head)
        title = f"attention {q} → {k}, head {head}" if number >= 0 else f"{channel.title} {q} → {k}"
        what = f"{self.changed(channel)}{title}  {channel.place}"
        place = (q, k) if number < 0 else (number, q, k)
        weight = exact_at(self.capture, channel.name, self.frame, *place)  # type: ignore[arg-type]
        choice = MapChoice(((channel.name, number),), self.frame, signed=self.signed(channel.name))
        row = self.levels.source(self.capture, choice).rows(q, q + 1)[0]
        if np.isneginf(row[k]):
            return [(what, "masked")]
        found = [(what, measured(weight, channel.unit))]
        if number >= 0 and not choice.signed and np.isfinite(row[k]):
            rank, count = rank_in_row(row, k)
            found.append(("rank of that weight in its row", f"{rank} of {count}"))
        return found

    def _beside_rows(self, own: Channel, head: int, q: int, k: int) -> list[tuple[str, str]]:
        """What is drawn beside the map of the head at the same query and key: other heads, gradients, relevance. The
        lines above the maps say it too, where there is room."""
        rows = []
        for (place, number), choice in self.choices() if self.view.currentText() == MAP else []:
            name, at = choice.heads[0]
            channel = self.capture.channel(name, self.frame)  # type: ignore[union-attr]
            source = self.levels.source(self.capture, choice)
            if (
                len(choice.heads) > 1
                or (name, at) == (own.name, self._number(own, head))
                or q >= source.shape[0]
                or k >= source.shape[1]
            ):
                continue
            of = f"head {number}  {place}" if channel.dims[0] == "head" else channel.place
            masked = np.isneginf(source.rows(q, q + 1)[0][k])
            cell = exact_at(self.capture, name, self.frame, *((q, k) if at < 0 else (at, q, k)))  # type: ignore[arg-type]
            what = f"{self.changed(channel)}{channel.title} {q} → {k}  {of}"
            rows.append((what, "masked" if masked else measured(cell, channel.unit)))
        return rows

    def data(self) -> dict[str, Array]:
        """The chosen heads' maps, the alignment that is shown, and the statistics of the place."""
        found: dict[str, Array] = {}
        assert self.capture is not None
        for place, head in self.picked:
            channel = self._map(place)
            if channel is not None:
                weights = self.capture.block(channel.name, self.frame, (slice(head, head + 1),))[0]
                found[f"{place}:attention head {head}"] = weights
        for one, alignment in self._alignments.items():
            for name in ("coverage", "largest", "entropy", "path"):
                found[f"{one.title} {name}"] = getattr(alignment, name)
        for channel in self.statistics():
            found[channel.name] = self.capture.array(channel.name, self.frame)
        return found

    def data_axes(self) -> DataAxes:
        """Of maps of single heads and of alignments; queries and keys may be as many."""
        maps = {f"{place}:attention head {head}": (("query", "key"), ()) for place, head in self.picked}
        parts = (("coverage", "key"), ("largest", "query"), ("entropy", "query"), ("path", "query"))
        return maps | {f"{one.title} {name}": ((axis,), ()) for one in self._alignments for name, axis in parts}
