"""Arrays from pages: the page itself where one is the whole, assembled incrementally where there are several."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from operator import add
from typing import Any, Protocol
from weakref import ref

import numpy as np
import numpy.typing as npt

from inspector.capture.damage import Box
from inspector.capture.holes import WHOLE, Coverage, Holes, holes_of, inside
from inspector.capture.layout import TooLargeError
from inspector.capture.parsing import PageRow
from inspector.capture.room import rows_ahead, unwritten
from inspector.capture.turns import give_way
from inspector.records import Channel

Array = npt.NDArray[Any]
MAX_ARRAY_BYTES = 16 << 30
MOST_AHEAD = 64
"""Factor by which more memory is allocated at once than is needed now, where a channel declares that much."""
SPARSE = 64
"""How many times the bytes of its pages an array may have. An array is larger than what was written of it where its
channel declares what lies between pages (twice, for a causal attention map), and while it is written from its end.
Without a bound the index of a small file could ask for any amount of memory. Counter-example: a cross attention map of
more than SMALL_ARRAY that attends to one key in a hundred only; it is rejected as a whole, and read region by
region."""
SMALL_ARRAY = 64 << 20
"""Bytes that an array may always have, however little of it was written."""
SPARE_BYTES = 256 << 20
"""Bytes that all cached arrays of a capture may have together beyond four times their pages."""


class Source(Protocol):
    """Where the cells of pages come from."""

    def size(self) -> int:
        """Bytes that all page files have together."""

    def view(self, row: PageRow, dtype: str, *, keep: bool = True) -> Array | None:
        """A whole page, or None when it is damaged."""

    def part(self, row: PageRow, dtype: str, box: Box) -> Array | None:
        """Some cells of a page, or None when it is damaged."""

    def computed(self, box: Box) -> Array | None:
        """What cells that no page brought are computed to be; None where nothing is computed."""


def unknown_value(dtype: str) -> float | int | bool:
    """The value of unknown cells: NaN in floats; in whole numbers, which are masked there, an extreme number, so that
    it is noticed where the mask is dropped."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return math.nan
    if kind.kind == "b":
        return False
    info = np.iinfo(kind)
    return int(info.min if info.min else info.max)


def declared_fill(channel: Channel) -> float | int | None:
    """The value of a gap between pages as the channel declares it;
    None where it declares none that its dtype allows."""
    fill, kind = channel.fill, np.dtype(channel.dtype)
    if fill is None or kind.kind == "f":
        return fill
    least, most = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    return int(fill) if math.isfinite(fill) and least <= fill <= most else None


class Spare:
    """Bytes of arrays that are cached beyond what their pages account for, bounded for a capture as a whole."""

    def __init__(self, most: int = SPARE_BYTES) -> None:
        self.most = most
        self._used: dict[Hashable, int] = {}

    def take(self, who: Hashable, size: int) -> bool:
        """Whether an array with so many extra bytes may be cached; its former share is returned first."""
        self._used.pop(who, None)
        if size > 0 and sum(self._used.values()) + size > self.most:
            return False
        if size > 0:
            self._used[who] = size
        return True


@dataclass(frozen=True, slots=True)
class Seen:
    """What was read of an array: which array, and how many pages it had."""

    array: ref[Assembly]
    bumps: int
    pages: int


class Assembly:
    """The array of one channel in one frame, as far as its pages are written."""

    def __init__(self, channel: Channel, spare: Spare | None = None, *, doubtful: bool = False) -> None:
        self.channel = channel
        self.doubtful = doubtful
        """Whether pages are lost, so that a gap is not what the channel declares it to be."""
        self.held = 0
        """Bytes of all pages."""
        self.behind = 0
        """Bytes of the pages of other channels from which cells that no page has are computed."""
        self.pages: list[PageRow] = []
        self.extent: tuple[int, ...] = (0,) * len(channel.dims)
        self.bad: set[int] = set()
        """Ids of the pages that were found damaged."""
        self.bumps = 0
        """How often something other than a page changed what is read: a page was found damaged, or intact again."""
        self.computes = True
        """Whether cells that no page has are computed where the channel says so: false where a test of that failed."""
        self.epoch = 0
        """How often everything that was read before became invalid."""
        self._coverage = Coverage()
        self._holes: tuple[tuple[int, int], Holes] | None = None
        self._used = 0
        self._buffer: Array | None = None
        self._defined = 0
        """Positions of the buffer's first axis that hold a page or a gap; memory beyond them was never written."""
        self._spare = Spare() if spare is None else spare

    def describe(self, channel: Channel) -> None:
        """Another description of the same array."""
        changed = channel.fill != self.channel.fill
        self.channel = channel
        if changed:
            self.forget()

    def doubt_gaps(self) -> None:
        """Pages are lost: from now on gaps are not known."""
        self.doubtful = True
        if self._fill is not None or declared_fill(self.channel) is not None:
            self.forget()

    @property
    def _fill(self) -> float | int | None:
        """The value of a gap between pages as the channel declares it; None where that is not known."""
        return None if self.doubtful else declared_fill(self.channel)

    @property
    def gap(self) -> float:
        """What is shown of a gap between pages: what the channel declares, NaN where nothing is known."""
        return math.nan if self._fill is None else float(self._fill)

    def add(self, row: PageRow) -> None:
        """Add one more page; its bytes are read when an array is requested."""
        before = self.extent
        self.pages.append(row)
        self.held += row.nbytes
        self.extent = tuple(map(max, before, map(add, row.start, row.shape)))  # as many as dims: its row was checked
        self._coverage.add(row, before, self.extent)

    def forget(self) -> None:
        """Read everything again on the next request: a file was replaced."""
        self.release()
        self.bumps += 1
        self.epoch += 1

    @property
    def assembled(self) -> int:
        """Bytes of the array that is kept in memory; 0 where none is."""
        return 0 if self._buffer is None else self._buffer.nbytes

    def release(self) -> None:
        """Keep the array no longer: it is read again on the next request, and what was given out stays valid."""
        self._buffer, self._used = None, 0
        self._spare.take(self, 0)

    def judge(self, row: PageRow, *, bad: bool) -> bool:
        """Note the result of checking a page; returns whether it changed."""
        if bad is (row.id in self.bad):
            return False
        (self.bad.add if bad else self.bad.discard)(row.id)
        self.bumps += 1
        return True

    @property
    def revision(self) -> int:
        """Grows with every page and whenever what was read before has changed; 0 while there is no page."""
        return self.pages[-1].id + self.bumps if self.pages else 0

    def since(self, seen: Seen | None) -> tuple[int, Seen]:
        """(the first position along the first axis that may differ from what was seen, what is seen now)."""
        now = Seen(ref(self), self.bumps, len(self.pages))
        if seen is None or (seen.array, seen.bumps) != (now.array, now.bumps):
            return 0, now
        return min((row.start[0] for row in self.pages[seen.pages :]), default=self.extent[0]), now

    # -- values

    def array(self, source: Source) -> Array:
        """The whole array so far, read-only; masked where whole numbers are not known."""
        dtype = self.channel.dtype
        if len(self.pages) == 1 and self.pages[0].shape == self.extent:
            single = source.view(self.pages[0], dtype)
            if single is not None:
                return single
        if self.channel.computed or not self._grow(source):
            return self.block((), source)
        assert self._buffer is not None
        self._fill_in(source, self._buffer, math.inf)
        result = self._buffer[tuple(slice(0, n) for n in self.extent)]
        result.flags.writeable = False
        return self._masked(result, self._bounds(()))

    def read_some(self, source: Source, until: float) -> bool:
        """Read pages until a time (of `time.thread_time`); returns whether all of them are, or cannot be kept."""
        if len(self.pages) < 2 or self.channel.computed or self._used == len(self.pages) or not self._grow(source):
            return True
        assert self._buffer is not None
        self._fill_in(source, self._buffer, until)
        return self._used == len(self.pages)

    @property
    def unread(self) -> int:
        """How many pages of the array have not been read since they came."""
        return 0 if len(self.pages) < 2 or self.channel.computed else len(self.pages) - self._used

    def _fill_in(self, source: Source, into: Array, until: float) -> None:
        """Copy the pages that are new into the array, until a time."""
        dtype = self.channel.dtype
        if self.extent:
            into[self._defined : self.extent[0]] = self._gap_value
            self._defined = self.extent[0]
        for number in range(self._used, len(self.pages)):
            row = self.pages[number]
            part = source.view(row, dtype, keep=False)
            into[tuple(slice(s, s + n) for s, n in zip(row.start, row.shape, strict=True))] = (
                unknown_value(dtype) if part is None else part
            )
            self._used = number + 1
            give_way()
            if until < math.inf and time.thread_time() > until:
                return

    def _grow(self, source: Source) -> bool:
        """Allocate memory for the present extent, or return False where it may not be cached; the first axis
        grows by a factor, so that a growing run is not copied at every page."""
        old = self._buffer
        if old is not None and all(n <= room for n, room in zip(self.extent, old.shape, strict=True)):
            return True
        declared = self.channel.shape
        target = [max(n, declared[axis] or 0) if axis else n for axis, n in enumerate(self.extent)]
        if math.prod(target) > min(MOST_AHEAD * math.prod(self.extent), self._most(source) // self._itemsize):
            target = list(self.extent)  # an index may declare anything
        if target and old is not None:
            target = [max(n, room) if axis else n for axis, (n, room) in enumerate(zip(target, old.shape, strict=True))]
            ahead = rows_ahead(target[0], old.shape[0], math.prod(target[1:]) * self._itemsize)
            target[0] = max(target[0], min(ahead, declared[0] or ahead))
        if not self._spare.take(self, math.prod(target) * self._itemsize - 4 * self.held):
            self._buffer, self._used = None, 0
            return False
        self.check_room(target, source)
        self._buffer = unwritten(target, np.dtype(self.channel.dtype))
        if old is None:
            self._defined = 0
        else:
            kept = self._buffer[: self._defined]
            if kept.shape[1:] != old.shape[1:]:
                kept[...] = self._gap_value
            kept[tuple(slice(0, n) for n in old.shape)] = old[: self._defined]
        return True

    def keeps(self, what: str, size: int) -> bool:
        """Whether something else made from the array may be cached, as far as its bytes are concerned."""
        return self._spare.take((self, what), size - 4 * self.held)

    @property
    def _itemsize(self) -> int:
        return np.dtype(self.channel.dtype).itemsize

    def _most(self, source: Source) -> int:
        """Bytes that an array of this channel may have, by what was written of it."""
        return max(SMALL_ARRAY, SPARSE * min(self.held + self.behind, source.size()))

    def check_room(self, shape: Sequence[int], source: Source, itemsize: int = 0) -> None:
        """Raise TooLargeError for an array that needs more memory than is sensible, or than its pages account for."""
        size = math.prod(shape) * (itemsize or self._itemsize)
        if size > MAX_ARRAY_BYTES:
            raise TooLargeError(f"{self.channel.name} has {size / 2**30:.1f} GiB; read a region of it instead.")
        if size > self._most(source):
            raise TooLargeError(
                f"{self.channel.name} spans {size / 2**20:,.0f} MiB, of which its pages hold "
                f"{min(self.held + self.behind, source.size()) / 2**20:,.1f} MiB; read a region of it instead."
            )

    def _room(self, bounds: Box, source: Source) -> Array:
        """What is between pages: computed where the channel says so, else one value."""
        self.check_room(shape := [stop - first for first, stop in bounds], source)
        found = source.computed(bounds) if self.channel.computed else None
        return np.full(shape, self._gap_value, np.dtype(self.channel.dtype)) if found is None else found

    @property
    def _gap_value(self) -> Any:
        return unknown_value(self.channel.dtype) if self._fill is None else self._fill

    def block(self, region: tuple[slice, ...], source: Source) -> Array:
        """A region, touching only the pages that overlap it; masked where whole numbers are not known."""
        bounds, dtype = self._bounds(region), self.channel.dtype
        if self._buffer is not None and self._used == len(self.pages) and not self.channel.computed:
            ready = self._buffer[tuple(slice(*cut) for cut in bounds)]
            ready.flags.writeable = False
            return self._masked(ready, bounds)
        hits = [row for row in self.pages if _overlaps(row, bounds)]
        if len(hits) == 1 and _covers(hits[0], bounds):
            single = source.part(hits[0], dtype, _within(hits[0], bounds))
            if single is not None:
                return single
        out = self._room(bounds, source)
        for row in hits:
            into = inside(_box(row), bounds)
            give_way()
            if into is not None:
                part = source.part(row, dtype, _within(row, bounds))
                out[into] = unknown_value(dtype) if part is None else part
        out.flags.writeable = False
        return self._masked(out, bounds)

    def _bounds(self, region: tuple[slice, ...]) -> Box:
        padded = region + (slice(None),) * (len(self.extent) - len(region))
        cuts = [cut.indices(n)[:2] for cut, n in zip(padded, self.extent, strict=True)]
        return tuple((first, max(first, stop)) for first, stop in cuts)

    # -- what is not known

    def holes(self) -> Holes:
        """The cells of the whole array that are not known, by what was checked so far."""
        key = (len(self.pages), self.bumps)
        if self._holes is None or self._holes[0] != key:
            self._holes = (key, self._find(self._bounds(())))
        return self._holes[1]

    def unknown(self, region: tuple[slice, ...], source: Source) -> npt.NDArray[np.bool_]:
        """True for every cell of a region that is not known, by what was checked so far."""
        bounds = self._bounds(region)
        self.check_room([stop - first for first, stop in bounds], source, 1)
        mask = marks_of(bounds, self._find(bounds))
        return np.zeros([stop - first for first, stop in bounds], dtype=np.bool_) if mask is None else mask

    def overlapping(self, region: tuple[slice, ...]) -> list[PageRow]:
        """The pages of a region."""
        bounds = self._bounds(region)
        return [row for row in self.pages if _overlaps(row, bounds)]

    def _find(self, bounds: Box) -> Holes:
        if not self.bad and self._coverage.is_whole(self.extent):
            return WHOLE
        whole = bounds == self._bounds(())
        hits = self.pages if whole else [row for row in self.pages if _overlaps(row, bounds)]
        filled = self._fill is not None or (self.computes and bool(self.channel.computed))
        return holes_of(bounds, hits, lambda row: row.id in self.bad, filled=filled)

    def _masked(self, values: Array, bounds: Box) -> Array:
        """Whole numbers with a mask over what is not known; floats are NaN there already."""
        mask = None if values.dtype.kind == "f" else marks_of(bounds, self._find(bounds))
        if mask is None:
            return values
        found: Array = np.ma.MaskedArray(values, mask=mask, fill_value=unknown_value(self.channel.dtype))
        return found


def marks_of(bounds: Box, holes: Holes) -> npt.NDArray[np.bool_] | None:
    """True for every cell of some bounds that is not known; None where all are."""
    if not holes:
        return None
    mask = np.zeros([stop - first for first, stop in bounds], dtype=np.bool_)
    for box in (*holes.missing, *holes.damaged):
        cut = inside(box, bounds)
        if cut is not None:
            mask[cut] = True
    return mask


def _box(row: PageRow) -> Box:
    return tuple((s, s + n) for s, n in zip(row.start, row.shape, strict=True))


def _within(row: PageRow, bounds: Box) -> Box:
    """The part of a page that lies within some bounds, in the page's own indices."""
    sides = zip(row.start, row.shape, bounds, strict=True)
    return tuple((max(first, s) - s, min(stop, s + n) - s) for s, n, (first, stop) in sides)


def _overlaps(row: PageRow, bounds: Box) -> bool:
    return all(s < stop and s + n > first for s, n, (first, stop) in zip(row.start, row.shape, bounds, strict=True))


def _covers(row: PageRow, bounds: Box) -> bool:
    return all(s <= first and s + n >= stop for s, n, (first, stop) in zip(row.start, row.shape, bounds, strict=True))
