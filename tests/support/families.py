"""Every built-in step with small random weights in float64, and a walk through it."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.cells.base import Cell
from inspector.engine.cells.gru import GruStep
from inspector.engine.cells.lstm import LstmStep
from inspector.engine.cells.rnn import RnnStep

D = torch.float64
FAMILIES = ["tanh", "relu", "gru", "gru without bias", "lstm", "lstm without bias", "projected"]


def numbers(*shape: int, scale: float = 0.6) -> Tensor:
    return torch.randn(*shape, dtype=D) * scale


def make(family: str, i: int = 3, h: int = 5) -> Cell:
    if family in ("tanh", "relu"):
        return RnnStep(numbers(h, i), numbers(h, h), numbers(h), numbers(h), family)
    bias = (None, None) if "without" in family else None
    if family.startswith("gru"):
        return GruStep(numbers(3 * h, i), numbers(3 * h, h), *(bias or (numbers(3 * h), numbers(3 * h))))
    if family == "projected":
        return LstmStep(numbers(4 * h, i), numbers(4 * h, 2), numbers(4 * h), numbers(4 * h), numbers(2, h))
    return LstmStep(numbers(4 * h, i), numbers(4 * h, h), *(bias or (numbers(4 * h), numbers(4 * h))))


def walk(cell: Cell, x: Tensor) -> Tensor:
    states = [numbers(x.shape[1], cell.state_size)]
    for row in x:
        states.append(cell.step(row, states[-1]))
    return torch.stack(states)
