"""Backpropagation through time by hand: from the gradients that reach each state from outside the recurrence to the
total gradients.

δ_t = a_t + J_{t+1}ᵀ δ_{t+1}, with a_t the gradient that arrives at s_t from outside the recurrence (Werbos 1990).
"""

from __future__ import annotations

from torch import Tensor

from inspector.engine.cells.base import StepBlock


def sweep(block: StepBlock, arriving: Tensor, *, inputs: bool = True) -> tuple[Tensor, Tensor | None, Tensor]:
    """Total gradients of one layer in one direction, from all its steps.

    arriving is (t, b, s), zero beyond a sample's end; t is 1 at least.
    Returns δ (t, b, s), the gradient of the inputs (t, b, i) or None without `inputs`, and of the initial state (b, s).
    """
    delta = arriving.clone()
    for t in range(delta.shape[0] - 1, 0, -1):
        block.add_vjp_(delta[t - 1], delta[t], t)
    first = block.vjp(delta[:1, :, :, None], slice(0, 1))[0, :, :, 0]
    return delta, block.input_vjp(delta[..., None])[..., 0] if inputs else None, first
