"""TensorBoard event files: read whole, and as they grow."""

from __future__ import annotations

from pathlib import Path

from logs_read import grown
from target import Target

from inspector.capture import CaptureError


def attempt(data: bytes, scratch: Path) -> None:
    """Read it at once, and in two parts."""
    grown(data, scratch / "events.out.tfevents.1.host")


TARGET = Target(
    "TensorBoard event files", ("inspector.capture.logs", "inspector.records.plain_text"), attempt, (CaptureError,)
)
