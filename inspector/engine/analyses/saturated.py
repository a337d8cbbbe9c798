"""Which values of gates and squashed states count as saturated, and their sums by unit."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.cells.base import Cell, StepBlock

LOW, HIGH, FLAT = 0.1, 0.9, 0.97
GATE = "gate/"


def squashed(cell: Cell, block: StepBlock) -> list[tuple[str, Tensor]]:
    """(signal, values (t, b, h)) of gates, candidates and the parts of the state that are a tanh."""
    found: list[tuple[str, Tensor]] = list(block.gates.items())
    found += [(part, block.following[..., cell.parts[part]]) for part in cell.tanh_parts]
    return found


def beyond(values: Tensor, signal: str) -> tuple[Tensor, Tensor]:
    """True where a value is saturated on the left, and on the right."""
    low, high = (LOW, HIGH) if signal.startswith(GATE) else (-FLAT, FLAT)
    return values < low, values > high


def sums(values: Tensor, signal: str) -> Tensor:
    """Sums over rows of (n, h) values: left, right, graded, (3, h); a NaN stays a NaN in the graded score."""
    left, right = beyond(values, signal)
    graded = 4 * values * (1 - values) if signal.startswith(GATE) else 1 - values * values
    return torch.stack((left.double().sum(0), right.double().sum(0), graded.sum(0)))
