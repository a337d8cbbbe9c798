"""The page files of a capture that is being written: bytes are appended, and a full file is followed by another."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from inspector.capture.crc import crc32_at_once
from inspector.capture.identity import Identity, identity
from inspector.capture.layout import ALIGN, ROLL_BYTES, CaptureError, page_file
from inspector.capture.private import private_file
from inspector.capture.target import page_files
from inspector.records import Page

PAGE_FILES = 10_000
WAITING_BYTES = 8 << 20
"""Of pages that were placed and are not written out yet."""
PARTS = 512
"""Of one call; systems take 1,024 or more."""
CALL_BYTES = 1 << 20
"""Of one call. Linux (6.18, ext4) takes memory for what one call writes in pieces that
are as large: calls of 8 MB took four times the time where few such pieces were free."""
LITTLE = ("<", "|", "=") if sys.byteorder == "little" else ("<", "|")
"""Byte orders, as numpy names them, in which arrays are written as they are."""
_GAP = bytes(ALIGN)
Position = tuple[int, int, int, int]
"""Position of a page's bytes: file, offset, length, CRC-32."""
Mark = tuple[int, int]
"""How far the bytes have come: file, end."""


class PageAppender:
    """Page files of numbers that no other file in the folder has; the first is made with the first page.

    `place` says where bytes will lie, `write_out` passes them to the system (where readers find them) in few calls, and
    `unsynchronised` is what has to be on the disk before their rows are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = -1
        self._file: BinaryIO | None = None
        self.present: tuple[int, Identity | None] | None = None
        """Number of the present file, and its device and number there: the file that has its name may be another."""
        self._committed: Mark = (-1, 0)
        self._made: list[int] = []
        """Page files that were made after what is committed."""
        self._waiting: list[Any] = []
        self._waiting_bytes = 0
        self._end = 0
        """Of the present file, with what waits to be written: asking it takes a call of the system each time."""
        self._synced = 0
        """The end of the present file that a power cut leaves, once what `unsynchronised` returned has run."""

    def place(self, page: Page) -> Position:
        """Give one page's bytes their place. Raises OSError where they cannot be written."""
        array = page.array
        if array.dtype.byteorder not in LITTLE:
            array = array.astype(array.dtype.newbyteorder("<"))
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array)
        size = array.nbytes
        if self._file is None or self._waiting_bytes >= WAITING_BYTES or self._end + size > ROLL_BYTES:
            self._make_room(size)
        position = -(-self._end // ALIGN) * ALIGN
        if position > self._end:
            self._waiting.append(_GAP[: position - self._end])
        self._waiting.append(array)
        self._waiting_bytes += size
        self._end = position + size
        return self.number, position, size, crc32_at_once(array.data)

    def _make_room(self, size: int) -> None:
        """Write out what waits; a new page file where the present one has no room for so many bytes more."""
        self.write_out()
        if self._file is None or (self._end and self._end + size > ROLL_BYTES):
            self._roll()

    def _roll(self) -> None:
        """A new page file. What the one before holds belongs to the rows of the next commit too."""
        self.flush()
        self.close()
        keep_standard_files_open()
        taken = page_files(self.folder)
        first = max(taken, default=-1) + 1 if self.number < 0 else self.number + 1
        for step in range(PAGE_FILES):
            number = (first + step) % PAGE_FILES
            if number not in taken:
                with contextlib.suppress(FileExistsError):  # another writer, or not a regular file
                    self._file = private_file(self.folder / page_file(number), fresh=True)
                    self.number, self._end = number, 0
                    self.present = number, identity(self._file.fileno())
                    self._made.append(number)
                    return
        raise CaptureError(f"{self.folder} has no free name for another page file.")

    def write_out(self) -> None:
        """Pass what was placed to the system, where readers find it."""
        if self._waiting and self._file is not None:
            waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
            write_all(self._file, waiting)

    def unsynchronised(self) -> Unsynchronised | None:
        """What was written out and is not on the disk yet; None where all is. Raises OSError."""
        if self._file is None or self._end == self._synced:
            return None
        fresh, self._synced = not self._synced, self._end
        return Unsynchronised(os.dup(self._file.fileno()), self.folder if fresh else None)

    def flush(self) -> None:
        """Pass what was placed to the system and to the disk."""
        self.write_out()
        rest = self.unsynchronised()
        if rest is not None:
            rest.to_disk()

    def mark(self) -> Mark:
        """How far the bytes have come, for `committed`."""
        return (self.number, self._end) if self._file is not None else self._committed

    def committed(self, mark: Mark) -> None:
        """Committed rows refer to all that was placed until this mark."""
        if mark[0] in self._made:
            del self._made[: self._made.index(mark[0]) + 1]
        self._committed = mark

    def cut(self) -> None:
        """Close the present file and remove what no committed row refers to: on a full disk the rows need the space."""
        if self._file is None:
            return
        self._waiting, self._waiting_bytes = [], 0
        with contextlib.suppress(OSError):
            self.close()
        number, end = self._committed
        with contextlib.suppress(OSError):  # moved or removed meanwhile
            path = self.folder / page_file(number)
            if number >= 0 and (self.present is None or self.present[0] != number or self.present[1] == identity(path)):
                os.truncate(path, end)
        for made in self._made:
            with contextlib.suppress(OSError):
                (self.folder / page_file(made)).unlink()
        self._made, self.present = [], None

    def close(self) -> None:
        """Close the present file."""
        if self._file is not None:
            file, self._file, self._end, self._synced = self._file, None, 0, 0
            file.close()


@dataclass(frozen=True, slots=True)
class Unsynchronised:
    """Bytes that were passed to the system: a descriptor of their file of its own, and the folder where that is new."""

    descriptor: int
    folder: Path | None

    def to_disk(self) -> None:
        """Return when they are on the disk. Raises OSError."""
        try:
            to_disk(self.descriptor)
        finally:
            os.close(self.descriptor)
        if self.folder is not None:
            folder_to_disk(self.folder)


def write_all(file: BinaryIO, parts: list[Any]) -> None:
    """Write all of `parts` (buffers) to a file whose own buffer is empty, many in one call. Raises OSError."""
    if not hasattr(os, "writev"):  # Windows
        for part in parts:
            file.write(part)
        file.flush()
        return
    first = 0
    while first < len(parts):
        last, size = first + 1, memoryview(parts[first]).nbytes
        while last < min(len(parts), first + PARTS) and (size := size + memoryview(parts[last]).nbytes) <= CALL_BYTES:
            last += 1
        done = os.writev(file.fileno(), parts[first:last] if last > first + 1 else _begin(parts[first]))
        while first < last and done >= (size := memoryview(parts[first]).nbytes):
            done -= size
            first += 1
        if done:
            parts[first] = memoryview(parts[first]).cast("B")[done:]


def _begin(part: Any) -> list[Any]:
    """Of a large one what a call takes."""
    view = memoryview(part)
    return [view.cast("B")[:CALL_BYTES] if view.nbytes > CALL_BYTES else view]


def to_disk(descriptor: int) -> None:
    """Return when the bytes of a file are on the disk, and its length."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def folder_to_disk(folder: Path) -> None:
    """Return when the names of a folder are on the disk; nothing where a system cannot open folders."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some network file systems refuse
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def keep_standard_files_open() -> None:
    """Point descriptors 0 to 2 to nowhere where a model has closed them: a page file that got such a number would
    receive whatever is printed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is this one
