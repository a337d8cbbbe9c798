"""An overview of numbers that no pyramid is kept of: read and reduced part by part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.pyramid import reduce_rows, shrink

Array = npt.NDArray[Any]
PART_CELLS = 1 << 20
"""Cells that are read at once."""


def overview_by_parts(
    read: Callable[[tuple[slice, ...]], Array], cuts: tuple[slice, ...], size: tuple[int, ...]
) -> tuple[Array, Array]:
    """(minima, maxima) over a region whose ends are written out, in at most `size` cells; see `Capture.overview`."""
    rows, *rest = cuts
    factor = max(1, -(-(rows.stop - rows.start) // max(1, size[0])))
    cells = int(np.prod([cut.stop - cut.start for cut in rest], dtype=object))
    many = max(1, PART_CELLS // max(1, factor * cells)) * factor
    lows, highs = [], []
    for first in range(rows.start, max(rows.stop, rows.start + 1), many):
        part = read((slice(first, min(rows.stop, first + many)), *rest))
        lows.append(reduce_rows(part, factor, np.minimum))
        highs.append(reduce_rows(part, factor, np.maximum))
    return shrink(np.concatenate(lows), np.concatenate(highs), size)


def within(region: tuple[slice, ...], extent: tuple[int, ...]) -> tuple[slice, ...]:
    """A region of an array of that shape, an end for every axis written out."""
    padded = region + (slice(None),) * (len(extent) - len(region))
    ends = (cut.indices(n)[:2] for cut, n in zip(padded, extent, strict=True))
    return tuple(slice(first, max(first, stop)) for first, stop in ends)


def parts_of(extent: tuple[int, ...], most: int = PART_CELLS) -> list[tuple[slice, ...]]:
    """Regions of whole rows of at most `most` cells, one row at least, that cover an array of that shape."""
    if not extent:
        return [()]
    row = int(np.prod(extent[1:], dtype=object))
    many = max(1, most // max(1, row))
    whole = tuple(slice(0, n) for n in extent[1:])
    return [(slice(start, min(extent[0], start + many)), *whole) for start in range(0, extent[0], many)]
