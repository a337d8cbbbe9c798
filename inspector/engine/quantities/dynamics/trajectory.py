"""The trajectory of the state in state space: principal components and speed at every step."""

from __future__ import annotations

import torch

from inspector.engine.analyses.state_space import speeds, state_space, visited
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, dtype_name, per_recurrence
from inspector.engine.trace.trace import Recurrence

SOURCE = "Pearson 1901; Sussillo & Barak 2013"


@QUANTITIES.register("trajectory")
@per_recurrence(signal="trajectory", summary="trajectory of the state in principal components, and its speed", order=35)
def trajectory(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `trajectory` (step, component), `trajectory/share` (component,) and `trajectory/speed` (step,).

    The state is h, for an LSTM (h, c). `share` is the part of the variance of all states that a component carries.
    """
    place, module, length = recurrence.place, recurrence.module, recurrence.length(sample)
    space = state_space(recurrence, sample)
    states = visited(recurrence, sample)
    whole = "(" + ", ".join(recurrence.cell.parts) + ")" if len(recurrence.cell.parts) > 1 else "h"
    about = Describe(
        kind="trajectory", compare="separate",
        title="state in principal components", scale="diverging", source=SOURCE, method=space.note,
        formula=f"(s_t − mean) · direction of largest variance, s = {whole}",
    )  # fmt: skip
    points = space.project(states)
    count = points.shape[1]
    centred = states.double() - space.mean
    variance = centred[torch.isfinite(centred).all(1)].square().sum()
    finite = points[torch.isfinite(points).all(1)]
    share = finite.square().sum(0) / torch.where(variance > 0, variance, torch.ones_like(variance))
    speed = recurrence.in_order(speeds(recurrence, sample), sample)
    emit.array(
        Describe(
            kind="trajectory", compare="separate",
            title="share of variance", formula="Σ_t x_t² / Σ_t ‖s_t − mean‖²", source=SOURCE,
            method=space.note, limits=(0, 1),
        ).channel(f"{place}:trajectory/share", ("component",), (count,), "float64", module=module),
        share,
    )  # fmt: skip
    emit.array(
        Describe(
            kind="trajectory", compare="separate", title="speed", formula="‖s_t − s_{t−1}‖₂", source=SOURCE
        ).channel(f"{place}:trajectory/speed", ("step",), (length,), dtype_name(speed), module=module),
        speed,
    )  # fmt: skip
    emit.array(
        about.channel(f"{place}:trajectory", ("step", "component"), (length, count), "float64", module=module),
        recurrence.in_order(points, sample),
    )
