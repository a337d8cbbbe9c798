"""One pass over the steps that carries, from many starts at once, the product of the direct paths and of all paths.

Letters: n start, s state entry, p direction, ℓ lag. The direct path is diagonal, so its product is one vector a start;
the whole product is carried as its action on directions (all of them where that is cheap: then it is exact).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.analyses.directions import Push, SeenSpread, forward, frobenius_norms, orthonormal
from inspector.engine.analyses.lag_statistics import by_lag, reaching
from inspector.engine.cells.base import StepBlock
from inspector.engine.errors import Unsupported
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS
from inspector.engine.trace.trace import Recurrence

CURVES = ("direct", "whole", "difference")
LONGEST = 512
BUDGET = 4e9
"""Multiplications that are spent on one layer, about half a second on one core; beyond that, fewer starts are used."""
RETENTION_BUDGET = 3e7
"""Multiplications of gates (starts × lags × entries): limits the starts of a pass without full products."""
LARGEST, FEWEST, MOST, PROBES = 1024, 8, 256, 8


@dataclass(slots=True)
class PathProducts:
    """What a pass over the steps found, lags 0 … `lags`.

    Attributes:
        starts: processing steps k at which products start.
        logs: ln of the norms over √S, (n, ℓ), by curve; NaN where the state held a NaN.
        retention: (ℓ, unit) mean over the starts that reach the lag of the product of direct factors.
        refused: why there are no full products, or "".
        method, starts_method: how norms of all paths, and those of the direct path, were found.
    """

    starts: Tensor
    steps: int
    logs: dict[str, Tensor] = field(default_factory=dict)
    retention: Tensor = field(default_factory=lambda: torch.zeros(0, 0))
    refused: str = ""
    method: str = ""
    starts_method: str = ""

    def band(self, name: str) -> Tensor:
        """(median, 10 % and 90 % quantile, arithmetic mean) over the starts that reach each lag: (4, ℓ)."""
        logs = self.logs[name]
        return by_lag(logs, reaching(self.starts, self.steps, logs.shape[1] - 1))


@dataclass(frozen=True, slots=True)
class PathBudget:
    """Lags, starts and directions of a pass over t steps of s state entries within the budget."""

    lags: int
    starts: tuple[int, ...]
    directions: int
    whole: bool

    @classmethod
    def of(cls, t: int, s: int) -> PathBudget:
        """All directions where a few starts of them fit the budget, else random ones; starts evenly spaced."""
        lags = min(t - 1, LONGEST)
        fewest, whole = min(FEWEST, t - 1), s <= LARGEST
        exact = BUDGET / (2.0 * s**3 * lags) >= fewest
        directions = s if exact else min(PROBES, s)
        affordable = BUDGET / (2.0 * s * s * directions * lags) if whole else RETENTION_BUDGET / (s * lags)
        count = max(1, min(t - 1, MOST, max(fewest, int(affordable))))
        starts = sorted({round(i * (t - 2) / max(1, count - 1)) for i in range(count)})
        return cls(lags, tuple(starts), directions, whole)

    def methods(self, t: int, s: int, spread: SeenSpread) -> tuple[str, str]:
        """(of the products of all paths, of the direct path's), as text."""
        count = len(self.starts)
        every = "every start" if count == t - 1 else f"{count} evenly spaced starts of {t - 1}"
        tail = f"{every}; lags up to {self.lags}"
        exact = "exact" if self.directions == s else (
            f"estimated from {self.directions} random orthonormal directions of {s} ({spread.words})"
        )  # fmt: skip
        return f"{exact}; {tail}", f"exact; {tail}"


def path_products(recurrence: Recurrence, sample: int, emit: Emitter) -> PathProducts | None:
    """Products of the direct paths and of all paths by lag; None where the step has no direct path."""
    t, s = recurrence.length(sample), recurrence.cell.state_size
    first = recurrence.block(0, 1, slice(0, 1)).direct()
    if first is None:
        return None
    if t < 2:
        raise Unsupported("Products over steps need at least two steps.")
    plan = PathBudget.of(t, s)
    carried = _Carried(recurrence, plan, retaining(recurrence, first))
    starts = carried.starts
    for begin, block in recurrence.blocks(sample, BLOCK_STEPS):
        emit.check()
        here = torch.arange(begin, begin + block.shape[0])
        wanted = (starts[:, None] < here) & (here - starts[:, None] <= plan.lags)
        if not bool(wanted.any()):
            continue
        diagonal = block.direct()
        assert diagonal is not None
        carried.advance(block, diagonal[:, 0].double(), wanted, begin)
    return carried.result(t, s)


def retaining(recurrence: Recurrence, direct: Tensor) -> slice:
    """The entries that retain: the part that the family declares, else the first that `direct` (t, b, s) reaches, of
    which the one that the rest of the model sees comes last; all where none is reached."""
    cell = recurrence.cell
    if cell.memory_gate is not None:
        return cell.parts[cell.memory_gate.part]
    parts = sorted(cell.parts, key=lambda name: name == cell.main)
    reached = (cell.parts[name] for name in parts if bool((direct[..., cell.parts[name]] != 0).any()))
    return next(reached, slice(0, cell.state_size))


class _Carried:
    """The products of every start so far."""

    def __init__(self, recurrence: Recurrence, plan: PathBudget, keeps: slice) -> None:
        s, dtype = recurrence.cell.state_size, recurrence.states.dtype
        self.plan, self.starts = plan, torch.tensor(plan.starts)
        count = len(plan.starts)
        self.units, self.spread = keeps, SeenSpread()
        self.first = orthonormal(s, plan.directions if plan.whole else 1, dtype, seed=11)
        self.direct = torch.ones(count, s, dtype=torch.float64)
        self.whole = self.first.T.repeat(count if plan.whole else 0, 1, 1)  # (start, direction, entry)
        self.size = torch.zeros(count, dtype=torch.float64)
        names = CURVES if plan.whole else CURVES[:1]
        self.logs = {name: torch.full((count, plan.lags + 1), math.nan, dtype=torch.float64) for name in names}
        for name in names:
            self.logs[name][:, 0] = -torch.inf if name == "difference" else 0.0
        self.kept = torch.zeros(plan.lags + 1, keeps.stop - keeps.start, dtype=torch.float64)
        self.kept[0] = count
        self.scale = math.sqrt(s)

    def advance(self, block: StepBlock, diagonal: Tensor, wanted: Tensor, begin: int) -> None:
        """The steps of one block: diagonal (t, s) of their direct paths, wanted (n, t) the starts that they move."""
        together = int(wanted.sum(0).max()) * self.first.shape[1]
        push = forward(block, together) if self.plan.whole else None
        for offset in range(len(diagonal)):
            active = torch.nonzero(wanted[:, offset])[:, 0]
            if not len(active):
                continue
            lag = begin + offset - self.starts[active]
            self.direct[active] *= diagonal[offset]
            self.logs["direct"][active, lag] = self.direct[active].norm(dim=1).log() - math.log(self.scale)
            self.kept.index_add_(0, lag, self.direct[active][:, self.units])
            if push is not None:
                self._move(push, offset, active, lag)

    def _move(self, push: Push, offset: int, active: Tensor, lag: Tensor) -> None:
        """All paths of one step, carried at size 1 with the logarithm of the size beside it."""
        s, p = self.first.shape
        moved = push(self.whole[active].flatten(0, 1), offset).view(-1, p, s)
        norms = frobenius_norms(moved, (1, 2))
        if p < s:
            self.spread.add(torch.linalg.vector_norm(moved, dim=2, dtype=torch.float64).square())
        scale = torch.where((norms > 0) & torch.isfinite(norms), norms, torch.ones_like(norms))
        moved = moved / scale.to(moved.dtype)[:, None, None]
        self.whole[active] = moved
        self.size[active] += norms.log()
        size, root = self.size[active], math.log(math.sqrt(p))
        self.logs["whole"][active, lag] = size - root
        straight = self.direct[active].abs().log()  # −∞ where gates are closed; the difference is then the product
        above = torch.maximum(size, straight.amax(1)).clamp(min=-1e4)
        direct = torch.exp(straight - above[:, None]) * self.direct[active].sign()
        rest = moved * torch.exp(size - above).to(moved.dtype)[:, None, None]
        rest = rest - direct.to(moved.dtype)[:, None] * self.first.T
        self.logs["difference"][active, lag] = frobenius_norms(rest, (1, 2)).log() + above - root

    def result(self, t: int, s: int) -> PathProducts:
        """The curves and the retention, averaged over the starts that reached each lag."""
        reached = reaching(self.starts, t, self.plan.lags).sum(0)
        method, starts_method = self.plan.methods(t, s, self.spread)
        refused = "" if self.plan.whole else (
            f"Products of {s} × {s} Jacobians cost too much; the limit is {LARGEST} state entries."
        )  # fmt: skip
        retention = self.kept / reached[:, None]
        return PathProducts(self.starts, t, self.logs, retention, refused, method, starts_method)
