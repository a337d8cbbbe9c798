"""Lines of a text that may still be written, from the place up to which it was read."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO

from inspector.capture.layout import CaptureError

PIECE = 1 << 20
LONGEST = 8 << 20
"""Bytes of the longest line that is read."""
PASSED_OVER = 64 << 20
TOO_LONG = f"a line has more than the {LONGEST:,} bytes that are read, and is left out"
QUIET = 2.0
"""Seconds without a change after which a last line that has no end is taken for whole. Counter-example: a writer that
pauses for longer in the middle of a line; the file is read anew when the line goes on."""
AHEAD = 60.0
"""Seconds by which the clock of a disk in the network may be ahead of this machine's while somebody writes."""
UTF16 = (b"\xff\xfe", b"\xfe\xff")
GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file.

    Attributes:
        where, stop: where it begins, or is gone on with, and where what follows it begins.
        text: without its end; empty of one that is too long.
        ended: whether it has an end; too_long: whether it is left out.
    """

    where: int
    text: bytes
    stop: int
    ended: bool
    too_long: bool = False


def lines(file: FileIO, at: int, size: int, *, within: bool = False) -> Iterator[Line]:
    """Every line from an offset on. `within`: whether that lies within a line that is too long, of which so many bytes
    at a time are passed over behind the first reading: somebody waits."""
    most = PASSED_OVER if at else size
    rest, place, too_long = b"", at, within
    while place < size:
        file.seek(place)  # whoever takes the lines may have read elsewhere in between (Tail.reach)
        piece = file.read(min(PIECE, size - place))
        if not piece:
            break
        parts = piece.split(b"\n")
        last = parts.pop()
        for part in parts:
            place += len(part) + 1
            yield Line(at, b"" if too_long else (rest + part).removesuffix(b"\r"), place, True, too_long)
            at, rest, too_long = place, b"", False
        place += len(last)
        rest = b"" if too_long else rest + last
        if len(rest) > LONGEST:
            rest, too_long = b"", True
        if too_long and place - at > most:
            break
    if place > at:
        yield Line(at, rest, place, False, too_long)


def refuse_other_texts(head: bytes, name: str) -> None:
    """Raise CaptureError where a file begins as one does whose lines cannot be read."""
    if head.startswith(UTF16):
        raise CaptureError(f"{name} is written in UTF-16; expected UTF-8.")
    if head.startswith(GZIP):
        raise CaptureError(f"{name} is compressed with gzip; expected text: unpack it first.")


def is_quiet(file: FileIO) -> bool:
    """Whether nothing was written for a while. The time of a file that was copied from a machine whose clock is ahead
    lies in the future for hours: nobody is waited for until then."""
    return not -AHEAD < time.time() - os.fstat(file.fileno()).st_mtime <= QUIET
