"""Sums over whole tensors, all tensors of a list in one pass, as float64 and without waiting for the device.

Letters: p tensor of the list.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

TINY = 1e-15
"""Norms below this one may have lost entries whose squares are no float32 numbers; they are computed again."""
HALF = (torch.float16, torch.bfloat16)


def squares(tensors: Sequence[Tensor]) -> Tensor:
    """(p,) float64: Σ x² over each tensor; NaN or infinite where an entry is.

    One `_foreach_norm`. On the CPU, where looking at a number costs nothing, sums whose squares overflow or vanish
    in float32 are computed again in float64; other devices return infinity above 1e19 and zero below 1e-23.
    """
    found = norms(tensors).square_()
    return corrected(found, tensors) if found.device.type == "cpu" else found


def corrected(found: Tensor, tensors: Sequence[Tensor]) -> Tensor:
    """Sums of squares on the CPU, those computed again in float64 whose squares float32 cannot hold."""
    doubtful = ~(found.isfinite() & (found > TINY * TINY))
    if bool(doubtful.any()):
        for p in doubtful.nonzero().flatten().tolist():
            largest = float(torch.linalg.vector_norm(tensors[p], torch.inf)) if tensors[p].numel() else 0.0
            found[p] = tensors[p].double().square().sum() if 0 < largest < math.inf else largest * largest
    return found


def norms(tensors: Sequence[Tensor], order: int = 2) -> Tensor:
    """(p,) float64: (Σ |x|^order)^(1/order) over each tensor, computed in float32 at least."""
    if any(one.dtype in HALF for one in tensors):
        parts = torch._foreach_norm(list(tensors), order, dtype=torch.float32)
    else:
        parts = torch._foreach_norm(list(tensors), order)
    return torch.stack([one.double() for one in parts]) if _mixed(parts) else torch.stack(parts).to(_widest(parts[0]))


def _mixed(parts: Sequence[Tensor]) -> bool:
    return len({(one.dtype, one.device) for one in parts}) > 1


def _widest(one: Tensor) -> torch.dtype:
    return torch.float32 if one.device.type == "mps" else torch.float64


def not_finite(tensors: Sequence[Tensor], sums: Tensor) -> Tensor:
    """(p,) how many entries of each tensor are NaN or infinite, where `sums` are their `squares`.

    A finite sum has only finite entries, so on the CPU only the other tensors are counted.
    """
    if sums.device.type != "cpu":
        return torch.stack([(~one.isfinite()).sum() for one in tensors]).to(sums.dtype)
    found = torch.zeros_like(sums)
    broken = ~sums.isfinite()
    if bool(broken.any()):
        for p in broken.nonzero().flatten().tolist():
            found[p] = (~tensors[p].isfinite()).sum()
    return found
