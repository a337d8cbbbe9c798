"""Python's garbage collection runs in Qt's thread only.

A collection runs in whatever thread happens to allocate when it is due. If that is the thread that reads the worker's
pipe, Qt objects in reference cycles are deleted there, with their timers: a warning at best, else a crash.
"""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

EVERY_MS = 1000


def collect_here(parent: QObject) -> None:
    """Turn the automatic collection off, and collect from a timer of `parent` by the same thresholds.

    What modules hold is set aside: it stays anyway, and searching it each time holds the window up for 0.1 s.
    """
    gc.disable()
    gc.freeze()
    timer = QTimer(parent, interval=EVERY_MS)
    timer.timeout.connect(collect)
    timer.start()


def collect() -> None:
    """One collection, of as many generations as are due."""
    counts, thresholds = gc.get_count(), gc.get_threshold()
    due = [generation for generation in range(3) if counts[generation] > thresholds[generation]]
    if due:
        gc.collect(max(due))
