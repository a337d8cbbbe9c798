"""How many steps a unit remembers: the memory timescale of its forget or update gate."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.analyses.idle_steps import kept
from inspector.engine.analyses.memory_gate import memory_gate_of
from inspector.engine.analyses.unit_statistics import rests_on
from inspector.engine.cells.gate_info import short
from inspector.engine.errors import NotApplicable
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, all_samples, per_recurrence
from inspector.engine.trace.trace import Recurrence

PAUSES = "a step that does not compute the gate and leaves the state keeps all of it (NaN where one changes it)"


@QUANTITIES.register("timescale")
@per_recurrence(signal="gate/timescale", summary="memory timescale of every unit in steps", order=21)
def timescale(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `place:gate/forget/timescale` (GRU: update), (unit,): τ = −1 / mean ln f, infinite for f = 1 throughout."""
    found = memory_gate_of(recurrence)
    if found is None:
        raise NotApplicable("Only gated recurrences (LSTM, GRU, your own) have a gate that keeps the state.")
    total: Tensor | None = None
    count = start = 0
    for block, real in all_samples(recurrence):
        logs = kept(recurrence, found, block, start)[real].double().log().sum(0)
        total = logs if total is None else total + logs
        count += int(real.sum())
        start += len(real)
    assert total is not None
    mean = total / count
    values = torch.where(mean == 0, torch.full_like(mean, torch.inf), -1 / mean)
    pauses = (PAUSES,) if found.signal in recurrence.cell.idle else ()
    about = Describe(
        kind="unit", compare="ratio", title=f"memory timescale ({short(found.signal)} gate)", unit="step", scale="log",
        formula=f"τ = −1 / mean ln {found.letter} over all real steps and samples (geometric mean of the gate)",
        source="Tallec & Ollivier 2018",
        method="; ".join((found.method or "exact", *pauses, rests_on(len(recurrence.lengths), count))),
    )  # fmt: skip
    name = f"{recurrence.place}:{found.signal}/timescale"
    emit.array(about.channel(name, ("unit",), (len(values),), "float64", module=recurrence.module), values)
