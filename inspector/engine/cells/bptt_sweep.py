"""Backpropagation through time by hand: from the gradients that reach each state from outside the recurrence to the
total gradients.

δ_t = a_t + J_{t+1}ᵀ δ_{t+1}, with a_t the gradient that arrives at s_t from outside the recurrence (Werbos 1990).
"""

from __future__ import annotations

from torch import Tensor

from inspector.engine.cells.base import Cell


def sweep(cell: Cell, x: Tensor, states: Tensor, arriving: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Total gradients of one layer in one direction.

    Shapes: x (t, b, i), states (t + 1, b, s), arriving (t, b, s), zero beyond a sample's end; t is 1 at least.
    Returns δ (t, b, s), the gradient of the inputs (t, b, i), and of the initial state (b, s).
    """
    block = cell.block(x, states[:-1], states[1:])
    delta = arriving.clone()
    for t in range(delta.shape[0] - 1, 0, -1):
        delta[t - 1] += block.vjp(delta[t : t + 1, :, :, None], slice(t, t + 1))[0, :, :, 0]
    first = block.vjp(delta[:1, :, :, None], slice(0, 1))[0, :, :, 0]
    return delta, block.input_vjp(delta[..., None])[..., 0], first
