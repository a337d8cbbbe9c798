"""One array in numpy's own format, whose header is checked before memory is allocated for what it claims."""

from __future__ import annotations

import math
from tokenize import TokenError
from typing import IO, Any

import numpy.typing as npt
from numpy.lib import format as npy

from inspector.records.unreadable import why_unreadable

MAGIC = npy.MAGIC_PREFIX
NOT_READ = (TokenError, SyntaxError, TypeError, RecursionError, MemoryError)
"""What numpy raises of a header beside ValueError: it reads it as Python's own literals."""


def read_npy(stream: IO[bytes], size: int, most: int) -> npt.NDArray[Any]:
    """One array of at most `size` bytes (of its file) and `most`. Raises ValueError; nothing is unpickled."""
    version = npy.read_magic(stream)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"it is of version {version[0]}.{version[1]} of the format; expected 1.0 or 2.0")
    try:
        shape, _, dtype = readers[version](stream)
    except NOT_READ:
        raise ValueError("its header is damaged") from None
    except ValueError as problem:
        if "<ast." not in str(problem):
            raise ValueError(f"its header is damaged: {why_unreadable(problem)}") from None
        raise ValueError("its header is code, and no dictionary of literals") from None
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never unpickled; expected numbers")
    if not all(type(size) is int and 0 <= size < 1 << 63 for size in shape):
        raise ValueError("its header claims a shape that no array has")
    claimed = math.prod(shape) * dtype.itemsize
    if claimed > size - stream.tell() or claimed > most:
        raise ValueError(f"its header claims {claimed:,} bytes, the file has {size - stream.tell():,}")
    stream.seek(0)
    array: npt.NDArray[Any] = npy.read_array(stream, allow_pickle=False)
    return array
