"""The page files of a capture that is being written: bytes are appended, and a full file is followed by another."""

from __future__ import annotations

import contextlib
import os
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from inspector.capture.layout import ALIGN, ROLL_BYTES, CaptureError, aligned, page_file
from inspector.capture.private import private_file
from inspector.capture.target import page_files
from inspector.records import Page

PAGE_FILES = 10_000
Position = tuple[int, int, int, int]
"""Position of a page's bytes: file, offset, length, CRC-32."""


class PageAppender:
    """Page files of numbers that no other file in the folder has; the first is made with the first page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = -1
        self._file: BinaryIO | None = None
        self._committed = (-1, 0)
        self._end = 0
        """Of the present file, with what its buffer holds: asking it takes a call of the system each time."""
        self._synced = 0
        """The end of the present file that a power cut leaves."""

    def place(self, page: Page) -> Position:
        """Append one page's bytes. Raises OSError where they cannot be written."""
        array = page.array.astype(page.array.dtype.newbyteorder("<"), copy=False)
        flat: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        view = memoryview(flat)
        file = self._file_for(len(view))
        position = aligned(self._end)
        if position > self._end:
            file.write(bytes(position - self._end))
        self._end = position
        file.write(view)
        self._end += len(view)
        assert position % ALIGN == 0
        return self.number, position, len(view), zlib.crc32(view)

    def _file_for(self, size: int) -> BinaryIO:
        """The page file that the next bytes go to: the present one, or a new one where that is full."""
        if self._file is not None and (not self._end or self._end + size <= ROLL_BYTES):
            return self._file
        self.flush()  # what it holds belongs to the rows of the next commit too
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
                    return self._file
        raise CaptureError(f"{self.folder} has no free name for another page file.")

    def flush(self) -> None:
        """Pass what was appended to the system, where readers find it, and to the disk before its rows."""
        if self._file is not None and self._end != self._synced:
            self._file.flush()
            to_disk(self._file.fileno())
            if not self._synced:
                folder_to_disk(self.folder)
            self._synced = self._end

    def committed(self) -> None:
        """Committed rows refer to all that was appended so far."""
        if self._file is not None:
            self._committed = (self.number, self._end)

    def cut(self) -> None:
        """Close the present file and remove what no committed row refers to: on a full disk the rows need the space."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):  # what is left in its buffer does not fit on the disk
            self.close()
        self._file, self._end, self._synced = None, 0, 0
        number, end = self._committed
        with contextlib.suppress(OSError):  # moved or removed meanwhile
            path = self.folder / page_file(self.number)
            if number == self.number:
                os.truncate(path, end)
            else:
                path.unlink()

    def close(self) -> None:
        """Close the present file. Raises OSError where what is left in its buffer does not fit on the disk."""
        if self._file is not None:
            self._file.close()
            self._file, self._end, self._synced = None, 0, 0


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
