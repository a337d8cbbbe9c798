"""Every panel of the registry over every capture: it draws, its numbers are the capture's; then every control of it is used,
to its ends: nothing raises, no panel falls to its error page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QDoubleSpinBox, QLineEdit, QSpinBox, QWidget

from inspector.capture import Capture, open_capture
from inspector.gui.export.figure_files import picture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.base import Panel
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.theme import DARK, LIGHT

SIZES = ((1000, 520), (420, 240))
MOST_CHOICES = 4
KEYS = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Home, Qt.Key.Key_End)


@pytest.fixture(autouse=True)
def faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was raised in slots; nothing may be."""
    found: list[str] = []

    def note(kind: type[BaseException], fault: BaseException, _trace: TracebackType | None) -> None:
        found.append(f"{kind.__name__}: {fault}")

    monkeypatch.setattr(sys, "excepthook", note)
    yield found
    assert not found


@pytest.fixture(scope="module")
def any_opened(any_capture: Path) -> Iterator[Capture]:
    """Opened once for all panels, which only read it."""
    with open_capture(any_capture) as capture:
        yield capture


def use_controls(panel: Panel) -> None:
    """Every box to each of its entries, every number to its ends, every switch there and back."""
    for widget in panel.control_row.findChildren(QWidget):
        if isinstance(widget, QComboBox):
            for index in (*range(min(MOST_CHOICES, widget.count())), widget.count() - 1, 0):
                widget.setCurrentIndex(index)
                check(panel)
        elif isinstance(widget, QSpinBox | QDoubleSpinBox):
            before = widget.value()
            for value in (widget.minimum(), widget.maximum(), before):
                widget.setValue(value)
                check(panel)
        elif isinstance(widget, QAbstractButton) and widget.isCheckable():
            for _ in range(2):
                widget.click()
                check(panel)
        elif isinstance(widget, QLineEdit) and not isinstance(widget.parent(), QComboBox | QSpinBox | QDoubleSpinBox):
            widget.setText("<b>x")
            QTest.keyClick(widget, Qt.Key.Key_Return)
            check(panel)


def use_marks(panel: Panel) -> None:
    """Every line and region that can be dragged, far out and back."""
    for item in panel.figure.scene().items():
        if isinstance(item, pg.InfiniteLine) and item.movable:
            before = item.value()
            for value in (-1e9, 1e9, before):
                item.setValue(value)
                item.sigPositionChangeFinished.emit(item)
                check(panel)
        elif isinstance(item, pg.LinearRegionItem) and item.movable:
            before = item.getRegion()
            for region in ((-1e9, 1e9), (0, 0), before):
                item.setRegion(region)
                item.sigRegionChangeFinished.emit(item)
                check(panel)


def use_mouse_and_keys(panel: Panel) -> None:
    """The mouse over the corners of every plot and far beside them, and every key."""
    for item in list(panel.figure.ci.items):
        for x, y in ((0.0, 0.0), (-3.0, -3.0), (1e7, 1e7), (2.4, 1.6)):
            panel.pointed(item, x, y)
    for key in KEYS:
        QTest.keyClick(panel, key)
        check(panel)
    for position in (Position(), Position(step=0, unit=0, head=0, key=0), Position(step=10**9, unit=10**9, key=10**9)):
        panel.readout(position)


def check(panel: Panel) -> None:
    """Drawn, painted where anything changed, and not broken."""
    QApplication.processEvents()
    assert panel.state == "figure", panel._error.toPlainText()


def colours(image: QImage) -> int:
    """How many different colours a picture has (an empty one has one)."""
    small = image.scaled(200, 120).convertToFormat(QImage.Format.Format_RGB32)
    return len({small.pixel(x, y) for x in range(0, 200, 2) for y in range(0, 120, 2)})


def draws(panel: Panel, stage: Stage) -> None:
    """The panel has a picture, a readout at both ends, and the numbers of its capture; it can be zoomed."""
    assert panel.state == "figure", panel._error.toPlainText()
    assert colours(picture(panel, 1.0)) > 3
    for step in (0, stage.steps.length - 1):
        stage.cursor.move(step=step, unit=1, head=1, key=0, place="rnn.l0")
        panel.readout(stage.cursor.position)
    for name, array in panel.data().items():
        if name in stage.capture.channels:
            np.testing.assert_array_equal(array, stage.capture.array(name))
    stage.steps.zoom(0.3, stage.steps.length / 2)
    panel.redraw()
    assert panel.state == "figure", panel._error.toPlainText()
    stage.steps.show_all()


@pytest.mark.parametrize("key", sorted(set(PANELS) - {"weights"}))  # test_weights_panel.py
def test_every_panel_draws_every_capture_and_takes_every_control(
    request: pytest.FixtureRequest, any_opened: Capture, key: str, qapp: QApplication
) -> None:
    """Each in one theme, and each panel in both, in turns: what a theme changes does not depend on the numbers."""
    case: str = request.node.callspec.params["any_capture"]
    theme = (LIGHT, DARK)[(sorted(PANELS).index(key) + len(case)) % 2]
    stage = Stage(any_opened, SIZES[0], theme)
    panel = stage.panel(key)
    draws(panel, stage)
    if case != "normal":  # "broken" is the same with NaN and infinities in it
        use_controls(panel)
    use_marks(panel)
    panel.resize(*SIZES[1])
    use_mouse_and_keys(panel)
    low, high = stage.steps.bounds
    for bounds in ((low, low + 1), (np.mean((low, high)), high), (low, high)):
        stage.steps.set(*bounds)
        check(panel)
    stage.close()
