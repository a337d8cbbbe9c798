"""The header of a GGUF file, walked before the library reads it: no count in it is larger than what the file can hold.

The library takes counts as they are: an array of 2⁶² numbers in a file of a kilobyte is read for ever.
The layout is that of the format's specification: magic, version, counts, settings (key, type, value), tensors (name,
axes, type, offset).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import IO

from inspector.capture.regular import open_regular

SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Type of a setting → its bytes."""
STRING, ARRAY = 8, 9
MOST_AXES, DEEPEST = 8, 4
SHORTEST_SETTING, SHORTEST_TENSOR = 13, 32
"""Bytes: key length, type and one byte; name length, number of axes, one axis, type and offset."""


def check_header(path: Path) -> None:
    """Raises ValueError where the header says more than the file holds, OSError."""
    with open_regular(path) as file:
        _Header(file, path.stat().st_size).check()


class _Header:
    def __init__(self, file: IO[bytes], size: int) -> None:
        self.file, self.size, self.order = file, size, "<"

    def check(self) -> None:
        """Walk it."""
        self._skip(4)
        if not self._number("I") & 0xFFFF:
            self.order = ">"
        tensors, settings = self._number("Q"), self._number("Q")
        self._require(settings, SHORTEST_SETTING, "settings")
        self._require(tensors, SHORTEST_TENSOR, "tensors")
        self._times(settings, self._setting)
        self._times(tensors, self._tensor)

    def _setting(self) -> None:
        self._text()
        self._value(self._number("I"), 0)

    def _value(self, kind: int, depth: int) -> None:
        if kind in SCALARS:
            self._skip(SCALARS[kind])
        elif kind == STRING:
            self._text()
        elif kind == ARRAY and depth < DEEPEST:
            inner, count = self._number("I"), self._number("Q")
            self._require(count, SCALARS.get(inner, 8), "values")
            if inner in SCALARS:
                self._skip(count * SCALARS[inner])
            else:
                self._times(count, lambda: self._value(inner, depth + 1))
        else:
            raise ValueError(f"a setting is of the unknown type {kind}")

    def _tensor(self) -> None:
        self._text()
        axes = self._number("I")
        if axes > MOST_AXES:
            raise ValueError(f"a tensor has {axes:,} axes")
        self._skip(8 * axes + 4 + 8)

    def _text(self) -> None:
        self._skip(self._number("Q"))

    def _times(self, count: int, read: Callable[[], None]) -> None:
        for _ in range(count):
            read()

    def _number(self, form: str) -> int:
        data = self.file.read(struct.calcsize(form))
        if len(data) < struct.calcsize(form):
            raise ValueError("its header is cut short")
        (found,) = struct.unpack(self.order + form, data)
        return int(found)

    def _skip(self, count: int) -> None:
        self._require(count, 1, "bytes")
        self.file.seek(count, 1)

    def _require(self, count: int, least: int, what: str) -> None:
        if count * least > self.size - self.file.tell():
            raise ValueError(f"it is said to have {count:,} {what} at byte {self.file.tell():,} of {self.size:,}")
