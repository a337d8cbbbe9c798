"""Maps whose numbers go up and down faster than pixels: the mean of those that share one.

Every n-th row of a fast wave is a slow wave that is not there; the mean of a whole period is 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.gui.widgets.images.cell_map import Rect

Array = npt.NDArray[Any]


def means_in_view(values: Array, seen: Rect, pixels: tuple[int, int]) -> tuple[Array, Rect]:
    """The cells of (row, column) numbers that are in view, no more than there are pixels (across, down), and what they
    cover; a mean with a NaN is NaN."""
    rows, columns = values.shape
    left, top, across, down = seen
    first, last = max(0, math.floor(top)), min(rows, math.ceil(top + down))
    begin, end = max(0, math.floor(left)), min(columns, math.ceil(left + across))
    cells = _means(_means(values[first:last, begin:end], pixels[1], 0), pixels[0], 1)
    return cells, (float(begin), float(first), float(end - begin), float(last - first))


def _means(values: Array, most: int, axis: int) -> Array:
    """At most so many means of neighbours along an axis."""
    count = values.shape[axis]
    if count <= most:
        return values
    edges = np.arange(most + 1) * count // most
    with np.errstate(invalid="ignore"):
        sums = np.add.reduceat(values, edges[:-1], axis=axis)
    found: Array = sums / np.diff(edges).reshape((-1, 1) if axis == 0 else (1, -1))
    return found
