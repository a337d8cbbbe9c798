"""Units that do nothing or repeat another: dead, near-constant and duplicate units."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, per_recurrence
from inspector.engine.trace.trace import Recurrence

CONSTANT, DUPLICATE = 1e-3, 0.999
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
    emit.array(
        ABOUT.channel(name, ("statistic", "unit"), tuple(found.shape), "float64", module=recurrence.module), found
    )


def unit_statistics(values: Tensor) -> Tensor:
    """(4, h) statistics of n observations of h units, (n, h)."""
    centred = values - values.mean(0)
    variance = (centred * centred).mean(0)
    scale = values.square().mean().sqrt()
    dead = values.abs().amax(0) == 0
    constant = (variance.sqrt() < CONSTANT * scale) & ~dead & (len(values) > 1)
    return torch.stack((dead.double(), constant.double(), _duplicates(centred, variance, dead | constant), variance))


def _duplicates(centred: Tensor, variance: Tensor, still: Tensor) -> Tensor:
    """For each unit the smallest other unit that it repeats up to sign and scale, or −1. Needs three observations."""
    none = torch.full_like(variance, -1.0)
    if len(centred) < 3:
        return none
    unit = centred / torch.where(variance > 0, variance, torch.ones_like(variance)).sqrt()
    alike = ((unit.T @ unit) / len(centred)).abs() > DUPLICATE
    alike &= ~still & ~still[:, None]
    alike = alike.tril(-1)
    first = alike.to(torch.int8).argmax(1).double()
    return torch.where(alike.any(1), first, none)
