"""The largest eigenvalue modulus of many step Jacobians at once, without building them.

Arnoldi's method for all steps together: Arnoldi (1951), Saad (2011), ch. 6. Every iteration is one J v. The eigenvalue
θ of the small matrix with the largest modulus approaches the eigenvalue of J with the largest modulus first, also where
it is one of a complex pair or of several of equal modulus. That no larger one was missed relies on the random start and
on 32 products at least.

The residual ‖J x − θ x‖ alone says little where J is far from normal: a matrix close to J then has θ as an eigenvalue,
and J itself need not. Divided by |zᴴ y|, with z and y the left and right eigenvectors of the small matrix, it
estimates the error of θ to first order (Wilkinson 1965), and this is what is compared with a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.cells.base import StepBlock

CHECKS = (32, 44, 60, 84, 120)
"""Products after which convergence is tested; a step that has not converged after the last one has no value."""
TOLERANCE, ACCEPTED = 1e-4, 1e-3
"""Estimated relative error of |θ| at which a step is done, and above which it is not shown after the last product."""


@dataclass(frozen=True, slots=True)
class Radii:
    """What was found for n steps, (n,) each.

    Attributes:
        value: |θ|; NaN where J is not finite or the iteration broke down.
        residual: ‖J x − θ x‖ / |θ|, computed from two products with J.
        error: the estimate of the relative error, never below the residual.
    """

    value: Tensor
    residual: Tensor
    error: Tensor


def leading_moduli(block: StepBlock) -> Radii:
    """max |λ| of the Jacobians of a block of one sample, by at most CHECKS[-1] products each."""
    t, b, _ = block.shape
    assert b == 1
    found = Radii(*(block.following.new_full((t,), torch.nan, dtype=torch.float64) for _ in range(3)))
    checks = [*(products for products in CHECKS if products < block.shape[2]), block.shape[2]][: len(CHECKS)]
    space, going = ArnoldiSpace(block, checks[0]), torch.arange(t)
    for following in (*checks[1:], 0):
        space.extend()
        now = space.leading()
        for mine, theirs in zip((found.value, found.residual, found.error), now, strict=True):
            mine[going] = theirs
        left = ~(now[2] <= TOLERANCE) & torch.isfinite(now[0])
        if not following or not bool(left.any()):
            break
        going = going[left]
        space = space.only(torch.nonzero(left)[:, 0], following)
    return found


class ArnoldiSpace:
    """Orthonormal bases (n, vector, s) of the Krylov spaces of n steps, and J in them: (n, vector, vector), float64."""

    def __init__(self, block: StepBlock, room: int) -> None:
        n, _, s = block.shape
        self.block, self.room, self.count = block, room, 0
        self.basis = block.following.new_empty(n, self.room + 1, s)
        self.small = block.following.new_zeros(n, self.room + 1, self.room, dtype=torch.float64)
        start = torch.randn(s, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
        self.basis[:, 0] = start.div_(start.norm())

    def only(self, steps: Tensor, room: int) -> ArnoldiSpace:
        """Some of the steps with the products done so far, and room for more."""
        other = ArnoldiSpace(self.block.only(steps), room)
        other.count = self.count
        other.basis[:, : self.count + 1] = self.basis[steps]
        other.small[:, : self.count + 1, : self.count] = self.small[steps]
        return other

    def extend(self) -> None:
        """Multiply until there is no more room; each new vector is made orthogonal twice (Giraud et al. 2005): once is
        not enough, though hardly half of its length is lost at a time; the errors multiply.

        A product that lies in the space up to rounding adds nothing: the space is invariant, its eigenvalues exact.
        """
        eps = torch.finfo(self.basis.dtype).eps
        for j in range(self.count, self.room):
            vector = self.block.jvp(self.basis[:, j, None, :, None])[:, 0, :, 0]
            before, known = _norms(vector), self.basis[:, : j + 1]
            for _ in range(2):
                along = torch.bmm(vector.unsqueeze(1), known.mT)  # twice as fast as known @ vector
                vector = torch.baddbmm(vector.unsqueeze(1), along, known, alpha=-1)[:, 0]
                self.small[:, : j + 1, j] += along[:, 0]
            length = _norms(vector)
            length.masked_fill_(length <= before * eps * 8, 0)
            self.small[:, j + 1, j] = length
            inverse = length.reciprocal().masked_fill_(length == 0, 0)
            torch.mul(vector, inverse.to(vector.dtype).unsqueeze(1), out=self.basis[:, j + 1])
        self.count = self.room

    def leading(self) -> tuple[Tensor, Tensor, Tensor]:
        """(|θ|, ‖J x − θ x‖ / |θ|, estimated relative error) of every step, (n,) each, float64; NaN where it fails."""
        small = self.small[:, : self.count, : self.count]
        usable = torch.isfinite(small).flatten(1).all(1)
        small = torch.where(usable[:, None, None], small, small.new_zeros(()))
        values = torch.linalg.eigvals(small)
        theta = values.gather(1, values.abs().argmax(1, keepdim=True))[:, 0]
        right, left = _eigenvectors(small, theta)
        residual, size = self._residual(theta, right), theta.abs()
        condition = (left.conj() * right).sum(1).abs()
        nan = size.new_full((), torch.nan)
        # θ = 0 is right where J maps the start to zero at once: the small matrix is zero then, and so is the residual
        error = torch.where(residual == 0, residual, residual / condition)
        return (torch.where(usable, size, nan), torch.where(usable, residual, nan), torch.where(usable, error, nan))

    def _residual(self, theta: Tensor, right: Tensor) -> Tensor:
        """‖J x − θ x‖ / |θ| with x of length 1 from its coordinates (n, vector), by products with J."""
        basis = self.basis[:, : self.count]
        parts = torch.view_as_real(right).to(basis.dtype)  # (n, vector, 2)
        x = torch.bmm(basis.transpose(1, 2), parts)
        moved = torch.view_as_complex(self.block.jvp(x.unsqueeze(1))[:, 0].double().contiguous())
        x = torch.view_as_complex(x.double().contiguous())
        rest = torch.linalg.vector_norm(moved - theta[:, None] * x, dim=1)
        scale = theta.abs() * torch.linalg.vector_norm(x, dim=1)
        return torch.where(rest == 0, rest, rest / scale)


def _eigenvectors(small: Tensor, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Right and left eigenvectors (n, m) of length 1 of the small matrices for known eigenvalues: inverse iteration."""
    m = small.shape[1]
    scale = torch.linalg.vector_norm(small, dim=(1, 2)).clamp_min(torch.finfo(torch.float64).tiny)
    shift = theta + scale * 1e-14  # not exactly an eigenvalue: the system must be solvable
    system = small - shift[:, None, None] * torch.eye(m, dtype=torch.complex128)
    system.diagonal(dim1=1, dim2=2)[scale < 1e-300] = 1
    start = torch.randn(m, 1, generator=torch.Generator().manual_seed(2), dtype=torch.float64).to(system.dtype)
    return _solved_twice(system, start), _solved_twice(system.mH, start)


def _solved_twice(system: Tensor, start: Tensor) -> Tensor:
    """Two inverse iterations from one start: (n, m), of length 1."""
    factors, pivots, _ = torch.linalg.lu_factor_ex(system)
    vector = start.expand(len(system), -1, -1)
    for _ in range(2):
        vector = torch.linalg.lu_solve(factors, pivots, vector)
        vector = vector / torch.linalg.vector_norm(vector, dim=1, keepdim=True)
    return vector[..., 0]


def _norms(vectors: Tensor) -> Tensor:
    """Lengths of (n, s) in float64: squares of float32 neither vanish nor overflow."""
    found: Tensor = torch.linalg.vector_norm(vectors.double(), dim=1)
    return found
