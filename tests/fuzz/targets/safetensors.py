"""Safetensors."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from checkpoints_read import read_all
from target import FoundError, Target

from inspector.engine.errors import InputError


def attempt(data: bytes, scratch: Path) -> None:
    """Read it, and fit it into a model."""
    path = scratch / "c.safetensors"
    path.write_bytes(data)
    state = read_all(path)
    begins = 8 + int.from_bytes(data[:8], "little")
    for name, one in json.loads(data[8:begins]).items():
        if name != "__metadata__":
            first, stop = one["data_offsets"]
            found = (
                state.tensors[name].contiguous().view(-1).view(torch.uint8).numpy().tobytes() if stop > first else b""
            )
            if found != data[begins + first : begins + stop] or list(state.tensors[name].shape) != one["shape"]:
                raise FoundError(f"{name} has other numbers than the file")


TARGET = Target(
    "safetensors",
    ("inspector.engine.loaders", "inspector.engine.opening", "inspector.engine.model"),
    attempt,
    (InputError,),
    most=1 << 14,
)
