"""The bound γσ₁(W) on the step Jacobian of a plain RNN."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.errors import NotApplicable
from inspector.engine.quantity import Describe, per_step
from inspector.engine.shelves import QUANTITIES
from inspector.engine.steps.cell import StepBlock
from inspector.engine.steps.rnn import RnnStep


@QUANTITIES.register("jacobian/bound")
@per_step(
    Describe(
        kind="jacobian", title="bound γσ₁(W)", scale="log", source="Pascanu, Mikolov & Bengio 2013",
        formula="γ σ₁(W_hh), γ = max |φ′| (1 for tanh and ReLU); below 1 gradients must vanish",
    ),
    signal="jacobian/bound", summary="upper bound of the step Jacobian's norm (plain RNN)", order=43,
)  # fmt: skip
def bound(block: StepBlock) -> Tensor:
    """γ σ₁(W_hh), the same at every step, drawn beside the norms it bounds. → (t, b)."""
    if not isinstance(block.cell, RnnStep):
        raise NotApplicable("The bound γσ₁(W) exists for the plain RNN only.")
    t, b, _ = block.shape
    value: Tensor = block.cell.activation.largest * torch.linalg.matrix_norm(block.cell.w_hh, 2)
    return value.expand(t, b)
