"""Sorted values by rank: singular values of a matrix, or a Lyapunov spectrum."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.widgets.plots.axes import LogAxis
from inspector.gui.widgets.plots.stepplot import StepPlot, curve, logarithm
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]


class RankPlot(StepPlot):
    """Values over rank 1 … n with the line `level` marked; with `log`, logarithms are shown."""

    def __init__(self, theme: Theme, *, label: str, bottom: str, log: bool, level: float) -> None:
        self.line = curve(theme, 0)
        self.mark = pg.InfiniteLine(level, angle=0)
        self.log, self.level = log, level
        super().__init__(None, theme, label=label, bottom=bottom)
        if log:
            self.setAxisItems({"left": LogAxis()})
            self.getAxis("left").setWidth(58)
        self.getAxis("left").enableAutoSIPrefix(False)
        self.addItem(self.line, ignoreBounds=True)
        self.addItem(self.mark, ignoreBounds=True)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        super().set_theme(theme)
        self.line.setPen(pg.mkPen(theme.series[0], width=1.2))
        self.line.setSymbolBrush(pg.mkBrush(theme.series[0]))
        self.line.setSymbolPen(None)
        self.mark.setPen(pg.mkPen(theme.muted, width=1, style=pg.QtCore.Qt.PenStyle.DashLine))

    def show_values(self, values: Array, ranks: Array | None = None) -> None:
        """Draw values (n,) at their ranks, by default 1 … n; values that are not finite are left out."""
        at = np.arange(1, len(values) + 1) if ranks is None else ranks
        y = logarithm(values) if self.log else np.where(np.isfinite(values), values, np.nan)
        fine = np.isfinite(y)
        self.line.setData(at[fine], y[fine], symbol="o", symbolSize=5 if len(y) <= 256 else 3)
        finite = np.append(y[fine], self.level)
        margin = 0.08 * (finite.max() - finite.min()) or 0.5
        self.vb.setYRange(float(finite.min() - margin), float(finite.max() + margin), padding=0)
        self.vb.setXRange(0.5, max(2.0, float(at.max(initial=2))) + 0.5, padding=0)
