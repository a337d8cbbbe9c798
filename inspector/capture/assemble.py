"""Arrays from pages: zero-copy where one page is the whole, assembled incrementally where there are several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.index import PageRow
from inspector.records import Channel

Array = npt.NDArray[Any]
View = Callable[[PageRow], "Array | None"]
MAX_ARRAY_BYTES = 16 << 30


def fill_value(channel: Channel) -> float | int:
    """What a gap between pages is shown as: as declared, else NaN for floats, 0 for integers and booleans."""
    if channel.fill is not None:
        return channel.fill if channel.dtype.startswith("float") else int(channel.fill)
    return float("nan") if channel.dtype.startswith("float") else 0


class Assembly:
    """The array of one channel in one frame, as far as its pages have come."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.pages: list[PageRow] = []
        self.extent: tuple[int, ...] = (0,) * len(channel.dims)
        self._used = 0
        self._buffer: Array | None = None

    def add(self, row: PageRow) -> None:
        """Take note of one more page; its bytes are read when an array is asked for."""
        self.pages.append(row)
        self.extent = tuple(max(n, s + c) for n, s, c in zip(self.extent, row.start, row.shape, strict=True))

    @property
    def revision(self) -> int:
        """Id of the newest page."""
        return self.pages[-1].id if self.pages else 0

    def array(self, view: View) -> Array:
        """The whole array so far, read-only."""
        if len(self.pages) == 1 and self.pages[0].shape == self.extent:
            single = view(self.pages[0])
            if single is not None:
                return single
        self._grow()
        assert self._buffer is not None
        for row in self.pages[self._used :]:
            part = view(row)
            if part is not None:
                self._buffer[_box(row.start, row.shape)] = part
        self._used = len(self.pages)
        result = self._buffer[tuple(slice(0, n) for n in self.extent)]
        result.flags.writeable = False
        return result

    def _grow(self) -> None:
        """Room for the present extent: the first axis doubles, so that a growing run is not copied at every page."""
        old = self._buffer
        if old is not None and all(n <= room for n, room in zip(self.extent, old.shape, strict=True)):
            return
        known = self.channel.shape
        target = [max(n, known[axis] or 0) if axis else n for axis, n in enumerate(self.extent)]
        if target and old is not None:
            target[0] = max(target[0], min(2 * old.shape[0], known[0] or 2 * old.shape[0]))
        dtype = np.dtype(self.channel.dtype)
        size = int(np.prod([int(n) for n in target], dtype=object)) * dtype.itemsize if target else dtype.itemsize
        if size > MAX_ARRAY_BYTES:
            raise MemoryError(f"{self.channel.name} has {size / 2**30:.1f} GiB; read a region of it instead.")
        self._buffer = np.full(target, fill_value(self.channel), dtype)
        if old is not None:
            self._buffer[tuple(slice(0, n) for n in old.shape)] = old

    def block(self, region: tuple[slice, ...], view: View) -> Array:
        """A region, touching only the pages that overlap it."""
        bounds = [
            slice(*cut.indices(n)[:2]) for cut, n in zip(_padded(region, len(self.extent)), self.extent, strict=True)
        ]
        shape = tuple(max(0, cut.stop - cut.start) for cut in bounds)
        hits = [row for row in self.pages if _overlaps(row, bounds)]
        if len(hits) == 1 and _covers(hits[0], bounds):
            single = view(hits[0])
            if single is not None:
                return single[tuple(slice(c.start - s, c.stop - s) for c, s in zip(bounds, hits[0].start, strict=True))]
        out: Array = np.full(shape, fill_value(self.channel), np.dtype(self.channel.dtype))
        for row in hits:
            part = view(row)
            if part is not None:
                _paste(out, bounds, row, part)
        return out


def _padded(region: tuple[slice, ...], ndim: int) -> tuple[slice, ...]:
    return region + (slice(None),) * (ndim - len(region))


def _box(start: tuple[int, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(s, s + n) for s, n in zip(start, shape, strict=True))


def _overlaps(row: PageRow, bounds: list[slice]) -> bool:
    return all(s < cut.stop and s + n > cut.start for s, n, cut in zip(row.start, row.shape, bounds, strict=True))


def _covers(row: PageRow, bounds: list[slice]) -> bool:
    return all(s <= cut.start and s + n >= cut.stop for s, n, cut in zip(row.start, row.shape, bounds, strict=True))


def _paste(out: Array, bounds: list[slice], row: PageRow, part: Array) -> None:
    into, take = [], []
    for cut, s, n in zip(bounds, row.start, row.shape, strict=True):
        low, high = max(cut.start, s), min(cut.stop, s + n)
        into.append(slice(low - cut.start, high - cut.start))
        take.append(slice(low - s, high - s))
    out[tuple(into)] = part[tuple(take)]
