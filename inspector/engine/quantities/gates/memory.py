"""Long-term memory: runs of steps over which a unit keeps its state and writes nothing."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.analyses.idle_steps import kept, written
from inspector.engine.analyses.memory_gate import memory_gate_of
from inspector.engine.cells.gate_info import MemoryGate
from inspector.engine.errors import NotApplicable
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS, Describe, per_recurrence, rows_per_page
from inspector.engine.trace.trace import Recurrence

OPEN, SHUT = 0.9, 0.1
HELD = 10
"""Steps that a unit must keep its state before it is called long-term memory."""
UNITS = 64
"""Units whose runs are found together."""
STATISTICS = ("longest", "longest_start", "runs", "share")
SOURCE = "Hochreiter & Schmidhuber 1997; thresholds of Karpathy, Johnson & Fei-Fei 2015"


@QUANTITIES.register("memory")
@per_recurrence(signal="gate/memory", summary="runs over which a unit keeps its state and writes nothing", order=23)
def memory(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `gate/memory` (step, unit), 1 inside runs, and `gate/memory/runs` (statistic, unit).

    Also the scalar `place:GATE/keeps`: the value, 1 or 0, at which the gate keeps the state.
    """
    found = memory_gate_of(recurrence)
    if found is None:
        raise NotApplicable("No gate of this recurrence is known to keep the state.")
    emit.scalar(f"{recurrence.place}:{found.signal}/keeps", float(found.high))
    condition = recurrence.in_order(holding(recurrence, found, sample), sample)
    marked, statistics = torch.zeros_like(condition), []
    for start in range(0, condition.shape[1], UNITS):
        emit.check()
        cut = slice(start, start + UNITS)
        marked[:, cut], part = runs(condition[:, cut])
        statistics.append(part)
    said = f"{found.letter} > {OPEN}" + (f" and {_letter(found.writes)} < {SHUT}" if found.writes else "")
    about = Describe(
        kind="memory", compare="separate",
        title=f"long-term memory ({said})", source=SOURCE, method=found.method, limits=(0, 1),
        formula=f"1 inside runs of at least {HELD} steps with {said}, the selected sample",
    )  # fmt: skip
    shape = tuple(marked.shape)
    name = f"{recurrence.place}:gate/memory"
    emit.channel(about.channel(name, ("step", "unit"), shape, "uint8", module=recurrence.module))
    size = rows_per_page(shape[0], shape[1])
    for start in range(0, shape[0], size):
        emit.page(name, (start, 0), marked[start : start + size].to(torch.uint8))
    _write_runs(recurrence, emit, torch.cat(statistics, 1), said, found)


def _write_runs(recurrence: Recurrence, emit: Emitter, values: Tensor, said: str, found: MemoryGate) -> None:
    about = Describe(
        kind="memory", compare="separate", title=f"runs of memory ({said})", source=SOURCE, method=found.method,
        formula=f"longest: most consecutive steps with {said}; longest_start: where it begins (−1: nowhere); runs: how "
        f"many are at least {HELD} steps long; share of the steps in those",
        labels={"statistic": STATISTICS},
    )  # fmt: skip
    name = f"{recurrence.place}:gate/memory/runs"
    shape = tuple(values.shape)
    emit.array(about.channel(name, ("statistic", "unit"), shape, "float64", module=recurrence.module), values)


def _letter(signal: str) -> str:
    name = signal.rpartition("/")[2]
    return {"input": "i"}.get(name, name)


def holding(recurrence: Recurrence, found: MemoryGate, sample: int) -> Tensor:
    """(t, h) bool in processing order: the old state is kept and nothing is written; False where the gate is NaN."""
    rows = []
    for start, block in recurrence.blocks(sample, BLOCK_STEPS):
        holds = kept(recurrence, found, block, start)[:, 0] > OPEN
        rows.append(holds & (written(recurrence, found, block, start)[:, 0] < SHUT) if found.writes else holds)
    return torch.cat(rows)


def runs(condition: Tensor) -> tuple[Tensor, Tensor]:
    """From (t, u) bool: (the same, True inside runs of at least HELD steps only; (4, u) float64 STATISTICS)."""
    t, units = condition.shape
    edge = torch.zeros(1, units, dtype=torch.int8)
    steps = torch.diff(torch.cat((edge, condition.to(torch.int8), edge)), dim=0).T.contiguous()
    starts, stops = torch.nonzero(steps == 1), torch.nonzero(steps == -1)  # both by unit, then by step: pairs
    unit, first, length = starts[:, 0], starts[:, 1], stops[:, 1] - starts[:, 1]
    longest = torch.zeros(units, dtype=torch.long).scatter_reduce(0, unit, length, "amax")
    best = length == longest[unit]
    begins = torch.full((units,), t).scatter_reduce(0, unit[best], first[best], "amin")
    begins = torch.where(longest > 0, begins, -1)
    long = length >= HELD
    count = torch.bincount(unit[long], minlength=units)
    held = torch.zeros(units, dtype=torch.long).scatter_add(0, unit[long], length[long])
    change = torch.zeros(units, t + 1, dtype=torch.int8)
    change[unit[long], first[long]] += 1
    change[unit[long], stops[long, 1]] -= 1
    marked = change.cumsum(1, dtype=torch.int8)[:, :t].T.bool()
    return marked, torch.stack((longest.double(), begins.double(), count.double(), held.double() / t))
