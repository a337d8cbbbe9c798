"""Products of step Jacobians by lag: how a change of the state changes the state ℓ steps later."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from inspector.engine.analyses.closed_products import plan_of
from inspector.engine.analyses.lag_budgets import LagBudget, walk_work
from inspector.engine.analyses.lag_statistics import OVER_STARTS, STATISTICS, by_lag, dead_share, reaching
from inspector.engine.analyses.path_products import lag_products
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_recurrence
from inspector.engine.trace.trace import Recurrence

VANISHED, EXPLODED = 1e-3, 1e3
SOURCE = "Pascanu, Mikolov & Bengio 2013; Bengio, Simard & Frasconi 1994"
FORMULA = "‖∂s_{k+ℓ}/∂s_k‖_F / √S = ‖J_{k+ℓ} … J_{k+1}‖_F / √S"


@QUANTITIES.register("jacobian/lag")
@per_recurrence(
    signal="jacobian/lag", summary="norms of the products of Jacobians by lag, with the horizon", order=70,
    work=walk_work, jacobians=True,
    limit=plan_of,
)  # fmt: skip
def lags(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `jacobian/lag` (statistic, lag), `jacobian/lag_dead` (lag,), `jacobian/lag_map` (start, lag), and
    `jacobian/lag_horizon`, a scalar.

    Norms are ‖J_{k+ℓ} … J_{k+1}‖_F / √S (1 at lag 0). Statistics over the starts are median, p10, p90 and arithmetic
    mean; the median decides the horizon. A dead start is one whose product is exactly 0. Starts and, for large
    states, directions are reduced to fit a budget; the channel's method says how many are used.
    """
    found = lag_products(recurrence, sample, emit)
    plan, logs = found.plan, found.logs
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


def horizon(median: Tensor) -> float:
    """The first lag at which the median is below 10⁻³ or above 10³; NaN when neither happens before it is NaN."""
    known = int(median.isnan().long().cumsum(0).eq(0).sum())
    passed = torch.nonzero((median[:known] < VANISHED) | (median[:known] > EXPLODED))
    return float(passed[0, 0]) if len(passed) else math.nan


def _in_sequence(starts: list[int], recurrence: Recurrence, sample: int) -> list[int]:
    """Starts as sequence steps: a backward direction begins at the end."""
    last = recurrence.length(sample) - 1
    return [last - start for start in starts] if recurrence.reverse else starts
