"""Lines of a text that may still be written, from the place up to which it was read."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from io import FileIO

from inspector.capture.layout import CaptureError

PIECE = 1 << 20
LONGEST = 8 << 20
"""Bytes of the longest line that is read."""
QUIET = 2.0
"""Seconds without a change after which a last line that has no end is taken for whole. Counter-example: a writer that
pauses for longer in the middle of a line; the file is read anew when the line goes on."""
AHEAD = 60.0
"""Seconds by which the clock of a disk in the network may be ahead of this machine's while somebody writes."""
UTF16 = (b"\xff\xfe", b"\xfe\xff")


def lines(file: FileIO, at: int, size: int) -> Iterator[tuple[int, bytes, bool]]:
    """(where it begins, the line without its end, whether it has an end) of every line from an offset on.

    Raises CaptureError for a line that is longer than any.
    """
    rest = b""
    while at + len(rest) < size:
        file.seek(at + len(rest))  # whoever takes the lines may have read elsewhere in between (Tail.reach)
        piece = file.read(min(PIECE, size - at - len(rest)))
        if not piece:
            break
        parts = (rest + piece).split(b"\n")
        rest = parts.pop()
        for part in parts:
            yield at, part.removesuffix(b"\r"), True
            at += len(part) + 1
        if len(rest) > LONGEST:
            raise CaptureError(f"The line at byte {at:,} has more than the {LONGEST:,} bytes that are read.")
    if rest:
        yield at, rest, False


def is_quiet(file: FileIO) -> bool:
    """Whether nothing was written for a while. The time of a file that was copied from a machine whose clock is ahead
    lies in the future for hours: nobody is waited for until then."""
    return not -AHEAD < time.time() - os.fstat(file.fileno()).st_mtime <= QUIET
