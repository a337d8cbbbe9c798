"""Moves along an axis by itself, one step after the other."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from inspector.gui.state.cursor import Cursor

PLAY_MS = 120


class Player(QObject):
    """Moves the shared cursor on until the last step of the axis that was in focus when it began. `playing(on)`."""

    playing = Signal(bool)

    def __init__(self, looking: Cursor, parent: QObject) -> None:
        super().__init__(parent)
        self.looking = looking
        self.axis = looking.focused
        self._timer = QTimer(self, interval=PLAY_MS)
        self._timer.timeout.connect(self._on)

    def toggle(self) -> None:
        """Begin (from the start, where the cursor is at the end), or stop."""
        if self._timer.isActive():
            self.stop()
            return
        self.axis = self.looking.focused
        if self._at_end():
            self.looking.move(steps={self.axis: 0})
        self._timer.start()
        self.playing.emit(True)

    def stop(self) -> None:
        """Stop moving."""
        if self._timer.isActive():
            self._timer.stop()
            self.playing.emit(False)

    def _at_end(self) -> bool:
        step = self.looking.position.at(self.axis)
        return step is None or step >= self.looking.length_of(self.axis) - 1

    @Slot()
    def _on(self) -> None:
        if self._at_end():
            self.stop()
        else:
            self.looking.advance(1, self.axis)
