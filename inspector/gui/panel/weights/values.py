"""Two axes of a tensor's values as rows and columns, read from a capture in blocks; or the cells of a picture of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.attention.map_pyramid import How, MapPyramid, Rect
from inspector.capture import Capture
from inspector.capture.pyramid import with_nan

Array = npt.NDArray[Any]
SMALL = 1_500_000
"""Values that are read at once, in the thread of the window."""
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class Cut:
    """Which part of which channels is drawn.

    Attributes:
        names: the channel; with a second one that minus this one.
        rows, columns: axes; −1 for rows where there is only one axis.
        fixed: a place on each other axis.
        block: (axis, first, stop) of a gate; None for everything.
        shape, cells: of a picture the (rows, columns) of the tensor, and how many of each a value stands for.
    """

    names: tuple[str, ...]
    rows: int
    columns: int
    fixed: tuple[int, ...] = ()
    block: tuple[int, int, int] | None = None
    shape: tuple[int, int] = (0, 0)
    cells: tuple[int, int] = (1, 1)


class TensorRows:
    """The rows of a cut, for a map."""

    def __init__(self, view: Capture, cut: Cut, frame: int) -> None:
        self.view, self.cut, self.frame = view, cut, frame
        extent = view.extent(cut.names[0], frame)
        self.spans = [(0, n) for n in extent]
        if cut.block is not None:
            axis, first, stop = cut.block
            self.spans[axis] = (first, stop)
        self.shape = (1 if cut.rows < 0 else self._length(cut.rows), self._length(cut.columns))

    def _length(self, axis: int) -> int:
        first, stop = self.spans[axis]
        return stop - first

    @property
    def narrow(self) -> bool:
        """Single precision is drawn."""
        return False

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.shape[0] * self.shape[1]

    def exact(self, rows: tuple[int, int], columns: tuple[int, int]) -> Array:
        """(rows, columns) of the values, floats as they are stored and others in double precision; a difference in
        double precision."""
        found = [self._block(name, rows, columns) for name in self.cut.names]
        if len(found) == 1:
            return found[0]
        with np.errstate(invalid="ignore"):
            difference: Array = found[1].astype(np.float64) - found[0]
        return difference

    def _block(self, name: str, rows: tuple[int, int], columns: tuple[int, int]) -> Array:
        cut, others = self.cut, iter(self.cut.fixed)
        region = []
        for axis, (first, _) in enumerate(self.spans):
            if axis == cut.rows:
                region.append(slice(first + rows[0], first + rows[1]))
            elif axis == cut.columns:
                region.append(slice(first + columns[0], first + columns[1]))
            else:
                at = first + next(others, 0)
                region.append(slice(at, at + 1))
        block = with_nan(self.view.block(name, self.frame, tuple(region)))
        block = block[tuple(slice(None) if axis in (cut.rows, cut.columns) else 0 for axis in range(block.ndim))]
        if cut.rows < 0:
            return block[None, :]
        return block.T if cut.rows > cut.columns else block

    def all(self) -> Array:
        """Every value."""
        return self.exact((0, self.shape[0]), (0, self.shape[1]))

    def rows(self, first: int, stop: int) -> Array:
        """Some rows in single precision, for drawing: infinities of both signs are one colour."""
        return drawn(self.exact((first, stop), (0, self.shape[1])))


def drawn(values: Array) -> Array:
    """In single precision, in which what is larger stays finite."""
    if values.dtype.itemsize > np.dtype(np.float32).itemsize:
        finite = np.isfinite(values)
        values = np.where(finite, np.clip(values, -LARGEST, LARGEST), values)
    found: Array = values.astype(np.float32)
    found[np.isinf(found)] = np.inf
    return found


class ArrayRows:
    """Values that are in memory."""

    narrow = False

    def __init__(self, values: Array) -> None:
        self.values, self.shape = values, values.shape

    def rows(self, first: int, stop: int) -> Array:
        """Some rows."""
        return self.values[first:stop]


class TensorMap:
    """A cut at every zoom: complete, or as far as it was read."""

    def __init__(self, source: TensorRows) -> None:
        self.source = source
        self.pyramid = MapPyramid(source.shape, narrow=False, signed=True)

    def build(self, view: Any) -> Iterator[None]:
        """Read it, a step after the other, by a capture of the thread that does it."""
        source = TensorRows(view, self.source.cut, self.source.frame)
        yield from self.pyramid.build(source)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) that the axes count: those of the tensor, also where this is a picture of it."""
        cut = self.source.cut
        return self.source.shape if cut.cells == (1, 1) else cut.shape

    def look(self, seen: Rect, size: tuple[int, int]) -> tuple[Array, Rect]:
        """(cells in view, what they cover), in rows and columns of the tensor."""
        down, across = self.source.cut.cells
        found, rect = self._look((seen[0] / across, seen[1] / down, seen[2] / across, seen[3] / down), size)
        return found, (rect[0] * across, rect[1] * down, rect[2] * across, rect[3] * down)

    def _look(self, seen: Rect, size: tuple[int, int]) -> tuple[Array, Rect]:
        """(cells in view, what they cover): every value where the zoom shows it."""
        how: How = "maximum"
        base, wanted = self.pyramid.base, min(seen[2] / max(1, size[0]), seen[3] / max(1, size[1]))
        if base == 1 or wanted >= base or seen[2] * seen[3] > SMALL or not self.pyramid.complete:
            return self.pyramid.cells(seen, size, how)
        rows, columns = (_ends(seen[1], seen[3], self.source.shape[0]), _ends(seen[0], seen[2], self.source.shape[1]))
        values = drawn(self.source.exact(rows, columns))
        part = MapPyramid(values.shape, narrow=False, signed=True, base=1)
        part.corner = (rows[0], columns[0])
        for _ in part.build(ArrayRows(values)):
            pass
        return part.cells(seen, size, how)


def _ends(first: float, length: float, most: int) -> tuple[int, int]:
    start = min(max(0, math.floor(first)), most - 1)
    return start, max(start + 1, min(most, math.ceil(first + length)))
