"""HDF5 files of Keras."""

from __future__ import annotations

from pathlib import Path

from checkpoints_read import read_all
from target import Target

from inspector.engine.errors import InputError
from inspector.engine.model import arrays_of_child

arrays_of_child.LEAST_SECONDS = 15.0


def attempt(data: bytes, scratch: Path) -> None:
    """Read it, and fit it into a model."""
    path = scratch / ("c.keras" if data.startswith(b"PK") else "c.h5")
    path.write_bytes(data)
    read_all(path)


TARGET = Target(
    "HDF5 files of Keras",
    ("inspector.engine.loaders", "inspector.engine.opening", "inspector.engine.model"),
    attempt,
    (InputError,),
    most=1 << 16,
    slow=True,
)
