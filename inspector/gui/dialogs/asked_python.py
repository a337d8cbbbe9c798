"""Asking an interpreter whether models can run in it, while the window stays awake."""

from __future__ import annotations

import threading

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from inspector.transport.interpreter import chosen, what_is_wrong

LOOK_MS = 50


class AskedPython(QObject):
    """`answered(problem)` once, with "" where a worker could start there."""

    answered = Signal(str)

    def __init__(self, python: str, parent: QObject) -> None:
        super().__init__(parent)
        self._said: list[str] = []
        self._thread = threading.Thread(target=self._ask, args=(chosen(python),), name="asked-python", daemon=True)
        self._thread.start()
        self._look = QTimer(self, interval=LOOK_MS)
        self._look.timeout.connect(self._over)
        self._look.start()

    def _ask(self, python: str) -> None:
        said = "it could not be asked; is it a Python interpreter?"
        try:
            said = what_is_wrong(python)
        finally:
            self._said.append(said)

    @Slot()
    def _over(self) -> None:
        if self._said:
            self._look.stop()
            self.answered.emit(self._said[0])
