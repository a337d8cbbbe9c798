"""A line to type into that leaves the window's keys to the window."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit

CTRL = Qt.KeyboardModifier.ControlModifier


class LineField(QLineEdit):
    """On Linux Ctrl+E would go to the end of the line, as End does, and never edit the run that is shown."""

    def event(self, event: QEvent) -> bool:
        """Pass Ctrl+E on before it counts as typed here."""
        ours = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_E and event.modifiers() == CTRL
        if ours and event.type() == QEvent.Type.ShortcutOverride:
            event.ignore()
            return False
        return super().event(event)
