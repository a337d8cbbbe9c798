"""The memory that a tensor lies in, by which views of one tensor are known."""

from __future__ import annotations

import torch
from torch import Tensor


def storage_of(tensor: Tensor) -> torch.UntypedStorage | None:
    """The memory of a tensor; None for those that have none of their own (nested, wrapped, of another layout)."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None
