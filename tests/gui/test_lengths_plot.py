"""Time and memory by length, as the panel Pre-flight draws them."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QApplication

from inspector.gui.widgets.charts.lengths_plot import LengthsPlot
from inspector.gui.widgets.theme import LIGHT

TABLE = np.array([[10.0, 20, 40], [0.1, 0.2, 0.8], [0.1, 0.1, 0.4], [0.1, 0.4, 0.8], [100, 200, 400]])


def test_both_are_drawn_beside_those_of_the_run(qapp: QApplication) -> None:
    plot = LengthsPlot(LIGHT)
    plot.show_table(TABLE, 20)
    x, time = plot.time.getData()
    assert np.allclose(10**x, [10, 20, 40]) and np.allclose(10**time, [0.5, 1, 4])
    assert np.allclose(10 ** plot.memory.getData()[1], [0.5, 1, 2])
    assert np.allclose(10 ** plot.range.opts["top"], [1, 2, 1]) and np.allclose(
        10 ** plot.range.opts["bottom"], [1, 2, 2]
    )
    plot.show_table(None, np.nan)
    assert not plot.isVisible()
