"""A file that grows while it is read: how far it was read, and whether it is still the same file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from inspector.capture.logs.reader import ReplacedError
from inspector.capture.regular import open_unbuffered

MARK = 64
"""Bytes before the place that was reached, which are compared: a file that was written anew has others there."""


class Tail:
    """The place up to which a file was read. It is opened for each reading only, so that it can be moved or removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.at = 0
        self._first = self._last = b""
        self._identity: tuple[int, int] | None = None
        self._reached = False
        self._seen: tuple[int, int, int, int] | None = None

    def unchanged(self) -> bool:
        """Whether nothing was written since all of it was read: then it need not be opened."""
        return self._seen is not None and changed(self.path) == self._seen

    @contextmanager
    def opened(self) -> Iterator[tuple[FileIO, int]]:
        """(the file, its present size). Raises ReplacedError, or OSError where it cannot be read."""
        with open_unbuffered(self.path) as file:
            found = os.fstat(file.fileno())
            identity = (found.st_dev, found.st_ino)
            if self._identity not in (None, identity) or found.st_size < self.at or not self._is_same(file):
                raise ReplacedError
            self._identity = identity
            before, self._reached = self._seen, False
            self._seen = None
            yield file, found.st_size
            now = (*identity, found.st_size, found.st_mtime_ns)
            self._seen = now if self._reached else before  # and None where reading was interrupted

    def _is_same(self, file: FileIO) -> bool:
        if read_at(file, 0, len(self._first)) != self._first:
            return False
        return read_at(file, self.at - len(self._last), len(self._last)) == self._last

    def reach(self, file: FileIO, at: int) -> None:
        """All is read up to a place."""
        self.at, self._reached = at, True
        self._first = read_at(file, 0, min(MARK, at))
        self._last = read_at(file, max(0, at - MARK), min(MARK, at))


def read_at(file: FileIO, offset: int, count: int) -> bytes:
    """Up to `count` bytes from an offset on: fewer at the end of the file."""
    file.seek(max(0, offset))
    parts, left = [], count
    while left > 0:
        part = file.read(left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def changed(path: Path) -> tuple[int, int, int, int] | None:
    """What changes when a file is written anew; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
