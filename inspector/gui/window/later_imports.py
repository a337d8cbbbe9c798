"""Modules that one choice in a panel needs are imported in a thread once the window has started, so that nobody waits
for them at that choice, nor at the start."""

from __future__ import annotations

import importlib
import threading
from contextlib import suppress

from PySide6.QtCore import QObject, QTimer, Slot

from inspector.gui.state.switch_interval import giving_way

LATER_MS = 2_000
"""After the start, while files that were named are read."""
PAUSE_SECONDS = 0.1
NEEDED_LATER = ("scipy.linalg", "scipy.special", "scipy.spatial", "scipy.cluster.hierarchy")
"""What orders units by similarity, and what that imports first: each holds Python's lock for 30 to 40 ms, and all at
once for 100 and more. Together they take a fifth of a second, a whole one from a cold disk."""


class LaterImports(QObject):
    """Of one window; none of these modules makes a class of Qt's, so the window's thread may go on meanwhile."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._import, name="inspector-later-imports", daemon=True)
        self._timer = QTimer(self, interval=LATER_MS, singleShot=True)
        self._timer.timeout.connect(self._thread.start)

    @Slot()
    def begin(self) -> None:
        """The window has started."""
        self._timer.start()

    @Slot()
    def stop(self) -> None:
        """Nothing is begun any more: the window closes."""
        self._timer.stop()
        self._stopped.set()

    def close(self) -> None:
        """Wait for the thread: an interpreter that ends while modules are imported may crash."""
        self.stop()
        if self._thread.ident is not None:
            self._thread.join()

    def _import(self) -> None:
        for name in NEEDED_LATER:
            with suppress(Exception), giving_way():  # what asks for it says what is wrong with it
                importlib.import_module(name)
            if self._stopped.wait(PAUSE_SECONDS):
                return
