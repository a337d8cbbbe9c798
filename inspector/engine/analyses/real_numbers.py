"""Complex tensors as real numbers, as norms and counts take them."""

from __future__ import annotations

import torch
from torch import Tensor


def real_numbers(tensor: Tensor) -> Tensor:
    """(…, 2) real and imaginary parts of a complex tensor; any other tensor as it is."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
