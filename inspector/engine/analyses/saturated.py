"""Which values of gates and squashed states count as saturated, and their sums by unit."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.cells.base import Cell, StepBlock
from inspector.engine.cells.gate_info import ACTIVATION

LOW, HIGH, FLAT = 0.1, 0.9, 0.97
GATE = "gate/"


def squashed(cell: Cell, block: StepBlock) -> list[tuple[str, Tensor]]:
    """(signal, values (t, b, h)) of gates, candidates and the parts of the state that are a tanh."""
    found: list[tuple[str, Tensor]] = [pair for pair in block.gates.items() if not pair[0].startswith(ACTIVATION)]
    found += [(part, block.following[..., cell.parts[part]]) for part in cell.tanh_parts]
    return found


@dataclass(frozen=True, slots=True)
class Saturated:
    """Counts of one signal over a block: by unit (3, h) float64, sums of left, right and the graded score over its real
    steps; by sample (b,) how many values are saturated; and how many values a sample's real steps have."""

    by_unit: Tensor
    by_sample: Tensor
    values: Tensor


def saturated(values: Tensor, signal: str, real: Tensor) -> Saturated:
    """Of values (t, b, h) at real steps (t, b); a NaN stays a NaN in the graded score."""
    gate = signal.startswith(GATE)
    low, high = (LOW, HIGH) if gate else (-FLAT, FLAT)
    whole = bool(real.all())
    there = values if whole else torch.where(real[..., None].to(values.device), values, torch.zeros_like(values))
    counted = values.dtype if values.dtype.itemsize >= 4 else torch.float32
    left, right = (there < low).to(counted), (there > high).to(counted)  # sums of truth values are ten times slower
    if not whole:
        left *= real[..., None].to(left)
    by_sample = (left + right).sum((0, 2))
    total, squares = there.sum((0, 1), dtype=torch.float64), (there * there).sum((0, 1), dtype=torch.float64)
    graded = 4 * (total - squares) if gate else int(real.sum()) - squares
    by_unit = torch.stack((left.sum((0, 1)).double(), right.sum((0, 1)).double(), graded))
    return Saturated(by_unit.cpu(), by_sample.double().cpu(), real.sum(0).cpu() * values.shape[-1])
