"""TFRecord framing: length (8 bytes), its masked CRC-32C, the record, its masked CRC-32C.

A file is read window by window. A record whose own checksum is wrong is skipped and told; where a length is wrong the
next intact length is looked for. A record that is not complete yet ends the reading, and is read again later.
"""

from __future__ import annotations

import os
import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import FileIO
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.logs.crc32c import checksums, masked

WINDOW = 2 << 20
LARGEST = 64 << 20
"""Bytes of the largest record that is read: images and graphs may be larger, numbers are not."""
HEADER, TRAILER = 12, 4
_HEAD = struct.Struct("<QI")
_LENGTHS: dict[int, int] = {}
"""Masked checksum of each length that was met, at most MOST_LENGTHS of them."""
MOST_LENGTHS = 100_000


@dataclass(slots=True)
class Window:
    """Some bytes of a file and the records in them.

    Attributes:
        data, base: the bytes, and where they begin in the file.
        records: (first, stop) of every intact record within `data`.
        bad: (offset in the file, what is wrong) of what was skipped.
        stop: the offset in the file up to which all is read.
        lost: whether an intact length is still looked for there, after one that is damaged.
    """

    data: bytes
    base: int
    records: list[tuple[int, int]] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    stop: int = 0
    lost: bool = False


def masked_length(length: int) -> int:
    """The checksum that stands behind a length."""
    found = _LENGTHS.get(length)
    if found is None:
        if len(_LENGTHS) >= MOST_LENGTHS:
            _LENGTHS.clear()
        found = _LENGTHS[length] = int(_masked_of(np.frombuffer(struct.pack("<Q", length), np.uint8)[None])[0])
    return found


def windows(file: FileIO, at: int, size: int, *, lost: bool = False) -> Iterator[Window]:
    """The records from an offset to the end of a file of `size` bytes. `lost`: as the window before ended."""
    while (at := _behind_hole(file, at) if lost else at) + HEADER + TRAILER <= size:
        window = _window(file, at, size, WINDOW, lost=lost)
        if window.stop == at:  # a record that is larger than the window, or is not complete
            needed = _needed(window.data, size - at)
            if needed <= len(window.data):
                return
            window = _skipped(window, at, needed) if needed > LARGEST else _window(file, at, size, needed, lost=lost)
            if window.stop == at:
                return
        yield window
        at, lost = window.stop, window.lost


def _behind_hole(file: FileIO, at: int) -> int:
    """Where the next bytes are that were ever written: a file may have a hole of any length, in which no record is."""
    try:
        return os.lseek(file.fileno(), at, os.SEEK_DATA)
    except OSError:  # none up to its end
        return os.fstat(file.fileno()).st_size
    except AttributeError:  # a system that does not tell
        return at


def _needed(data: bytes, left: int) -> int:
    """Bytes of the record at the beginning; 0 where it is not complete."""
    if len(data) < HEADER:
        return 0
    whole = int(_HEAD.unpack_from(data)[0]) + HEADER + TRAILER
    return whole if whole <= left else 0


def _skipped(window: Window, at: int, needed: int) -> Window:
    what = f"a record of {needed:,} bytes, more than the {LARGEST:,} that are read, is left out"
    return Window(b"", at, bad=[(at, what)], stop=at + needed)


def _window(file: FileIO, at: int, size: int, length: int, *, lost: bool) -> Window:
    file.seek(at)
    data = file.read(min(length, size - at)) or b""
    window = Window(data, at)
    place, spans = 0, []
    while place + HEADER + TRAILER <= len(data):
        count, check = _HEAD.unpack_from(data, place)
        if check != (_LENGTHS.get(count) or masked_length(count)):
            if place or not lost:  # else it was told when the window before ended
                window.bad.append((at + place, "the length of a record is damaged"))
            place, window.lost = _resume(data, place + 1)
            continue
        window.lost = False
        stop = place + HEADER + count
        if stop + TRAILER > len(data):
            break
        spans.append((place + HEADER, stop))
        place = stop + TRAILER
    window.records, bad = _intact(data, spans)
    window.bad = sorted([*window.bad, *((at + first - HEADER, "the checksum of a record is wrong") for first in bad)])
    window.stop = at + place
    return window


def _resume(data: bytes, start: int) -> tuple[int, bool]:
    """(where the next intact length is, False); (where it is looked for when more has come, True)."""
    codes = np.frombuffer(data, np.uint8)[start:]
    count = len(codes) - HEADER + 1
    if count <= 0:
        return start, True
    high = codes[4 : 4 + count] | codes[5 : 5 + count] | codes[6 : 6 + count] | codes[7 : 7 + count]
    places = np.flatnonzero(high == 0)  # no record has 4 GiB
    for first in range(0, len(places), 1 << 16):
        some = places[first : first + (1 << 16)]
        heads = codes[some[:, None] + np.arange(HEADER)]
        stored = np.ascontiguousarray(heads[:, 8:]).view("<u4")[:, 0]
        good = np.flatnonzero(_masked_of(heads[:, :8]) == stored)
        if len(good):
            return start + int(some[good[0]]), False
    return start + count, True


def _intact(data: bytes, spans: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """The spans whose checksum is right, and where the others begin. Spans of one length are checked together."""
    codes = np.frombuffer(data, np.uint8)
    groups: dict[int, list[int]] = defaultdict(list)
    for first, stop in spans:
        groups[stop - first].append(first)
    bad: set[int] = set()
    for length, firsts in groups.items():
        many = max(1, (1 << 20) // (length + TRAILER))
        for start in range(0, len(firsts), many):
            places = np.array(firsts[start : start + many])
            rows = codes[places[:, None] + np.arange(length + TRAILER)]
            stored = np.ascontiguousarray(rows[:, length:]).view("<u4")[:, 0]
            bad.update(places[_masked_of(rows[:, :length]) != stored].tolist())
    return [span for span in spans if span[0] not in bad] if bad else spans, sorted(bad)


def _masked_of(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return masked(checksums(rows))
