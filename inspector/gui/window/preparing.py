"""Modules that take long to import (the plotting library and the panels) are imported in a thread, so that the window
is painted and answers meanwhile; what needs them begins when they are there."""

from __future__ import annotations

import threading
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Slot

from inspector.gui.state.aside import giving_way

LOOK_MS = 10


class Preparing(QObject):
    """`then()` is called once, in the window's thread, when all was imported."""

    def __init__(self, parent: QObject, then: Callable[[], object]) -> None:
        super().__init__(parent)
        self._then = then
        self._thread = threading.Thread(target=import_panels, name="inspector-imports", daemon=True)
        self._thread.start()
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self._look)
        self._timer.start()

    @Slot()
    def _look(self) -> None:
        if not self._thread.is_alive():
            self._timer.stop()
            self._then()

    def close(self) -> None:
        """Wait for the thread: an interpreter that ends while modules are imported may crash."""
        self._thread.join()


def import_panels() -> None:
    """Import every panel and small picture. What is wrong with one of them is said by the registry."""
    with giving_way():
        from inspector.gui.panel.overview.pictures import pictures_in_order
        from inspector.gui.panel.registry import ordered

        ordered()
        pictures_in_order()
