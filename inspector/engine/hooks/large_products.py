"""How large the result of a product will be, before it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_TURNED = {id(F.linear)}
_ADDED = {id(function) for function in (torch.addmm, torch.Tensor.addmm)}
_PLAIN = {
    id(getattr(space, name))
    for space in (torch, torch.Tensor)
    for name in ("matmul", "mm", "bmm", "__matmul__")
    if hasattr(space, name)
}  # fmt: skip
_KNOWN = (Tensor, nn.Parameter)
"""A model's own subclass may do anything when it is asked for its shape."""
PRODUCTS = frozenset(_TURNED | _ADDED | _PLAIN)
"""Identities of the functions whose results are told here."""


def product_bytes(function: Any, given: Sequence[Any]) -> int:
    """Bytes of what one of PRODUCTS makes of these positional arguments, on the CPU; 0 where that is not known.

    What is passed by keyword, or broadcast along the batch, is not counted.
    """
    first, second = (*(given[1:3] if id(function) in _ADDED else given[:2]), None, None)[:2]
    if type(first) not in _KNOWN or type(second) not in _KNOWN or first.is_nested or second.is_nested:
        return 0
    if first.dim() < 1 or second.dim() < 2 or first.device.type != "cpu":
        return 0
    columns = second.shape[-2 if id(function) in _TURNED else -1]
    return int(first.numel() // max(first.shape[-1], 1) * columns * first.element_size())
