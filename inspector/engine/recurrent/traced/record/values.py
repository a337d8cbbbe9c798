"""What a value is: a tensor object that was recorded. Its number is Python's `id`, given once, when it is made.

Every recorded call has references to its inputs and outputs, so no number is used twice until the recording is
released. Memory is separate: several values may be views of the same memory, with equal or different layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor
from torch.nn import Parameter

Numbers = npt.NDArray[np.int64]
Region = tuple[int, int, tuple[int, ...], tuple[int, ...]]
"""Storage, offset, shape, strides: where in memory a tensor is."""


def ids_of(values: Sequence[Any]) -> Numbers:
    """The number of each value."""
    return np.fromiter(map(id, values), np.int64, len(values))


def is_parameter(tensor: Any) -> bool:
    """Whether it is a parameter; of a class of its own too (tensors of other devices, of quantized numbers)."""
    kind = type(tensor)
    return kind is Parameter or (kind is not Tensor and isinstance(tensor, Parameter))


def has_parameter(tensors: Sequence[Any]) -> bool:
    """Whether one of them is a parameter."""
    kinds = set(map(type, tensors))
    return Parameter in kinds or (kinds != {Tensor} and any(map(is_parameter, tensors)))


def storage_of(tensor: Tensor) -> int:
    """A number for the memory of a tensor, equal for all its views."""
    return int(tensor.untyped_storage()._cdata)


def region(tensor: Tensor) -> Region:
    """Where in memory a tensor is."""
    return storage_of(tensor), int(tensor.storage_offset()), tuple(tensor.shape), tensor.stride()


def same_entries(one: Tensor, other: Tensor) -> bool:
    """True for two views of the same memory with the same layout: W and W.T of a square W do not."""
    same = (one.data_ptr(), one.dtype, one.shape) == (other.data_ptr(), other.dtype, other.shape)
    return same and one.stride() == other.stride()
