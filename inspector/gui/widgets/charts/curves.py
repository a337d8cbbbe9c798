"""A family of curves over steps on one axis, with a legend and the line 1 marked.

Where more than two steps share a pixel, lines through all of them would be solid blocks that cover each other: each is
its mean there, between thin lines of its extremes, where a panel asks for that (`again` draws it once more, since a
plot has its width only after it was drawn first).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QTimer

from inspector.capture import Capture
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.centred import LEAST, about_zero, is_centred, label_of
from inspector.gui.widgets.charts.band_of_curve import BandOfCurve
from inspector.gui.widgets.charts.banded_lines import CROWD
from inspector.gui.widgets.charts.bands import crowded
from inspector.gui.widgets.gaps import NONE, gaps_of
from inspector.gui.widgets.plots.axes import LogAxis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.source import Array, line_of, stride_of
from inspector.gui.widgets.plots.stepplot import StepPlot, curve, isolated, logarithm
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

OWN = {
    "jacobian/frobenius_norm": 0, "jacobian/frobenius_norm_scaled": 1, "jacobian/carousel_norm": 2,
    "jacobian/spectral_norm": 3, "jacobian/spectral_radius": 4, "jacobian/bound": 5,
}  # fmt: skip
"""Colours that do not depend on which other channels are shown; this affects the colour only: what is drawn is chosen
by kind and axes."""
MOST_READ = 1 << 18
"""Steps of a channel that are read for its mean; of more the extremes alone are drawn, which are kept ready."""


class Curves:
    """Lines of (step,) channels in one plot; redrawn for what is in view."""

    def __init__(
        self, steps: StepRange, theme: Theme, *, label: str, log: bool, one: bool = False,
        again: Callable[[], object] | None = None,
    ) -> None:  # fmt: skip
        self.plot = StepPlot(steps, theme, label=label)
        self._bands: dict[str, BandOfCurve] = {}
        self._bounds, self._pixels, self._again = (0.0, 0.0), 0.0, again
        self.dense = False
        """Whether means and extremes are drawn."""
        self._soon = QTimer(self.plot, interval=0, singleShot=True)
        self._soon.timeout.connect(self._draw_again)
        if again is not None:
            self.plot.vb.sigResized.connect(lambda _: self._soon.start())
        self.log, self.label = log, label
        if log:
            self.plot.setAxisItems({"left": LogAxis()})
            self.plot.getAxis("left").setWidth(58)
        self.legend = Legend(self.plot)
        self.lines: dict[str, pg.PlotDataItem] = {}
        self.points: dict[str, pg.ScatterPlotItem] = {}
        """Points that no line reaches: a loss at the last step only, or a sequence of one step."""
        self.unseen: list[str] = []
        """Titles of those of which nothing in view can be drawn: NaN or infinite, or 0 on a logarithmic axis."""
        self._titles: list[str] = []
        self._numbers: dict[str, int] = {}
        self._steps = 0
        self.one = pg.InfiniteLine(0 if log else 1, angle=0)
        if one:
            self.plot.addItem(self.one, ignoreBounds=True)
        self.centre = pg.InfiniteLine(0, angle=0)
        self.centre.hide()
        self.plot.addItem(self.centre, ignoreBounds=True)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.plot.set_theme(theme)
        for middle in (self.one, self.centre):
            middle.setPen(pg.mkPen(theme.muted, width=1, style=pg.QtCore.Qt.PenStyle.DashLine))
        self.legend.set_theme(theme)
        for name, line in self.lines.items():
            colour = theme.series[self._numbers[name] % len(theme.series)]
            line.setPen(pg.mkPen(colour, width=1.4, style=line.opts["pen"].style()))
            self.points[name].setBrush(pg.mkBrush(colour))
            if name in self._bands:
                self._bands[name].set_colour(colour)

    @property
    def crowd(self) -> str:
        """What is drawn of steps that share pixels, for a title; "" where each step is drawn."""
        return CROWD.removeprefix(", ") if self.dense else ""

    def _is_crowded(self, pixels: float) -> bool:
        low, high = self._bounds
        return self._again is not None and pixels > 0 and crowded(min(high, self._steps) - max(0.0, low), pixels)

    def _draw_again(self) -> None:
        """Where what was drawn would look otherwise at the width that the plot has now."""
        pixels = self.plot.vb.width()
        if pixels != self._pixels and self.lines and (self.dense or self._is_crowded(pixels)):
            assert self._again is not None
            self._again()

    def show(self, capture: Capture, channels: list[Channel], frame: int, bounds: tuple[float, float]) -> None:
        """Draw these channels over the steps in view."""
        names, titles = [channel.name for channel in channels], [channel.titled for channel in channels]
        if names != list(self.lines) or titles != self._titles:
            self._remake(channels)
            self._titles = titles
        self.plot.label_left(label_of(channels, self.label))
        low, high = [], []
        self.unseen = []
        self._bounds, self._pixels = bounds, self.plot.vb.width()
        self._steps = max((capture.extent(name, frame)[0] for name in names), default=0)
        self.dense = self._steps <= MOST_READ and self._is_crowded(self._pixels)
        gaps = NONE
        for channel in channels:
            x, y = self._line(capture, channel, frame, bounds)
            own = gaps_of(capture, channel.name, frame, y=None)
            gaps |= own
            self.lines[channel.name].setData(x, y)
            alone = isolated(x, y)
            self.points[channel.name].setData(x=x[alone], y=y[alone])
            y = np.concatenate((y, *self._extremes(channel.name)))
            finite = y[np.isfinite(y)]
            if not len(finite) and not own:
                self.unseen.append(channel.titled)
            elif len(finite):
                low.append(float(finite.min()))
                high.append(float(finite.max()))
        self.plot.mark_gaps(gaps)
        self.centre.setVisible(is_centred(channels))
        self._fit(low, high, centred=is_centred(channels))

    def _line(self, capture: Capture, channel: Channel, frame: int, bounds: tuple[float, float]) -> tuple[Array, Array]:
        """What is drawn of a channel: (x, y)."""
        scaled = logarithm if self.log else _as_it_is
        if self.dense and stride_of(capture, channel.name, frame) == 1:
            band = self._bands.get(channel.name)
            if band is None:
                line = self.lines[channel.name]
                band = self._bands[channel.name] = BandOfCurve(self.plot, line.opts["pen"].color().name())
                self.legend.belongs(line, *band.edges)
            return band.show(capture, channel.name, frame, bounds, int(self._pixels / 2), scaled)
        if channel.name in self._bands:
            self._bands[channel.name].hide()
        x, y = line_of(capture, channel.name, frame, bounds)
        return x, scaled(y)

    def _extremes(self, name: str) -> tuple[Array, ...]:
        return self._bands[name].extremes if name in self._bands else ()

    def _fit(self, low: list[float], high: list[float], *, centred: bool) -> None:
        if not low:
            return
        bottom, top = min(low), max(high)
        if centred:
            bottom, top = about_zero(bottom, top, LEAST if self.log else 0.0)
        if self.log and self.one.scene() is not None:
            bottom, top = min(bottom, 0.0), max(top, 0.0)
        margin = 0.06 * (top - bottom) or (0.5 if self.log else 0.5 * abs(top) or 0.5)
        self.plot.vb.setYRange(bottom - margin, top + margin, padding=0)

    def _remake(self, channels: list[Channel]) -> None:
        for item in (*self.lines.values(), *self.points.values()):
            self.plot.removeItem(item)
        for band in self._bands.values():
            band.remove()
        self._bands = {}
        self.legend.clear()
        several = len({channel.place for channel in channels}) > 1
        self.lines, self.points = {}, {}
        self._numbers = dict(zip([c.name for c in channels], colours(channels, several), strict=True))
        for channel in channels:
            number = self._numbers[channel.name]
            line = curve(self.theme, number, dashed=number >= len(self.theme.series))
            self.plot.addItem(line)
            self.lines[channel.name] = line
            dots = self.points[channel.name] = pg.ScatterPlotItem(size=7, pen=None, brush=line.opts["pen"].color())
            self.plot.addItem(dots)
            self.legend.addItem(line, f"{channel.titled}  {channel.place}" if several else channel.titled, dots)


def _as_it_is(values: Array) -> Array:
    return values.astype(np.float64)


def colours(channels: Sequence[Channel], several: bool) -> list[int]:
    """The number of each channel's colour: its own where it has one, so that it looks the same for every model.

    The lines of several places are distinguished by their order.
    """
    if several:
        return list(range(len(channels)))
    taken = {OWN[c.signal] for c in channels if c.signal in OWN}
    free = iter(number for number in range(len(channels) + len(OWN)) if number not in taken)
    return [OWN[c.signal] if c.signal in OWN else next(free) for c in channels]
