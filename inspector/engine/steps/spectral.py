"""The largest singular value of many step Jacobians at once, without building them.

Golub–Kahan–Lanczos bidiagonalisation with full reorthogonalisation: Golub & Kahan (1965). Every iteration is one
J v and one Jᵀ u for all steps together; the estimate is a lower bound that grows to the true value. The residual
‖Jᵀu − σv‖ / σ of the Ritz pair tells how nearly it is a singular pair; that it is the largest one rests on the
random start and on twenty iterations at least (six may stop at the second).
"""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.steps.cell import StepBlock

SMALL = 48
"""State sizes up to this use full SVDs: they are exact and cost no more."""
TOLERANCE, ACCEPTED = 1e-4, 1e-3
FIRST, MOST = 20, 60


def spectral_norms(block: StepBlock) -> tuple[Tensor, Tensor]:
    """(σ₁, relative residual) of every step's Jacobian, (t, b) each; NaN where the Jacobian holds a NaN."""
    if block.shape[2] <= SMALL:
        return _exact(block)
    value, residual = lanczos(block, FIRST)
    late = torch.nonzero((residual > TOLERANCE).any(1))[:, 0]
    if len(late):  # a few steps have two nearly equal values: they alone go on
        value[late], residual[late] = lanczos(block.only(late), min(MOST, block.shape[2]))
    return value, residual


def _exact(block: StepBlock) -> tuple[Tensor, Tensor]:
    matrices = block.jacobian()
    broken = ~torch.isfinite(matrices).flatten(2).all(-1)
    values = torch.linalg.svdvals(torch.where(broken[..., None, None], matrices.new_zeros(()), matrices))[..., 0]
    values = torch.where(broken, values.new_full((), torch.nan), values)
    return values, torch.zeros_like(values)


def lanczos(block: StepBlock, iterations: int) -> tuple[Tensor, Tensor]:
    """(σ₁, relative residual) after `iterations` steps of the bidiagonalisation, all steps of the block at once."""
    value, residual = _ritz(*_bidiagonal(block, iterations), count=1)
    return value[..., 0], residual[..., 0]


def largest(block: StepBlock, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest singular values of every step, descending, with residuals relative to each: (t, b, count).

    A value that occurs more than once in one Jacobian is found once; NaN where there are fewer, or a NaN in J.
    """
    return _ritz(*_bidiagonal(block, min(MOST, block.shape[2])), count=count)


def _bidiagonal(block: StepBlock, iterations: int) -> tuple[Tensor, Tensor]:
    """Diagonal and upper diagonal of the small matrices, (t, b, iterations) each."""
    t, b, s = block.shape
    start = torch.randn(s, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    v = start.to(block.following).div_(start.norm()).expand(t, b, s)
    right, left = _Basis(v, iterations + 1), _Basis(v, iterations)
    diagonal: list[Tensor] = []
    upper: list[Tensor] = []
    right.append(v)
    u = block.jvp(v[..., None])[..., 0]
    floor = u.norm(dim=-1) * torch.finfo(u.dtype).eps * s
    for j in range(iterations):
        if j:
            u = left.orthogonal(block.jvp(v[..., None])[..., 0] - upper[-1][..., None] * left.last)
        alpha, u = _normalised(u, floor)
        diagonal.append(alpha)
        left.append(u)
        v = right.orthogonal(block.vjp(u[..., None])[..., 0] - alpha[..., None] * v)
        beta, v = _normalised(v, floor)
        upper.append(beta)
        right.append(v)
    return torch.stack(diagonal, -1), torch.stack(upper, -1)


class _Basis:
    """Orthonormal vectors of every step, one below the other in one block of memory: (t·b, vectors, s)."""

    def __init__(self, like: Tensor, size: int) -> None:
        t, b, s = like.shape
        self.rows, self.count, self.last = like.new_empty(t * b, size, s), 0, like

    def append(self, vector: Tensor) -> None:
        """One more vector (t, b, s) of every step."""
        self.rows[:, self.count] = vector.reshape(self.rows[:, 0].shape)
        self.count, self.last = self.count + 1, vector

    def orthogonal(self, vector: Tensor) -> Tensor:
        """`vector` without its components along the basis (classical Gram–Schmidt, all steps at once)."""
        basis = self.rows[:, : self.count]
        flat = vector.reshape(basis.shape[0], 1, -1)
        return torch.baddbmm(flat, flat @ basis.transpose(1, 2), basis, alpha=-1).view_as(vector)


def _normalised(vector: Tensor, floor: Tensor) -> tuple[Tensor, Tensor]:
    """(length, unit vector); a vector of rounding noise is zero: the space is exhausted and the value exact."""
    length = vector.norm(dim=-1)
    length = torch.where(length <= floor, torch.zeros_like(length), length)
    unit = vector / torch.where(length == 0, torch.ones_like(length), length)[..., None]
    return length, unit * (length != 0)[..., None]


def _ritz(diagonal: Tensor, upper: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest singular values of the small bidiagonal matrices, and the residuals of their Ritz pairs."""
    broken = ~(torch.isfinite(diagonal) & torch.isfinite(upper)).all(-1)
    small = torch.diag_embed(diagonal.double()) + torch.diag_embed(upper[..., :-1].double(), offset=1)
    small = torch.where(broken[..., None, None], small.new_zeros(()), small)
    u, sigma, _ = torch.linalg.svd(small)
    value = sigma[..., :count]
    off = upper[..., -1:].double() * u[..., -1, :count].abs()
    residual = off / torch.where(value > 0, value, torch.ones_like(value))
    nan = value.new_full((), torch.nan)
    broken = broken[..., None]
    return torch.where(broken, nan, value).to(diagonal), torch.where(broken, nan, residual).to(diagonal)
