"""On a dark ground edges and masked cells are seen as on a light one."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QSpinBox,
    QStyleOptionGraphicsItem,
    QTreeWidgetItem,
    QWidget,
)
from pytestqt.qtbot import QtBot

from inspector.gui.panel.over_iterations.curve_tree import CurveTree
from inspector.gui.widgets.check_boxes import CheckBoxes
from inspector.gui.widgets.images.heatmap import Heatmap
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import DARK, LIGHT, STYLE, Theme, colour_table


def contrast(one: QColor, other: QColor) -> float:
    """The ratio of WCAG 2: 1 for equal colours, 21 for black on white."""
    lights = []
    for colour in (one, other):
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.getRgbF()[:3]]
        lights.append(0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] + 0.05)
    return max(lights) / min(lights)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("make", [QLineEdit, QSpinBox, QComboBox, QCheckBox])
def test_fields_and_boxes_have_an_edge_that_is_seen(
    qtbot: QtBot, qapp: QApplication, theme: Theme, make: type[QWidget]
) -> None:
    before = QPalette(qapp.palette())
    theme.apply(qapp)
    try:
        window = QWidget()
        qtbot.addWidget(window)
        window.setStyleSheet(STYLE)
        field = make(window)
        field.setGeometry(10, 10, 120, 26)
        window.resize(160, 50)
        window.show()
        qapp.processEvents()
        image = window.grab().toImage()
        across = [QColor(image.pixel(x, 23)) for x in range(4, 60)]
        assert contrast(across[0], QColor(theme.window)) < 1.05, "the ground stays as it is"
        assert max(contrast(one, QColor(theme.window)) for one in across[:14]) > (1.9 if theme.dark else 1.3)
    finally:
        qapp.setPalette(before)


@pytest.mark.parametrize("scale", ["attention", "sequential", "log"])
def test_what_is_masked_is_told_from_the_lowest_number_on_a_dark_ground(scale: str) -> None:
    lowest = QColor.fromRgb(int(colour_table(scale)[0]))
    assert contrast(lowest, QColor(DARK.masked)) > 1.4
    item = Heatmap()
    item.theme = DARK
    item.set_array(np.array([[0.0, -np.inf], [1.0, 0.0]]), Levels(0.0, 1.0, scale, masked=True))
    image = QImage(20, 20, QImage.Format.Format_ARGB32)
    image.fill(QColor(DARK.base))
    painter = QPainter(image)
    painter.translate(5, 5)
    painter.scale(10, 10)
    item.paint(painter, QStyleOptionGraphicsItem())
    painter.end()
    assert {image.pixelColor(x, y).name() for x in (5, 15) for y in (5, 15)} >= {DARK.masked, lowest.name()}


def test_an_axis_takes_another_theme_and_another_label(qapp: QApplication) -> None:
    plot = StepPlot(None, LIGHT, label="<b>")
    axes = [plot.getAxis("left"), plot.getAxis("bottom")]
    for theme in (LIGHT, DARK, LIGHT):
        plot.set_theme(theme)
        for axis in axes:
            assert axis.pen().color().name() == theme.grid and axis.textPen().color().name() == theme.muted
            assert f"color: {theme.muted}" in axis.labelString()
    assert "&lt;b>" in axes[0].labelString()
    plot.label_left("norm")
    assert "norm" in axes[0].labelString() and "step" in axes[1].labelString()


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_boxes_of_curves_have_an_edge_that_is_seen(theme: Theme, qtbot: QtBot) -> None:
    tree = CurveTree()
    qtbot.addWidget(tree)
    tree.setStyleSheet(STYLE)
    tree.set_theme(theme)
    item = QTreeWidgetItem(tree.tree, [""])
    item.setCheckState(0, Qt.CheckState.Unchecked)
    tree.resize(200, 200)
    tree.show()
    image = tree.tree.viewport().grab(tree.tree.visualItemRect(item)).toImage()
    row = {image.pixelColor(x, image.height() // 2).name() for x in range(image.width())}
    assert max(contrast(QColor(name), QColor(theme.base)) for name in row) > (1.9 if theme.dark else 1.3)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_boxes_of_other_lists_have_one_too(theme: Theme, qapp: QApplication, qtbot: QtBot) -> None:
    theme.apply(qapp)
    try:
        view = QListWidget()
        qtbot.addWidget(view)
        CheckBoxes(view)
        item = QListWidgetItem("", view)
        item.setCheckState(Qt.CheckState.Unchecked)
        view.resize(200, 100)
        view.show()
        image = view.viewport().grab(view.visualItemRect(item)).toImage()
        row = {image.pixelColor(x, image.height() // 2).name() for x in range(image.width())}
        assert max(contrast(QColor(name), QColor(theme.base)) for name in row) > (1.9 if theme.dark else 1.3)
    finally:
        LIGHT.apply(qapp)
