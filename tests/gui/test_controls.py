"""Every control of every panel is used, to its ends: nothing raises, no panel falls to its error page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QDoubleSpinBox, QLineEdit, QSpinBox, QWidget

from inspector.capture import open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.base import Panel
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position

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
    """Drawn, painted, and not broken."""
    panel.figure.viewport().repaint()
    QApplication.processEvents()
    assert panel.state == "figure", panel._error.toPlainText()


@pytest.mark.parametrize("key", sorted(PANELS))
def test_every_control_of_every_panel(any_capture: Path, key: str, qapp: QApplication) -> None:
    with open_capture(any_capture) as capture:
        stage = Stage(capture, SIZES[0])
        panel = stage.panel(key)
        if panel.state == "figure":
            use_controls(panel)
            use_marks(panel)
            panel.resize(*SIZES[1])
            use_mouse_and_keys(panel)
            low, high = stage.steps.bounds
            for bounds in ((low, low + 1), (np.mean((low, high)), high), (low, high)):
                stage.steps.set(*bounds)
                check(panel)
        else:
            assert panel.state == "empty", panel._error.toPlainText()
        stage.close()
