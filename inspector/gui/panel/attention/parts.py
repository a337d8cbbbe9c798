"""The parts of the panel of attention: its controls, what maps there are, which are chosen, their tokens and gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QComboBox

from inspector.analysis.attention.alignment import Alignment
from inspector.analysis.attention.head_table import of_heads
from inspector.analysis.attention.map_source import MapChoice
from inspector.capture import Capture
from inspector.gui.panel.attention.head_overview import HeadOverview
from inspector.gui.panel.attention.quantities import can_ablate
from inspector.gui.panel.base import Panel, caption, chooser
from inspector.gui.panel.map_levels import MapLevels
from inspector.gui.panel.map_options import ALIGNMENT, BESIDE, HEADS, LINES, MAP, MAXIMUM, VIEWS, map_menu
from inspector.gui.state.step_axes import without_passing
from inspector.gui.widgets.gaps import NONE, Gaps, gaps_of
from inspector.gui.widgets.maps.atlas import Atlas
from inspector.gui.widgets.maps.head_map import HeadMap
from inspector.gui.widgets.maps.heads_page import LOW, HeadsPage
from inspector.gui.widgets.plots.stepplot import StepPlot, curve
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
Head = tuple[str, int]
"""(place, number)"""
MAIN = ("attention", "attention_statistic")
"""Kinds that are shown by themselves; others beside them."""
ALONE = "gradient/from_answer"
"""Signal of the one map of other numbers that is shown by itself, of an encoder–decoder without attention."""
VECTORS = (("head", "query", "component"), ("group", "key", "component"))
"""Queries and keys, which are shown by dimension for a pair of them."""
UNBOUNDED = 16_777_215.0
LOW_SHARE = 0.29
"""The part of the width of a low panel that thumbnails take."""
STRIP_AXIS = 70
"""Pixels of the axis of the strip: numbers of six characters, as of an entropy that hardly changes, and its label."""
STRIP_LETTERS = 24
"""About the letters of the longest entry of the strip that is there from the start: further ones, which come later, do
not move what stands beside the list."""
POLL = 30
"""Milliseconds after which it is looked whether more was read."""


def is_beside(channel: Channel) -> bool:
    """Whether a channel has numbers for queries and keys that can be drawn beside their weights."""
    return channel.kind == "attention_map" and channel.dims[-2:] == ("query", "key") and len(channel.dims) in (2, 3)


def named_first(names: tuple[str, ...], count: int) -> tuple[str, ...]:
    """A label for each of so many positions, of which the first have names (a padded source); none without names."""
    if not names or len(names) > count:
        return ()
    return (*names, *map(str, range(len(names), count)))


def names_of(maps: Sequence[Channel]) -> dict[str, str]:
    """Place → name of its maps, in the order of the model."""
    return {channel.place: channel.name for channel in maps}


class AttentionParts(Panel):
    """What `Attention` draws with."""

    _known: tuple[tuple[Capture, int, int, bool, str], list[Channel]] | None = None
    """What was asked for last of a capture, and the channels that are shown then."""

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Maps and their statistics."""
        maps = (channel.kind == "attention" and channel.dims == ("head", "query", "key")) or is_beside(channel)
        return maps or of_heads(channel) or (channel.kind == "attention_pair" and channel.dims in VECTORS)

    @classmethod
    def choose(cls, found: list[Channel]) -> list[Channel]:
        """Maps and numbers of heads are shown with attention."""
        return found if any(channel.kind in MAIN or channel.signal == ALONE for channel in found) else []

    # -- parts

    def build(self) -> None:
        """Atlas on the left, the chosen heads and their strip on the right."""
        self.view = chooser(list(VIEWS), "What is drawn large")
        self.which = chooser([], "Statistic by query")
        self.which.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.which.setMinimumContentsLength(STRIP_LETTERS)
        self.overview, self.options = HeadOverview(self), map_menu()
        for widget in (
            caption("View"), self.view, caption("Strip"), self.which,
            self.overview.menu, self.overview.filter, self.options,
        ):  # fmt: skip
            self.controls.addWidget(widget)
        self.levels = MapLevels()
        self.destroyed.connect(self.levels.forget)
        self._timer = QTimer(self, interval=POLL)
        self.atlas = Atlas(self.theme)
        self.figure.addItem(self.atlas, row=0, col=0)
        self.strip = StepPlot(self.steps, self.theme, label="", bottom="query")
        self.strip.getAxis("left").setWidth(STRIP_AXIS)
        self.trace = curve(self.theme, 0)
        self.strip.addItem(self.trace)
        self.page = HeadsPage(self.theme, self.strip)
        self.figure.addItem(self.page, row=0, col=1)
        layout = self.figure.ci.layout
        layout.setColumnStretchFactor(0, 2)
        layout.setColumnStretchFactor(1, 3)
        self.picked: list[Head] = []
        """The heads that are shown together, the cursor's among them."""
        self._drawn_heads: Any = None
        self._alignments: dict[HeadMap, Alignment] = {}
        self._list_plots()

    def _list_plots(self) -> None:
        self.plots = [*(plot for one in self.page.maps for plot in (one.plot, one.below, one.beside)), self.strip]

    @property
    def row(self) -> HeadMap:
        """The large map of the cursor's head."""
        at = self.picked.index(self.here) if self._beside and self.here in self.picked else 0
        return self.page.maps[min(at, self.page.count - 1)]

    @property
    def lines(self) -> Any:
        """The view of lines."""
        return self.page.lines

    @property
    def query_axis(self) -> Any:
        """The axis of the queries."""
        return self.row.plot.query_axis

    def reset(self) -> None:
        """Another capture has other maps."""
        self.levels.forget()
        self.overview.forget()
        if not self.same_model:
            self.picked, self._drawn_heads = [], None

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.page.set_theme(theme)
        self.atlas.theme = theme
        self.trace.setPen(theme.series[0], width=1.4)
        super().set_theme(theme)

    # -- what there is

    def _filled(self) -> list[Channel]:
        """Rows that came one by one count only until the map is there: they lie along an axis of their own."""
        return without_passing(super()._filled())

    def channels(self) -> list[Channel]:
        """What is shown; it is asked for some sixty times in one drawing, of hundreds of channels."""
        capture = self.capture
        if type(capture) is not Capture:
            return super().channels()
        asked = capture, capture.changes, self.frame, self.over.on, self.looking.axis
        if self._known is None or self._known[0] != asked:
            self._known = asked, super().channels()
        return list(self._known[1])

    def maps(self) -> list[Channel]:
        """The attention maps, in the order of the model; without attention gradients from an answer to its source."""
        found = self.channels()
        attention = [channel for channel in found if channel.kind == "attention"]
        if attention or any(channel.kind in MAIN for channel in found):
            return attention
        return [channel for channel in found if channel.signal == ALONE]

    def statistics(self) -> list[Channel]:
        """The statistics by query of the chosen place."""
        place = self.place()
        return [c for c in self.channels() if c.dims == ("head", "query") and c.place == place]

    def place(self) -> str:
        """The place whose heads are shown: the cursor's where it has attention, else the first."""
        shown = [*(channel for channel in self.channels() if channel.kind in MAIN), *self.maps()]
        places = list(dict.fromkeys(channel.place for channel in shown))
        wanted = self.looking.position.place
        return wanted if wanted in places else places[0] if places else ""

    def head(self) -> int:
        """The head that is shown large."""
        place = self.place()
        own = (channel for channel in self.channels() if channel.place == place and channel.dims[0] == "head")
        heads = max(map(self._heads, own), default=1)
        return min(self.looking.position.head or 0, heads - 1)

    @property
    def here(self) -> Head:
        """The cursor's head."""
        return self.place(), self.head()

    def head_here(self) -> Head | None:
        """The head that is shown large."""
        return self.here if can_ablate(self.channels(), self.place()) else None

    def _heads(self, channel: Channel) -> int:
        assert self.capture is not None
        return int(self.capture.extent(channel.name, self.frame)[0]) if channel.dims[0] == "head" else 1

    @staticmethod
    def _number(channel: Channel, head: int) -> int:
        """Which map of a channel is that of a head; −1 for the only one of a channel without heads."""
        return head if channel.dims[0] == "head" else -1

    def _map(self, place: str | None = None) -> Channel | None:
        """The maps of a place, of the chosen one by default."""
        place = self.place() if place is None else place
        return next((channel for channel in self.maps() if channel.place == place), None)

    @property
    def _beside(self) -> bool:
        """Whether several heads are drawn side by side, and not as one map."""
        return self.options.chosen("several") == BESIDE or self.view.currentText() == LINES

    def signed(self, *names: str) -> bool:
        """Whether weights may have either sign: differences of two runs, or maps that a scan stands for."""
        assert self.capture is not None
        return self.differs or any(self.capture.channels[name].scale == "diverging" for name in names)

    def choices(self) -> list[tuple[Head, MapChoice]]:
        """The maps that are drawn large, each with the head that it is named by."""
        maps = {place: channel for place in {p for p, _ in self.picked} if (channel := self._map(place))}
        names = {place: channel.name for place, channel in maps.items()}
        heads = [head for head in self.picked if head[0] in names]
        if not heads:
            return []
        if self.view.currentText() in (LINES, ALIGNMENT):
            heads = [self.here] if self._beside else heads
        signed = self.signed(*names.values())
        one = MapChoice(
            (), self.frame, "maximum" if self.options.chosen("several") == MAXIMUM else "mean", signed=signed,
            without_first=self.options.on("without_first") and not signed and not self._alone,
        )  # fmt: skip
        if self._beside or len(heads) == 1:
            found = [
                (head, replace(one, heads=((names[head[0]], self._number(maps[head[0]], head[1])),))) for head in heads
            ]
            return found + self._other_numbers(heads, names) if self.view.currentText() == MAP else found
        return [(self.here, replace(one, heads=tuple((names[p], n) for p, n in heads)))]

    @property
    def _alone(self) -> bool:
        """Whether what is drawn is no attention."""
        return any(channel.kind != "attention" for channel in self.maps())

    def beside(self) -> list[Channel]:
        """Maps of other numbers over the same queries and keys: of this place, or of none in particular."""
        place = self.place()
        places = {channel.place for channel in self.channels() if channel.kind in MAIN}
        large = [] if not self._alone else [channel.name for channel in self.maps()]
        maps = [channel for channel in self.channels() if is_beside(channel) and channel.name not in large]
        anywhere = [one for one in maps if one.place not in places and place in one.labels.get("layer", (place,))]
        return [channel for channel in maps if channel.place == place] + anywhere

    def _other_numbers(self, heads: list[Head], names: Mapping[str, str]) -> list[tuple[Head, MapChoice]]:
        """The map that was chosen to be beside that of the one head: gradients, norms, relevance."""
        wanted = self.options.chosen("beside")
        channel = next((one for one in self.beside() if one.signal == wanted), None)
        if channel is None or len(heads) > 1:
            return []
        place, head = heads[0]
        layers = channel.labels.get("layer") or tuple(names_of(self.maps()))
        number = {"head": head, "layer": layers.index(place)}.get(channel.dims[0], -1)
        if number >= 0:
            assert self.capture is not None
            number = min(number, self.capture.extent(channel.name, self.frame)[0] - 1)
        signed = self.differs or channel.scale == "diverging"
        masks = "" if self.differs or self._shape(channel) != self._shape(names[place]) else names[place]
        return [((place, head), MapChoice(((channel.name, number),), self.frame, signed=signed, masks=masks))]

    def _shape(self, channel: Channel | str) -> tuple[int, ...]:
        """(queries, keys) of a map."""
        assert self.capture is not None
        name = channel if isinstance(channel, str) else channel.name
        return tuple(self.capture.extent(name, self.frame)[-2:])

    # -- what is not known

    def _gaps_of_all(self, maps: list[Channel]) -> dict[tuple[int, int], tuple[Gaps, tuple[int, int]]]:
        """(layer, head) → (what is not known of the map, its numbers of keys and queries), where there is something."""
        assert self.capture is not None
        found = {}
        for layer, channel in enumerate(maps):
            if self.capture.holes(channel.name, self.frame):
                queries, keys = self._shape(channel)
                for head in range(self._heads(channel)):
                    gaps = gaps_of(self.capture, channel.name, self.frame, x=2, y=1, at={0: head})
                    if gaps:
                        found[layer, head] = (gaps, (keys, queries))
        return found

    def _gaps(self, choice: MapChoice) -> Gaps:
        """What is not known of the heads of a map."""
        assert self.capture is not None
        found = NONE
        for name, head in choice.heads:
            whole = head < 0
            found = found | gaps_of(
                self.capture, name, self.frame, x=2 - whole, y=1 - whole, at={} if whole else {0: head}
            )
        return found

    # -- room

    def resizeEvent(self, event: Any) -> None:
        """More or less room for the thumbnails beside the map."""
        super().resizeEvent(event)
        self._share_room()

    def _share_room(self) -> None:
        """Without maps (which may be too large to store) statistics take the whole width, and the thumbnails do where
        nothing is shown large; few thumbnails, and those in a low panel, leave the width to the map."""
        maps, all_heads = bool(self.atlas.names), self.view.currentText() == HEADS
        layout, low = self.figure.ci.layout, self.height() < LOW
        beside = UNBOUNDED if all_heads else min(self.atlas.wide, LOW_SHARE * self.width() if low else UNBOUNDED)
        layout.setColumnMaximumWidth(0, beside if maps else 0.0)
        layout.setColumnMaximumWidth(1, 0.0 if maps and all_heads else UNBOUNDED)
        self.page.setVisible(not (maps and all_heads))

    # -- tokens

    def _query_names(self, queries: int) -> tuple[str, ...]:
        names = self.step_names()
        return names if len(names) == queries else ()

    def _key_names(self, choice: MapChoice, keys: int) -> tuple[str, ...]:
        """The labels of the keys: a decoder may attend to the input from the steps of its output."""
        assert self.capture is not None
        channel = self.capture.channel(choice.heads[0][0], self.frame)
        return named_first(self.capture.labels(channel.domain("key"), self.frame), keys)
