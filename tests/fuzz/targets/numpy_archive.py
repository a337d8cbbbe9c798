"""Npz."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from checkpoints_read import read_all
from target import FoundError, Target

from inspector.engine.errors import InputError


def attempt(data: bytes, scratch: Path) -> None:
    """Read it, and fit it into a model."""
    path = scratch / "c.npz"
    path.write_bytes(data)
    state = read_all(path)
    if not data.startswith((b"PK\3\4", b"PK\5\6")):
        return  # an archive behind other bytes: numpy takes only those that begin the file
    with np.load(io.BytesIO(data), allow_pickle=False) as known:
        for name in known.files:
            if name in state.tensors and not np.array_equal(state.tensors[name].numpy(), known[name], equal_nan=True):
                raise FoundError(f"{name} has other numbers than numpy reads")


TARGET = Target(
    "npz",
    ("inspector.engine.loaders", "inspector.engine.opening", "inspector.engine.model"),
    attempt,
    (InputError,),
    most=1 << 14,
)
