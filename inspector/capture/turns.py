"""A thread that reads beside another one says between two small pieces of its reading that it may be interrupted.

Python asks the thread that has its lock to give it up only where that was held without a break for a while. Reading
does not hold it so: every row of an index and every page releases the lock for some microseconds and has it back
before a thread that waits for it has woken up, which then waits until all is read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_here = threading.local()


Pausing = Callable[[bool], None]
"""What is done between two pieces; the argument says whether it may take long."""


def give_way(*, locked: bool = False) -> None:
    """Between two pieces: does what this thread was told to do then (`interrupted_by`), nothing in other threads.

    `locked`: a file is locked meanwhile, for which another thread may wait, so only a moment.
    """
    pause: Pausing | None = getattr(_here, "pause", None)
    if pause is not None:
        pause(not locked)


@contextmanager
def interrupted_by(pause: Pausing) -> Iterator[None]:
    """Inside, `pause` is called between the pieces of what this thread reads."""
    before = getattr(_here, "pause", None)
    _here.pause = pause
    try:
        yield
    finally:
        _here.pause = before
