"""The largest singular value of many step Jacobians at once, without building them.

Golub–Kahan–Lanczos bidiagonalisation with full reorthogonalisation: Golub & Kahan (1965). Every iteration is one
J v and one Jᵀ u for all steps together; the estimate is a lower bound that grows to the true value. The residual
‖Jᵀu − σv‖ / σ of the Ritz pair measures how close it is to a singular pair; that it is the largest one relies on the
random start and on twenty iterations at least (six may stop at the second).
"""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.cells.base import StepBlock

SMALL = 48
"""State sizes up to this use full SVDs: they are exact and cost no more."""
TOLERANCE, ACCEPTED = 1e-4, 1e-3
CAREFUL = 1e-6
"""Residual that a step must reach if its iteration was slow: two values nearly coincide and must be distinguished."""
FIRST, LATER, MOST = 20, (32, 44, 60), 60
NUMBERS, FEWEST = 1 << 18, 64
"""Entries of the vectors of one iteration: so many that its cost is its arithmetic and not the calls, and a product
runs at full speed; and the steps that are taken together at least."""


def together(s: int) -> int:
    """Steps of one iteration for a state of s entries, where products with J are closed forms."""
    return max(FEWEST, NUMBERS // s)


def spectral_norms(block: StepBlock) -> tuple[Tensor, Tensor]:
    """(σ₁, relative residual) of every step's Jacobian, (t, b) each; NaN where the Jacobian holds a NaN."""
    known = block.eigenvalues()
    if known is not None:
        values = known.abs().amax(-1)
        return values, torch.zeros_like(values)
    if block.shape[2] <= SMALL:
        return _exact(block)
    space = Krylov(block, FIRST)
    space.extend(FIRST)
    value, residual = space.largest()
    going = (residual > TOLERANCE).any(1)
    late = torch.nonzero(going)[:, 0]
    for count in LATER:
        if not len(late):
            break
        space = space.only(torch.nonzero(going)[:, 0], min(count, block.shape[2]))
        space.extend(space.room)
        value[late], residual[late] = again = space.largest()
        going = (again[1] > CAREFUL).any(1)
        late = late[going]
    return value, residual


def _exact(block: StepBlock) -> tuple[Tensor, Tensor]:
    matrices = block.jacobian()
    broken = ~torch.isfinite(matrices).flatten(2).all(-1)
    values = torch.linalg.svdvals(torch.where(broken[..., None, None], matrices.new_zeros(()), matrices))[..., 0]
    values = torch.where(broken, values.new_full((), torch.nan), values)
    return values, torch.zeros_like(values)


def largest(block: StepBlock, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest singular values of every step, descending, with residuals relative to each: (t, b, count).

    A value that occurs more than once in one Jacobian is found once; NaN where there are fewer, or a NaN in J.
    """
    space = Krylov(block, min(MOST, block.shape[2]))
    space.extend(space.room)
    return _ritz(*space.bidiagonal(), count=count)


class Krylov:
    """The bidiagonalisation of all steps of a block, which may be continued later, also for some of the steps alone.

    Vectors lie (vector, t, b, s), numbers (iteration, t, b).
    """

    def __init__(self, block: StepBlock, room: int) -> None:
        self.block, self.room, self.count = block, room, 0
        new, shape = block.following.new_empty, block.shape
        self.right, self.left = new(room + 1, *shape), new(room, *shape)
        self.diagonal, self.upper = new(room, *shape[:2]), new(room, *shape[:2])
        start = torch.randn(shape[2], generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        self.right[0] = start.div_(start.norm())
        self.floor = new(shape[:2])

    def only(self, steps: Tensor, room: int) -> Krylov:
        """Some of the steps with the iterations done so far, and room for more."""
        other = Krylov(self.block.only(steps), room)
        other.count, other.floor = self.count, self.floor[steps]
        for mine, theirs in (
            (self.right, other.right), (self.left, other.left),
            (self.diagonal, other.diagonal), (self.upper, other.upper),
        ):  # fmt: skip
            theirs[: len(mine)] = mine[:, steps]
        return other

    def extend(self, iterations: int) -> None:
        """Iterate until there are that many."""
        for j in range(self.count, iterations):
            u = self.block.jvp(self.right[j].unsqueeze(-1))[..., 0]
            if j:
                u = _orthogonal(u - self.upper[j - 1].unsqueeze(-1) * self.left[j - 1], self.left[:j])
            else:
                self.floor = u.norm(dim=-1) * torch.finfo(u.dtype).eps * u.shape[-1]
            self._normalise(u, self.diagonal[j], self.left[j])
            v = self.block.vjp(self.left[j].unsqueeze(-1))[..., 0] - self.diagonal[j].unsqueeze(-1) * self.right[j]
            self._normalise(_orthogonal(v, self.right[: j + 1]), self.upper[j], self.right[j + 1])
        self.count = iterations

    def _normalise(self, vector: Tensor, length: Tensor, unit: Tensor) -> None:
        """Length and direction; a vector of rounding noise is zero: the space is exhausted and the value exact."""
        torch.linalg.vector_norm(vector, dim=-1, out=length)
        length.masked_fill_(length <= self.floor, 0)
        inverse = length.reciprocal().masked_fill_(length == 0, 0)
        torch.mul(vector, inverse.unsqueeze(-1), out=unit)

    def bidiagonal(self) -> tuple[Tensor, Tensor]:
        """Diagonal and upper diagonal of the small matrices, (t, b, iterations) each."""
        return self.diagonal[: self.count].movedim(0, -1), self.upper[: self.count].movedim(0, -1)

    def largest(self) -> tuple[Tensor, Tensor]:
        """(σ₁, relative residual), (t, b) each."""
        diagonal, upper = self.bidiagonal()
        value, residual = _top(diagonal, upper)
        doubtful = ~(residual <= TOLERANCE)
        if bool(doubtful.any()):
            careful = _ritz(diagonal[doubtful], upper[doubtful], count=1)
            value[doubtful], residual[doubtful] = (found[..., 0] for found in careful)
        return value, residual


def _orthogonal(vector: Tensor, basis: Tensor) -> Tensor:
    """(t, b, s) without its components along the basis (vector, t, b, s): classical Gram–Schmidt, all steps at once."""
    rows = basis.flatten(1, 2).transpose(0, 1)
    flat = vector.reshape(len(rows), 1, -1)
    return torch.baddbmm(flat, flat @ rows.transpose(1, 2), rows, alpha=-1).view_as(vector)


def _top(diagonal: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """σ₁ of the small matrices B and its residual from eigenvalues alone, four times as fast as their SVDs.

    With θ₁ ≥ θ₂ … those of B Bᵀ and μ₁ ≥ μ₂ … those without its last row and column, the last entry of the vector of θ₁
    squared is Π_j (θ₁ − μ_j) / (θ₁ − θ_{j+1}) (Parlett 1980, thm 7.9.2). Where two θ nearly coincide it is inexact, up
    to NaN.
    """
    d, e = diagonal.double(), upper.double()
    scale = torch.maximum(d.amax(-1, keepdim=True), e.amax(-1, keepdim=True))
    usable = torch.isfinite(scale) & (scale > 0)
    d, e = (torch.where(usable, values / scale, torch.zeros_like(values)) for values in (d, e))
    squares = d.square()
    squares[..., :-1] += e[..., :-1].square()
    small = torch.diag_embed(squares) + torch.diag_embed(d[..., 1:] * e[..., :-1], offset=-1)
    theta, mu = torch.linalg.eigvalsh(small), torch.linalg.eigvalsh(small[..., :-1, :-1])
    last = ((theta[..., -1:] - mu) / (theta[..., -1:] - theta[..., :-1])).clamp_min_(0).prod(-1).sqrt()
    value = theta[..., -1].sqrt()
    return (value * scale[..., 0]).to(diagonal), (e[..., -1] * last / value).to(diagonal)


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
