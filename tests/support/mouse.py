"""A mouse over a panel's plots: real events for wheel, drag and double click."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.gui.panel.base import Panel
from inspector.gui.widgets.plots.view import View

LEFT, NONE, SHIFT = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier


def point(panel: Panel, view: View, x: float = 0.5, y: float = 0.5) -> QPoint:
    """A place in a plot, as shares of its width and height."""
    box = view.sceneBoundingRect()
    return panel.figure.mapFromScene(QPointF(box.left() + x * box.width(), box.top() + y * box.height()))


def wheel(panel: Panel, at: QPoint, held: Any = NONE) -> None:
    port = panel.figure.viewport()
    event = QWheelEvent(
        QPointF(at), QPointF(port.mapToGlobal(at)), QPoint(), QPoint(0, 240), Qt.MouseButton.NoButton, held,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(port, event)


def drag(panel: Panel, first: QPoint, last: QPoint, held: Any = NONE) -> None:
    port = panel.figure.viewport()
    QTest.mousePress(port, LEFT, held, first)
    for share in (0.3, 0.6, 1.0):
        at = first + (last - first) * share
        event = QMouseEvent(
            QEvent.Type.MouseMove, QPointF(at), QPointF(port.mapToGlobal(at)), Qt.MouseButton.NoButton, LEFT, held
        )
        QTest.qWait(12)  # the scene drops moves that follow each other within 10 ms
        QApplication.sendEvent(port, event)
    QTest.mouseRelease(port, LEFT, held, last)


def double_click(panel: Panel, at: QPoint) -> None:
    port = panel.figure.viewport()
    QTest.mouseClick(port, LEFT, pos=at)
    QTest.mouseDClick(port, LEFT, pos=at)
    QTest.mouseRelease(port, LEFT, pos=at)
