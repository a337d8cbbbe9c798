"""The plot of what data need beside what the gradient reaches: what is drawn at which height."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtWidgets import QApplication

from inspector.gui.widgets.charts.reachplot import LEAST, ReachPlot
from inspector.gui.widgets.theme import DARK, LIGHT

NEEDED = np.array([[0.5, 0.0, 0.1], [0.01, 0.01, 0.01], [1.0, 0.0, 1.0]])
GRADIENT = np.array([[2.0, 0.2, 0.0], [1.0, 0.1, 0.0], [4.0, 0.4, np.nan]])


def test_both_are_shares_and_only_certain_lags_have_a_dot(qapp: QApplication) -> None:
    view = pg.GraphicsLayoutWidget()
    plot = ReachPlot(LIGHT)
    view.addItem(plot)
    plot.show_rows(NEEDED, GRADIENT)
    plot.set_theme(DARK)
    assert plot.gradient.getData()[1] == pytest.approx([0.0, -1.0, LEAST])
    lag, height = plot.needed.getData()
    assert lag.tolist() == [0, 2] and height == pytest.approx(np.log10([0.5, 0.1]))
    view.grab()
    plot.show_rows(None, GRADIENT)
    assert not plot.isVisible()
