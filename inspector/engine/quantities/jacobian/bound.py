"""The bound γσ₁(W) on the step Jacobian of a plain recurrence, torch's own or written by hand."""

from __future__ import annotations

import torch

from inspector.engine.cells.gate_info import RecurrentWeight
from inspector.engine.errors import NotApplicable, Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, dtype_name, per_recurrence
from inspector.engine.trace.trace import Recurrence

LARGEST = 2048
"""Units up to which σ₁ is computed: about five seconds."""


@QUANTITIES.register("jacobian/bound")
@per_recurrence(
    signal="jacobian/bound", summary="upper bound of the step Jacobian's norm (plain recurrences)", order=43
)
def bound(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `jacobian/bound` (step,): γ σ₁(W), plotted beside the norms that it bounds; for layers, that of each
    layer's own W.

    For h' = φ(W h + …) alone J = diag(φ′) W, so ‖J‖₂ ≤ γ σ₁(W) with γ = max |φ′|: 1 for tanh, ReLU, hardtanh
    and softplus and 1/4 for the logistic function. A gated step has no such bound.
    """
    length = recurrence.length(sample)
    weights = [weight for weight in recurrence.cell.recurrent_weights() if weight.gain is not None]
    layers = bool(weights) and weights[0].step is not None
    if not weights or (layers and [weight.step for weight in weights] != list(range(length))):
        raise NotApplicable("The bound γσ₁(W) exists for plain recurrences only.")
    values = torch.tensor([_value(weight, emit) for weight in weights], dtype=torch.float64)
    values = values if layers else values[:1].expand(length)
    symbol = "W of each layer" if layers else weights[0].symbol
    about = Describe(
        kind="jacobian", compare="ratio", title="bound γσ₁(W)", scale="log", source="Pascanu, Mikolov & Bengio 2013",
        formula=f"γ σ₁({symbol}), γ = max |φ′| = {weights[0].gain:g}; below 1 gradients must vanish",
    )  # fmt: skip
    values = values.to(recurrence.states.dtype)
    name = f"{recurrence.place}:jacobian/bound"
    channel = about.channel(name, ("step",), (length,), dtype_name(values), module=recurrence.module)
    emit.array(channel, values)


def _value(weight: RecurrentWeight, emit: Emitter) -> float:
    emit.check()
    units = len(weight.matrix)
    if units > LARGEST:
        raise Unsupported(f"σ₁ of a {units} × {units} weight costs too much; the limit is {LARGEST} units.")
    if not bool(torch.isfinite(weight.matrix).all()):
        raise Unsupported(f"{weight.symbol} holds a NaN or infinity, so it has no norm.")
    assert weight.gain is not None
    return weight.gain * float(torch.linalg.svdvals(weight.matrix.double())[0])
