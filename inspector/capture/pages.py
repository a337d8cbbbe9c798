"""The bytes of pages: memory maps of the page files of a folder, or of the members of a packed capture."""

from __future__ import annotations

import mmap
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.index import PageRow
from inspector.capture.layout import page_file

EAGER_CRC_BYTES = 8 << 20


class PageFiles:
    """Read-only views of page files. `span` of a packed member is (start, length) inside the archive."""

    def __init__(
        self, folder: Path, spans: dict[int, tuple[int, int]] | None = None, archive: Path | None = None
    ) -> None:
        self.folder = folder
        self._spans = spans
        self._archive = archive
        self._maps: dict[int, mmap.mmap] = {}
        self._good: set[int] = set()
        self._bad: dict[int, str] = {}

    def view(self, row: PageRow, dtype: str, *, check: bool = False) -> npt.NDArray[Any] | None:
        """The page's array without copying, or None when its bytes are missing or damaged (see `damage`)."""
        if row.id in self._bad:
            return None
        raw = self._bytes(row)
        if raw is None:
            self._bad[row.id] = f"page {row.id} lies beyond the end of {page_file(row.file)}"
            return None
        if row.id not in self._good and (check or row.nbytes <= EAGER_CRC_BYTES):
            if zlib.crc32(raw) != row.crc:
                self._bad[row.id] = f"page {row.id} in {page_file(row.file)} has changed since it was written"
                return None
            self._good.add(row.id)
        array: npt.NDArray[Any] = np.frombuffer(raw, dtype=np.dtype(dtype).newbyteorder("<")).reshape(row.shape)
        return array.astype(np.dtype(dtype), copy=False)

    def damage(self, row: PageRow) -> str:
        """Why `view` gave None for this page; "" if it did not."""
        return self._bad.get(row.id, "")

    def _bytes(self, row: PageRow) -> memoryview | None:
        end = row.offset + row.nbytes
        base, length = 0, None
        number = row.file
        if self._spans is not None:
            if number not in self._spans:
                return None
            base, length = self._spans[number]
            number = -1
        mapped = self._map(number, base + end)
        if mapped is None or len(mapped) < base + end or (length is not None and end > length):
            return None
        return memoryview(mapped)[base + row.offset : base + end].toreadonly()

    def _map(self, number: int, needed: int) -> mmap.mmap | None:
        present = self._maps.get(number)
        if present is not None and len(present) >= needed:
            return present
        path = self._archive if number == -1 and self._archive is not None else self.folder / page_file(number)
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                if size == 0 or size < needed:
                    return None
                fresh = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        self._maps[number] = fresh  # the old map lives on as long as an array looks into it
        return fresh

    def forget(self) -> None:
        """Drop the maps; arrays that still look into one keep it alive."""
        self._maps.clear()
