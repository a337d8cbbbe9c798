"""Npy."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from checkpoints_read import read_all
from target import FoundError, Target

from inspector.engine.errors import InputError


def attempt(data: bytes, scratch: Path) -> None:
    """Read it, and fit it into a model."""
    path = scratch / "c.npy"
    path.write_bytes(data)
    state = read_all(path)
    if not state.tensors:  # an empty file of another format
        return
    known = np.load(io.BytesIO(data), allow_pickle=False)
    for name, one in state.tensors.items():
        if one.dtype.is_floating_point and not np.array_equal(one.numpy(), known, equal_nan=True):
            raise FoundError(f"{name} has other numbers than numpy reads")


TARGET = Target(
    "npy",
    ("inspector.engine.loaders", "inspector.engine.opening", "inspector.engine.model"),
    attempt,
    (InputError,),
    most=1 << 14,
)
