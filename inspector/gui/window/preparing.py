"""Modules that take long to import (the plotting library and the panels) are imported in a thread, so that the window
is painted and answers between its turns; what needs them begins when they are there."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

from PySide6.QtCore import QObject, QTimer, Slot

from inspector.gui.runtime.qt_types import making_types
from inspector.gui.runtime.turns import Turns
from inspector.gui.window.later_imports import LaterImports

NEEDED_SOON = (
    "inspector.gui.export.figure_files", "inspector.gui.panel.remaining", "inspector.gui.runtime.exception_hooks",
    "inspector.gui.runtime.gc_timer", "inspector.gui.window.cursor_readout", "inspector.gui.window.bars.steps_without",
    "numpy.ma",
)  # fmt: skip
"""What is used as soon as panels are shown; read from a disk that is busy it would hold the window up for a second."""
OVER = object()


class Preparing(QObject):
    """`then()` is called once, in the window's thread, when all was imported and the steps of `loading` were taken,
    each of them after the events that had come by then. What is needed later is imported after it."""

    def __init__(self, parent: QObject, loading: Iterable[None], then: Callable[[], object]) -> None:
        super().__init__(parent)
        self._steps, self._then, self._types = iter(loading), then, making_types()
        self._stopped, self._later = False, LaterImports(self)
        self._turns = Turns(import_panels, "inspector-imports")
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._look)
        self._timer.start(0)

    @Slot()
    def _look(self) -> None:
        if next(self._types, OVER) is not OVER:
            return
        if not self._turns.over:
            self._turns.give()
            return
        self._timer.stop()  # a step may answer events itself, and no step begins inside another
        done = next(self._steps, OVER) is OVER
        if self._stopped:
            return
        if done:
            self._then()
            self._later.begin()
        else:
            self._timer.start(0)

    @Slot()
    def stop(self) -> None:
        """Nothing more is begun: the window closes."""
        self._stopped = True
        self._timer.stop()
        self._later.stop()

    def close(self) -> None:
        """Wait for the thread: an interpreter that ends while modules are imported may crash."""
        self._turns.finish()
        self._later.close()


def import_panels() -> None:
    """Import panels, small pictures and what comes with them. What is wrong with a panel is said by the registry."""
    from inspector.gui.panel.overview.pictures import pictures_in_order
    from inspector.gui.panel.registry import ordered

    ordered()
    pictures_in_order()
    for name in NEEDED_SOON:
        importlib.import_module(name)
