"""Parts of pages that are too large to be read whole; only captures of format 1 have such pages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.damage import Box
from inspector.capture.files import PIECE, GuardedFile

Array = npt.NDArray[Any]
Piece = tuple[tuple[int | slice, ...], int, tuple[int, ...], tuple[slice, ...]]


def bytes_of(array: Array) -> memoryview:
    """The bytes of a contiguous array, to read into."""
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)


def read_rows(file: GuardedFile, offset: int, shape: tuple[int, ...], dtype: str, box: Box) -> Array | None:
    """The cells of a box of a page that begins at `offset`, read-only; None where the file does not have them.

    They are read in pieces of whole rows: at most a piece more than requested.
    """
    wanted = np.dtype(dtype)
    out: Array = np.empty([stop - first for first, stop in box], wanted)
    for into, start, part, inner in _pieces(shape, box, wanted.itemsize):
        rows: Array = np.empty(part, wanted.newbyteorder("<"))
        if not file.read_into(offset + start * wanted.itemsize, bytes_of(rows)):
            return None
        out[into] = rows[inner]
    out.flags.writeable = False
    return out


def _pieces(
    shape: tuple[int, ...], box: Box, itemsize: int, base: int = 0, at: tuple[int, ...] = ()
) -> Iterator[Piece]:
    """Runs of consecutive numbers that hold a box of an array: (where they go in the box, first number, shape, cut).

    Axes whose rows are longer than a piece are read one position at a time; the others are cut into pieces.
    """
    (first, stop), rest = box[0], box[1:]
    stride = math.prod(shape[1:])
    if rest and (stop - first == 1 or stride * itemsize > PIECE):
        for i in range(first, stop):
            yield from _pieces(shape[1:], rest, itemsize, base + i * stride, (*at, i - first))
        return
    many = max(1, PIECE // max(1, stride * itemsize))
    cut = (slice(None), *(slice(*bounds) for bounds in rest))
    for low in range(first, stop, many):
        high = min(stop, low + many)
        yield (*at, slice(low - first, high - first)), base + low * stride, (high - low, *shape[1:]), cut
