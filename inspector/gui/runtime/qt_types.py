"""Qt's classes, all made in the window's thread before another thread imports what uses them.

PySide6 makes a class of Python for a class of Qt when it is first named; the plotting library names every one as it is
imported, which would be one long turn of the thread that imports it (turns.py).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from importlib import import_module

MODULES = ("QtCore", "QtGui", "QtWidgets", "QtNetwork", "QtSvg", "QtTest", "QtOpenGL", "QtOpenGLWidgets")
"""Those that this package and the plotting library import."""
SLICE_SECONDS = 0.005
_done: list[str] = []


def making_types() -> Iterator[None]:
    """Name every class, 0.15 s of work in all, once only; between two steps events may be answered."""
    end = time.monotonic() + SLICE_SECONDS
    for name in MODULES:
        if name in _done:
            continue
        with contextlib.suppress(ImportError):  # a distribution may have packaged it apart
            module = import_module(f"PySide6.{name}")
            for each in dir(module):
                getattr(module, each, None)
                if time.monotonic() > end:
                    yield
                    end = time.monotonic() + SLICE_SECONDS
        _done.append(name)
