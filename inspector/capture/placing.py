"""Where the pages of a capture belong: the channel that describes each, its frame, and its place in the array."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from inspector.capture.arrays import Arrays
from inspector.capture.assemble import Assembly, Spare, declared_fill
from inspector.capture.checksums import page_checksum, page_owner
from inspector.capture.damage import Box, Damage, where
from inspector.capture.layout import PAGE_BYTES, CaptureError
from inspector.capture.parsing import PageRow, page_of, require_page
from inspector.records import Channel, Frame, Refusal, RunStart

Place = tuple[str, int, PageRow]
"""(channel, frame, page)."""
Rank = tuple[bool, int, int]
"""By which frames are in order: whether nothing tells the step, the step, the number."""
SWEEP = "sweep"
"""In the `meta` of a RunStart: its frames are those of a folder of checkpoints."""


class Placing:
    """Channels, frames, and the pages that were placed; a page whose channel or frame is not known waits for it."""

    start: RunStart
    _major: int

    def _forget_run(self) -> None:
        """Nothing of a run is known."""
        self._frames: dict[int, Frame] = {}
        self._frame_records = 0
        self._ordered: tuple[int, tuple[Frame, ...]] = (0, ())
        self._ranks: dict[int, Rank] = {}
        self.channels: dict[str, Channel] = {}
        self.refusals: list[Refusal] = []
        self._placed: list[tuple[Any, ...]] = []
        """Rows of pages as SQLite gave them, checked, in their order."""
        self._newest: dict[str, int] = {}
        self._numbers: dict[int, Channel] = {}
        self._arrays = Arrays(self._numbers.__getitem__, self._empty)
        self._unreadable: dict[str, Damage] = {}
        self._waiting: dict[Any, tuple[Any, ...]] = {}
        self._spare = Spare()
        self._doubtful = False

    def _blame(self, sentence: str, channel: str = "", frame: int = -1, *, anywhere: bool = False) -> None:
        self._unreadable.setdefault(sentence, Damage(channel, frame, None, sentence, anywhere))

    def _doubt_gaps(self) -> None:
        """Pages are lost, and gaps between the others may have been theirs: no fill value is assumed."""
        if not self._doubtful:
            self._doubtful = True
            for data in self._arrays.made:
                data.doubt_gaps()

    def _empty(self, channel: Channel) -> Assembly:
        """An array without pages."""
        return Assembly(channel, self._spare, doubtful=self._doubtful)

    def _take_frame(self, frame: Frame | None) -> None:
        """A frame, or a later record of a known one."""
        if frame is None:
            return
        if frame.index not in self._frames:
            self._ranks[frame.index] = self._rank_of(frame)
        self._frames[frame.index] = frame
        self._frame_records += 1

    @property
    def frames(self) -> tuple[Frame, ...]:
        """All frames in order; put in order when they are asked for, since a capture may have many thousands."""
        records, ordered = self._ordered
        if records != self._frame_records:  # noted before they are read: another thread may be reading on
            records = self._frame_records
            ordered = tuple(sorted(self._frames.values(), key=lambda one: self._ranks[one.index]))
            self._ordered = (records, ordered)
        return ordered

    def _rank_of(self, frame: Frame) -> Rank:
        """Frames are in the order of their numbers; those of a sweep of checkpoints in that of training, since one that
        appeared late got a late number."""
        if SWEEP not in self.start.meta:
            return False, 0, frame.index
        return frame.step is None, frame.step or 0, frame.index

    def _is_newest(self, frame: int, channel: str) -> bool:
        """Whether a frame comes after all others in which a channel has pages, or is the last of them."""
        before = self._newest.get(channel, -1)
        if frame in self._ranks and before in self._ranks:
            return self._ranks[frame] >= self._ranks[before]
        return frame >= before

    def _describe(self, number: Any, channel: Channel, *, once: bool) -> str:
        """Add a description; returns the reason where it contradicts the one before."""
        before = self.channels.get(channel.name)
        if before is not None and once:
            return f"The channel {channel.name} is declared twice; the second is left out."
        problem = contradiction(before, channel)
        if not problem:
            self._numbers[number] = self.channels[channel.name] = channel
        return problem

    def _take_page(self, row: tuple[Any, ...]) -> str:
        """The name of the channel of a page; "" where it cannot be read, or has to wait."""
        channel = self._numbers.get(row[1]) if isinstance(row[1], int) else None
        if channel is None:
            self._waiting[row[0]] = row
            return ""
        try:
            self._require_page(row, channel)
        except CaptureError as problem:
            self._waiting.pop(row[0], None)
            frame = row[2] if isinstance(row[2], int) and row[2] >= 0 else -1
            self._blame(f"{channel.name}: {problem}", channel.name, frame, anywhere=self._major > 1)
            self._doubt_gaps()
            return ""
        if not self._has_frame(row[2]):
            self._waiting[row[0]] = row
            return ""
        if self._waiting:
            self._waiting.pop(row[0], None)
        self._place(channel, row)
        return channel.name

    def _require_page(self, row: tuple[Any, ...], channel: Channel) -> None:
        """Raise CaptureError for a row that is not as it was written, or that no page has."""
        if self._major > 1 and row[-1] != page_checksum(page_owner(self.start.run, channel), row[:-1]):
            raise CaptureError(f"page {row[0]} of the index has changed since it was written.")
        require_page(row, _itemsize(channel.dtype), len(channel.dims))
        if self._major > 1 and row[5] > PAGE_BYTES:
            raise CaptureError(f"page {row[0]} has {row[5]:,} bytes, more than a page may have.")

    def _has_frame(self, number: int) -> bool:
        """Whether a frame is known. Captures of format 1 without any frames are taken to have those of their pages."""
        return number in self._frames or (not self._frames and self._major < 2)

    def _place(self, channel: Channel, row: tuple[Any, ...]) -> None:
        name, frame = channel.name, row[2]
        self._arrays.add((name, frame), row)
        self._placed.append(row)
        if self._is_newest(frame, name):
            self._newest[name], self.channels[name] = frame, channel

    @property
    def first_page(self) -> str:
        """The checksums of the page that was written first, which another run has not; "" where it is not there."""
        return next((f"{row[-2]}-{row[-1]}" for row in self._placed[:64] if row[0] == 1), "")

    def _place_of(self, row: tuple[Any, ...]) -> Place:
        """Where the page of a row that was placed belongs."""
        return self._numbers[row[1]].name, row[2], page_of(row)

    def _without_place(self) -> Iterator[Damage]:
        """A Damage for each page that still waits for its channel or its frame."""
        for row in self._waiting.values():
            frame = row[2] if isinstance(row[2], int) else -1
            channel = self._numbers.get(row[1]) if isinstance(row[1], int) else None
            if channel is None:
                yield Damage("", frame, None, f"Page {row[0]!r} belongs to no channel.", True)
            else:
                known = frame if self._major > 1 else -1  # without a checksum it may be of any frame
                sentence = f"{channel.name}: page {row[0]} is of frame {frame}, which does not exist."
                yield Damage(channel.name, known, None, sentence)

    def _lacking(self, name: str) -> list[Damage]:
        """The cells that a channel of format 1 declares and that no page brought, in each frame in which it has any."""
        channel = self.channels[name]
        lengths = tuple(n for n in channel.shape if n is not None)
        if len(lengths) < len(channel.shape) or 0 in lengths or declared_fill(channel) is not None:
            return []
        frames = [frame for known, frame in self._arrays if known == name]
        if not frames:
            whole = tuple((0, n) for n in lengths)
            return [Damage(name, -1, whole, f"{name}: none of its pages is there.")]
        return [
            Damage(name, frame, box, f"{where(channel, box, lengths, frame, len(self.frames))}: no page is there.")
            for frame in frames for box in self._boxes_lacking(self._arrays[name, frame], lengths)
        ]  # fmt: skip

    def _boxes_lacking(self, data: Assembly, lengths: tuple[int, ...]) -> list[Box]:
        short = zip(range(len(lengths)), data.extent, lengths, strict=True)
        beyond = [
            tuple((have, n) if other == axis else (0, full) for other, full in enumerate(lengths))
            for axis, have, n in short if have < n
        ]  # fmt: skip
        return [*data.holes().missing, *beyond]


@lru_cache(maxsize=64)
def _itemsize(dtype: str) -> int:
    return np.dtype(dtype).itemsize


def contradiction(before: Channel | None, channel: Channel) -> str:
    """Why a channel cannot be described so, after an earlier description of the same name; "" where it can."""
    if before is None:
        return ""
    for what in ("kind", "dims", "dtype"):
        old, new = getattr(before, what), getattr(channel, what)
        if old != new:
            return f"The channel {channel.name} is described with the {what} {new!r}, and with {old!r} before that."
    return ""
