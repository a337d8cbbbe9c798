"""How a capture of weights is laid out: every tensor of a checkpoint, or of two side by side.

What is listed are *parts*: tensors, and of the weights of recurrent layers the gates too. Their names, shapes, types
and gates are labels of the domains below, their numbers a table. The values of a tensor are a channel of their own, in
the file's own shape; of a large one only the cells of a picture are stored until its values are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from inspector.records.naming import channel_name

WEIGHTS = "weights"
"""The kind of such channels, of the input that asks for them, of a subject that is nothing but tensors; and the key of
what the run's beginning says of the files."""
NAMES, GATES, SHAPES, TYPES, ORDERS = (
    "tensor", "gate of tensor", "shape of tensor", "type of tensor", "order of gates",
)  # fmt: skip
"""Domains of labels, an entry for each part. A shape is written "4 × 3", "" for a scalar."""
TABLE, HISTOGRAM, COMPARED, BLOCKS = "weights:table", "weights:histogram", "weights:compared", "weights:blocks"
STATISTICS = ("count", "nan", "inf", "zeros", "min", "max", "mean", "std", "norm")
"""Columns of the table, over the finite elements from "min" on; NaN where there is none."""
BLOCK = ("tensor", "axis", "start", "stop")
"""Of which tensor (the number of its part) a part is which slice; axis −1: all of it."""
DIFFERENCES = ("relative", "ratio", "cosine", "largest", "norm", "left out", "equal", "at")
"""Of two files, b beside a: ‖b − a‖ / ‖a‖, ‖b‖ / ‖a‖, the cosine of the angle between them, the largest |b − a|,
‖b − a‖, elements that are not finite in both, whether all are equal (1 or 0), and where the largest is (in the order of
the elements). NaN where shapes differ or one file has no such tensor."""
SIDES = ("", "/second")
"""What the names of channels of the first and of the second file end with."""
DIFFERENCE = "/difference"
VALUES, CELLS = "weights/values", "weights/cells"
"""Signals of the values of a tensor, and of the cells of a picture of it."""
MORE = "weights/values"
"""The request for all values of one tensor: followed by `@` and the number of its part."""
MOST_CELLS = 512
"""Cells of such a picture along an axis."""
MOST_AXES = 8
"""Axes of a tensor whose values are shown."""


def cell_size(length: int) -> int:
    """How many elements along an axis are one cell of the picture."""
    return max(1, -(-length // MOST_CELLS))


def picture_shape(shape: Sequence[int]) -> tuple[int, int]:
    """(rows, columns) of a tensor as the picture of its cells has it: the last axis across, all others down."""
    if not shape:
        return (1, 1)
    return (math.prod(shape[:-1]), shape[-1]) if len(shape) > 1 else (1, shape[0])


def axes_of(count: int) -> tuple[str, ...]:
    """Names of the axes of a tensor's values; a scalar has one."""
    return tuple(f"axis_{number}" for number in range(max(1, count)))


def written_shape(shape: Sequence[int]) -> str:
    """A shape as a label."""
    return " × ".join(map(str, shape))


def shape_of(label: str) -> tuple[int, ...] | None:
    """The shape that a label says; None where it is none."""
    parts = [part.strip() for part in label.split("×")] if label.strip() else []
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else None


def channel_of(name: str) -> str:
    """The name of a channel as a capture has it: an overlong one is shortened."""
    return channel_name(name)
