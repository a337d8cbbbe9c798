"""Saturation of gates and squashed values per unit, over every real step of every sample."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.cells.gate_info import ACTIVATION
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, all_samples, per_recurrence
from inspector.engine.trace.trace import Recurrence

LOW, HIGH, FLAT = 0.1, 0.9, 0.97
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
    """Write `place:gate/NAME/saturation`, (statistic, unit); also of the candidate, and of h of a tanh RNN."""
    sums: dict[str, Tensor] = {}
    count = 0
    for block, real in all_samples(recurrence):
        count += int(real.sum())
        for signal, values in _squashed(recurrence, block.gates, block.following):
            part = _statistics(values[real].double(), signal.startswith("gate/"))
            sums[signal] = sums[signal] + part if signal in sums else part
    for signal, total in sums.items():
        name = f"{recurrence.place}:{signal}/saturation"
        about = GATE if signal.startswith("gate/") else SQUASHED
        shape = (3, total.shape[1])
        emit.array(
            about.channel(name, ("statistic", "unit"), shape, "float64", module=recurrence.module), total / count
        )


def _squashed(recurrence: Recurrence, gates: object, following: Tensor) -> list[tuple[str, Tensor]]:
    assert hasattr(gates, "items")
    found: list[tuple[str, Tensor]] = [pair for pair in gates.items() if not pair[0].startswith(ACTIVATION)]
    found += [(part, following[..., recurrence.cell.parts[part]]) for part in recurrence.cell.tanh_parts]
    return found


def _statistics(values: Tensor, gate: bool) -> Tensor:
    """Sums over rows of (n, h) values: (3, h); a NaN stays a NaN in the graded score."""
    low, high = (LOW, HIGH) if gate else (-FLAT, FLAT)
    graded = 4 * values * (1 - values) if gate else 1 - values * values
    return torch.stack(((values < low).double().sum(0), (values > high).double().sum(0), graded.sum(0)))
