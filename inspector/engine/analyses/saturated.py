"""Which values of gates and squashed states count as saturated, and their sums by unit."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.analysis.saturation import GATE, bounds_of
from inspector.engine.cells.base import Cell, StepBlock
from inspector.engine.cells.gate_info import ACTIVATION

FEW = 128
"""Steps whose values of at most 1 are summed in float32: relative errors stay below 10⁻⁵."""


def squashed(cell: Cell, block: StepBlock) -> list[tuple[str, Tensor]]:
    """(signal, values (t, b, h)) of gates, candidates and the parts of the state that are a tanh; not of what may be
    above 1, as the decay of a scan that is no gate, nor of a candidate that softsign or hardtanh makes."""
    beyond = {one.signal for one in cell.gate_info if one.limits[1] > 1}.union(cell.other_squashes)
    found: list[tuple[str, Tensor]] = [
        pair for pair in block.gates.items() if not pair[0].startswith(ACTIVATION) and pair[0] not in beyond
    ]
    found += [(part, block.following[..., cell.parts[part]]) for part in cell.tanh_parts]
    return found


@dataclass(frozen=True, slots=True)
class Saturated:
    """Counts of one signal over a block: by unit (3, h) float64, sums of left, right and the graded score over its real
    steps; by sample (b,) how many values are saturated; and how many values a sample's real steps have."""

    by_unit: Tensor
    by_sample: Tensor
    values: Tensor

    @property
    def steps(self) -> int:
        """How many real steps of all samples were counted."""
        return int(self.values.sum()) // max(1, self.by_unit.shape[1])


def saturated(values: Tensor, signal: str, real: Tensor) -> Saturated:
    """Of values (t, b, h) at real steps (t, b); of a unit that is NaN at one of them no share is known."""
    gate = signal.startswith(GATE)
    low, high = bounds_of(signal)
    whole = bool(real.all())
    there = values if whole else torch.where(real[..., None].to(values.device), values, torch.zeros_like(values))
    counted = values.dtype if values.dtype.itemsize >= 4 else torch.float32
    left, right = torch.empty_like(there, dtype=counted), torch.empty_like(there, dtype=counted)
    torch.lt(there, low, out=left)  # truth values as numbers: their sums are ten times as fast
    torch.gt(there, high, out=right)
    if not whole:
        left *= real[..., None].to(left)
    left, right = left.sum(0), right.sum(0)
    by_sample = (left + right).sum(1)
    squares = _over_steps(there * there)
    graded = 4 * (_over_steps(there) - squares) if gate else int(real.sum()) - squares
    by_unit = torch.stack((left.sum(0).double(), right.sum(0).double(), graded))
    by_unit[:, graded.isnan()] = torch.nan  # a comparison with NaN is False, which would count as not saturated
    return Saturated(by_unit.cpu(), by_sample.double().cpu(), real.sum(0).cpu() * values.shape[-1])


def _over_steps(values: Tensor) -> Tensor:
    """Sums (h,) float64 of (t, b, h); a few steps first in their own dtype, which is ten times as fast."""
    few = values.dtype == torch.float32 and len(values) <= FEW
    return (values.sum(0) if few else values).flatten(0, -2).sum(0, dtype=torch.float64)
