"""Fixed and slow points of the recurrence near its trajectory, the input held at its mean, and their stability."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.emitter import Emitter
from inspector.engine.errors import Unsupported
from inspector.engine.fixed_points import distinct, in_float64, minimise, step_and_jacobian
from inspector.engine.quantity import Describe, per_recurrence
from inspector.engine.shelves import QUANTITIES
from inspector.engine.statespace import speeds, state_space, visited
from inspector.engine.steps.cell import Cell
from inspector.engine.trace import Recurrence

LARGEST, STARTS = 512, 64
BUDGET = 2e9
"""Starts × (state entries)³ of one iteration: wide states have fewer starts."""
FIXED = 1e-9
"""‖s − F(s)‖ beside 1 + ‖s‖ below which a point is fixed; above, it may be slow."""
SLOW = 0.1
"""A minimum of q whose speed is below this part of the trajectory's median speed is a slow point."""
APART = 1e-4
STATISTICS = ("speed", "fixed", "stable", "spectral_radius", "timescale", "unstable_directions")
SOURCE = "Sussillo & Barak 2013; Golub & Sussillo 2018"


@QUANTITIES.register("fixed_points")
@per_recurrence(
    signal="fixed_points", summary="fixed and slow points with the input held at its mean, and their stability",
    order=90, default=False,
)  # fmt: skip
def fixed_points(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `fixed_points` (point, component), and of every point its state, statistics and eigenvalues.

    `fixed_points/states` (point, unit), `fixed_points/eigenvalues` (point, eigenvalue, part) of ∂F/∂s, and
    `fixed_points/statistics` (statistic, point): speed ‖s − F(s)‖, fixed (else slow), stable (ρ < 1), ρ,
    timescale 1/|ln ρ| in steps, and how many |λ| > 1. Fixed points first, by speed.
    """
    s = recurrence.cell.state_size
    if s > LARGEST:
        raise Unsupported(f"Fixed points of {s} state entries cost too much; up to {LARGEST} are searched.")
    space = state_space(recurrence, sample)
    cell = in_float64(recurrence.cell)
    states, x, starts = _search(recurrence, sample, emit)
    found = _describe(cell, x, states)
    method = (
        f"Levenberg–Marquardt in float64 from {starts} states of the trajectory, x* = the mean input of its steps; "
        f"fixed: ‖s − F(s)‖ ≤ {FIXED:g} (1 + ‖s‖), slow: below {SLOW:g} of the median speed; others may exist"
    )
    about = Describe(
        kind="fixed_point", title="fixed and slow points", formula="minima of q(s) = ½‖s − F(s, x*)‖²", source=SOURCE,
        method=method,
    )  # fmt: skip
    place, module = recurrence.place, recurrence.module
    points = space.project(states)
    emit.scalar(f"{place}:fixed_points/count", len(states))
    for name, dims, values, labels in (
        ("fixed_points/states", ("point", "unit"), states, {}),
        ("fixed_points/eigenvalues", ("point", "eigenvalue", "part"), found[1], {"part": ("re", "im")}),
        ("fixed_points/statistics", ("statistic", "point"), found[0], {"statistic": STATISTICS}),
        ("fixed_points", ("point", "component"), points, {}),
    ):
        channel = about.channel(
            f"{place}:{name}",
            dims,
            tuple(values.shape),
            "float64",
            module=module,
            **({"labels": labels} if labels else {}),
        )
        emit.array(channel, values.double())


def _search(recurrence: Recurrence, sample: int, emit: Emitter) -> tuple[Tensor, Tensor, int]:
    """(points (n, s), the held input (i,), number of starts); raises Unsupported when no point is found."""
    cell, length = in_float64(recurrence.cell), recurrence.length(sample)
    trajectory = visited(recurrence, sample)
    inputs = recurrence.x[:length, sample - recurrence.base]
    real = torch.isfinite(trajectory).all(1) & torch.isfinite(inputs).all(1)
    trajectory, inputs = trajectory[real], inputs[real]
    if cell is not recurrence.cell:
        trajectory, inputs = trajectory.double(), inputs.double()
    most = int(max(4, min(STARTS, BUDGET / recurrence.cell.state_size**3)))
    count = min(len(trajectory), most)
    chosen = torch.linspace(0, len(trajectory) - 1, count).round().long()
    x = inputs.mean(0)
    states, still = minimise(cell, x, trajectory[chosen], emit.check)
    speed = (cell.step(x.expand(count, -1), states) - states).norm(dim=1)
    typical = float(speeds(recurrence, sample)[real].median())
    fixed = speed <= FIXED * (1 + states.norm(dim=1))
    good = torch.isfinite(states).all(1) & (fixed | (still & (speed <= SLOW * typical)))
    if not bool(good.any()):
        raise Unsupported(
            f"No fixed or slow point was found from {count} states of the trajectory, the input held at its mean."
        )
    states, speed = states[good], speed[good]
    scale = float(trajectory.norm(dim=1).square().mean().sqrt())
    return states[distinct(states, speed, APART * (1e-3 + scale))], x, count


def _describe(cell: Cell, x: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    """Statistics (6, point) and eigenvalues (point, s, 2), largest modulus first."""
    after, jacobian = step_and_jacobian(cell, x, states)
    speed = (after - states).norm(dim=1)
    values = torch.linalg.eigvals(jacobian)
    moduli, order = values.abs().sort(dim=-1, descending=True)
    radius = moduli[:, 0]
    rows = (
        speed, speed <= FIXED * (1 + states.norm(dim=1)), radius < 1, radius, 1 / radius.log().abs(),
        (moduli > 1).sum(1),
    )  # fmt: skip
    parts = torch.view_as_real(values.gather(-1, order))
    return torch.stack([row.double() for row in rows]), parts.double()
