"""The bytes of pages: checked once against their checksum, read as a whole, the most recent ones cached."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.cache import Recent
from inspector.capture.crc import crc32
from inspector.capture.damage import Box
from inspector.capture.files import PIECE, GuardedFile
from inspector.capture.large_pages import bytes_of, read_rows
from inspector.capture.layout import PAGE_BYTES, page_file
from inspector.capture.parsing import PageRow

Array = npt.NDArray[Any]
KEPT_BYTES = 256 << 20
"""Bytes of pages and of parts of pages that are cached in memory."""


class PageFiles:
    """Read-only arrays of pages. `span` of a packed member is (start, length) inside the archive."""

    def __init__(
        self, folder: Path, spans: dict[int, tuple[int, int]] | None = None, archive: Path | None = None
    ) -> None:
        self.folder = folder
        self._spans = spans
        self._archive = archive
        self._files: dict[int, GuardedFile] = {}
        self._good: set[int] = set()
        self._bad: dict[int, str] = {}
        self._short: dict[int, PageRow] = {}
        self._recent = Recent(KEPT_BYTES)

    # -- what is known of a page

    def damage(self, row: PageRow) -> str:
        """Why a page cannot be read; "" if it can, or if it was not checked yet."""
        return self._bad.get(row.id, "")

    def known(self, number: int) -> bool:
        """Whether the page of this number has been checked."""
        return number in self._good or number in self._bad

    def checking(self, row: PageRow, room: memoryview | None = None) -> Iterator[None]:
        """Check a page, a bounded piece at a time, storing its bytes in `room` where that is given."""
        file, offset = self._place(row)
        if file is None or not file.holds(offset + row.nbytes):
            self._condemn(row, file)
            return
        piece = memoryview(bytearray(min(PIECE, row.nbytes))) if room is None else None
        crc = 0
        for done in range(0, row.nbytes, PIECE):
            size = min(PIECE, row.nbytes - done)
            target = piece[:size] if piece is not None else room[done : done + size]  # type: ignore[index]
            if not file.read_into(offset + done, target):
                self._condemn(row, file)
                return
            crc = crc32(target, crc)
            yield
        if crc != row.crc:
            self._bad[row.id] = f"page {row.id} in {page_file(row.file)} has changed since it was written"
        else:
            self._good.add(row.id)

    def _condemn(self, row: PageRow, file: GuardedFile | None) -> None:
        """The file does not have the page; it is tried again once the file has grown or was replaced."""
        name = page_file(row.file)
        if file is not None and file.problem:
            self._bad[row.id] = f"page {row.id} cannot be read from {name}: {file.problem}"
        else:
            self._bad[row.id] = f"page {row.id} lies beyond the end of {name}"
        self._short[row.id] = row
        self._good.discard(row.id)

    def _place(self, row: PageRow) -> tuple[GuardedFile | None, int]:
        """(file, offset in it) of a page; no file where a packed capture has none of that number."""
        number, offset = row.file, row.offset
        if self._spans is not None:
            start, length = self._spans.get(row.file, (0, -1))
            if row.offset + row.nbytes > length:
                return None, 0
            number, offset = -1, start + row.offset
        if number not in self._files:
            path = self._archive if number == -1 and self._archive is not None else self.folder / page_file(number)
            self._files[number] = GuardedFile(path)
        return self._files[number], offset

    # -- reading

    def view(self, row: PageRow, dtype: str, *, keep: bool = True) -> Array | None:
        """The page's array, read-only, or None when its bytes are missing or damaged (see `damage`).

        Without `keep` it is not cached: the caller copies it into an array of its own.
        """
        if row.id in self._bad:
            return None
        kept = self._recent.get(row.id)
        if kept is not None:
            return kept
        file, offset = self._place(row)
        if file is None or not file.holds(offset + row.nbytes):  # before memory is allocated for what an index claims
            self._condemn(row, file)
            return None
        array: Array = np.empty(row.shape, np.dtype(dtype).newbyteorder("<"))
        room = bytes_of(array)
        if row.id not in self._good or file.touched():
            self._good.discard(row.id)
            for _ in self.checking(row, room):
                pass
        elif not file.read_into(offset, room):
            self._condemn(row, file)
        if row.id in self._bad:
            return None
        array = array.astype(np.dtype(dtype), copy=False)
        array.flags.writeable = False
        if keep:
            self._recent.put(row.id, array)
        return array

    def part(self, row: PageRow, dtype: str, box: Box) -> Array | None:
        """Some cells of a page, (first, stop) along each of its axes, or None when the page is damaged."""
        if row.nbytes > PAGE_BYTES:
            return self._part_of_large(row, dtype, box)
        whole = self.view(row, dtype)
        return None if whole is None else whole[tuple(slice(*bounds) for bounds in box)]

    def _part_of_large(self, row: PageRow, dtype: str, box: Box) -> Array | None:
        """The same of a page of format 1, which may be of any size: it is checked in pieces, then its rows are read."""
        file, offset = self._place(row)
        if row.id not in self._good or (file is not None and file.touched()):
            self._good.discard(row.id)
            for _ in self.checking(row):
                pass
        if row.id in self._bad:
            return None
        key = (row.id, box)
        found = self._recent.get(key)
        if found is None and file is not None:
            found = read_rows(file, offset, row.shape, dtype, box)
            if found is None:
                self._condemn(row, file)
            else:
                self._recent.put(key, found)
        return found

    def size(self) -> int:
        """Bytes that the page files have together: the most that the pages of a valid index can have."""
        if self._spans is not None:
            return sum(length for _, length in self._spans.values())
        try:
            with os.scandir(self.folder) as found:
                return sum(entry.stat().st_size for entry in found if entry.name.startswith("pages-"))
        except OSError:
            return 0

    # -- files that change

    def look(self) -> bool:
        """Check the files again; True when pages have to be checked again, and everything read before is invalid."""
        changes = {file.look() for file in self._files.values()}
        if "other" in changes:
            for known in (self._good, self._bad, self._short, self._recent):
                known.clear()
            return True
        places = {number: self._place(row) for number, row in self._short.items()} if "grown" in changes else {}
        back = [
            number for number, (file, offset) in places.items()
            if file is not None and file.holds(offset + self._short[number].nbytes)
        ]  # fmt: skip
        for number in back:
            del self._bad[number], self._short[number]
        return bool(back)

    def close(self) -> None:
        """Close the files; arrays that were returned stay valid."""
        for file in self._files.values():
            file.close()
        self._recent.clear()
