"""Lyapunov exponents of a chain of Jacobians by QR: never from their product, which loses the small directions.

An orthonormal basis Q is carried through the steps, Z = J_{t+m} … J_{t+1} Q, and made orthonormal again, Q' R = Z; ln
|R_ii| is the growth of direction i over these m steps: Benettin et al. (1980); for recurrent networks Engelken, Wolf &
Abbott (2023), Vogt et al. (2022). Natural logarithms; J maps the state before to the state after. All sums in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from inspector.engine.cells.linear_maps import LinearMaps

EVERY = 8
"""Steps between two orthonormalisations at most; fewer where directions grow apart faster."""
TRUSTED = 1e-9
"""Smallest |R_ii| of the largest that several steps may leave: below, they are done again with fewer. The relative
rounding error of a growth factor is then about 1e-16 / 1e-9."""


class Directions:
    """A basis of `count` directions of an s-dimensional state, carried through Jacobians.

    Attributes:
        basis: (s, k) orthonormal, float64; k ≤ count, as directions that a Jacobian maps to zero are dropped.
        every: steps that are multiplied before the next orthonormalisation, as found so far.
    """

    def __init__(self, s: int, count: int, most: int = EVERY, seed: int = 3) -> None:
        random = torch.randn(s, count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        self.basis: Tensor = torch.linalg.qr(random).Q
        self.count, self.most, self.every = count, most, most

    def advance(self, matrices: Tensor) -> tuple[Tensor, Tensor]:
        """Through J (n, s, s): (ln |R_ii| (n, count), booked (n,)). The growth of several steps is in the last row.

        `booked` marks those rows. A direction that is mapped to zero up to rounding (|R_ii| ≤ s ε max |R|) has −∞, for
        good.
        """
        return advance([self], LinearMaps.of(matrices))[0]

    def _settle(self, found: tuple[Tensor, Tensor], spread: float, row: Tensor) -> None:
        """A stretch of steps is done: (basis, |R_ii|) of its product."""
        self._keep(*found, row)
        if spread * spread > TRUSTED:
            self.every = min(self.most, 2 * self.every)

    def _keep(self, basis: Tensor, stretch: Tensor, row: Tensor) -> None:
        """Take over the basis and write the growth; directions after the last nonzero one are dropped."""
        floor = stretch.max() * basis.shape[0] * torch.finfo(torch.float64).eps if len(stretch) else 0.0
        row.fill_(-math.inf)
        row[: len(stretch)] = torch.where(stretch <= floor, torch.zeros_like(stretch), stretch).log()
        living = torch.nonzero(~torch.isneginf(row[: len(stretch)]))
        self.basis = basis[:, : int(living[-1]) + 1] if len(living) else basis[:, :0]


def advance(several: Sequence[Directions], maps: LinearMaps) -> list[tuple[Tensor, Tensor]]:
    """Several bases through the same steps, with one product a step: for each what `Directions.advance` returns."""
    n, t = len(maps), 0
    found = [(torch.zeros(n, one.count, dtype=torch.float64), torch.zeros(n, dtype=torch.bool)) for one in several]
    while t < n:
        steps = min(*(one.every for one in several), n - t)
        moved = torch.cat([one.basis for one in several], dim=1)
        for number in range(t, t + steps):
            moved = maps.push(number, moved)
        parts = [_factors(part) for part in moved.split([one.basis.shape[1] for one in several], dim=1)]
        spreads = [_spread(stretch) for _, stretch in parts]
        if steps > 1 and not all(spread > TRUSTED for spread in spreads):  # also when the product has overflowed
            for one in several:
                one.every = max(1, steps // 2)
            continue
        t += steps
        for one, part, spread, (logs, booked) in zip(several, parts, spreads, found, strict=True):
            one._settle(part, spread, logs[t - 1])
            booked[t - 1] = True
    return found


def _factors(moved: Tensor) -> tuple[Tensor, Tensor]:
    """(Q, |R_ii|) of a product."""
    basis, triangle = torch.linalg.qr(moved)
    return basis, triangle.diagonal().abs()


def _spread(stretch: Tensor) -> float:
    """Smallest over largest |R_ii|; 1 when nothing is left, NaN when something is not finite."""
    if not len(stretch):
        return 1.0
    return float(stretch.min() / stretch.max()) if bool(torch.isfinite(stretch).all()) else math.nan


def kaplan_yorke(exponents: Tensor, complete: bool) -> float:
    """D = j + (λ₁ + … + λ_j) / |λ_{j+1}|, j the most exponents whose sum is not negative (Kaplan & Yorke 1979).

    `exponents` descending. NaN when these are not all and their sum has not become negative yet.
    """
    sums = torch.cumsum(exponents, 0)
    j = int((sums >= 0).sum())
    if j == len(exponents):
        return float(j) if complete else math.nan
    return float(j + (sums[j - 1] / exponents[j].abs() if j else 0.0))


def entropy_rate(exponents: Tensor, complete: bool) -> float:
    """Σ of the positive exponents (Pesin 1977), nats per step; NaN when all known are positive and others exist.

    Those that are NaN lie far below the largest, hidden by rounding.
    """
    exponents = exponents.nan_to_num(nan=-math.inf, neginf=-math.inf)
    if not complete and bool((exponents > 0).all()):
        return math.nan
    return float(exponents.clamp(min=0).sum())
