"""Trainer_state.json of Hugging Face."""

from __future__ import annotations

from pathlib import Path

from logs_read import read_all
from target import Target

from inspector.capture import CaptureError


def attempt(data: bytes, scratch: Path) -> None:
    """Read all of it."""
    path = scratch / "trainer_state.json"
    path.write_bytes(data)
    read_all(path)


TARGET = Target(
    "trainer_state.json of Hugging Face",
    ("inspector.capture.logs", "inspector.records.plain_text"),
    attempt,
    (CaptureError,),
    most=1 << 14,
)
