"""A file that grows while it is read: how far it was read, and whether it is still the same file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from inspector.capture.logs.marks import Marks
from inspector.capture.logs.reader import ReplacedError
from inspector.capture.regular import open_unbuffered

Seen = tuple[int, int, int, int, int]


class Tail:
    """The place up to which a file was read. It is opened for each reading only, so that it can be moved or removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.at = 0
        self._marks = Marks()
        self._identity: tuple[int, int] | None = None
        self._reached = False
        self._seen: Seen | None = None
        self._compared: Seen | None = None
        """What the file was like when it was last the one that was read."""

    def unchanged(self) -> bool:
        """Whether nothing was written since all of it was read: then it need not be opened."""
        return self._seen is not None and changed(self.path) == self._seen

    @contextmanager
    def opened(self) -> Iterator[tuple[FileIO, int]]:
        """(the file, its present size). Raises ReplacedError, or OSError where it cannot be read."""
        with open_unbuffered(self.path) as file:
            found = os.fstat(file.fileno())
            now = _of(found)
            if self._identity not in (None, now[:2]) or found.st_size < self.at:
                raise ReplacedError
            if now != self._compared and not self._marks.same(file):
                raise ReplacedError
            self._identity, self._compared = now[:2], now
            before, self._reached = self._seen, False
            self._seen = None
            yield file, found.st_size
            self._seen = now if self._reached else before  # and None where reading was interrupted

    def reach(self, file: FileIO, at: int, *, more: bool = False) -> None:
        """All is read up to a place. `more`: what follows it can be read, and was not yet."""
        self.at, self._reached = at, not more
        self._marks.note(file, at)


def changed(path: Path) -> Seen | None:
    """What changes when a file is written anew; None where there is none."""
    try:
        return _of(path.stat())
    except OSError:
        return None


def _of(found: os.stat_result) -> Seen:
    """The time of the last change of any kind too: the other one can be set to what it was."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
