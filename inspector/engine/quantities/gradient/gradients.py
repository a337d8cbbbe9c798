"""Gradients of the loss with respect to every state, from one backward pass."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, dtype_name, per_recurrence
from inspector.engine.trace.trace import Recurrence
from inspector.records import LOSS_UNIT
from inspector.records.catalogue import LOSS

DESCRIBE = {
    "h": Describe(
        kind="gradient", compare="ratio",
        title="‖∂L/∂hₜ‖", unit=LOSS_UNIT, scale="log", source="Pascanu, Mikolov & Bengio 2013",
        formula="‖∂L/∂h_t‖₂, L = Σ_t ℓ_t of the sample; total derivative: all later losses count",
    ),
    "c": Describe(
        kind="gradient", compare="ratio",
        title="‖∂L/∂cₜ‖", unit=LOSS_UNIT, scale="log", source="Pascanu, Mikolov & Bengio 2013",
        formula="‖∂L/∂c_t‖₂ with h_t held fixed (the state is (h, c)), L = Σ_t ℓ_t of the sample",
    ),
}  # fmt: skip
SIGNALS = {"h": "gradient/state_norm", "c": "gradient/cell_norm"}


@QUANTITIES.register("gradients")
@per_recurrence(signal="gradient/state_norm", summary="‖∂L/∂hₜ‖ and ‖∂L/∂cₜ‖ at every step", order=25, needs=(LOSS,))
def gradients(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write the norms, (step,). Without a loss nothing is written and nothing reported as missing."""
    if recurrence.delta is None:
        return
    length = recurrence.length(sample)
    values = drawn(recurrence, recurrence.delta[:length, sample - recurrence.base])
    for part, entries in recurrence.cell.parts.items():
        norms = recurrence.in_order(values[:, entries].norm(dim=1), sample)
        name = f"{recurrence.place}:{SIGNALS.get(part, f'gradient/state_norm/{part}')}"
        about = DESCRIBE.get(part, _other(part))
        emit.array(about.channel(name, ("step",), (length,), dtype_name(norms), module=recurrence.module), norms)


def drawn(recurrence: Recurrence, values: Tensor) -> Tensor:
    """Gradients (t, s) by step, NaN where there is none because the model cut it later: not a 0 that was computed."""
    if not recurrence.cut_before:
        return values
    before = torch.arange(len(values), device=values.device) < max(recurrence.cut_before)
    return values.masked_fill((before & ~values.any(1))[:, None], math.nan)


def _other(part: str) -> Describe:
    """Of a state that a user's own code names."""
    return replace(
        DESCRIBE["h"], title=f"‖∂L/∂{part}ₜ‖", formula=f"‖∂L/∂{part}_t‖₂ with the other states of step t held fixed"
    )
