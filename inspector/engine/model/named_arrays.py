"""Arrays by name, from files of other programs, as the tensors of a checkpoint."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from inspector.engine.errors import InputError

MISSING = "{} is {}, which needs {} to be read: pip install 'sequence-inspector[formats]'."
MOST_TENSORS = 50_000


def needed(path: Path, what: str, library: str) -> Any:
    """A library of the extra [formats], imported when the first such file is read. Raises InputError without it."""
    try:
        return importlib.import_module(library)
    except ImportError:
        raise InputError(MISSING.format(path.name, what, library.partition(".")[0])) from None


def most_bytes(path: Path) -> int:
    """What the arrays of a file may take in memory: four times the file, and 64 MiB in any case."""
    return max(4 * path.stat().st_size, 64 << 20)


def require_room(path: Path, sizes: Iterable[int]) -> None:
    """Raises InputError where arrays of these bytes would take far more memory than the file."""
    claimed = sum(sizes)
    if claimed > most_bytes(path):
        raise InputError(
            f"{path.name} asks for {claimed:,} bytes of memory, far more than its {path.stat().st_size:,}; it is not "
            "read."
        )


def as_tensor(array: Any) -> Tensor | None:
    """A tensor of an array of numbers with a memory of its own; None for text and objects. Raises InputError."""
    array = np.asarray(array)
    if array.dtype.kind not in "biufc" or array.dtype.itemsize > 16:
        return None
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        if array.dtype.itemsize == 8 and array.size and int(array.max()) >> 63:
            raise InputError("An array holds whole numbers of 2⁶³ and more, which no tensor has.")
        array = array.astype(np.int64)
    if array.dtype == np.longdouble and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))


def dotted(name: str) -> str:
    """A name with parts between slashes, as a module's with dots."""
    return ".".join(part for part in name.replace("/", ".").split(".") if part)
