"""Sound files."""

from __future__ import annotations

from pathlib import Path

from target import Target

from inspector.engine.errors import InputError
from inspector.engine.inputs.audio import read_sound


def attempt(data: bytes, scratch: Path) -> None:
    """Read it."""
    path = scratch / "s.wav"
    path.write_bytes(data)
    read_sound(path)


TARGET = Target("sound", ("inspector.engine.inputs",), attempt, (InputError,))
