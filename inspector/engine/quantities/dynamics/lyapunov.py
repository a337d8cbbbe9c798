"""Lyapunov exponents of a run: how fast changes of the state grow or decay, direction by direction."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from inspector.engine.cells.base import StepBlock
from inspector.engine.cells.linear_maps import LinearMaps
from inspector.engine.cells.lyapunov import EVERY, Directions, advance, entropy_rate, kaplan_yorke
from inspector.engine.cells.lyapunov_spread import LEADING, SEEDS, STATISTICS, Spread
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS, Describe, per_recurrence
from inspector.engine.trace.trace import Recurrence
from inspector.engine.trace.work import Size, Work

BUDGET, MOST_COST = 5e9, 2e11
"""Multiplications (steps × S² × exponents) spent on one layer, a few seconds; and the number above which a layer is
rejected."""
FEWEST, SHOWN = 8, 33
MOST_WARM_UP = 500
BLOCK_BYTES = 64 << 20
AGAIN = 5e-3
"""Error by rounding, in nats a step, beyond which the steps are run again in float64 where they can be."""
KNOWN = 0.05
"""Error by rounding, of an exponent or of 1 nat a step, beyond which it is not known. Rounding of float32 reaches that
of directions that shrink 15 nats a step more than the largest: those of a Jacobian without full rank."""
UNKNOWN = "; exponents that are NaN lie below the rounding of the Jacobians"
SOURCE = "Benettin et al. 1980; Engelken, Wolf & Abbott 2023; Vogt et al. 2022"
FORMULA = (
    "λ_i = mean over steps of ln |R_t[i, i]|, Q_t R_t = J_t Q_{t−1}; λ₁ > 0: chaos, λ₁ < 0: forgets over 1/|λ₁| steps"
)


@QUANTITIES.register("lyapunov")
@per_recurrence(
    signal="lyapunov", summary="Lyapunov exponents by QR, with their convergence", order=75,
    work=lambda size: counted(size), jacobians=True,
    limit=lambda recurrence, sample: ExponentBudget(recurrence.length(sample), recurrence.cell.state_size),
)  # fmt: skip
def lyapunov(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `lyapunov/exponents` (exponent,), `lyapunov/running` (step, exponent), in nats a step, and their scalars;
    `lyapunov/errors` (statistic, exponent): standard errors over segments of the run and over starting bases.

    Scalars: `largest`, `largest_error`, `kaplan_yorke`, `kaplan_yorke_low` and `_high` (within two standard errors),
    `entropy_rate`, `warm_up` (steps left out at the start) and, where every exponent is there and finite,
    `determinant_error` = |Σ λ_i − mean ln |det J_t||.
    """
    plan = ExponentBudget(recurrence.length(sample), recurrence.cell.state_size)
    estimate = _running(recurrence, plan, emit, sample)
    exact = recurrence.in_float64() if bool((estimate.rounding > AGAIN).any()) else None
    if exact is not None:
        plan.method += "; Jacobians in float64, at the states that the model had"
        estimate = _running(exact, plan, emit, sample)
    if bool(estimate.unknown().any()):
        plan.method += UNKNOWN
    for scalar, value in _numbers(plan, estimate).items():
        emit.scalar(f"{recurrence.place}:lyapunov/{scalar}", value)
    about = Describe(
        kind="lyapunov", compare="separate", unit="nat/step", title="Lyapunov exponents", formula=FORMULA,
        source=SOURCE, method=plan.method,
    )  # fmt: skip
    name = f"{recurrence.place}:lyapunov/exponents"
    channel = about.channel(name, ("exponent",), (plan.count,), "float64", module=recurrence.module)
    emit.describe(channel)  # in a run of a sweep the frame before may have had another method
    emit.array(channel, estimate.exponents())
    _write_errors(recurrence, plan, estimate.errors(), emit)


def _write_errors(recurrence: Recurrence, plan: ExponentBudget, errors: Tensor, emit: Emitter) -> None:
    about = Describe(
        kind="lyapunov", compare="separate", unit="nat/step", title="standard errors of Lyapunov exponents",
        formula="segments: std of the means over segments / √n; bases: std between starting bases; the root of the "
        "sum of their squares",
        source="batch means: Conway 1963", labels={"statistic": STATISTICS},
        method=f"{plan.segments} segments, {1 + len(SEEDS)} starting bases",
    )  # fmt: skip
    name, shape = f"{recurrence.place}:lyapunov/errors", tuple(errors.shape)
    emit.array(about.channel(name, ("statistic", "exponent"), shape, "float64", module=recurrence.module), errors)


def _running(recurrence: Recurrence, plan: ExponentBudget, emit: Emitter, sample: int) -> Estimate:
    """The estimate after all steps; written after each of them."""
    shown = _shown(plan.count)
    about = Describe(
        kind="lyapunov", compare="separate",
        unit="nat/step", title="Lyapunov exponents, running", formula=FORMULA, source=SOURCE,
        method=f"{plan.method}; between orthonormalisations the estimate before is repeated",
        labels={"exponent": tuple(str(i + 1) for i in shown)},
    )  # fmt: skip
    name, shape = f"{recurrence.place}:lyapunov/running", (plan.length, len(shown))
    emit.channel(about.channel(name, ("step", "exponent"), shape, "float64", module=recurrence.module))
    estimate = Estimate(plan)
    for start, block in _pieces(recurrence, sample, plan.block_steps):
        rows = estimate.add(start, block.maps())[:, shown]
        emit.page(name, (recurrence.sequence_offset(start, len(rows), sample), 0), recurrence.in_order(rows, sample))
        emit.tell(start + len(rows), plan.length)
    return estimate


def _pieces(recurrence: Recurrence, sample: int, steps: int) -> Iterator[tuple[int, StepBlock]]:
    """Blocks of at most so many steps; where Jacobians are built, pieces of those blocks that keep them."""
    if not recurrence.cell.method or steps == BLOCK_STEPS:
        yield from recurrence.blocks(sample, steps)
        return
    for start, block in recurrence.blocks(sample, BLOCK_STEPS):
        for piece in torch.arange(block.shape[0]).split(steps):
            yield start + int(piece[0]), block.only(piece)


def _numbers(plan: ExponentBudget, estimate: Estimate) -> dict[str, float]:
    """The scalars of an estimate by their names."""
    exponents, complete = estimate.exponents(), plan.count == plan.size
    numbers = {
        "largest": float(exponents[0]),
        "kaplan_yorke": kaplan_yorke(exponents, complete),
        "entropy_rate": entropy_rate(exponents, complete),
        "warm_up": float(plan.warm_up),
    }
    errors = estimate.errors()
    numbers["largest_error"] = float(errors[-1, 0])
    spread = estimate.spread.dimensions(exponents.nan_to_num(nan=-math.inf, neginf=-math.inf), errors[-1], complete)
    spread = spread if numbers["kaplan_yorke"] == numbers["kaplan_yorke"] else (math.nan, math.nan)
    numbers["kaplan_yorke_low"], numbers["kaplan_yorke_high"] = map(float, spread)
    error = abs(float(exponents.sum()) - estimate.log_determinant)
    if complete and math.isfinite(error):
        numbers["determinant_error"] = error
    return numbers


def counted(size: Size) -> Work:
    """Products of all bases with every Jacobian in float64, and orthonormalisations: every fourth step. They may be
    every eighth, or every second one where directions grow apart fast."""
    count = min(size.state, max(FEWEST, int(BUDGET / (size.steps * size.entries))))
    others, settled = len(SEEDS) * min(LEADING, count), size.steps / 4
    work = Work(
        wide=size.steps * size.dense * (count + others), numbers=4 * size.steps * size.entries, calls=50.0 * size.steps,
        factors={("triangular", round((size.state * float(count) ** 2) ** (1 / 3))): settled},
    )  # fmt: skip
    return work + size.matrices("solved", size.steps, 0.0) if count == size.state else work


class ExponentBudget:
    """How many exponents of an s-dimensional state over `length` steps fit the budget; raises Unsupported if none."""

    def __init__(self, length: int, s: int) -> None:
        if length < 2:
            raise Unsupported("Lyapunov exponents need at least two steps.")
        one = float(length) * s * s
        fewest = min(FEWEST, s)
        if one * fewest > MOST_COST:
            raise Unsupported(
                f"Even {fewest} Lyapunov exponents of {s} state entries over {length} steps cost "
                f"{2 * one * fewest:.1e} operations; use a shorter sequence."
            )
        self.length, self.size = length, s
        self.count = min(s, max(fewest, int(BUDGET / one)))
        self.warm_up = min(length // 10, MOST_WARM_UP)
        self.segments = Spread(1, 1, length - self.warm_up).segments
        self.block_steps = max(1, min(BLOCK_STEPS, BLOCK_BYTES // (8 * s * s)))
        which = f"all {s} exponents" if self.count == s else f"the first {self.count} of {s} exponents"
        self.method = (
            f"QR every {EVERY} steps or fewer, in float64; {which}; over {length - self.warm_up} steps after "
            f"{self.warm_up} of warm-up"
        )


class Estimate:
    """Sums of ln |R_ii| after the warm-up, block by block, with the mean ln |det J_t| where all exponents are there."""

    def __init__(self, plan: ExponentBudget) -> None:
        self.plan = plan
        self.directions = Directions(plan.size, plan.count)
        self.total = torch.zeros(plan.count, dtype=torch.float64)
        self.last = torch.full((plan.count,), math.nan, dtype=torch.float64)
        self.spread = Spread(plan.size, plan.count, plan.length - plan.warm_up)
        self.steps = 0
        self._rounding = torch.zeros(plan.count, dtype=torch.float64)
        self._determinants = 0.0

    def add(self, start: int, maps: LinearMaps) -> Tensor:
        """Take the Jacobians of steps from `start` on; the estimates after each of them, (n, exponent)."""
        if start == 0 and self.plan.warm_up and not bool(maps[:1].finite()):
            # Autograd's graph has no derivative by a first state that it does not follow; the warm-up needs none.
            matrices = maps.whole()
            unit = torch.eye(self.plan.size, dtype=matrices.dtype, device=matrices.device)[None]
            maps = LinearMaps.of(torch.cat((unit, matrices[1:])))
        if not maps.all_finite:
            bad = int(torch.nonzero(~maps.finite())[0, 0]) + start
            raise Unsupported(f"The Jacobian of step {bad + 1} (as the layer takes them) is not finite.")
        rows = self.last.repeat(len(maps), 1)
        cold = min(len(maps), max(0, self.plan.warm_up - start))
        every = [self.directions, *self.spread.others]
        advance(every, maps[:cold])
        (logs, booked), *others = advance(every, maps[cold:])
        before = -1
        for number in torch.nonzero(booked)[:, 0].tolist():
            self.total += logs[number]
            self._round(logs[number], number - before, maps.dense.dtype)
            before = number
            self.steps = start + cold + number + 1 - self.plan.warm_up
            self.last = self.total / self.steps
            rows[cold + number :] = self.last
        self.spread.add(start + cold - self.plan.warm_up, logs, [one for one, _ in others])
        if self.plan.count == self.plan.size:
            self._determinants += float(torch.linalg.slogdet(maps[cold:].whole().double()).logabsdet.sum())
        return rows

    def _round(self, grown: Tensor, steps: int, dtype: torch.dtype) -> None:
        """ε ‖J‖ / |R_ii| a step: what an error of rounding in J moves ln |R_ii| by."""
        apart = ((grown.max() - grown) / steps).nan_to_num(0.0, posinf=math.inf)
        self._rounding += steps * torch.finfo(dtype).eps * apart.exp()

    @property
    def rounding(self) -> Tensor:
        """(count,) the mean error of each exponent, in nats a step, by the rounding of the Jacobians."""
        return self._rounding / max(1, self.steps)

    def unknown(self) -> Tensor:
        """(count,) True for exponents that are numbers and no more than rounding; −∞ is an exact zero."""
        large = self.rounding > KNOWN * self.last.abs().clamp(min=1.0)
        return large & torch.isfinite(self.last)

    @property
    def log_determinant(self) -> float:
        """Mean of ln |det J_t| over the steps after the warm-up; −∞ where a Jacobian is singular."""
        return self._determinants / max(1, self.steps)

    def exponents(self) -> Tensor:
        """The exponents over all steps after the warm-up, descending; NaN where rounding hides them."""
        ordered = self.last.sort(descending=True)
        return ordered.values.masked_fill(self.unknown()[ordered.indices], math.nan)

    def errors(self) -> Tensor:
        """(3, exponent) their standard errors, in the same order: over segments, over bases, both together."""
        return self.spread.errors(self.last)


def _shown(count: int) -> list[int]:
    """Which exponents have a curve: all of a few, else evenly spaced ones, first and last included."""
    if count <= SHOWN:
        return list(range(count))
    return [round(i * (count - 1) / (SHOWN - 1)) for i in range(SHOWN)]
