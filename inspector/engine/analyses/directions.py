"""Directions in which a change of the state is followed through many steps, and how far each step stretched it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from inspector.engine.cells.base import StepBlock

MOST_SEEN = 1 << 20
"""Products whose spread is looked at, the last ones: their lags are the longest."""
QUANTILES = torch.tensor([0.5, 0.9], dtype=torch.float64)

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
        plain: Tensor = torch.linalg.vector_norm(moved.double(), dim=axes)  # faster than given a dtype, the same bits
        return plain
    largest = moved.abs().amax(axes, keepdim=True)
    safe = torch.where((largest > 0) & torch.isfinite(largest), largest, torch.ones_like(largest))
    norms: Tensor = (moved / safe).double().square().sum(axes).sqrt() * safe.double().squeeze(axes)
    return norms


class SeenSpread:
    """The spread of norms that are estimated from some random directions, as the directions themselves show it.

    ‖M‖²_F / S is the mean of ‖M q‖² over unit directions q, so half the relative standard error of that mean is that of
    the norm. Where a product has become one direction wide it does not fall below 1/√(2 p) for p directions.
    """

    def __init__(self) -> None:
        self._found: list[Tensor] = []

    def add(self, squares: Tensor) -> None:
        """‖M q‖² of the directions of some products, (n, p)."""
        if squares.shape[1] > 1:
            mean = squares.mean(1)
            error = 0.5 * squares.std(1) / mean / squares.shape[1] ** 0.5
            self._found.append(error[torch.isfinite(error)])

    @property
    def words(self) -> str:
        """As a part of a method."""
        found = torch.cat(self._found) if self._found else torch.zeros(0)
        if not len(found):
            return "their spread is not known"
        middle, high = (100 * float(value) for value in torch.quantile(found[-MOST_SEEN:].double(), QUANTILES))
        seen = f"{middle:.0f} % in the median over starts and lags, {high:.0f} % at p90"
        return f"relative standard error seen between them: {seen}"


def orthonormal(s: int, p: int, dtype: torch.dtype, *, seed: int) -> Tensor:
    """All s unit directions, or p < s random orthonormal ones from a generator of their own: (s, p)."""
    if p == s:
        return torch.eye(s, dtype=dtype)
    random = torch.randn(s, p, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    basis: Tensor = torch.linalg.qr(random).Q
    return basis.to(dtype)
