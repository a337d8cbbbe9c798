"""Ctrl and a drag on a strip of steps: the steps that are chosen for the table, marked above them."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, QRect, Qt
from PySide6.QtGui import QColor, QMouseEvent, QPainter

from inspector.gui.state.chosen_steps import chosen_of
from inspector.gui.state.cursor import Looking
from inspector.records import STEP_DOMAIN

HIGH = 3
"""Pixels of height of the mark."""


class StripRange(QObject):
    """Of one strip."""

    def __init__(self, strip: Any) -> None:
        super().__init__(strip)
        self._strip = strip
        self._chosen = chosen_of(strip.cursor_)
        self._from: int | None = None
        self._dragged = False
        self._chosen.changed.connect(strip.update)

    @property
    def axis(self) -> str:
        """That of the strip."""
        cursor = self._strip.cursor_
        return str(cursor.axis) if isinstance(cursor, Looking) else STEP_DOMAIN

    def pressed(self, event: QMouseEvent, step: int) -> bool:
        """Whether a range begins at a step."""
        held = event.modifiers() & Qt.KeyboardModifier.ControlModifier
        if not held or event.button() != Qt.MouseButton.LeftButton:
            return False
        self._from, self._dragged = step, False
        return True

    def moved(self, step: int) -> bool:
        """Whether a range is drawn, and goes on to a step."""
        if self._from is None:
            return False
        self._dragged |= step != self._from
        if self._dragged:
            self._chosen.show(((min(self._from, step), max(self._from, step)),), self.axis)
        return True

    def released(self) -> bool:
        """Whether a range was drawn, whose table is shown then. A click alone chooses none."""
        if self._from is None:
            return False
        self._from = None
        if self._dragged:
            self._chosen.wanted.emit()
        else:
            self._chosen.show((), self.axis)
        return True

    def paint(self, painter: QPainter, step: int, box: QRect) -> None:
        """The mark above a step that is chosen."""
        if any(first <= step <= last for first, last in self._chosen.along(self.axis)):
            painter.fillRect(QRect(box.left(), box.top(), box.width(), HIGH), QColor(self._strip.theme.cursor))
