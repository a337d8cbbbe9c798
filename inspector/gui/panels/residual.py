"""Residual: the stream between the layers of a stack, by layer and step: norms, gradients, the logit lens, rank
collapse, massive activations, scales of the layer norms; and the positions that are added to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QStackedWidget, QWidget

from inspector.capture.pyramid import with_nan
from inspector.gui.panel.attention.positions_view import CURVES, KIND, MAPS, PositionsView
from inspector.gui.panel.base import Panel, measured, set_options
from inspector.gui.panel.channel_choice import distinct, offer
from inspector.gui.panel.exact import exact, exact_at
from inspector.gui.panel.labelled import find_row
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.images.cell_texts import CellTexts
from inspector.gui.widgets.images.quantise import Levels, levels_of
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.plain_text import token
from inspector.gui.widgets.plots.axes import StepAxis, style_axis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.source import of_the_other
from inspector.gui.widgets.plots.stepplot import StepPlot, curve
from inspector.gui.widgets.tables.sorted_table import Rows, SortedTable
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
MAP, BY_LAYER, BY_MODULE = ("layer", "step"), ("statistic", "layer"), ("statistic", "module")
RANK, LENS, PROBABILITY = "residual/rank", "residual/lens_token", "residual/lens_probability"
FIRST = ("residual/norm", "residual/gradient", LENS, PROBABILITY)
"""What is offered first; the rest by its name."""
COLLAPSE = ("distance from rank one", "mean cosine")
POSITION = "position"
"""The statistic of massive activations that is a step."""
ZOOM = "words where a step is wide enough"
MOST_ROWS = 24
MARGIN = 0.05
FIGURE, TABLE = 0, 1


@PANELS.register("residual")
class Residual(Panel):
    """One channel of kind "residual" at a time: a map over (layer, step), curves by layer, or a table."""

    tab_order, tab_row = 62, "upper"
    menu_group = "inside"
    key, title = "residual", "Residual"
    hint = (
        "The residual stream of a transformer by layer and step: its norm and gradient, what the model would predict "
        "at every layer (logit lens), rank collapse, massive activations, scales of layer norms. Needs layers in a "
        "list that attend. Positions: what is added or multiplied for each, scores by distance, rotary frequencies."
    )
    extra = ("residual", "residual/gradient", "residual/lens", "positions")
    needs_height = 220

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Maps over layer and step, statistics by layer or by module; positions."""
        if channel.kind == KIND:
            return channel.dims in MAPS or channel.dims in CURVES
        return channel.kind == "residual" and channel.dims in (MAP, BY_LAYER, BY_MODULE)

    def concerns(self, name: str) -> bool:
        """Quantities of the stream and of positions that could not be computed."""
        return f":{KIND}" in name or (":residual" in name and "sensitivity" not in name)

    def picture(self) -> QWidget:
        """The figure, and the table in its place where a table is shown."""
        self.table = SortedTable("layer", "Statistics by layer")
        self.table.chosen.connect(self._chosen)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.figure)
        self.pages.addWidget(self.table)
        return self.pages

    def build(self) -> None:
        """The map with words in its cells, and the curves."""
        self.which = self.add_choice("Show", "What of the residual stream is shown")
        self.where = self.add_choice("Stack", "Stack of layers")
        self.row = MapRow(self.figure, 0, self.steps, self.theme, label="layer")
        self.row.map.setFlag(self.row.map.GraphicsItemFlag.ItemUsesExtendedStyleOption)
        self.layer_axis = StepAxis("left")
        self.row.plot.setAxisItems({"left": self.layer_axis})
        self.layer_axis.setWidth(58)
        self.words = CellTexts()
        self.row.plot.addItem(self.words, ignoreBounds=True)
        self.row.map.in_view.changed.connect(self.draw_if_seen, Qt.ConnectionType.QueuedConnection)
        self.plot = StepPlot(None, self.theme, label="rank collapse", bottom="layer")
        self.lines = [curve(self.theme, number, width=1.8) for number in range(2)]
        for line in self.lines:
            self.plot.addItem(line)
        self.legend = Legend(self.plot, self.lines, COLLAPSE)
        self.figure.addItem(self.plot, row=1, col=0)
        self.positions = PositionsView(self.theme)
        for number, item in enumerate(self.positions.items):
            self.figure.addItem(item, row=2 + number, col=0, colspan=2)
        self.plots = [self.row.plot, self.plot, self.positions.map.plot, self.positions.plot]
        self.reset()

    def reset(self) -> None:
        """Another model: no layer is marked."""
        if not self.same_model:
            self.layer: int | None = None

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.row.set_theme(theme)
        self.words.theme = theme
        style_axis(self.layer_axis, theme, "layer")
        for number, line in enumerate(self.lines):
            line.setPen(pg.mkPen(theme.series[number], width=1.8))
        self.legend.set_theme(theme)
        self.positions.set_theme(theme)
        self.table.set_theme(theme)
        super().set_theme(theme)

    # -- what is chosen

    def shown(self) -> Channel | None:
        """The chosen channel of the chosen stack."""
        found = [one for one in self.channels() if one.signal == self.which.currentData()]
        return next((one for one in found if one.place == self.where.currentText()), found[0] if found else None)

    def beside(self, channel: Channel, signal: str) -> Channel | None:
        """Another channel of the same stack."""
        return next((one for one in self.channels() if one.place == channel.place and one.signal == signal), None)

    def names(self, channel: Channel) -> tuple[str, ...]:
        """Names of the layers, or modules."""
        return channel.labels.get("module" if channel.dims == BY_MODULE else "layer", ())

    def brief(self, channel: Channel) -> list[str]:
        """The names without that of their stack: "into 0", "0", "1"."""
        return [name.replace(f"{channel.place}.", "") for name in self.names(channel)]

    # -- drawing

    def update_contents(self) -> None:
        """The chosen channel."""
        channels = sorted(
            self.channels(), key=lambda one: FIRST.index(one.signal) if one.signal in FIRST else len(FIRST)
        )
        offer(self.which, distinct({one.signal: one.title for one in channels}))
        own = [one.place for one in channels if one.signal == self.which.currentData()]
        set_options(self.where, list(dict.fromkeys(own)))
        channel = self.shown()
        assert channel is not None
        as_map, as_curves = channel.dims == MAP, channel.signal == RANK
        of_positions = channel if channel.kind == KIND else None
        for item in (self.row.plot, self.row.bar):
            item.setVisible(as_map)
        self.plot.setVisible(as_curves)
        self.positions.show(self.capture, self.frame, of_positions)
        self.pages.setCurrentIndex(FIGURE if as_map or as_curves or of_positions is not None else TABLE)
        if of_positions is not None:
            return
        (self._draw_map if as_map else self._draw_curves if as_curves else self._fill_table)(channel)

    def values(self, channel: Channel) -> Array:
        """A channel's numbers, NaN where they are not known."""
        assert self.capture is not None
        return with_nan(self.capture.array(channel.name, self.frame)).astype(np.float64)

    def _draw_map(self, channel: Channel) -> None:
        """A map; classes are words, on the probability of the class that the model predicts."""
        coloured = channel
        if channel.value_domain:
            coloured = self.beside(channel, PROBABILITY) or channel
        assert self.capture is not None
        classes = bool(channel.value_domain)
        if classes and coloured is channel:  # no probability was captured: words alone
            levels, values = Levels(0.0, 1.0, masked=True), np.full_like(self.values(channel), -np.inf)
        else:
            values = self.values(coloured)
            both = np.concatenate((values.ravel(), of_the_other(self.capture, coloured)))
            levels = levels_of(both, coloured.scale, coloured.limits)
        gaps = gaps_of(self.capture, coloured.name, self.frame, x=1, y=0)
        self.row.show_array(values.T, levels, coloured.unit, gaps=gaps)
        self.row.plot.set_title(channel.title, f"colour: {coloured.title}; {ZOOM}" if classes else "")
        self.row.plot.step_axis.set_names(self.step_names())
        self.layer_axis.set_names(self.brief(channel))
        self.words.setVisible(classes)
        if classes:
            numbers = self.values(channel)
            drawn = self.row.map.levels
            self.words.set_texts(lambda i, j: self.word(channel, numbers[i, j]), drawn.index(values), drawn.table)

    def word(self, channel: Channel, number: float) -> str:
        """The name of a class, its number where it has none, nothing where it is not known."""
        assert self.capture is not None
        if not np.isfinite(number):
            return ""
        names = self.capture.labels(channel.value_domain, self.frame)
        return token(names[int(number)]) if 0 <= number < len(names) else str(int(number))

    def _draw_curves(self, channel: Channel) -> None:
        values = self.values(channel)
        for line, name in zip(self.lines, COLLAPSE, strict=True):
            row = find_row(channel, name)
            line.setData(
                np.arange(values.shape[1]), values[row] if row is not None else np.full(values.shape[1], np.nan)
            )
        self.plot.vb.setXRange(-0.5, max(1, values.shape[1]) - 0.5, padding=0)
        known = values[np.isfinite(values)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        self.plot.vb.setYRange(low - MARGIN, high + MARGIN, padding=0)
        self.plot.step_axis.set_names(self.brief(channel))
        self.plot.set_title(channel.title, "distance 0: all positions are alike")

    def _fill_table(self, channel: Channel) -> None:
        """A row for each layer or module, a column for each statistic."""
        assert self.capture is not None
        cells = exact(self.capture, channel.name, self.frame, ())
        headings = channel.labels.get("statistic", ())
        rows = [[value if isinstance(value, str) else float(value) for value in column] for column in cells.T]
        self.table.numbers.first = channel.dims[1]
        self.table.show_table(Rows(self.names(channel), headings, rows, [channel.formula] * len(headings)))

    # -- the cursor

    def follow(self, new: Position, old: Position) -> None:
        """The marked layer follows the cursor's place."""
        channel = self.shown()
        names = self.names(channel) if channel is not None and channel.kind != KIND else ()
        if new.place != old.place and new.place in names:
            self.layer = names.index(new.place)
        there = self.layer if self.layer is not None and self.layer < len(names) else None
        self.row.show_row(there)
        if channel is not None and channel.signal == RANK:
            self.plot.show_cursor(there)
        self.table.choose(there, scroll=False)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to a step of the map, and the layer is marked; over the curves the layer alone."""
        if plot in (self.positions.map.plot, self.positions.plot):
            if self.positions.point(self.capture, self.frame, x, y):
                self.drawn.emit()
            return
        self._mark(round(y if plot is self.row.plot else x), {"step": round(x)} if plot is self.row.plot else {})

    def _chosen(self, row: int) -> None:
        """A row of the table: its layer, and the step of its massive activation."""
        channel = self.shown()
        if channel is None or self.capture is None:
            return
        at = find_row(channel, POSITION)
        value = np.nan if at is None else self.values(channel)[at, row]
        self._mark(row, {"step": int(value)} if np.isfinite(value) else {})

    def _mark(self, layer: int, step: dict[str, int]) -> None:
        channel = self.shown()
        names = self.names(channel) if channel is not None else ()
        if not names:
            return
        self.layer = min(max(layer, 0), len(names) - 1)
        before = self.looking.position
        place = names[self.layer]
        self.looking.move(**step, **({} if place.startswith("into ") else {"place": place}))
        self.follow(self.looking.position, self.looking.position)
        if self.looking.position == before:
            self.drawn.emit()

    # -- numbers

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """All that is known of the marked layer at the step; without a marked layer what is shown, of every layer."""
        channel = self.shown()
        if self.state != "figure" or self.capture is None or channel is None:
            return []
        if channel.kind == KIND:
            return self.positions.rows(self.capture, self.frame)
        if channel.dims != MAP:
            return self._statistics(channel)
        if self.layer is None or self.layer >= len(self.names(channel)):
            cells = [(channel, layer) for layer in range(len(self.names(channel)))]
        else:
            others = [one for one in self.channels() if one.dims == MAP and one.place == channel.place]
            cells = [(one, self.layer) for one in others]
        return [row for one, layer in cells[:MOST_ROWS] for row in self._cell(one, layer, position.step)]

    def _cell(self, channel: Channel, layer: int, step: int | None) -> list[tuple[str, str]]:
        assert self.capture is not None
        layers, steps = self.capture.extent(channel.name, self.frame)
        if step is None or step >= steps or layer >= layers:
            return []
        value = exact_at(self.capture, channel.name, self.frame, layer, step)
        is_class = bool(channel.value_domain) and not isinstance(value, str)
        told = self.word(channel, float(value)) if is_class else measured(value, channel.unit)
        return [(f"{self.changed(channel)}{channel.title} [{step}]  {self.names(channel)[layer]}", told)]

    def _statistics(self, channel: Channel) -> list[tuple[str, str]]:
        """Every statistic of the marked layer."""
        assert self.capture is not None
        names = self.names(channel)
        if self.layer is None or self.layer >= len(names):
            return []
        values = exact(self.capture, channel.name, self.frame, (slice(None), slice(self.layer, self.layer + 1)))[:, 0]
        named = zip(channel.labels.get("statistic", ()), values, strict=False)
        return [
            (f"{channel.title}: {name}  {names[self.layer]}", measured(value, channel.unit)) for name, value in named
        ]

    def data(self) -> dict[str, Array]:
        """Everything of the stream."""
        assert self.capture is not None
        return {channel.name: self.capture.array(channel.name, self.frame) for channel in self.channels()}

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        """The figure, or the table as text."""
        if self.over.on or self.state != "figure" or self.pages.currentIndex() == FIGURE:
            super().paint(painter, rect)
            return
        painter.fillRect(rect, QColor(self.theme.window))
        self.table.paint_text(painter, rect, self.theme)
