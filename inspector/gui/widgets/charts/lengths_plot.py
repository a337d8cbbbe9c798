"""Time and memory of a step of training by length, each relative to that of this run's length."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.gui.widgets.plots.axes import LogAxis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]


class LengthsPlot(StepPlot):
    """Both logarithmic by the logarithm of the steps; time with its range over the repetitions."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(None, theme, label="times this run", bottom="steps of the sequence", log=True)
        self.setAxisItems({"left": LogAxis()})
        self.getAxis("left").setWidth(58)
        self.time, self.memory = (curve(theme, number, width=1.8) for number in range(2))
        self.range = pg.ErrorBarItem(x=np.zeros(0), y=np.zeros(0), top=np.zeros(0), bottom=np.zeros(0))
        for one in (self.time, self.memory, self.range):
            self.addItem(one)
        self.names = Legend(self, (self.time, self.memory), ("time", "memory kept for the backward pass"))
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        super().set_theme(theme)
        if not hasattr(self, "names"):
            return  # the base sets its theme before there is anything here
        for number, line in enumerate((self.time, self.memory)):
            line.setPen(pg.mkPen(theme.series[number], width=1.8))
        self.range.setOpts(pen=pg.mkPen(theme.series[0], width=1.2))
        self.names.set_theme(theme)

    def show_table(self, table: Array | None, own: float) -> None:
        """Draw (steps, seconds, least, most, bytes) by length; hidden without it. `own`: the steps of the run."""
        self.setVisible(table is not None)
        if table is None:
            return
        at = int(np.abs(table[0] - own).argmin())
        x = np.log10(table[0])
        with np.errstate(divide="ignore", invalid="ignore"):
            time, memory = (np.log10(row / row[at]) for row in table[[1, 4]])
            least, most = np.log10(table[2] / table[1, at]), np.log10(table[3] / table[1, at])
        self.time.setData(x, time)
        self.memory.setData(x, np.where(np.isfinite(memory), memory, np.nan))
        self.range.setData(x=x, y=time, top=most - time, bottom=time - least)
        drawn = np.concatenate([least, most, memory[np.isfinite(memory)]])
        self.vb.setXRange(x[0], x[-1], padding=0.05)
        self.vb.setYRange(drawn.min(), drawn.max(), padding=0.08)
        self.set_title("time and memory of a step of training, by length", f"1: at {own:.0f} steps, as in this run")
