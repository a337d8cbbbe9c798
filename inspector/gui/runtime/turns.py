"""A thread that imports modules, and the window's thread, by turns: never both at once.

Making a class of Qt's for Python, or a subclass of one, is not safe while another thread is inside Qt (PySide6 6.10: a
segmentation fault in one start of ten on a machine that is busy). The thread gives its turn back where it begins to
import a module after a slice of time; the window's thread answers events, and gives the next one.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from importlib.abc import MetaPathFinder

SLICE_SECONDS = 0.008
LONGEST_SECONDS = 5.0
"""For which the window's thread waits for its turn: a module may take as long where a disk or a machine is busy."""
ALONE_SECONDS = 3.0
"""After which the thread takes a turn without being given one: the window's thread may wait for a module itself."""


class Turns(MetaPathFinder):
    """`work` in a thread of its own, in turns that `give` gives."""

    def __init__(self, work: Callable[[], object], name: str) -> None:
        self._work = work
        self._may, self._back = threading.Event(), threading.Event()
        self._began = 0.0
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def begun(self) -> bool:
        """Whether it was given a turn."""
        return self.thread.ident is not None

    @property
    def over(self) -> bool:
        """Whether the work is done."""
        return self.begun and not self.thread.is_alive()

    def give(self) -> None:
        """Let the thread work for a while, and return when it gives its turn back, or is done."""
        if self.over:
            return
        self._back.clear()
        self._may.set()
        if not self.begun:
            self.thread.start()
        self._back.wait(LONGEST_SECONDS)

    def finish(self) -> None:
        """Let it work to its end, where it has begun."""
        while self.begun and not self.over:
            self.give()

    def _run(self) -> None:
        self._take()
        sys.meta_path.insert(0, self)
        try:
            self._work()
        finally:
            sys.meta_path.remove(self)
            self._back.set()

    def _take(self) -> None:
        self._may.wait(ALONE_SECONDS)
        self._may.clear()
        self._began = time.monotonic()

    def find_spec(self, _name: str, _path: object = None, _target: object = None) -> None:
        """Called where a module is about to be imported, whose place the next finder knows."""
        if threading.current_thread() is self.thread and time.monotonic() - self._began > SLICE_SECONDS:
            self._back.set()
            self._take()
