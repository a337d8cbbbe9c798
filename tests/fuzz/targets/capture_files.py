"""The files of a capture, their bytes changed: what is wrong is marked, and the rest is right."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

from harmed_captures import Whole, _read, a_run, numbers, words
from target import FoundError, Target

from inspector.capture import CaptureError, open_capture
from inspector.capture.layout import INDEX, page_file

_LENGTH = struct.Struct("<I")
_MADE: list[Whole] = []


def packed(path: Path) -> bytes:
    """Index and pages of a capture as one input."""
    index = (path / INDEX).read_bytes()
    return _LENGTH.pack(len(index)) + index + (path / page_file(0)).read_bytes()


def whole() -> Whole:
    """The capture before it is changed, made once."""
    if not _MADE:
        path = a_run(Path(tempfile.mkdtemp()) / "run.inspect")
        with open_capture(path) as capture:
            _MADE.append(Whole(path, words(capture), numbers(capture)))
    return _MADE[0]


def attempt(data: bytes, scratch: Path) -> None:
    """Write both files, then read, export and pack the capture."""
    (length,) = _LENGTH.unpack(data[:4].ljust(4, b"\0"))
    path = scratch / "a.inspect"
    path.mkdir()
    (path / INDEX).write_bytes(data[4:][:length])
    (path / page_file(0)).write_bytes(data[4 + length :])
    outcome = _read(path, whole())
    if outcome.kind == "lost":
        raise FoundError(outcome.said)


TARGET = Target(
    "index and pages of a capture, as bytes", ("inspector.capture",), attempt, (CaptureError,), most=1 << 18
)
