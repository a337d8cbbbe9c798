"""Depth: the same curves as along time, with the layer as axis: gradients, their ratios, the size of the state."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtGui import QResizeEvent

from inspector.gui.panel.arranged import Arranged, Cell, is_wide
from inspector.gui.panel.base import Panel, measured
from inspector.gui.panel.exact import exact
from inspector.gui.panel.labelled import row_of, rows_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.centred import LEAST, about_zero, is_centred
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.images.quantise import LOGARITHMIC, levels_of
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.plots.axes import LogAxis, ValueAxis, style_axis
from inspector.gui.widgets.plots.source import glance, overview_of
from inspector.gui.widgets.plots.stepplot import curve, logarithm
from inspector.gui.widgets.plots.titled_plot import TitledPlot
from inspector.gui.widgets.plots.view import View
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
SHAPES = (("statistic", "layer"), ("layer",), ("step", "layer"), ("statistic", "module"))
SIZE = "root mean square"
"""The statistic of a module's gradients that is drawn: norms grow with the number of parameters."""
FEW, MOST_MODULES, MOST_ROWS = 8, 12, 24
ROW = 135
"""Pixels of height that a row of plots needs."""
"""Layers and modules up to which every one is named on the axis, and lines of the readout."""


class LayerPlot(TitledPlot):
    """A plot over layers (or modules), the lowest on the left, on a logarithmic or a plain axis."""

    def __init__(self, *, log: bool, over: str = "layer", named: int = FEW) -> None:
        axes = {"left": LogAxis() if log else ValueAxis()}
        super().__init__(viewBox=View(), axisItems=axes)
        self.over, self.named, self.log, self.centred = over, named, log, False
        self.getAxis("left").setWidth(52)
        self.getAxis("bottom").enableAutoSIPrefix(False)
        self.line = curve_of()
        self.addItem(self.line)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        style_axis(self.getAxis("left"), theme)
        style_axis(self.getAxis("bottom"), theme, self.over)
        self.vb.setBackgroundColor(theme.base)
        self.line.setPen(pg.mkPen(theme.series[0], width=1.8))
        self.line.setSymbolBrush(pg.mkBrush(theme.series[0]))
        self.line.setSymbolPen(None)

    def draw(self, values: Array) -> None:
        """Draw a value for each layer; NaN is a gap."""
        shown = values if np.isfinite(values).any() else values[:0]
        self.line.setData(np.arange(len(shown)), shown)

    def name_layers(self, names: tuple[str, ...]) -> None:
        """Names under the axis, numbers where there are many."""
        shown = brief(names) if len(names) <= self.named else [str(i) for i in range(len(names))]
        every = max(1, -(-len(shown) // 20))
        self.getAxis("bottom").setTicks([[(i, shown[i]) for i in range(0, len(shown), every)]])
        self.vb.setXRange(-0.5, max(1, len(names)) - 0.5, padding=0)

    def fit(self, *rows: Array) -> None:
        """The range of all rows; on a logarithmic axis the line 1 is not forced into view, unless it is the middle."""
        values = np.concatenate([np.ravel(row) for row in rows])
        values = values[np.isfinite(values)]
        if len(values):
            low, high = float(values.min()), float(values.max())
            low, high = about_zero(low, high, LEAST if self.log else 0.0) if self.centred else (low, high)
            margin = 0.12 * (high - low) or 0.3
            self.vb.setYRange(low - margin, high + margin, padding=0)


def brief(names: tuple[str, ...]) -> list[str]:
    """Names without their common prefix: "rnn.l0 / rnn.l1" becomes "l0/l1"."""
    parts = [name.split(" / ") for name in names]
    words = [part.split(".") for pair in parts for part in pair]
    most = min((len(word) for word in words), default=1) - 1
    cut = next((i for i in range(most) if len({word[i] for word in words}) > 1), most)
    return ["/".join(".".join(part.split(".")[cut:]) for part in pair) for pair in parts]


def curve_of() -> pg.PlotDataItem:
    """An empty line with dots."""
    return pg.PlotDataItem(connect="finite", antialias=True, symbol="o", symbolSize=7)


@PANELS.register("depth")
class Depth(Panel):
    """Channels of kind "depth": (statistic, layer) and (layer,) above, then (statistic, module), the map below."""

    tab_order = 160
    menu_group = "gradients"
    key, title = "depth", "Depth"
    hint = (
        "Gradients and states from layer to layer. Needs two or more recurrent layers in series, or, for the gradients "
        "of the parameters, any model with a loss."
    )
    shows = ("depth",)
    extra = ("depth/parameters",)

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Anything over layers."""
        return channel.kind == "depth" and channel.dims in SHAPES

    def concerns(self, name: str) -> bool:
        """Quantities over layers that could not be computed."""
        return name.startswith("layers:")

    def build(self) -> None:
        """Three small plots in a row, those of the parameters and the map under them."""
        self.top = pg.GraphicsLayout()
        self.top.layout.setContentsMargins(0, 0, 0, 0)
        self.gradient, self.ratio, self.rms = LayerPlot(log=True), LayerPlot(log=True), LayerPlot(log=False)
        for column, plot in enumerate((self.gradient, self.ratio, self.rms)):
            self.top.addItem(plot, row=0, col=column)
        self.parameters = LayerPlot(log=True, over="module", named=MOST_MODULES)
        self.low, self.high = curve(self.theme, 0, width=0.6), curve(self.theme, 0, width=0.6)
        self.band = pg.FillBetweenItem(self.low, self.high)
        for item in (self.band, self.low, self.high):
            self.gradient.addItem(item)
        self.bars = pg.BarGraphItem(x=[], height=[], width=0.5, y0=0)
        self.one = pg.InfiniteLine(0, angle=0)
        self.ratio.addItem(self.bars)
        self.ratio.addItem(self.one, ignoreBounds=True)
        self.ratio.line.hide()
        self.row = MapRow(self.figure, 0, self.steps, self.theme, label="layer")
        self.arranged = Arranged(self.figure, [self.top, self.parameters, self.row.plot, self.row.bar])
        self.plots = [self.row.plot]

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another form of the panel: another layout."""
        super().resizeEvent(event)
        if self.state == "figure" and not self.over.on:
            self._arrange()

    def _arrange(self) -> None:
        """Rows of what there is; in a wide panel the parameters stand beside the map, so that it is in view."""
        above = any(self.of(dims, log=log) is not None for dims in SHAPES[:2] for log in (True, False))
        drawn, below = self.of(SHAPES[2]) is not None, self.of(SHAPES[3]) is not None
        beside = below and drawn and is_wide(self.width(), self.height())
        cells: dict[Any, Cell] = {self.top: (0, 0, 1, 3)} if above else {}
        row = len(cells)
        if below:
            cells[self.parameters] = (row, 0, 1, 1 if beside else 3)
        if drawn:
            row, column = (row, 1) if beside else (row + below, 0)
            cells |= {self.row.plot: (row, column, 1, 1 if beside else 2), self.row.bar: (row, 2, 1, 1)}
        rows = 1 + max((cell[0] for cell in cells.values()), default=0)
        if self.arranged.place(cells, [1] * rows, (2, 3, 0)):
            self.figure.setMinimumHeight(ROW * rows)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for plot in (self.gradient, self.ratio, self.rms, self.parameters):
            plot.set_theme(theme)
        for edge in (self.low, self.high):
            edge.setPen(pg.mkPen(theme.series[0] + "60", width=0.6))
        self.band.setBrush(pg.mkBrush(theme.series[0] + "38"))
        self.bars.setOpts(brush=pg.mkBrush(theme.series[1]), pen=pg.mkPen(None))
        self.one.setPen(pg.mkPen(theme.muted, width=1, style=pg.QtCore.Qt.PenStyle.DashLine))
        self.row.set_theme(theme)
        super().set_theme(theme)

    def of(self, dims: tuple[str, ...], *, log: bool = True) -> Channel | None:
        """The first channel with these dims and this kind of axis."""
        found = (c for c in self.channels() if c.dims == dims and (c.scale in LOGARITHMIC) is log)
        return next(found, None)

    def values(self, channel: Channel) -> Array:
        """A channel's numbers."""
        assert self.capture is not None
        return self.capture.array(channel.name, self.frame)

    def told_of(self, channel: Channel) -> Array:
        """The same for the readout: words where they are not known."""
        assert self.capture is not None
        return exact(self.capture, channel.name, self.frame, ())

    def update_contents(self) -> None:
        """The channels that exist; a model without a loss has sizes only."""
        self._draw_gradient(self.of(("statistic", "layer")))
        self._draw_ratio(self.of(("layer",)))
        self._draw_size(self.of(("layer",), log=False))
        self._draw_parameters(self.of(("statistic", "module")))
        self._draw_map(self.of(("step", "layer")))
        self._arrange()

    def _begin(self, plot: LayerPlot, channel: Channel | None) -> Array | None:
        plot.setVisible(channel is not None)
        if channel is None:
            return None
        plot.centred = is_centred([channel])
        plot.name_layers(channel.labels.get(channel.dims[-1], ()))
        unit = "" if channel.unit == "1" else f", {channel.unit}"
        plot.title_in(self.theme.text, f"{channel.title}{unit}")
        return self.values(channel)

    def _draw_gradient(self, channel: Channel | None) -> None:
        values = self._begin(self.gradient, channel)
        if values is None or channel is None:
            return
        mean, low, high = rows_of(channel, logarithm(values), "mean", "p10", "p90")
        x = np.arange(len(mean))
        for item in (self.band, self.low, self.high):
            item.setVisible(not self.differs)  # ratios of quantiles are not a band
        self.gradient.draw(mean)
        self.low.setData(x, low)
        self.high.setData(x, high)
        self.gradient.fit(mean, low, high)

    def _draw_ratio(self, channel: Channel | None) -> None:
        values = self._begin(self.ratio, channel)
        if values is None:
            return
        rows = logarithm(values)
        there = np.flatnonzero(np.isfinite(rows))
        assert channel is not None
        names = channel.labels.get("layer", ())
        marked = (
            name if np.isfinite(row) else f"{name} = {value:g}"
            for name, row, value in zip(names, rows, values, strict=False)
        )  # fmt: skip
        self.ratio.name_layers(tuple(marked))
        self.bars.setOpts(x=there, height=rows[there], width=0.5, y0=0)
        self.ratio.fit(rows, np.array([-0.3, 0.3]))

    def _draw_size(self, channel: Channel | None) -> None:
        values = self._begin(self.rms, channel)
        if values is not None:
            self.rms.draw(values)
            self.rms.fit(values, np.zeros(1))

    def _draw_parameters(self, channel: Channel | None) -> None:
        values = self._begin(self.parameters, channel)
        if values is not None and channel is not None:
            (sizes,) = rows_of(channel, logarithm(values), SIZE)
            self.parameters.draw(sizes)
            self.parameters.fit(sizes)

    def _draw_map(self, channel: Channel | None) -> None:
        if channel is None:
            return
        assert self.capture is not None
        steps, layers = self.capture.extent(channel.name, self.frame)
        levels, nan, infinite = glance(self.capture, channel, self.frame)
        if steps < 2:
            levels = levels_of(self.values(channel), channel.scale, None)
        self.row.show(
            overview_of(self.capture, channel.name, self.frame), steps, layers, levels, channel.unit,
            self.capture.revision(channel.name, self.frame), nan=nan, infinite=infinite,
            gaps=gaps_of(self.capture, channel.name, self.frame),
        )  # fmt: skip
        self.row.plot.set_title(channel.title)
        self.row.plot.step_axis.set_names(self.step_names())
        names = channel.labels.get("layer", ())
        shown = [(i, names[i] if layers <= FEW else str(i)) for i in range(0, len(names), max(1, layers // 20))]
        self.row.plot.getAxis("left").setTicks([shown])

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step and the layer under the mouse."""
        channel = self.of(("step", "layer"))
        if plot is not self.row.plot or channel is None:
            return
        names = channel.labels.get("layer", ())
        place = {"place": names[round(y)]} if 0 <= round(y) < len(names) else {}
        self.looking.move(step=round(x), **place)

    def clicked(self, plot: Any, x: float, y: float) -> None:
        """In a plot over layers or modules a clicked one becomes the cursor's place."""
        shapes = {self.gradient: ("statistic", "layer"), self.parameters: ("statistic", "module")}
        of_rms = self.of(("layer",), log=False) if plot is self.rms else None
        channel = self.of(shapes[plot]) if plot in shapes else of_rms
        if channel is None:
            self.pointed(plot, x, y)
            return
        names = channel.labels.get(channel.dims[-1], ())
        if 0 <= round(x) < len(names):
            self.looking.move(place=names[round(x)])

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The ratios, and the gradient of every layer at the step."""
        rows = []
        ratio, grid = self.of(("layer",)), self.of(("step", "layer"))
        if ratio is not None:
            names = ratio.labels.get("layer", ())
            rows = [
                (f"{ratio.title} {name}", measured(value, ratio.unit))
                for name, value in zip(names, self.told_of(ratio), strict=False)
            ]
        step = position.step
        if grid is not None and step is not None and self.capture is not None:
            values = exact(self.capture, grid.name, self.frame, (slice(step, step + 1),))
            names = grid.labels.get("layer", ())
            rows += [
                (f"‖∂L/∂h‖ [{step}]  {name}", measured(value, grid.unit))
                for name, value in zip(names, values.reshape(-1), strict=False)
            ]
        modules = self.of(("statistic", "module"))
        if modules is not None:
            sizes = self.told_of(modules)[row_of(modules, SIZE)]
            named = zip(modules.labels.get("module", ()), sizes, strict=False)
            rows += [
                (f"parameter gradient {i}  {name}", measured(value, modules.unit))
                for i, (name, value) in enumerate(named)
            ]
        return rows[:MOST_ROWS]

    def data(self) -> dict[str, Array]:
        """Everything over layers."""
        return {channel.name: self.values(channel) for channel in self.channels()}
