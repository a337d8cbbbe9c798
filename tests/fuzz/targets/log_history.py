"""Columns in JSON (history.json)."""

from __future__ import annotations

from pathlib import Path

from logs_read import read_all
from target import Target

from inspector.capture import CaptureError


def attempt(data: bytes, scratch: Path) -> None:
    """Read all of it."""
    path = scratch / "history.json"
    path.write_bytes(data)
    read_all(path)


TARGET = Target(
    "columns in JSON (history.json)",
    ("inspector.capture.logs", "inspector.records.plain_text"),
    attempt,
    (CaptureError,),
    most=1 << 14,
)
