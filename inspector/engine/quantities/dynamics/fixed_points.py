"""Fixed and slow points of the recurrence near its trajectory, at a constant input, and their stability."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.analyses.constant_inputs import ConstantInput, constant_inputs
from inspector.engine.analyses.fixed_point_search import ITERATIONS, distinct, minimise
from inspector.engine.analyses.state_space import speeds, state_space, visited
from inspector.engine.errors import Unsupported
from inspector.engine.recurrent.traced.cells.base import RecordedStep
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, limit_of, over_recurrences, per_run
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.engine.trace.work import Work, over_each
from inspector.records.catalogue import RECURRENCE

LARGEST, STARTS, FEWEST = 512, 64, 4
OTHERS = 4
"""Inputs other than the first have this many times fewer starts."""
BUDGET = 2e9
"""Starts × (state entries)³ of one iteration: wide states have fewer starts."""
FIXED = {torch.float64: 1e-9}
ROUGH = 1e-5
"""‖s − F(s)‖ beside 1 + ‖s‖ below which a point is fixed, by precision; above, it may be slow."""
SLOW = 0.1
"""A minimum of q whose speed is below this part of the trajectory's median speed is a slow point."""
APART = 1e-4
STATISTICS = ("speed", "fixed", "stable", "spectral_radius", "timescale", "unstable_directions", "input")
SOURCE = "Sussillo & Barak 2013; Golub & Sussillo 2018"


def check_size(recurrence: Recurrence, _sample: int) -> None:
    """Raises Unsupported where the state is too large."""
    size = recurrence.cell.state_size
    if size > LARGEST:
        raise Unsupported(f"Fixed points of {size} state entries cost too much; the limit is {LARGEST}.")


@QUANTITIES.register("fixed_points")
@per_run(
    summary="fixed and slow points at a constant input (mean, zero, frequent inputs), and their stability", order=90,
    default=False, needs=(RECURRENCE,), cost="a search from some 64 states for each constant input: seconds",
    work=over_each(lambda size: Work(200 * min(STARTS * float(size.state) ** 3, BUDGET), calls=20000.0)),
    limit=limit_of(check_size),
)  # fmt: skip
def fixed_points(trace: Trace, emit: Emitter) -> None:
    """Write `fixed_points` (point, component), and for every point its state, statistics and eigenvalues.

    `fixed_points/states` (point, unit), `fixed_points/eigenvalues` (point, eigenvalue, part) of ∂F/∂s, and
    `fixed_points/statistics` (statistic, point): speed ‖s − F(s)‖, fixed (else slow), stable (ρ < 1), ρ, timescale
    1/|ln ρ| in steps, how many |λ| > 1, and the number of the constant input. `fixed_points/inputs` (input,) names
    those inputs and counts their points. Ordered by input, then by speed.
    """
    over_recurrences(trace, emit, "fixed_points", lambda recurrence: _one(trace, recurrence, emit))


@dataclass(frozen=True, slots=True)
class Found:
    """Points of one constant input:
    states (n, s), statistics (6, n), eigenvalues (n, s, 2), and starts that were tried."""

    states: Tensor
    statistics: Tensor
    eigenvalues: Tensor
    starts: int


def _one(trace: Trace, recurrence: Recurrence, emit: Emitter) -> None:
    check_size(recurrence, trace.look_at)
    size = recurrence.cell.state_size
    trajectory, index = visited(recurrence, trace.look_at), trace.look_at - recurrence.base
    inputs = recurrence.x[: len(trajectory), index]
    real = torch.nonzero(torch.isfinite(trajectory).all(1) & torch.isfinite(inputs).all(1))[:, 0]
    if not len(real):
        raise Unsupported("Fixed points are sought from the states of the trajectory, and none of them is finite.")
    choices = constant_inputs(trace, recurrence, real)
    typical = float(speeds(recurrence, trace.look_at)[real].median())
    most = int(max(FEWEST, min(STARTS, BUDGET / size**3)))
    counts = [min(len(real), most if n == 0 else max(FEWEST, most // OTHERS)) for n in range(len(choices))]
    found = []
    for n, (constant, count) in enumerate(zip(choices, counts, strict=True)):
        emit.progress(
            n, len(choices), f"fixed points of {recurrence.place}, {constant.label}: {count} of {sum(counts)} searches "
            f"of at most {ITERATIONS} steps",
        )  # fmt: skip
        found.append(_search(constant, trajectory[real], count, typical, emit))
    if not any(len(one.states) for one in found):
        raise Unsupported(
            f"No fixed or slow point was found from {max(counts)} states of the trajectory, at none of "
            f"{len(choices)} constant inputs."
        )
    _write(recurrence, trace.look_at, choices, found, emit)


def _search(constant: ConstantInput, trajectory: Tensor, count: int, typical: float, emit: Emitter) -> Found:
    """The points that so many evenly spaced states of the trajectory (t, s) lead to; there may be none."""
    trajectory = trajectory.to(constant.dtype)
    chosen = torch.linspace(0, len(trajectory) - 1, count).round().long()
    states, still = minimise(constant.step, trajectory[chosen], emit.check)
    states, still = states[finite := torch.isfinite(states).all(1)], still[finite]
    speed = (constant.step(states)[0] - states).norm(dim=1) if len(states) else states.new_zeros(0)
    good = is_fixed(states, speed) | (still & (speed <= SLOW * typical))
    states, speed = states[good], speed[good]
    scale = float(trajectory.norm(dim=1).square().mean().sqrt())
    states = states[distinct(states, speed, APART * (1e-3 + scale))]
    return Found(states, *_describe(constant, states), count)


def is_fixed(states: Tensor, speed: Tensor) -> Tensor:
    """(n,) True where a step leads from a state (n, s) back to it, up to rounding."""
    found: Tensor = speed <= FIXED.get(states.dtype, ROUGH) * (1 + states.norm(dim=1))
    return found


def _describe(constant: ConstantInput, states: Tensor) -> tuple[Tensor, Tensor]:
    """Statistics (6, point) and eigenvalues (point, s, 2), largest modulus first."""
    if not len(states):
        return states.new_zeros(6, 0).double(), states.new_zeros(0, states.shape[1], 2).double()
    after, jacobian = constant.step(states)
    speed = (after - states).norm(dim=1)
    values = torch.linalg.eigvals(jacobian)
    moduli, order = values.abs().sort(dim=-1, descending=True)
    radius = moduli[:, 0]
    rows = (speed, is_fixed(states, speed), radius < 1, radius, 1 / radius.log().abs(), (moduli > 1).sum(1))
    parts = torch.view_as_real(values.gather(-1, order))
    return torch.stack([row.double() for row in rows]), parts.double()


def _write(
    recurrence: Recurrence, sample: int, choices: list[ConstantInput], found: list[Found], emit: Emitter
) -> None:
    number = torch.cat(
        [torch.full((1, len(one.states)), float(n), dtype=torch.float64) for n, one in enumerate(found)], 1
    )
    states = torch.cat([one.states.double() for one in found])
    statistics = torch.cat([torch.cat([one.statistics for one in found], 1), number])
    eigenvalues = torch.cat([one.eigenvalues for one in found])
    points = state_space(recurrence, sample).project(states)
    about = Describe(
        kind="fixed_point", compare="separate",
        title="fixed and slow points", formula="minima of q(s) = ½‖s − F(s, x*)‖²", source=SOURCE,
        method=_method(recurrence, choices, found),
    )  # fmt: skip
    place, module = recurrence.place, recurrence.module
    emit.scalar(f"{place}:fixed_points/count", len(states))
    names = tuple(constant.label for constant in choices)
    for name, dims, values, labels in (
        ("fixed_points/inputs", ("input",), torch.bincount(number[0].long(), minlength=len(names)), {"input": names}),
        ("fixed_points/states", ("point", "unit"), states, {}),
        ("fixed_points/eigenvalues", ("point", "eigenvalue", "part"), eigenvalues, {"part": ("re", "im")}),
        ("fixed_points/statistics", ("statistic", "point"), statistics, {"statistic": STATISTICS}),
        ("fixed_points", ("point", "component"), points, {}),
    ):
        more = {"labels": labels} if labels else {}
        dtype = "int64" if dims == ("input",) else "float64"
        channel = about.channel(f"{place}:{name}", dims, tuple(values.shape), dtype, module=module, **more)
        emit.array(channel, values)


def _method(recurrence: Recurrence, choices: list[ConstantInput], found: list[Found]) -> str:
    """How they were found, as text."""
    precise = all(constant.dtype == torch.float64 for constant in choices)
    starts = f"{found[0].starts} states of the trajectory" + (
        f" ({found[1].starts} at inputs after the first)"
        if len(found) > 1 and found[1].starts < found[0].starts
        else ""
    )
    recorded = (
        "; the recorded step is run again (mean: of what enters it; zero is not known)"
        if isinstance(recurrence.cell, RecordedStep)
        else ""
    )
    return (
        f"Levenberg–Marquardt in {'float64' if precise else 'the precision of the model'} from {starts}{recorded}; "
        f"fixed: ‖s − F(s)‖ ≤ {FIXED[torch.float64] if precise else ROUGH:g} (1 + ‖s‖), slow: below {SLOW:g} of the "
        "median speed; others may exist"
    )
