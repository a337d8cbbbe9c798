"""An LSTM that has walked over random inputs: what the benchmarks of steps start from."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.cells.lstm import LstmStep


def lstm(hidden: int, steps: int) -> tuple[LstmStep, Tensor, Tensor, tuple[Tensor, ...]]:
    """(cell, x (t, 1, h), states (t + 1, 1, 2h), gates (t, 1, h) each) of one sequence from a fixed seed, float32."""
    torch.manual_seed(0)
    weights = (torch.randn(4 * hidden, hidden) * hidden**-0.5 for _ in range(2))
    cell = LstmStep(*weights, torch.zeros(4 * hidden), torch.zeros(4 * hidden))
    x = torch.randn(steps, 1, hidden)
    states = [torch.zeros(1, 2 * hidden)]
    for row in x:
        states.append(cell.step(row, states[-1]))
    stacked = torch.stack(states)
    return cell, x, stacked, tuple(cell.block(x, stacked[:-1], stacked[1:]).gates.values())
