"""Pictures."""

from __future__ import annotations

from pathlib import Path

from target import Target

from inspector.engine.errors import InputError
from inspector.engine.inputs.picture import read_picture


def attempt(data: bytes, scratch: Path) -> None:
    """Read it."""
    path = scratch / "p.png"
    path.write_bytes(data)
    read_picture(path)


TARGET = Target("pictures", ("inspector.engine.inputs",), attempt, (InputError,))
