"""Weights as a capture has them: the list of tensors and gates with their numbers, and what a matrix of them spans."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import Capture
from inspector.records import weights as layout
from inspector.records.plain_text import plain_line
from inspector.records.weights import shape_of

Array = npt.NDArray[Any]
NO_NAME = "(no name)"


@dataclass(frozen=True, slots=True)
class ListedPart:
    """A tensor, or one gate of it.

    Attributes:
        name, gate, order: the tensor, the gate of it ("" for all of it) and whose order of gates it is.
        tensor: the number of the part that is the tensor as a whole.
        block: (axis, first, stop) of a gate; None for a tensor.
        shapes, types: in each file; "" where it has no such tensor.
    """

    name: str
    gate: str
    order: str
    tensor: int
    block: tuple[int, int, int] | None
    shapes: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def title(self) -> str:
        """The tensor, with the gate of it, on one line."""
        name = self.name or NO_NAME
        return plain_line(f"{name} · {self.gate}" if self.gate else name)

    @property
    def has_map(self) -> bool:
        """Whether it has two axes or more, and elements."""
        shape = shape_of(next((one for one in self.shapes if one), "")) or ()
        return len(shape) > 1 and math.prod(shape) > 1

    @property
    def there(self) -> tuple[bool, ...]:
        """Which files have it: a tensor that is there has a type."""
        return tuple(bool(one) for one in self.types)


@dataclass(frozen=True, slots=True)
class WeightList:
    """All parts, with a table (part, statistic) and a histogram (part, bin) of each file, and their differences."""

    files: tuple[str, ...]
    parts: tuple[ListedPart, ...]
    tables: tuple[Array, ...]
    histograms: tuple[Array, ...]
    compared: Array | None

    def number(self, part: int, statistic: str, side: int = 0) -> float:
        """One number of a part; NaN where there is none."""
        return float(self.tables[side][part, layout.STATISTICS.index(statistic)])

    def difference(self, part: int, what: str) -> float:
        """One number of how the files differ in a part; NaN where there is none."""
        return math.nan if self.compared is None else float(self.compared[part, layout.DIFFERENCES.index(what)])

    def gates_of(self, part: int) -> list[int]:
        """The parts that are gates of a tensor."""
        return [n for n, one in enumerate(self.parts) if one.gate and one.tensor == self.parts[part].tensor]


def weight_list(capture: Capture, frame: int) -> WeightList | None:
    """What a capture lists; None while it is not there yet."""
    channels = capture.channels
    sides = [side for side in layout.SIDES if layout.TABLE + side in channels]
    if not sides or layout.BLOCKS not in channels:
        return None
    tables = [np.ma.filled(capture.array(layout.TABLE + side, frame).astype(np.float64), np.nan) for side in sides]
    blocks = np.ma.filled(capture.array(layout.BLOCKS, frame), -1)
    count = min(len(blocks), *(len(table) for table in tables))
    told = capture.start.meta.get(layout.WEIGHTS)
    files = told.get("files", ()) if isinstance(told, dict) else ()
    names = [str(one) for one in files][: len(sides)]
    return WeightList(
        files=tuple([*names, *("first", "second")][: len(sides)]) if len(names) < len(sides) else tuple(names),
        parts=tuple(_parts(capture, frame, sides, blocks[:count])),
        tables=tuple(table[:count] for table in tables),
        histograms=tuple(
            np.ma.filled(capture.array(layout.HISTOGRAM + side, frame), 0)[:count] for side in sides
            if layout.HISTOGRAM + side in channels
        ),
        compared=_compared(capture, frame, count),
    )  # fmt: skip


def _compared(capture: Capture, frame: int, count: int) -> Array | None:
    if layout.COMPARED not in capture.channels:
        return None
    found: Array = np.ma.filled(capture.array(layout.COMPARED, frame).astype(np.float64), np.nan)
    return found if len(found) >= count else None


def _parts(capture: Capture, frame: int, sides: list[str], blocks: Array) -> list[ListedPart]:
    def labels(domain: str) -> list[str]:
        found = list(capture.labels(domain, frame))
        return found + [""] * (len(blocks) - len(found))

    names, gates, orders = (labels(domain) for domain in (layout.NAMES, layout.GATES, layout.ORDERS))
    shapes, types = [labels(layout.SHAPES + side) for side in sides], [labels(layout.TYPES + side) for side in sides]
    return [
        ListedPart(
            names[n], gates[n], orders[n], int(tensor), None if axis < 0 else (int(axis), int(start), int(stop)),
            tuple(one[n] for one in shapes), tuple(one[n] for one in types),
        )
        for n, (tensor, axis, start, stop) in enumerate(blocks.tolist())
    ]  # fmt: skip


# -- what a matrix spans


def singular_values(matrix: Array) -> Array:
    """Of a matrix whose elements are all finite, the largest first, in double precision; none of an empty one."""
    if not matrix.size:
        return np.zeros(0)
    wide = matrix.astype(np.float64)
    scale = float(np.abs(wide).max()) or 1.0
    found: Array = np.linalg.svd(wide / scale, compute_uv=False) * scale
    return found


def effective_rank(values: Array) -> float:
    """exp of the entropy of σ / Σσ; 0 for a matrix of zeros. Source: Roy & Vetterli 2007."""
    total = float(values.sum())
    if not total > 0:
        return 0.0
    shares = values / total
    shares = shares[shares > 0]
    return float(np.exp(-(shares * np.log(shares)).sum()))


def stable_rank(values: Array) -> float:
    """‖A‖²_F / σ₁²; 0 for a matrix of zeros. Source: Rudelson & Vershynin 2007."""
    top = float(values.max(initial=0.0))
    return float(((values / top) ** 2).sum()) if top > 0 else 0.0


def spectrum_sentence(values: Array) -> str:
    """What the singular values of a matrix say, in one line."""
    if not len(values):
        return "no elements"
    return (
        f"σ₁ {values[0]:.4g}, σ_{len(values)} {values[-1]:.4g}, effective rank {effective_rank(values):.1f} of "
        f"{len(values)}, stable rank {stable_rank(values):.1f}"
    )


def norms(matrix: Array) -> tuple[Array, Array, int]:
    """(norms of rows (r,), norms of columns (c,), how many elements of (r, c) are left out since they are not finite),
    in double precision and without overflow."""
    wide = matrix.astype(np.float64)
    known = np.isfinite(wide)
    wide = np.where(known, wide, 0.0)
    return _norm(wide, 1), _norm(wide, 0), int((~known).sum())


def norm_of(values: Array) -> float:
    """Root of the summed squares of finite numbers of any size and shape, in double precision."""
    return float(_norm(values.astype(np.float64, copy=False).reshape(1, -1), 1)[0])


def _norm(wide: Array, axis: int) -> Array:
    """Along an axis, each divided by its largest element first."""
    scale = np.abs(wide).max(axis, keepdims=True, initial=0.0)
    scale[scale == 0] = 1.0
    found: Array = np.sqrt(((wide / scale) ** 2).sum(axis)) * scale.squeeze(axis)
    return found
