"""Values of a tensor as a capture stores them, in blocks, and the cells of a picture of a large one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from inspector.records.weights import cell_size, picture_shape

Array = npt.NDArray[Any]
BLOCK = 1 << 22
"""Elements of one page."""
AS_FLOAT = {torch.float64: torch.float64, torch.complex128: torch.float64}
"""Types that are no narrower than double precision; all others that a capture does not have become single."""
KEPT = (
    torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32,
    torch.uint64, torch.float16, torch.float32, torch.float64,
)  # fmt: skip


def dtype_name(tensor: Tensor) -> str:
    """The type in which its values are stored: its own, or a wider one that holds them exactly; of complex numbers
    that of their magnitudes."""
    found = tensor.dtype if tensor.dtype in KEPT else AS_FLOAT.get(tensor.dtype, torch.float32)
    return str(found).removeprefix("torch.")


def stored(tensor: Tensor) -> Array:
    """The values, or magnitudes of complex ones. bfloat16 and the types of eight bits are widened, which is exact."""
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = tensor.abs()
    elif tensor.dtype not in KEPT:
        tensor = tensor.to(torch.float32)
    return np.ascontiguousarray(tensor.numpy())


def pages(tensor: Tensor) -> Iterator[tuple[tuple[int, ...], Array]]:
    """(offset, values) of blocks along the first axis; nothing of a tensor without elements."""
    if not tensor.numel():
        return
    if not tensor.dim():
        yield (0,), stored(tensor.reshape(1))
        return
    step = max(1, BLOCK // max(1, tensor[0].numel()))
    for start in range(0, len(tensor), step):
        yield (start, *([0] * (tensor.dim() - 1))), stored(tensor[start : start + step])


def cells(tensor: Tensor, other: Tensor | None = None) -> Array:
    """(rows, columns) float32: of each cell of the picture the value farthest from 0, NaN where it covers a NaN.

    With `other`, of the same shape, those of other − tensor, subtracted in double precision.
    """
    rows, columns = picture_shape(tuple(tensor.shape))
    down, across = cell_size(rows), cell_size(columns)
    count = -(-columns // across)
    views = [one.detach().reshape(rows, columns) for one in (tensor, other) if one is not None]
    found = []
    for start in range(0, rows, down):
        blocks = [_real(one[start : start + down]) for one in views]
        block = blocks[0].float() if len(blocks) == 1 else (blocks[1] - blocks[0]).float()
        block = torch.nn.functional.pad(block, (0, count * across - columns))
        block = block.reshape(len(block), count, across)
        low, high = block.amin((0, 2)), block.amax((0, 2))
        found.append(torch.where(-low > high, low, high))
    return torch.stack(found).numpy()


def _real(block: Tensor) -> Tensor:
    """In double precision; complex numbers by their magnitude."""
    return block.abs().double() if block.is_complex() else block.double()
