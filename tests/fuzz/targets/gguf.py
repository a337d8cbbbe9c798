"""GGUF."""

from __future__ import annotations

from pathlib import Path

from checkpoints_read import read_all
from target import Target

from inspector.engine.errors import InputError


def attempt(data: bytes, scratch: Path) -> None:
    """Read it, and fit it into a model."""
    path = scratch / "c.gguf"
    path.write_bytes(data)
    read_all(path)


TARGET = Target(
    "GGUF",
    ("inspector.engine.loaders", "inspector.engine.opening", "inspector.engine.model"),
    attempt,
    (InputError,),
    most=1 << 14,
)
