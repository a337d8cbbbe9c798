"""tables of curves (CSV): read whole, and as they grow. The first part ends with a line."""

from __future__ import annotations

from pathlib import Path

from logs_read import grown
from target import Target

from inspector.capture import CaptureError


def attempt(data: bytes, scratch: Path) -> None:
    """Read it at once, and in two parts."""
    grown(data, scratch / "metrics.csv", b"\n")


TARGET = Target(
    "tables of curves (CSV)", ("inspector.capture.logs", "inspector.records.plain_text"), attempt, (CaptureError,)
)
