"""The sums inside all steps of a layer from the fastest matrix product there is, and how exact they can be."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.cells.linear import linear


def joined_sums(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, bias: Tensor | None) -> Tensor:
    """x W_ihᵀ + h W_hhᵀ + b of all steps as one product: x (t, b, i), h (t, b, r) → (t, b, g·h)."""
    t, b, _ = x.shape
    rows, past = x.reshape(t * b, -1), h.reshape(t * b, -1)
    return linear(torch.cat((rows, past), 1), torch.cat((w_ih, w_hh), 1), bias).view(t, b, -1)


def resolution(dtype: torch.dtype, device: torch.device) -> float:
    """The spacing of numbers around 1 in a module's arithmetic; coarser where torch may round products of float32."""
    if dtype == torch.float32:
        reduced = torch.get_float32_matmul_precision()
        if reduced == "medium":
            return 2.0**-7
        if reduced == "high" or (device.type == "cuda" and torch.backends.cudnn.allow_tf32):
            return 2.0**-10
    return float(torch.finfo(dtype).eps)
