"""A plot without pyqtgraph's hidden form draws what one with it draws."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtWidgets import QApplication, QWidget

from inspector.gui.widgets.plots.bare_plot import BarePlot
from inspector.gui.widgets.plots.quiet_axis import QuietAxis

pytestmark = pytest.mark.usefixtures("qtbot")


def filled(plot: pg.PlotItem) -> pg.PlotItem:
    """A curve, points, a bar and a title, with names at both axes and a range of its own."""
    plot.addItem(pg.PlotDataItem([0, 1, 2, 3], [1.0, 4.0, 2.0, 3.0], symbol="o"))
    plot.addItem(pg.ScatterPlotItem([0.5, 1.5], [3.0, 2.0]))
    plot.addItem(pg.BarGraphItem(x=[2.5], height=[2.0], width=0.4))
    plot.setTitle("numbers")
    plot.setLabel("left", "value")
    plot.setLabel("bottom", "step", units="s")
    plot.setRange(xRange=(0, 4000), yRange=(0, 5))
    plot.setRange(xRange=(0, 4), yRange=(0, 5))
    return plot


def picture(plot: pg.PlotItem) -> np.ndarray:
    """The pixels of a plot alone in a view, (height, width, 4)."""
    view = pg.GraphicsView()
    view.setCentralItem(plot)
    view.resize(320, 200)
    drawn = view.grab().toImage()
    return np.frombuffer(drawn.constBits(), np.uint8).reshape(drawn.height(), drawn.width(), 4).copy()


def test_it_draws_what_a_plot_of_pyqtgraphs_draws() -> None:
    usual = filled(pg.PlotItem(enableMenu=False, axisItems={"top": pg.AxisItem("top")}))
    bare = filled(BarePlot(axisItems={"top": QuietAxis("top")}))
    expected = picture(usual)
    assert len(np.unique(expected.reshape(-1, 4), axis=0)) > 10
    np.testing.assert_array_equal(picture(bare), expected)


def test_it_makes_no_widgets_and_leaves_pyqtgraph_as_it_was() -> None:
    BarePlot()  # the first makes one form
    before = len(QApplication.allWidgets())
    plots = [BarePlot() for _ in range(3)]
    assert len(QApplication.allWidgets()) == before, plots
    usual = pg.PlotItem()
    assert isinstance(usual.ctrl.alphaGroup, QWidget)
    assert type(usual.getAxis("top")) is pg.AxisItem


def test_what_would_be_written_into_the_form_is_an_error() -> None:
    with pytest.raises(AttributeError):
        BarePlot().showGrid(x=True)


def test_a_label_is_laid_out_when_it_changes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    axis = QuietAxis("left")
    laid = []
    usual = pg.AxisItem._updateLabel
    monkeypatch.setattr(pg.AxisItem, "_updateLabel", lambda self: (laid.append(1), usual(self)))
    axis.setLabel("loss", units="nat")
    assert "loss (nat)" in axis.label.toPlainText()
    first = len(laid)
    axis.setRange(0, 2)
    axis.setRange(0, 3)
    assert len(laid) == first
    axis.setRange(0, 3e6)
    assert "loss (Mnat)" in axis.label.toPlainText()
    axis.setLabel("")
    assert not axis.label.isVisible()
