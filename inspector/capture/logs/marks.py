"""Whether what was read of a file still stands in it: a program may have written it anew, with as many bytes and more.

The beginning is compared as a whole, by its checksum, what follows at places that are far apart, and before the place
that was reached. Counter-example: a file of megabytes in which a few numbers in the middle are changed.
"""

from __future__ import annotations

import zlib
from io import FileIO

WHOLE = 256 << 10
"""Bytes of the beginning of which each is compared."""
MARK = 64
MOST = 128
"""Marks behind the beginning; beyond that every second one is let go."""


class Marks:
    """What is compared of the bytes up to a place."""

    def __init__(self) -> None:
        self._whole = self._check = 0
        self._places: list[tuple[int, bytes]] = []
        self._apart = WHOLE // 8
        self._last = (0, b"")

    def same(self, file: FileIO) -> bool:
        """Whether all of it is as it was."""
        if zlib.crc32(read_at(file, 0, self._whole)) != self._check:
            return False
        return all(read_at(file, at, len(bytes_)) == bytes_ for at, bytes_ in (*self._places, self._last))

    def note(self, file: FileIO, at: int) -> None:
        """Everything up to a place was read."""
        if (whole := min(at, WHOLE)) > self._whole:
            self._check = zlib.crc32(read_at(file, self._whole, whole - self._whole), self._check)
            self._whole = whole
        while (place := self._next()) + MARK <= at:
            self._places.append((place, read_at(file, place, MARK)))
            if len(self._places) > MOST:
                self._places, self._apart = self._places[1::2], 2 * self._apart
        first = max(0, at - MARK)
        self._last = first, read_at(file, first, at - first)

    def _next(self) -> int:
        return (self._places[-1][0] if self._places else WHOLE) + self._apart


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
