"""The bound γσ₁(W) on the step Jacobian of a plain recurrence, torch's own or written by hand."""

from __future__ import annotations

import torch

from inspector.engine.emitter import Emitter
from inspector.engine.errors import NotApplicable, Unsupported
from inspector.engine.quantity import Describe, dtype_name, per_recurrence
from inspector.engine.recurrent_weights import recurrent_weights
from inspector.engine.shelves import QUANTITIES
from inspector.engine.trace import Recurrence

LARGEST = 2048
"""Units up to which σ₁ is computed: about five seconds."""


@QUANTITIES.register("jacobian/bound")
@per_recurrence(
    signal="jacobian/bound", summary="upper bound of the step Jacobian's norm (plain recurrences)", order=43
)
def bound(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `jacobian/bound` (step,): γ σ₁(W), the same at every step, drawn beside the norms it bounds.

    For h' = φ(W h + …) alone J = diag(φ′) W, so ‖J‖₂ ≤ γ σ₁(W) with γ = max |φ′|: 1 for tanh, ReLU, hardtanh
    and softplus and 1/4 for the logistic function. A gated step has no such bound.
    """
    weight = next((one for one in recurrent_weights(recurrence.cell) if one.gain is not None), None)
    if weight is None or weight.gain is None:
        raise NotApplicable("The bound γσ₁(W) exists for plain recurrences only.")
    units, length = len(weight.matrix), recurrence.length(sample)
    if units > LARGEST:
        raise Unsupported(f"σ₁ of a {units} × {units} weight costs too much; up to {LARGEST} units are done.")
    if not bool(torch.isfinite(weight.matrix).all()):
        raise Unsupported(f"{weight.symbol} holds a NaN or infinity, so it has no norm.")
    value = weight.gain * torch.linalg.svdvals(weight.matrix.double())[0]
    values = value.to(recurrence.states.dtype).expand(length)
    about = Describe(
        kind="jacobian", title="bound γσ₁(W)", scale="log", source="Pascanu, Mikolov & Bengio 2013",
        formula=f"γ σ₁({weight.symbol}), γ = max |φ′| = {weight.gain:g}; below 1 gradients must vanish",
    )  # fmt: skip
    name = f"{recurrence.place}:jacobian/bound"
    channel = about.channel(name, ("step",), (length,), dtype_name(values), module=recurrence.module)
    emit.array(channel, values)
