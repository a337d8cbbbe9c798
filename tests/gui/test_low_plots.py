"""Low plots: the label of their horizontal axis stands at the left of its numbers and their legend beside their title,
so that what is drawn has the room; and in no panel of a small window is a plot too low to be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyqtgraph as pg
import pytest
from panel_captures import channel, shown
from PySide6.QtCore import QRectF, QSize
from PySide6.QtWidgets import QApplication, QFrame, QLabel, QScrollArea, QVBoxLayout, QWidget

from inspector.capture import open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.figure import Figure
from inspector.gui.panel.registry import PANELS
from inspector.gui.widgets.control_row import MARGIN, SPACING, ControlRow
from inspector.gui.widgets.controls import caption, chooser
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.widgets.tile_grid import TileGrid

HIGH, LOW = 320, 130
LEAST = 40
"""Pixels of height of a plot in which a curve can be read."""
OF_A_WINDOW, OF_A_SMALL_ONE = (826, 268), (580, 160)
"""A panel of the upper row at 1280 × 800, without its controls, and at 960 × 540."""


@pytest.fixture
def figure(qapp: QApplication) -> Iterator[Figure]:
    made = Figure(lambda _line, _trace: None)
    yield made
    made.close()
    made.deleteLater()


def stand(figure: Figure, qapp: QApplication, size: tuple[int, int], bottom: str = "step") -> Any:
    plot = StepPlot(None, LIGHT, label="value", bottom=bottom)
    figure.addItem(plot, row=0, col=0)
    plot.set_title("gates, rnn.l0")
    Legend(plot, [curve(LIGHT, n) for n in range(2)], ["input gate i", "forget gate f"])
    figure.resize(*size)
    figure.show()
    for _ in range(3):
        qapp.processEvents()
    return plot


def placed(item: Any) -> QRectF:
    return QRectF(item.mapRectToScene(item.boundingRect()))


def test_the_texts_of_a_low_plot_stand_beside_each_other(figure: Figure, qapp: QApplication) -> None:
    plot = stand(figure, qapp, (600, LOW))
    label, box = placed(plot.getAxis("bottom").label), plot.vb.sceneBoundingRect()
    assert label.right() <= box.left() and label.left() >= 0, "at the left of the numbers"
    assert label.bottom() <= plot.sceneBoundingRect().bottom() + 4
    title, legend = placed(plot.titleLabel.item), placed(plot.legend_above)
    assert title.right() <= legend.left() and legend.right() <= box.right() + 1
    assert legend.top() < title.bottom() and legend.bottom() <= box.top() + 1, "in the row of the title"
    assert box.height() >= LOW - 60, "which leaves the curves all but a title and a row of numbers"


def test_a_high_plot_has_its_label_below_and_its_legend_under_the_title(figure: Figure, qapp: QApplication) -> None:
    plot = stand(figure, qapp, (600, HIGH))
    label, box = placed(plot.getAxis("bottom").label), plot.vb.sceneBoundingRect()
    assert abs(label.center().x() - box.center().x()) < 2 and label.top() > box.bottom()
    assert placed(plot.legend_above).top() >= placed(plot.titleLabel.item).bottom() - 8
    figure.resize(600, LOW)
    for _ in range(3):
        qapp.processEvents()
    assert placed(plot.getAxis("bottom").label).right() <= plot.vb.sceneBoundingRect().left(), "and beside, made low"
    figure.resize(600, HIGH)
    for _ in range(3):
        qapp.processEvents()
    assert abs(placed(plot.getAxis("bottom").label).center().x() - plot.vb.sceneBoundingRect().center().x()) < 2


def test_what_has_no_room_beside_stays_where_it_was(figure: Figure, qapp: QApplication) -> None:
    plot = stand(figure, qapp, (300, LOW), bottom="a label that is longer than the room at the left")
    label, box = placed(plot.getAxis("bottom").label), plot.vb.sceneBoundingRect()
    assert label.top() > box.bottom() and label.center().x() > box.left()
    plot.set_title("a title that takes all of the row, rnn.l0")
    qapp.processEvents()
    assert placed(plot.legend_above).top() >= placed(plot.titleLabel.item).bottom() - 8
    plot.set_title("short")
    qapp.processEvents()
    assert placed(plot.legend_above).left() >= placed(plot.titleLabel.item).left()


@pytest.mark.parametrize("size", [OF_A_WINDOW, OF_A_SMALL_ONE])
@pytest.mark.parametrize("key", sorted(PANELS))
def test_no_plot_of_a_panel_is_too_low_to_be_read(a_capture: Path, key: str, size: tuple[int, int]) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, size, LIGHT)
        try:
            panel = stage.panel(key)
            panel.resize(*size)
            panel.show()
            for _ in range(4):
                QApplication.processEvents()
            if panel.state != "figure":
                pytest.skip("this capture has nothing of it")
            plots = [one for one in panel.figure.scene().items() if isinstance(one, pg.PlotItem) and one.isVisible()]
            heights = {" ".join(getattr(one.titleLabel, "lines", ())): one.vb.height() for one in plots}
            assert {name: height for name, height in heights.items() if height < LEAST} == {}
        finally:
            stage.close()


def test_tokens_in_cells_are_not_written_over_each_other(tmp_path: Path) -> None:
    steps, ranks = 4, 8
    ids = np.arange(steps * ranks).reshape(steps, ranks) % 4
    parts = (
        channel("output:p", "output", ("step", "rank"), np.full((steps, ranks), 0.1, np.float32)),
        channel("output:token", "output", ("step", "rank"), ids, value_domain="vocabulary"),
    )

    def inked(panel: Any, height: int) -> int:
        """Pixels of another colour than that of the cells, which is one: those of words."""
        panel.figure.setMinimumHeight(1)
        panel.figure.setFixedSize(900, height)
        for _ in range(3):
            QApplication.processEvents()
        box = panel.figure.mapFromScene(panel.row.plot.vb.sceneBoundingRect()).boundingRect()
        image = panel.figure.grab(box.adjusted(2, 2, -2, -2)).toImage()
        colours = Counter(image.pixel(x, y) for x in range(0, image.width(), 2) for y in range(image.height()))
        return sum(colours.values()) - colours.most_common(1)[0][1]

    with shown(tmp_path, "outputs", *parts) as (_, panel):
        large, small = inked(panel, 500), inked(panel, 150)
        assert panel.row.plot.vb.height() / ranks < 9
        assert large > 10 * max(1, small), "cells that are lower than a line have no words"


def test_plots_of_a_panel_that_becomes_narrow_are_as_wide_as_it(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, OF_A_WINDOW, LIGHT)
        try:
            panel: Any = stage.panel("paths")
            panel.show()
            for width in (826, 410, 826, 410):
                panel.resize(width, 260)
                for _ in range(4):
                    QApplication.processEvents()
                columns = 3 if width == 826 else 1
                least = (panel.figure.width() - 40) / columns - 4
                assert [plot.size().width() >= least for plot, _ in panel._shown] == [True] * 4, width
        finally:
            stage.close()


def test_curves_without_a_table_have_all_of_the_height(tmp_path: Path) -> None:
    with shown(tmp_path, "outputs", channel("output:loss", "output", ("step",), np.ones(9, np.float32))) as (_, panel):
        for _ in range(3):
            QApplication.processEvents()
        assert panel.curves.plot.size().height() > 0.9 * panel.figure.height()


def test_a_control_that_says_more_than_before_is_not_cut(qapp: QApplication, qtbot: Any) -> None:
    row = ControlRow()
    qtbot.addWidget(row)
    choices = [chooser(["a"], "one"), chooser(["a"], "other")]
    for box in choices:
        row.first.addWidget(caption("Layer"))
        row.first.addWidget(box)
    row.settle([])
    row.resize(260, 80)
    row.show()
    qtbot.wait(30)
    assert choices[0].y() == choices[1].y()
    for box in choices:
        box.addItem("a name that takes the row")
    qtbot.waitUntil(lambda: choices[0].y() != choices[1].y(), timeout=2000)
    assert all(box.width() >= box.minimumSizeHint().width() for box in choices)


class Needing(QFrame):
    """A control that is cut below a width which is more than it asks for, as a combo box may be."""

    def sizeHint(self) -> QSize:
        return QSize(60, 20)

    def minimumSizeHint(self) -> QSize:
        return QSize(75, 20)


def test_controls_that_need_more_than_they_ask_for_go_to_another_row(qtbot: Any) -> None:
    row = ControlRow()
    qtbot.addWidget(row)
    controls = [Needing() for _ in range(5)]
    for one in controls:
        row.first.addWidget(one)
        one.setMinimumWidth(10)
    row.settle([QLabel()])
    row.resize(5 * 60 + 4 * SPACING + 2 * MARGIN + 10, 80)
    row.show()
    qtbot.wait(30)
    assert [one.width() >= 75 for one in controls] == [True] * 5


def test_tiles_stand_below_their_heading_at_each_width(qtbot: Any) -> None:
    page = QWidget()
    qtbot.addWidget(page)
    column = QVBoxLayout(page)
    heading, grid = QLabel("At a glance"), TileGrid(QSize(200, 100))
    for part in (heading, grid, QLabel("Notes")):
        column.addWidget(part)
    column.addStretch(1)
    grid.show_tiles([QLabel(str(n)) for n in range(6)])
    area = QScrollArea()
    qtbot.addWidget(area)
    area.setWidgetResizable(True)
    area.setWidget(page)
    area.resize(700, 400)
    area.show()
    for width in (700, 260, 700, 460):
        area.resize(width, 400)
        qtbot.wait(30)
        assert grid.y() - heading.geometry().bottom() <= column.spacing() + 1, width
        assert grid.height() == grid.heightForWidth(grid.width()), width
