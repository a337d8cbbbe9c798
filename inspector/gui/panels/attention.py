"""Attention: all heads as thumbnails, the chosen one large with tokens on both axes, its statistics by query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox

from inspector.gui.panel.base import Panel, caption, chooser, measured
from inspector.gui.panel.channel_choice import chosen, offer_channels
from inspector.gui.panel.exact import exact_at
from inspector.gui.panel.key_moves import KEYS
from inspector.gui.panel.masked_keys import marked, masked_keys
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.atlas import Atlas, thumbnail
from inspector.gui.widgets.axes import StepAxis, style_axis
from inspector.gui.widgets.gaps import NONE, Gaps, gaps_of
from inspector.gui.widgets.linesview import MOST, LinesView
from inspector.gui.widgets.maprow import MapRow
from inspector.gui.widgets.plain_text import token
from inspector.gui.widgets.quantise import Levels, levels_of
from inspector.gui.widgets.source import of_the_other
from inspector.gui.widgets.stepplot import StepPlot, curve
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
ROWS = "attention/rows"
"""Signal of the rows of a decoder that runs."""
UNBOUNDED = 16_777_215.0
BEYOND = 60
"""Pixels by which a text may pass the end of its axis before it is turned."""
LABEL, LETTER = 26.0, 7.0
"""Pixels of the label below an axis and the space around it, and of a letter that is written downwards."""


@PANELS.register("attention")
class Attention(Panel):
    """(head, query, key) channels of kind "attention", and (head, query) statistics of them."""

    tab_order, tab_row = 60, "upper"
    key, title = "attention", "Attention"
    hint = "Attention maps of every head of every layer, and their entropy and distance. Needs a model with attention."
    shows = (
        "attention/maps",
        "attention/distance",
        "attention/entropy",
        "attention/entropy_normalised",
        "attention/largest_weight",
        "attention/mask_margin",
        "attention/sink_mass",
        "attention/sink_mass_4",
    )

    needs_height = 220

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Maps and their statistics."""
        return (channel.kind == "attention" and channel.dims == ("head", "query", "key")) or (
            channel.kind == "attention_statistic" and channel.dims == ("head", "query")
        )

    def concerns(self, name: str) -> bool:
        """Maps that could not be computed."""
        return ":attention" in name

    def build(self) -> None:
        """Atlas on the left, the chosen head and its strip on the right."""
        self.which = chooser([], "Statistic below the map")
        self.as_lines = QCheckBox("Lines")
        self.as_lines.setToolTip(f"Draw lines instead of a map (up to {MOST} steps)")
        for widget in (caption("Strip"), self.which, self.as_lines):
            self.controls.addWidget(widget)
        self.which.currentTextChanged.connect(self.redraw)
        self.as_lines.toggled.connect(self.redraw)
        self.atlas = Atlas(self.theme)
        self.atlas.chosen.connect(self._chosen)
        self.figure.addItem(self.atlas, row=0, col=0, rowspan=2)
        self.sheet = self.figure.addLayout(row=0, col=1)
        self.sheet.layout.setContentsMargins(0, 0, 0, 0)
        self.row = MapRow(self.sheet, 0, None, self.theme, label="query", bottom="key")
        self.query_axis = StepAxis("left")
        self.row.plot.setAxisItems({"left": self.query_axis})
        self.query_axis.setWidth(58)
        self.lines = LinesView(self.theme)
        self.sheet.addItem(self.lines, row=1, col=0)
        self.strip = StepPlot(self.steps, self.theme, label="", bottom="query")
        self.figure.addItem(self.strip, row=1, col=1)
        self.trace = curve(self.theme, 0)
        self.strip.addItem(self.trace)
        layout = self.figure.ci.layout
        layout.setColumnStretchFactor(0, 2)
        layout.setColumnStretchFactor(1, 3)
        layout.setRowStretchFactor(0, 4)
        layout.setRowStretchFactor(1, 1)
        self.plots = [self.row.plot, self.strip]
        self._height: float | None = None
        self.row.plot.vb.sigResized.connect(self._fit_keys)
        self._large = ("", 0)
        """The place and head that are shown large."""
        self._thumbnails: dict[str, tuple[int, list[npt.NDArray[np.uint8]]]] = {}

    def reset(self) -> None:
        """Other maps need other thumbnails."""
        self._thumbnails.clear()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.row.set_theme(theme)
        style_axis(self.query_axis, theme, "query")
        self.atlas.theme = self.lines.theme = theme
        self.trace.setPen(theme.series[0], width=1.4)
        super().set_theme(theme)

    def maps(self) -> list[Channel]:
        """The attention maps, in the order of the model; rows that came one by one only until the map is there."""
        maps = [channel for channel in self.channels() if channel.kind == "attention"]
        whole = {channel.place for channel in maps if not channel.name.endswith(ROWS)}
        return [channel for channel in maps if not channel.name.endswith(ROWS) or channel.place not in whole]

    def statistics(self) -> list[Channel]:
        """The statistics of the chosen place."""
        place = self.place()
        return [c for c in self.channels() if c.kind == "attention_statistic" and c.place == place]

    def place(self) -> str:
        """The place whose heads are shown: the cursor's where it has attention, else the first."""
        places = list(dict.fromkeys(channel.place for channel in self.channels()))
        wanted = self.looking.position.place
        return wanted if wanted in places else places[0] if places else ""

    def head(self) -> int:
        """The head that is shown large."""
        heads = max((self._heads(channel) for channel in self.channels() if channel.place == self.place()), default=1)
        return min(self.looking.position.head or 0, heads - 1)

    def _heads(self, channel: Channel) -> int:
        assert self.capture is not None
        return int(self.capture.extent(channel.name, self.frame)[0])

    def update_contents(self) -> None:
        """Thumbnails that are new, then the chosen head."""
        maps = self.maps()
        rows = [self._row_of(channel) for channel in maps]
        self.atlas.set_maps([channel.place for channel in maps], rows, self._gaps_of_all(maps))
        layout = self.figure.ci.layout  # statistics without maps, which may be too large to store, take the whole width
        layout.setColumnMaximumWidth(0, UNBOUNDED if maps else 0.0)
        layout.setRowMaximumHeight(0, UNBOUNDED if maps else 0.0)
        offer_channels(self.which, self.statistics())
        self._draw_head()

    def _row_of(self, channel: Channel) -> list[npt.NDArray[np.uint8]]:
        assert self.capture is not None
        revision = self.capture.revision(channel.name, self.frame)
        known = self._thumbnails.get(channel.name)
        if known is None or known[0] != revision:
            blocks = [self._filled_block(channel, head) for head in range(self._heads(channel))]
            if self.differs:
                pictures = [thumbnail(np.abs(block)) for block in blocks]
            else:
                pictures = [thumbnail(marked(block, self._masked(channel, n))) for n, block in enumerate(blocks)]
            known = self._thumbnails[channel.name] = (revision, pictures)
        return known[1]

    def _filled_block(self, channel: Channel, head: int) -> Array:
        """The weights of a head, 0 where they are not known: NaN there would mean that the model made it."""
        assert self.capture is not None
        block: Array = self.capture.block(channel.name, self.frame, (slice(head, head + 1),))[0]
        if self.capture.holes(channel.name, self.frame):
            gaps = gaps_of(self.capture, channel.name, self.frame, x=2, y=1, at={0: head})
            block = block.copy()
            for keys, queries in (*gaps.missing, *gaps.damaged):
                block[slice(*queries), slice(*keys)] = 0
        return block

    def _map(self) -> Channel | None:
        """The maps of the chosen place."""
        place = self.place()
        return next((channel for channel in self.maps() if channel.place == place), None)

    def _weights(self) -> Array | None:
        channel, head = self._map(), self.head()
        if channel is None or self.capture is None:
            return None
        block: Array = self.capture.block(channel.name, self.frame, (slice(head, head + 1),))[0]
        return block

    def _masked(self, channel: Channel, head: int) -> Array | None:
        """(query, key) True where a key is masked; None where that is not known, as of differences."""
        if self.capture is None or self.differs:
            return None
        return masked_keys(self.capture, channel.name, self.frame, head, self._shape(channel)[1])

    def _shape(self, channel: Channel) -> tuple[int, int]:
        """How many queries and keys a map has."""
        assert self.capture is not None
        _, queries, keys = self.capture.extent(channel.name, self.frame)
        return queries, keys

    def _draw_head(self) -> None:
        weights, place, head = self._weights(), self.place(), self.head()
        self._large = (place, head)
        places = [channel.place for channel in self.maps()]
        if place in places:
            self.atlas.select(places.index(place), head)
        names = self.step_names()
        small = weights is not None and max(weights.shape) <= MOST
        self.as_lines.setEnabled(small)
        lines = small and self.as_lines.isChecked()
        for item in (self.row.plot, self.row.bar):
            item.setVisible(weights is not None and not lines)
        self.lines.setVisible(lines)
        if weights is not None and lines:
            self.lines.set_weights(weights, names, self._key_names())
        elif weights is not None:
            self._draw_map(weights, names, f"{place}, head {head}")
        self._draw_strip(head, names)

    def _draw_map(self, weights: Array, names: tuple[str, ...], title: str) -> None:
        channel = self._map()
        masked = None if channel is None else self._masked(channel, self.head())
        if masked is None and weights.shape[0] == weights.shape[1] > 1:  # captures of older versions, differences
            above = np.triu(np.ones(weights.shape, dtype=bool), 1)
            masked = above if not np.nan_to_num(weights[above]).any() else None
        shown = marked(weights, masked)
        finite, some = shown[np.isfinite(shown)], masked is not None and bool(masked.any())
        head = self.head()
        other = of_the_other(self.capture, channel, (slice(head, head + 1),)) if channel is not None else np.zeros(0)
        both = np.concatenate((finite, other[np.isfinite(other)]))
        levels = Levels(0.0, (float(both.max()) if both.size else 1.0) or 1.0, "attention", masked=some, root=True)
        if self.differs:
            levels = replace(levels_of(weights, "diverging", None), masked=some)
        self.row.show_array(shown.T, levels, "1", revision=id(weights), gaps=self._gaps())
        self.row.plot.set_title(title)
        keys = self._key_names()
        self._name_keys(keys if len(keys) == weights.shape[1] else ())
        queries = names if len(names) == weights.shape[0] else ()
        self.query_axis.set_names(queries)
        self.query_axis.setWidth(max(58.0, LABEL + LETTER * longest_name(queries, self.query_axis.longest)))

    def _name_keys(self, names: tuple[str, ...]) -> None:
        """The tokens below the map; longer ones are written downwards where they do not fit beside each other."""
        axis = self.row.plot.step_axis
        axis.turns = True
        axis.set_names(names)
        self._fit_keys()

    def _fit_keys(self, *_: object) -> None:
        """A height for names that are written downwards, where the width of the map asks for it."""
        axis = self.row.plot.step_axis
        turned = axis.written(0, len(axis.names) - 1, self.row.plot.vb.width()) == "turned"
        height = LABEL + LETTER * longest_name(axis.names, axis.longest) if turned else None
        if height != self._height:
            self._height = height
            axis.setHeight(height)
            # pyqtgraph leaves out a text that passes the axis' end before it is turned; the first and the last would
            axis.setStyle(hideOverlappingLabels=BEYOND if turned else True)

    def _gaps_of_all(self, maps: list[Channel]) -> dict[tuple[int, int], tuple[Gaps, tuple[int, int]]]:
        """(layer, head) → (what is not known of the map, its numbers of keys and queries), where there is something."""
        assert self.capture is not None
        found = {}
        for layer, channel in enumerate(maps):
            if self.capture.holes(channel.name, self.frame):
                heads, queries, keys = self.capture.extent(channel.name, self.frame)
                for head in range(heads):
                    gaps = gaps_of(self.capture, channel.name, self.frame, x=2, y=1, at={0: head})
                    if gaps:
                        found[layer, head] = (gaps, (keys, queries))
        return found

    def _gaps(self) -> Gaps:
        """What is not known of the head that is shown large."""
        channel = next((channel for channel in self.maps() if channel.place == self.place()), None)
        if channel is None or self.capture is None:
            return NONE
        return gaps_of(self.capture, channel.name, self.frame, x=2, y=1, at={0: self.head()})

    def _key_names(self) -> tuple[str, ...]:
        """The labels of the keys: a decoder may attend to the input from the steps of its output."""
        channel = self._map()
        if channel is None or self.capture is None:
            return ()
        return self.capture.labels(channel.domain("key"), self.frame)

    def _draw_strip(self, head: int, names: tuple[str, ...]) -> None:
        channel = chosen(self.which, self.statistics())
        self.strip.setVisible(channel is not None)
        if channel is None or self.capture is None:
            return
        values = self.capture.block(channel.name, self.frame, (slice(head, head + 1),))[0]
        self.trace.setData(np.arange(len(values)), values.astype(np.float64))
        self.strip.mark_gaps(gaps_of(self.capture, channel.name, self.frame, x=1, y=None, at={0: head}))
        self.strip.label_left({"1": "", "step": "steps"}.get(channel.unit, channel.unit))
        self.strip.step_axis.set_names(names)
        self.strip.fit_left(values, centred=self.differs)

    def _chosen(self, row: int, column: int) -> None:
        self.looking.move(place=self.maps()[row].place, head=column)

    def follow(self, new: Position, old: Position) -> None:
        """Another head is drawn large; the query and key are marked."""
        if (self.place(), self.head()) != self._large:  # drawing again would reset the zoom of a map
            offer_channels(self.which, self.statistics())
            self._draw_head()
        self.row.plot.show_cursor(new.key)
        self.row.show_row(new.step)
        self.lines.set_cursor(new.step, new.key)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """Over the map or the lines: query and key, down and across; over the strip: the query."""
        if plot is self.strip:
            self.looking.move(step=round(x))
            return
        channel = self._map()
        if channel is None or self.capture is None:
            return
        changes: dict[str, Any] = {"place": channel.place, "head": self.head()}
        _, queries, keys = self.capture.extent(channel.name, self.frame)
        for name, at, count in (("step", y, queries), ("key", x, keys)):
            if not math.isnan(at):
                changes[name] = min(max(0, round(at)), count - 1)
        self.looking.move(**changes)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """With Ctrl, left and right move by keys (with Shift too by ten); without, by queries as everywhere."""
        key, modifiers = Qt.Key(event.key()), event.modifiers()
        channel = self._map()
        if key not in KEYS or not modifiers & Qt.KeyboardModifier.ControlModifier or channel is None:
            super().keyPressEvent(event)
            return
        assert self.capture is not None
        many = 10 if modifiers & Qt.KeyboardModifier.ShiftModifier else 1
        last = self.capture.extent(channel.name, self.frame)[2] - 1
        now = self.looking.position.key
        self.looking.move(key=0 if now is None else min(max(0, now + KEYS[key] * many), last))

    def move_by(self, rows: int) -> None:
        """Up and down: the next head."""
        self.looking.move(head=max(0, self.head() + rows))

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The weight at query and key, and every statistic of the head at the query."""
        rows: list[tuple[str, str]] = []
        channel, head = self._map(), self.head()
        q, k = position.step, position.key
        if channel is not None and self.capture is not None and q is not None and k is not None:
            _, queries, keys = self.capture.extent(channel.name, self.frame)
            if q < queries and k < keys:
                weight = exact_at(self.capture, channel.name, self.frame, head, q, k)
                masked = self._masked(channel, head)
                forbidden = masked is not None and bool(masked[q, k])
                what = f"{self.changed(channel)}attention {q} → {k}, head {head}  {channel.place}"
                rows.append((what, "masked" if forbidden else measured(weight, channel.unit)))
        for channel in self.statistics():
            assert self.capture is not None
            if q is not None and q < self.capture.extent(channel.name, self.frame)[1]:
                cell = exact_at(self.capture, channel.name, self.frame, head, q)
                rows.append((f"{channel.title} [{q}], head {head}", measured(cell, channel.unit)))
        return rows

    def data(self) -> dict[str, Array]:
        """The chosen head's map, and its place's statistics."""
        found: dict[str, Array] = {}
        weights = self._weights()
        if weights is not None:
            found[f"{self.place()}:attention head {self.head()}"] = weights
        for channel in self.statistics():
            assert self.capture is not None
            found[channel.name] = self.capture.array(channel.name, self.frame)
        return found


def longest_name(names: Sequence[str], most: int) -> int:
    """Characters of the longest name, as it is shown, `most` at most."""
    return max((min(len(token(name)), most) for name in names), default=0)
