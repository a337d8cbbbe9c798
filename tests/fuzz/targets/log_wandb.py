"""W&B offline files: read whole, and as they grow."""

from __future__ import annotations

from pathlib import Path

from logs_read import grown
from target import Target

from inspector.capture import CaptureError


def attempt(data: bytes, scratch: Path) -> None:
    """Read it at once, and in two parts."""
    grown(data, scratch / "run-abc.wandb")


TARGET = Target(
    "W&B offline files", ("inspector.capture.logs", "inspector.records.plain_text"), attempt, (CaptureError,)
)
