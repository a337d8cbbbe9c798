"""Units that do nothing or repeat another: dead, near-constant and duplicate units."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.analyses.unit_statistics import Moments, rests_on
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_recurrence
from inspector.engine.trace.trace import Recurrence

ABOUT = Describe(
    kind="unit", title="dead, constant and duplicate units", source="Sokar et al. 2023 (dormant units), adapted",
    formula=(
        "dead: max |h| = 0; constant: std h < 1e-3 of the layer's root mean square; duplicate_of: smallest unit with "
        "|correlation| > 0.999 (−1: none); variance of h; over all real steps and samples"
    ),
    labels={"statistic": ("dead", "constant", "duplicate_of", "variance")},
)  # fmt: skip


@QUANTITIES.register("units")
@per_recurrence(signal="h/units", summary="dead, near-constant and duplicate units", order=22)
def units(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `place:h/units`, (statistic, unit). One sequence is weak evidence: give a batch to judge a model."""
    main = recurrence.cell.main
    real = torch.arange(recurrence.steps)[:, None] < recurrence.lengths
    values = recurrence.states[1:, :, recurrence.cell.parts[main]][real].double()
    found = unit_statistics(values)
    name = f"{recurrence.place}:{main}/units"
    about = replace(ABOUT, method=f"exact; {rests_on(len(recurrence.lengths), len(values))}")
    emit.array(
        about.channel(name, ("statistic", "unit"), tuple(found.shape), "float64", module=recurrence.module), found
    )


def unit_statistics(values: Tensor) -> Tensor:
    """(4, h) statistics of n observations of h units, (n, h)."""
    return Moments.of(values).table()
