"""How fast this machine does each kind of work: small products and factorisations, timed once in a process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor

from inspector.engine.cells.linear import linear
from inspector.engine.trace.work import Factorisation, Work

TURNS = 5
ROWS, NUMBERS, FEW = 256, 1 << 20, 8
CALLS, AROUND = 200, 2.0
"""Calls that are timed; the Python code around a call takes as long as the call itself."""
MEASURED = (16, 64, 128)
"""Sizes of matrices that are factorised: a fraction of a millisecond, and some milliseconds."""
LARGE, GAIN = 256, 0.62
"""From this size on n³ operations of a factorisation take a constant time, this part of what they take at 128; as
measured with MKL and OpenBLAS up to 512."""
FACTORISATIONS: dict[Factorisation, Callable[[Tensor], Any]] = {
    "eigenvalues": torch.linalg.eigvals, "symmetric": torch.linalg.eigvalsh, "singular": torch.linalg.svdvals,
    "triangular": torch.linalg.qr, "solved": torch.linalg.inv,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rates:
    """Seconds of one of each kind of work; `factors`: of one n × n matrix at the sizes that were measured."""

    product: float
    wide: float
    number: float
    call: float
    factors: dict[Factorisation, dict[int, float]] = field(default_factory=dict)

    def seconds(self, work: Work) -> float:
        """About how long it takes."""
        plain = work.products * self.product + work.wide * self.wide
        plain += work.numbers * self.number + work.calls * self.call
        return plain + sum(count * self.factor(kind, n) for (kind, n), count in work.factors.items())

    def factor(self, kind: Factorisation, n: int) -> float:
        """Seconds of one: n³ times what an operation takes at that size, between those that were measured."""
        one = {size: took / size**3 for size, took in self.factors[kind].items()}
        one[LARGE] = one[max(one)] * GAIN
        sizes = sorted(one)
        if n <= sizes[0]:
            return one[sizes[0]] * sizes[0] ** 3
        above = next((size for size in sizes if size >= n), None)
        if above is None:
            return one[sizes[-1]] * float(n) ** 3
        below = sizes[sizes.index(above) - 1]
        part = math.log(n / below) / math.log(above / below)
        return float(one[below] ** (1 - part) * one[above] ** part) * n**3


@cache
def measured() -> Rates:
    """The rates of this machine, in some 50 milliseconds; once in a process."""
    with torch.no_grad():
        rows, weight = torch.randn(ROWS, ROWS), torch.randn(ROWS, ROWS)
        wide, some, few = rows.double(), torch.ones(NUMBERS), torch.ones(FEW, FEW)
        out = torch.empty_like(some)
        return Rates(
            _took(lambda: linear(rows, weight)) / ROWS**3,
            _took(lambda: torch.mm(wide, wide)) / ROWS**3,
            _took(lambda: torch.mul(some, 1.5, out=out)) / NUMBERS,
            _took(lambda: [torch.cat((few * few, few[1:])) for _ in range(CALLS)]) * AROUND / (3 * CALLS),
            {kind: _factorised(function) for kind, function in FACTORISATIONS.items()},
        )


def _factorised(function: Callable[[Tensor], Any]) -> dict[int, float]:
    random = torch.Generator().manual_seed(0)
    found = {}
    for n in MEASURED:
        matrix = torch.randn(n, n, generator=random, dtype=torch.float64)
        matrix = matrix + matrix.T if function is torch.linalg.eigvalsh else matrix
        found[n] = _took(lambda matrix=matrix: function(matrix))  # type: ignore[misc]
    return found


def _took(function: Callable[[], object]) -> float:
    """The least processor time of a few turns: others may use the machine meanwhile."""
    best = math.inf
    for _ in range(TURNS):
        began = time.thread_time()
        function()
        best = min(best, time.thread_time() - began)
    return max(best, 1e-9)
