"""A capture packed into one file: what is wrong is marked, and the rest is right."""

from __future__ import annotations

from pathlib import Path

from harmed_captures import _differs, numbers
from target import FoundError, Target

from inspector.capture import Capture, CaptureError, open_any

from .capture_files import whole


def attempt(data: bytes, scratch: Path) -> None:
    """Open it as a file that was dropped on the window is opened."""
    path = scratch / "a.inspect.zip"
    path.write_bytes(data)
    with open_any(path) as capture:
        if not isinstance(capture, Capture):
            raise FoundError("it is taken for a log")
        found, damaged = numbers(capture), capture.verify()
    for key, array in found.items():
        if wrong := _differs(array, whole().numbers.get(key), bool(damaged)):
            raise FoundError(f"{key}: {wrong}")


TARGET = Target("packed captures", ("inspector.capture",), attempt, (CaptureError,), most=1 << 18)
