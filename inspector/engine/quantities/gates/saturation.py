"""Saturation of gates and squashed values per unit, over every real step of every sample."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from torch import Tensor

from inspector.engine.analyses.idle_steps import computed
from inspector.engine.analyses.saturated import saturated, squashed
from inspector.engine.analyses.unit_statistics import rests_on
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, all_samples, per_recurrence
from inspector.engine.trace.trace import Recurrence
from inspector.records import UNBOUNDED

GATE = Describe(
    kind="unit", title="saturation (gate < 0.1, gate > 0.9)", limits=(0, 1),
    formula="left = mean 1[g < 0.1], right = mean 1[g > 0.9], graded = mean 4 g (1 − g); all real steps and samples",
    source="Karpathy, Johnson & Fei-Fei 2015 (left, right)", labels={"statistic": ("left", "right", "graded")},
)  # fmt: skip
SQUASHED = Describe(
    kind="unit", title="saturation (tanh < −0.97, tanh > 0.97)", limits=(0, 1),
    formula="left = mean 1[v < −0.97], right = mean 1[v > 0.97], graded = mean (1 − v²); all real steps and samples",
    source="threshold of Karpathy's makemore", labels={"statistic": ("left", "right", "graded")},
)  # fmt: skip


@QUANTITIES.register("saturation")
@per_recurrence(
    signal="gate/saturation", summary="saturated fractions and graded score of every gate and unit", order=20
)
def saturation(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `place:gate/NAME/saturation`, (statistic, unit); also of the candidate, and of h of a tanh RNN; of other
    states that are written by hand why there is none."""
    for name, why in recurrence.cell.unbounded.items():
        emit.labels(f"{UNBOUNDED}{recurrence.place}:{name}", (why,))
    totals: dict[str, Tensor] = {}
    counts: Counter[str] = Counter()
    start = 0
    for block, real in all_samples(recurrence):
        for signal, values in squashed(recurrence.cell, block):
            steps = computed(recurrence, signal, real, start)
            counts[signal] += int(steps.sum())
            part = saturated(values, signal, steps).by_unit
            totals[signal] = totals[signal] + part if signal in totals else part
        start += len(real)
    for signal, total in totals.items():
        name = f"{recurrence.place}:{signal}/saturation"
        about = GATE if signal.startswith("gate/") else SQUASHED
        about = replace(about, method=f"exact; {rests_on(len(recurrence.lengths), counts[signal])}")
        shape = (3, total.shape[1])
        emit.array(
            about.channel(name, ("statistic", "unit"), shape, "float64", module=recurrence.module),
            total / counts[signal],
        )
