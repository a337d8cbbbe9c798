"""Directions in which a change of the state is followed through many steps, and how far each step stretched it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from inspector.engine.cells.base import StepBlock

Push = Callable[[Tensor, int], Tensor]
"""J of the rows (n, s) at one step of a block: a new (n, s)."""


def forward(block: StepBlock, count: int) -> Push:
    """How about `count` changes of the state are taken through single steps of a block of one sample.

    In closed form where they are fewer than the state's entries: to build J would cost more than its product with them.
    """
    if count < block.shape[2] and block.pushed(block.following[:1, 0], 0) is not None:
        return partial(_closed, block)
    matrices = block.jacobian()[:, 0]
    return lambda rows, at: rows @ matrices[at].T


def _closed(block: StepBlock, rows: Tensor, at: int) -> Tensor:
    moved = block.pushed(rows, at)
    assert moved is not None
    return moved


def frobenius_norms(moved: Tensor, axes: tuple[int, int]) -> Tensor:
    """√ Σ x² over two of three axes, (n,) of what is left, in float64; squares can neither vanish nor overflow."""
    if moved.dtype == torch.float32:  # its squares fit float64
        plain: Tensor = torch.linalg.vector_norm(moved, dim=axes, dtype=torch.float64)
        return plain
    largest = moved.abs().amax(axes, keepdim=True)
    safe = torch.where((largest > 0) & torch.isfinite(largest), largest, torch.ones_like(largest))
    norms: Tensor = (moved / safe).double().square().sum(axes).sqrt() * safe.double().squeeze(axes)
    return norms


def orthonormal(s: int, p: int, dtype: torch.dtype, *, seed: int) -> Tensor:
    """All s unit directions, or p < s random orthonormal ones from a generator of their own: (s, p)."""
    if p == s:
        return torch.eye(s, dtype=dtype)
    random = torch.randn(s, p, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    basis: Tensor = torch.linalg.qr(random).Q
    return basis.to(dtype)
