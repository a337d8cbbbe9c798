"""Files of torch.save (zip)."""

from __future__ import annotations

import zipfile
from pathlib import Path

import torch
from checkpoints_read import read_all
from made_checkpoints import weights
from target import FoundError, Target

from inspector.engine.errors import InputError


def attempt(data: bytes, scratch: Path) -> None:
    """Read it, and fit it into a model."""
    path = scratch / "c.pt"
    path.write_bytes(data)
    state = read_all(path)
    with zipfile.ZipFile(path) as archive:
        unchecked = any(not one.CRC for one in archive.infolist())
    for name, true in weights().items():
        if not unchecked and name in state.tensors and not torch.equal(state.tensors[name], true):
            raise FoundError(f"{name} has other numbers, and every member its checksum")


TARGET = Target(
    "files of torch.save (zip)",
    ("inspector.engine.loaders", "inspector.engine.opening", "inspector.engine.model"),
    attempt,
    (InputError,),
    most=1 << 14,
)
