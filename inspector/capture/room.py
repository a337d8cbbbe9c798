"""Memory for arrays that grow while they are read: room that is not written yet costs addresses only."""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
GROWTH, AHEAD_BYTES = 8, 64 << 20
"""Factor by which an array that grows gets room, up to so many bytes, and by 2 beyond: every growth is a copy."""
PLAIN_BYTES = 4 << 20
"""Bytes from which numpy asks the system for huge pages. The first number that is written to one of them has the
system clear 2 MiB, which took 8 ms where 4 KiB took 2 µs; an array that grows by some rows a frame writes few."""


def rows_ahead(needed: int, present: int, row_bytes: int) -> int:
    """Rows to allocate for an array of `present` rows, of which so many are needed now."""
    ahead = GROWTH * needed
    return ahead if ahead * row_bytes <= AHEAD_BYTES else max(needed, 2 * present)


def unwritten(shape: Sequence[int], dtype: np.dtype[Any], least: int = PLAIN_BYTES) -> Array:
    """An array of any contents, whose memory the system gives page by page as it is written, from `least` bytes on, and
    gets back with the array: the heap keeps what smaller ones leave."""
    size = math.prod(shape) * dtype.itemsize
    if size < least or sys.platform == "win32":
        return np.empty(shape, dtype)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(memory, dtype).reshape(shape)
