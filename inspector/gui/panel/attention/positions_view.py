"""Positions of a model: encodings and scores by distance as maps, similarity and rotary frequencies as curves."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.pyramid import with_nan
from inspector.gui.panel.attention.several_in_a_pixel import means_in_view
from inspector.gui.panel.base import measured
from inspector.gui.panel.exact import exact_at
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.images.quantise import levels_of
from inspector.gui.widgets.maps.head_map import HeadMap
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.plots.axes import LogAxis, ValueAxis, style_axis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
Cell = tuple[int, int]
KIND = "positions"
ENCODING, COSINE, BY_DISTANCE = ("position", "component"), ("position", "other"), ("head", "distance")
SIMILARITY, FREQUENCY = ("statistic", "distance"), ("head", "pair")
MAPS, CURVES = (ENCODING, COSINE, BY_DISTANCE), (SIMILARITY, FREQUENCY)
WORDS = {"other": "other position", "distance": "distance: position of the query − that of the key"}
MOST_CURVES = 6
"""Heads whose frequencies are drawn: as a rule those of all are the same."""
NEAR = 0.01
"""Decades by which frequencies of heads may differ and are one curve: they are read off rounded numbers."""
MARGIN = 0.04
AXIS = 58
"""Pixels of width of the axis of the curves."""


class PositionsView:
    """A map and curves, one of them shown. `items` are to be placed in a figure."""

    def __init__(self, theme: Theme) -> None:
        self.map = HeadMap(theme)
        self.map.reads_first = True
        self.map.plot.step_axis.numbered = False
        self.map.profiles = False
        self.plot = StepPlot(None, theme, label="", bottom="")
        self.lines = [curve(theme, number, width=1.6) for number in range(MOST_CURVES)]
        for line in self.lines:
            self.plot.addItem(line)
        self.legend = Legend(self.plot, (), (), theme)
        self.items = (self.map, self.plot)
        self.channel: Channel | None = None
        self.values: Array = np.zeros((0, 0))
        self.cell: Cell | None = None
        self._drawn = ""

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.map.set_theme(theme)
        self.plot.set_theme(theme)
        for number, line in enumerate(self.lines):
            line.setPen(theme.series[number], width=1.6)
        self.legend.set_theme(theme)

    def show(self, view: Any, frame: int, channel: Channel | None) -> None:
        """A channel of positions, or none."""
        self.channel = channel
        self.map.setVisible(channel is not None and channel.dims in MAPS)
        self.map.plot.setVisible(self.map.isVisible())
        self.plot.setVisible(channel is not None and channel.dims in CURVES)
        if channel is None:
            return
        anew, self._drawn = channel.name != self._drawn, channel.name
        if anew:
            self.cell = None
        self.values = with_nan(view.array(channel.name, frame)).astype(np.float64)
        names = tuple(view.labels(channel.domain(channel.dims[1]), frame))
        if channel.dims in MAPS:
            self._show_map(view, frame, channel, names, anew)
        else:
            self._show_curves(channel, names)

    def _show_map(self, view: Any, frame: int, channel: Channel, names: tuple[str, ...], anew: bool) -> None:
        rows, columns = self.values.shape
        gaps = gaps_of(view, channel.name, frame, x=1, y=0)
        levels = levels_of(self.values.ravel(), channel.scale, channel.limits)
        nan = bool(np.isnan(self.values).any()) and not gaps
        self.map.plot.label(*(WORDS.get(dim, dim) for dim in channel.dims))
        self.map.show_map(
            partial(means_in_view, self.values), (columns, rows), levels, channel.unit,
            revision=(channel.name, frame, view.revision(channel.name, frame)), special=(nan, False), gaps=gaps,
            anew=anew,
        )  # fmt: skip
        self.map.name((), names)
        self.mark(view, frame)

    def _show_curves(self, channel: Channel, names: tuple[str, ...]) -> None:
        shown = self.values[:MOST_CURVES]
        logarithmic = channel.scale == "log"
        if logarithmic:
            shown = np.log10(np.where(shown > 0, shown, np.nan))
            shown = shown[:1] if np.allclose(shown, shown[:1], atol=NEAR, equal_nan=True) else shown
        called = channel.labels.get("statistic") or tuple(f"head {n}" for n in range(len(shown)))
        for entry, _ in list(self.legend.entries):
            self.legend.removeItem(entry)
        for number, line in enumerate(self.lines):
            there = number < len(shown)
            line.setVisible(there)
            line.setData(np.arange(shown.shape[1]), shown[number] if there else np.full(shown.shape[1], np.nan))
            if there and len(shown) > 1:
                self.legend.addItem(line, called[number])
        finite = shown[np.isfinite(shown)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        room = MARGIN * max(high - low, 1e-9)
        self.plot.vb.setXRange(-0.5, max(1, shown.shape[1]) - 0.5, padding=0)
        self.plot.vb.setYRange(low - room, high + room, padding=0)
        self._scale_left(log=logarithmic)
        self.plot.label_left(channel.unit if logarithmic else "cosine")
        self.plot.label_bottom("pair of components" if logarithmic else "distance of two positions")
        self.plot.step_axis.set_names(names)
        self.plot.set_title(f"{channel.title}, {clean(channel.place)}", channel.method)

    def _scale_left(self, *, log: bool) -> None:
        """Powers of ten at the ticks of logarithms, plain numbers elsewhere."""
        if isinstance(self.plot.getAxis("left"), LogAxis) != log:
            axis = LogAxis() if log else ValueAxis()
            self.plot.setAxisItems({"left": axis})
            axis.setWidth(AXIS)
            style_axis(axis, self.plot.theme, "")
            self.plot.label_left("")

    def point(self, view: Any, frame: int, x: float, y: float) -> bool:
        """The cell of a map, or the column of curves, at a position of a plot; whether it is another one."""
        before = self.cell
        rows, columns = self.values.shape
        row, column = 0 if self.channel is None or self.channel.dims in CURVES else round(y), round(x)
        self.cell = (row, column) if 0 <= row < rows and 0 <= column < columns else None
        self.mark(view, frame)
        return self.cell != before

    def mark(self, view: Any, frame: int) -> None:
        """The marked cell, and what is known of it above the map."""
        if self.channel is None:
            return
        if self.channel.dims in CURVES:
            self.plot.show_cursor(None if self.cell is None else self.cell[1])
            return
        self.map.show_cursor(*(self.cell or (None, None)))
        how = self.channel.method.rstrip(".") + self._shared()
        what = f"{clean(self.channel.title)}, {clean(self.channel.place)}   {how}"
        read = "; ".join(f"{name}: {value}" for name, value in self.rows(view, frame))
        self.map.set_heading(f"{read}   {what}" if read else what)

    def _shared(self) -> str:
        """What is said of cells that share a pixel while the whole map is in view."""
        room = self.map.plot.vb
        shared = self.values.shape[0] > room.height() or self.values.shape[1] > room.width()
        return "; whole: the mean of those in a pixel" if shared else ""

    def rows(self, view: Any, frame: int) -> list[tuple[str, str]]:
        """What is known of the marked cell, or column."""
        channel = self.channel
        if channel is None or self.cell is None:
            return []
        row, column = self.cell
        names = tuple(view.labels(channel.domain(channel.dims[1]), frame))
        there = names[column] if column < len(names) else str(column)
        rows = [row] if channel.dims in MAPS else range(len(self.values))
        called = channel.labels.get("statistic", ())
        return [
            (
                f"{called[n] if called else f'{channel.dims[0]} {n}'}, {channel.dims[1]} {there}",
                measured(exact_at(view, channel.name, frame, n, column), channel.unit),
            )
            for n in rows
        ][:24]
