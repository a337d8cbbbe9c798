"""Norms of rows over the whole range of the dtype: no square vanishes or overflows (after Blue 1978)."""

from __future__ import annotations

import torch
from torch import Tensor

RANGES = {torch.float32: (1e-16, 1e16, 2.0**100), torch.float64: (1e-140, 1e140, 2.0**600)}
"""Norms whose squares are added up without loss, and the power of two that brings all others into that range."""


def row_norms(rows: Tensor) -> Tensor:
    """‖row‖₂ of (n, g), float64 (n,), each to the dtype's own relative precision however small or large it is."""
    rows = rows if rows.dtype in RANGES else rows.float()
    found: Tensor = torch.linalg.vector_norm(rows, dim=1)
    low, high, power = RANGES[rows.dtype]
    norms = found.double()
    outside = torch.nonzero(~((found > low) & (found < high)))[:, 0]
    if len(outside):
        scale = torch.where(found[outside] < 1, found.new_tensor(power), found.new_tensor(1 / power))
        scaled = rows[outside].mul_(scale[:, None])
        norms[outside] = torch.linalg.vector_norm(scaled, dim=1).double() / scale.double()
    return norms
