"""Pages of a capture as they are checked: which were checked, which are damaged, and the cells that are lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.assemble import Assembly
from inspector.capture.contents import Contents
from inspector.capture.damage import Box, Damage, where
from inspector.capture.holes import Holes
from inspector.capture.layout import CaptureError
from inspector.capture.pages import PageFiles
from inspector.capture.parsing import PageRow, page_of
from inspector.records import Channel

Array = npt.NDArray[Any]
LOOK_SECONDS = 1.0
"""Seconds after which `check` looks again whether a file was truncated, overwritten or replaced."""
PAGES_A_LOOK = 256
"""Pages already checked that are skipped before the time is checked again."""
DONE = object()


class CheckedPages(Contents):
    """The pages of a capture. A page is checked when it is read, or by `check` and `verify`, and only once."""

    _files: PageFiles

    def __init__(self) -> None:
        super().__init__()
        self._index_problem: Damage | None = None
        self._looked = time.monotonic()
        self._noted: set[tuple[str, int]] | None = None

    def _forget_run(self) -> None:
        """Nothing of a run is known, and none of its pages was checked."""
        super()._forget_run()
        self._bad: dict[int, Damage] = {}
        self._news: set[str] = set()
        self._passed = 0
        self._checking: tuple[PageRow, Iterator[None]] | None = None

    @contextmanager
    def noting(self) -> Iterator[set[tuple[str, int]]]:
        """Collects (channel, frame) of all arrays whose cells are read inside."""
        before, self._noted = self._noted, set()
        try:
            yield self._noted
        finally:
            self._noted = before

    def frame_of(self, name: str, frame: int = -1) -> int:
        """The frame that -1 stands for: the newest one in which the channel has pages."""
        if name not in self.channels:
            raise CaptureError(f"There is no channel {name!r}; there are: {_some(self.channels)}.")
        return self._newest.get(name, -1) if frame == -1 else frame

    def _assembly(self, name: str, frame: int) -> Assembly:
        number = self.frame_of(name, frame)
        found = self._arrays.get((name, number))
        return found if found is not None else Assembly(self.channels[name], self._spare, doubtful=self._doubtful)

    def _source(self, name: str, frame: int) -> PageSource:
        number = self.frame_of(name, frame)
        if self._noted is not None:
            self._noted.add((name, number))
        return PageSource(self, name, number)

    @property
    def damage(self) -> tuple[Damage, ...]:
        """Everything that could not be read or is missing, as far as it was checked.

        The index is checked when it is read; a page only when its numbers are requested, or by `check` and `verify`: in
        a capture that was just opened no damaged page is known.
        """
        index = (self._index_problem,) if self._index_problem is not None else ()
        return (*index, *self._damaged_rows(), *self._bad.values())

    @property
    def damaged(self) -> list[str]:
        """One sentence for everything that could not be read."""
        return [one.sentence for one in self.damage]

    def damage_of(self, name: str, frame: int = -1) -> tuple[Damage, ...]:
        """The damage of a channel in a frame, certain or possible."""
        number = self.frame_of(name, frame)
        return tuple(one for one in self.damage if one.concerns(name, number))

    def check(self, seconds: float) -> frozenset[str]:
        """Continue to check the pages that were not read so far, for about so many seconds, and the files again.

        Returns the channels that were found damaged, or intact again, since the last call: here, or when they were
        read.
        """
        deadline = time.monotonic() + seconds
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self.look()
        while self._check_some() and time.monotonic() < deadline:
            pass
        news, self._news = frozenset(self._news), set()
        return news

    def look(self) -> None:
        """Check whether a page file was truncated, overwritten or replaced;
        if so, everything is read and checked again."""
        self._looked = time.monotonic()
        if self._index_replaced():
            self._news.add("")
        if not self._files.look():
            return
        self.changes += 1
        for data in self._arrays.made:
            data.forget()
        self._news |= {name for name, _frame in self._arrays}
        self._passed, self._checking = 0, None

    def _index_replaced(self) -> bool:
        """Whether the open index was replaced by another since the last call."""
        return False

    def _check_some(self) -> bool:
        """Check a piece of a page; False when every page has been checked."""
        if self._checking is None:
            stop = min(len(self._placed), self._passed + PAGES_A_LOOK)
            while self._passed < stop and self._files.known(self._placed[self._passed][0]):
                self._passed += 1
            if self._passed == stop:
                return stop < len(self._placed)
            row = page_of(self._placed[self._passed])
            self._checking = row, self._files.checking(row)
        _, rest = self._checking
        if next(rest, DONE) is DONE:
            self._checking = None
            self._judge(*self._place_of(self._placed[self._passed]))
        return True

    def _judge(self, name: str, frame: int, row: PageRow) -> None:
        """Note the result of checking a page."""
        why = self._files.damage(row)
        if not why and not self._arrays.is_made((name, frame)):
            return  # nothing was read of it, nor said
        data = self._arrays[name, frame]
        if not data.judge(row, bad=bool(why)):
            return
        self.changes += 1
        self._news.add(name)
        if not why:
            del self._bad[row.id]
            return
        region: Box = tuple((start, start + n) for start, n in zip(row.start, row.shape, strict=True))
        place = where(data.channel, region, data.extent, frame, len(self.frames))
        self._bad[row.id] = Damage(name, frame, region, f"{place}: {why}.")

    def verify(self, most: int | None = None) -> list[str]:
        """Check every page against its checksum, or the first ones of `most` bytes;
        returns a message for each damage."""
        self.look()
        left = most
        for found in self._placed:
            if self._files.known(found[0]):
                continue
            name, frame, row = self._place_of(found)
            if left is not None:
                left -= row.nbytes
                if left < 0:
                    break
            for _ in self._files.checking(row):
                pass
            self._judge(name, frame, row)
        return self.damaged

    @property
    def unchecked(self) -> int:
        """How many bytes of pages were not checked so far."""
        return sum(row[5] for row in self._placed if not self._files.known(row[0]))

    def holes(self, name: str, frame: int = -1) -> Holes:
        """The cells of a channel that no page brought so far, and those whose page was found damaged."""
        return self._assembly(name, frame).holes()

    def known(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> npt.NDArray[np.bool_]:
        """True for every cell of a region that was captured and is undamaged; its pages are checked for that."""
        data, number = self._assembly(name, frame), self.frame_of(name, frame)
        for row in data.overlapping(region):
            if not self._files.known(row.id):
                for _ in self._files.checking(row):
                    pass
            self._judge(name, number, row)
        return ~data.unknown(region, PageSource(self, name, number))

    def computed_block(self, name: str, frame: int, box: Box) -> Array | None:
        """What cells that no page brought are computed to be; None where nothing is computed."""
        return None


class PageSource:
    """The pages of one array, each reported to the capture when reading shows whether it is damaged."""

    def __init__(self, capture: CheckedPages, name: str, frame: int) -> None:
        self.capture, self.place = capture, (name, frame)

    def size(self) -> int:
        """Bytes that all page files have together."""
        return self.capture._files.size()

    def view(self, row: PageRow, dtype: str, *, keep: bool = True) -> Array | None:
        """A whole page, or None when it is damaged."""
        found = self.capture._files.view(row, dtype, keep=keep)
        self.capture._judge(*self.place, row)
        return found

    def part(self, row: PageRow, dtype: str, box: Box) -> Array | None:
        """Some cells of a page, or None when it is damaged."""
        found = self.capture._files.part(row, dtype, box)
        self.capture._judge(*self.place, row)
        return found

    def computed(self, box: Box) -> Array | None:
        """What cells that no page brought are computed to be; None where nothing is computed."""
        return self.capture.computed_block(*self.place, box)


def _some(names: dict[str, Channel]) -> str:
    listed = ", ".join(list(names)[:12])
    return listed + (f" and {len(names) - 12} more" if len(names) > 12 else "") if names else "none"
