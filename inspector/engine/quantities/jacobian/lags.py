"""Products of step Jacobians by lag: how a change of the state changes the state ℓ steps later."""

from __future__ import annotations

import math
from bisect import bisect_left

import torch
from torch import Tensor

from inspector.engine.analyses.directions import SeenSpread, forward, frobenius_norms, orthonormal
from inspector.engine.analyses.lag_statistics import OVER_STARTS, STATISTICS, by_lag, dead_share, reaching
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS, Describe, per_recurrence
from inspector.engine.trace.trace import Recurrence
from inspector.engine.trace.work import CALL, every_product

LONGEST = 512
BUDGET = 3e10
"""Multiplications that are spent on one layer, about a second on one core; beyond that, fewer starts are used."""
LARGEST, FEWEST_STARTS, PROBES = 1024, 8, 8
VANISHED, EXPLODED = 1e-3, 1e3
SOURCE = "Pascanu, Mikolov & Bengio 2013; Bengio, Simard & Frasconi 1994"
FORMULA = "‖∂s_{k+ℓ}/∂s_k‖_F / √S = ‖J_{k+ℓ} … J_{k+1}‖_F / √S"


@QUANTITIES.register("jacobian/lag")
@per_recurrence(
    signal="jacobian/lag", summary="norms of the products of Jacobians by lag, with the horizon", order=70,
    work=lambda size: size.jacobians + min(BUDGET / 2, every_product(size, LONGEST)) + 15 * CALL * size.steps,
)  # fmt: skip
def lags(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `jacobian/lag` (statistic, lag), `jacobian/lag_dead` (lag,), `jacobian/lag_map` (start, lag), and
    `jacobian/lag_horizon`, a scalar.

    Norms are ‖J_{k+ℓ} … J_{k+1}‖_F / √S (1 at lag 0). Statistics over the starts are median, p10, p90 and arithmetic
    mean; the median decides the horizon. A dead start is one whose product is exactly 0. Starts and, for large
    states, directions are reduced to fit a budget; the channel's method says how many are used.
    """
    plan = LagBudget(recurrence.length(sample), recurrence.cell.state_size)
    logs = log_norms(recurrence, sample, plan, emit)
    there = reaching(torch.tensor(plan.starts), recurrence.length(sample), plan.lags)
    statistics, values = by_lag(logs, there), torch.exp(logs)
    starts = tuple(map(str, _in_sequence(plan.starts, recurrence, sample)))
    order = list(range(len(starts)))[:: -1 if recurrence.reverse else 1]
    _write_statistics(recurrence, plan, statistics, emit)
    _write_dead(recurrence, plan, dead_share(logs, there), emit)
    _write_map(recurrence, plan, tuple(starts[i] for i in order), values[order], emit)
    emit.scalar(f"{recurrence.place}:jacobian/lag_horizon", horizon(statistics[0]))


def _write_statistics(recurrence: Recurrence, plan: LagBudget, statistics: Tensor, emit: Emitter) -> None:
    about = Describe(
        kind="lag", compare="ratio", title="norm by lag", formula=f"{FORMULA}: {OVER_STARTS}", source=SOURCE,
        scale="log", method=plan.method,
    )  # fmt: skip
    channel = about.channel(
        f"{recurrence.place}:jacobian/lag", ("statistic", "lag"), tuple(statistics.shape), "float64",
        labels={"statistic": STATISTICS}, module=recurrence.module,
    )  # fmt: skip
    emit.array(channel, statistics)


def _write_dead(recurrence: Recurrence, plan: LagBudget, shares: Tensor, emit: Emitter) -> None:
    about = Describe(
        kind="lag", title="share of dead starts", limits=(0, 1), method=plan.method, source=SOURCE,
        formula="of the starts k that reach the lag, the share with J_{k+ℓ} … J_{k+1} = 0 exactly",
    )  # fmt: skip
    name = f"{recurrence.place}:jacobian/lag_dead"
    emit.array(about.channel(name, ("lag",), tuple(shares.shape), "float64", module=recurrence.module), shares)


def _write_map(recurrence: Recurrence, plan: LagBudget, starts: tuple[str, ...], values: Tensor, emit: Emitter) -> None:
    about = Describe(
        kind="map", compare="ratio", title="norm by start and lag", formula=FORMULA, source=SOURCE, scale="log",
        method=plan.method,
    )  # fmt: skip
    channel = about.channel(
        f"{recurrence.place}:jacobian/lag_map", ("start", "lag"), tuple(values.shape), "float64",
        labels={"start": starts}, domains={"start": "start"}, module=recurrence.module,
    )  # fmt: skip
    emit.array(channel, values)


class LagBudget:
    """Which starts, how many lags, and how many directions fit the budget, for t steps and s state entries."""

    def __init__(self, t: int, s: int) -> None:
        if t < 2:
            raise Unsupported("Products of Jacobians need at least two steps.")
        if s > LARGEST:
            raise Unsupported(f"Products of {s} × {s} Jacobians cost too much; the limit is {LARGEST} state entries.")
        self.lags = min(t - 1, LONGEST)
        exact = int(BUDGET / (2.0 * s**3 * self.lags))
        self.directions = s if exact >= min(FEWEST_STARTS, t - 1) else min(PROBES, s)
        affordable = int(BUDGET / (2.0 * s * s * self.directions * self.lags))
        count = max(1, min(t - 1, max(FEWEST_STARTS, affordable)))
        self.starts = sorted({round(i * (t - 2) / max(1, count - 1)) for i in range(count)})
        self.size, self.spread = s, SeenSpread()
        every = "every start" if len(self.starts) == t - 1 else f"{len(self.starts)} evenly spaced starts of {t - 1}"
        self.which = f"{every}; lags up to {self.lags}"

    @property
    def method(self) -> str:
        """How the norms were found, with the spread between directions as it was seen until now."""
        if self.directions == self.size:
            return f"exact; {self.which}"
        what = f"estimated from {self.directions} random orthonormal directions of {self.size}"
        return f"{what} ({self.spread.words}); {self.which}"

    def active(self, t: int) -> range:
        """Numbers of the starts whose products step t continues."""
        return range(bisect_left(self.starts, t - self.lags), bisect_left(self.starts, t))


def log_norms(recurrence: Recurrence, sample: int, plan: LagBudget, emit: Emitter) -> Tensor:
    """ln of the norms, (start, lag), in processing order, float64; NaN where the sequence ends before the lag."""
    s = recurrence.cell.state_size
    dtype = recurrence.states.dtype
    first = orthonormal(s, plan.directions, dtype, seed=7)
    carried = first.T.repeat(len(plan.starts), 1, 1)  # (start, direction, entry)
    size = torch.zeros(len(plan.starts), dtype=torch.float64)
    logs = torch.full((len(plan.starts), plan.lags + 1), math.nan, dtype=torch.float64)
    logs[:, 0] = 0.0
    starts, numbers = torch.tensor(plan.starts), torch.arange(len(plan.starts))
    unit = math.sqrt(plan.directions)
    for begin, block in recurrence.blocks(sample, BLOCK_STEPS):
        emit.check()
        on_the_way = [plan.active(t) for t in range(begin, begin + block.shape[0])]
        if not any(on_the_way):
            continue
        push = forward(block, max(map(len, on_the_way)) * plan.directions)
        for offset, active in enumerate(on_the_way):
            if not active:
                continue
            t, some = begin + offset, slice(active.start, active.stop)
            moved = push(carried[some].flatten(0, 1), offset).view(-1, plan.directions, s)
            norms = frobenius_norms(moved, (1, 2)) / unit
            if plan.directions < s:
                plan.spread.add(torch.linalg.vector_norm(moved, dim=2, dtype=torch.float64).square())
            scale = torch.where((norms > 0) & torch.isfinite(norms), norms, 1.0)
            torch.div(moved, scale.to(dtype)[:, None, None], out=carried[some])
            size[some] += norms.log()
            logs[numbers[some], t - starts[some]] = size[some]
            size[some] = torch.where(norms > 0, size[some], -torch.inf)
    return logs


def horizon(median: Tensor) -> float:
    """The first lag at which the median is below 10⁻³ or above 10³; NaN when neither happens before it is NaN."""
    known = int(median.isnan().long().cumsum(0).eq(0).sum())
    passed = torch.nonzero((median[:known] < VANISHED) | (median[:known] > EXPLODED))
    return float(passed[0, 0]) if len(passed) else math.nan


def _in_sequence(starts: list[int], recurrence: Recurrence, sample: int) -> list[int]:
    """Starts as sequence steps: a backward direction begins at the end."""
    last = recurrence.length(sample) - 1
    return [last - start for start in starts] if recurrence.reverse else starts
