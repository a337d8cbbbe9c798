"""Products over steps by lag: of all paths, and of the direct path beside them, found in one pass over the steps.

Letters: n start, s state entry, p direction, ℓ lag, m steps of a piece. The direct path is diagonal, so its product is
one vector a start; the whole product is carried as its action on directions (see `carried_products.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.analyses.carried_products import Carried, Starts, Watch, walk
from inspector.engine.analyses.closed_products import closed_products, is_diagonal
from inspector.engine.analyses.directions import frobenius_norms, orthonormal
from inspector.engine.analyses.lag_budgets import LARGEST, LagBudget, PathBudget, how_many, which
from inspector.engine.analyses.lag_statistics import by_lag, reaching
from inspector.engine.cells.base import StepBlock
from inspector.engine.errors import Unsupported
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence

CURVES = ("direct", "whole", "difference")


@dataclass(slots=True)
class LagProducts:
    """Norms of products of all paths: their plan, and ln of the norms over √S, (n, ℓ), in processing order, float64.

    NaN where the sequence ends before the lag."""

    plan: LagBudget
    logs: Tensor


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


def lag_products(recurrence: Recurrence, sample: int, emit: Emitter) -> LagProducts:
    """Products of all paths by lag. Raises Unsupported where there are none, or they cost too much."""
    if is_diagonal(recurrence):
        return LagProducts(*closed_products(recurrence, sample, emit))
    LagBudget(recurrence.length(sample), recurrence.cell.state_size)
    found = _found(recurrence, sample, emit, "lags")
    assert isinstance(found, LagProducts)
    return found


def path_products(recurrence: Recurrence, sample: int, emit: Emitter) -> PathProducts | None:
    """Products of the direct paths and of all paths by lag; None where the step has no direct path."""
    if recurrence.block(0, 1, slice(0, 1)).direct() is None:
        return None
    if recurrence.length(sample) < 2:
        raise Unsupported("Products over steps need at least two steps.")
    found = _found(recurrence, sample, emit, "paths")
    assert isinstance(found, PathProducts)
    return found


def _found(recurrence: Recurrence, sample: int, emit: Emitter, what: str) -> LagProducts | PathProducts:
    """One walk finds both; what was not asked for is stored until it is, once."""
    stored = recurrence.stored.pop((what, sample), None)
    if stored is not None:
        return stored  # type: ignore[no-any-return]
    lags, paths = _products(recurrence, sample, emit)
    found: dict[str, LagProducts | PathProducts | None] = {"lags": lags, "paths": paths}
    for other, value in found.items():
        if other != what and value is not None:
            recurrence.stored[other, sample] = value
    mine = found[what]
    assert mine is not None
    return mine


def _products(recurrence: Recurrence, sample: int, emit: Emitter) -> tuple[LagProducts | None, PathProducts | None]:
    t, s = recurrence.length(sample), recurrence.cell.state_size
    dtype, lags, every, sets = recurrence.states.dtype, None, None, []
    if s <= LARGEST:
        lags = LagBudget(t, s)
        unit = math.sqrt(lags.directions)
        every = Carried(lags.starts, lags.lags, orthonormal(s, lags.directions, dtype, seed=7), unit)
        lags.spread = every.spread
        sets.append(every)
    watch, direct = None, recurrence.block(0, 1, slice(0, 1)).direct()
    if direct is not None:
        watch = _Compared(PathBudget.of(t, s), every, recurrence, retaining(recurrence, direct))
        if watch.carried is not None and watch.carried is not every:
            sets.append(watch.carried)
    walk(recurrence, sample, emit, sets, watch)
    found = None if lags is None or every is None else LagProducts(lags, every.logs)
    return found, None if watch is None else watch.result(t)


def retaining(recurrence: Recurrence, direct: Tensor) -> slice:
    """The entries that retain: the part that the family declares, else the first that `direct` (t, b, s) reaches, of
    which the one that the rest of the model sees comes last; all where none is reached."""
    cell = recurrence.cell
    if cell.memory_gate is not None:
        return cell.parts[cell.memory_gate.part]
    parts = sorted(cell.parts, key=lambda name: name == cell.main)
    reached = (cell.parts[name] for name in parts if bool((direct[..., cell.parts[name]] != 0).any()))
    return next(reached, slice(0, cell.state_size))


class _Compared(Watch):
    """The direct paths' products of every start so far, and what all paths have beside them.

    Where both are estimates, the products of all paths are those whose norms are shown by lag (`every`), with their
    starts; where one is exact, they are carried from starts of their own.
    """

    def __init__(self, plan: PathBudget, every: Carried | None, recurrence: Recurrence, keeps: slice) -> None:
        self.size, self.units = recurrence.cell.state_size, keeps
        self.carried = _carried(plan, every, self.size, recurrence.states.dtype)
        self.starts = Starts(plan.starts, plan.lags) if self.carried is None else self.carried
        count = len(self.starts.steps)
        self.direct = torch.ones(count, self.size, dtype=torch.float64)
        names = CURVES if plan.whole else CURVES[:1]
        self.logs = {name: torch.full((count, plan.lags + 1), math.nan, dtype=torch.float64) for name in names}
        for name in names:
            self.logs[name][:, 0] = -torch.inf if name == "difference" else 0.0
        self.kept = torch.zeros(plan.lags + 1, keeps.stop - keeps.start, dtype=torch.float64)
        self.kept[0] = count

    def look(self, block: StepBlock, begin: int, steps: slice, rows: Tensor | None) -> None:
        """The steps of one piece: the direct paths move on, and are taken from the products of all paths."""
        first, stop = begin + steps.start, begin + steps.stop
        some = self.starts.active(first, stop)
        lag = self.starts.lag(first, stop, some)
        there = self.starts.there(lag)
        diagonal = block.direct()
        assert diagonal is not None
        factors = torch.where(there[..., None], diagonal[steps, 0].double()[:, None], 1.0)
        direct = torch.cat((self.direct[None, some], factors)).cumprod(0)[1:]
        self.direct[some] = direct[-1]
        numbers = torch.arange(some.start, some.stop).expand_as(lag)[there]
        lag, direct = lag[there], direct[there]
        self.logs["direct"][numbers, lag] = direct.norm(dim=1).log() - math.log(math.sqrt(self.size))
        self.kept.index_add_(0, lag, direct[:, self.units])
        if rows is not None:
            self._take_apart(rows, there, direct, numbers, lag)

    def _take_apart(self, rows: Tensor, there: Tensor, direct: Tensor, numbers: Tensor, lag: Tensor) -> None:
        """All paths without the direct one: rows (m, n, p, s); the others for each pair that is `there`."""
        assert self.carried is not None
        grown = self.carried.logs[numbers, lag]  # ln of the rows' size beside that of the products
        basis, unit = self.carried.basis, self.carried.unit
        root = math.log(math.sqrt(basis.shape[1]))
        self.logs["whole"][numbers, lag] = grown + (math.log(unit) - root)
        straight = direct.abs().log()  # −∞ where gates are closed; the difference is then the product
        above = torch.maximum(grown, straight.amax(1)).clamp(min=-1e4)
        direct = torch.exp(straight - above[:, None]) * direct.sign()
        taken = rows.flatten(0, 1) if bool(there.all()) else rows[there]
        rest = taken * torch.exp(grown - above).to(rows.dtype)[:, None, None]
        rest -= direct.to(rows.dtype)[:, None] * basis.T
        self.logs["difference"][numbers, lag] = frobenius_norms(rest, (1, 2)).log() + above - root

    def result(self, t: int) -> PathProducts:
        """The curves and the retention, averaged over the starts that reached each lag."""
        starts, lags, s = self.starts.tensor, self.starts.lags, self.size
        told = which(len(starts), t, lags)
        refused = "" if self.carried is not None else (
            f"Products of {s} × {s} Jacobians cost too much; the limit is {LARGEST} state entries."
        )  # fmt: skip
        how = "exact" if self.carried is None else how_many(self.carried.basis.shape[1], s, self.carried.spread)
        retention = self.kept / reaching(starts, t, lags).sum(0)[:, None]
        return PathProducts(starts, t, self.logs, retention, refused, f"{how}; {told}", f"exact; {told}")


def _carried(plan: PathBudget, every: Carried | None, s: int, dtype: torch.dtype) -> Carried | None:
    if not plan.whole:
        return None
    if every is not None and not every.exact and plan.directions < s:
        return every
    return Carried(plan.starts, plan.lags, orthonormal(s, plan.directions, dtype, seed=11), 1.0)
