"""Keys that move the cursor: along the axis that a panel shows, and from unit to unit."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from inspector.gui.state.cursor import Looking

KEYS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}


class KeyMoves(QWidget):
    """A widget with a cursor of its own (`looking`)."""

    looking: Looking

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right move by steps (with Shift by ten), Home and End jump, up and down change the unit."""
        key, many = Qt.Key(event.key()), 10 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
        if key in KEYS:
            self.looking.advance(KEYS[key] * many)
        elif key == Qt.Key.Key_Home:
            self.looking.move(step=0)
        elif key == Qt.Key.Key_End:
            self.looking.move(step=max(0, self.looking.length - 1))
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self.move_by(-many if key == Qt.Key.Key_Up else many)
        else:
            super().keyPressEvent(event)

    def move_by(self, rows: int) -> None:
        """Up and down: the next unit, unless a subclass uses them otherwise."""
        unit = self.looking.position.unit
        self.looking.move(unit=max(0, (unit if unit is not None else 0) + rows))
