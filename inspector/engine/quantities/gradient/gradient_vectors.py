"""The gradient of the loss with respect to every entry of the state, at the chosen steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import Describe, dtype_name, per_recurrence
from inspector.engine.trace.trace import Recurrence
from inspector.engine.trace.work import Work
from inspector.records import LOSS_UNIT, Option
from inspector.records.catalogue import LOSS

STEPS = Option(name="steps", type="steps", default=(None, None), help="Which steps, FROM:TO; without it every step.")
Bounds = tuple[int | None, int | None]


@QUANTITIES.register("gradient/vectors")
@per_recurrence(
    signal="gradient/h", summary="∂L/∂hₜ and ∂L/∂cₜ, entry by entry, at chosen steps", order=84, default=False,
    needs=(LOSS,), cost="no further pass; as many numbers as the states of those steps have", options=(STEPS,),
    work=lambda size: Work(numbers=float(size.steps * size.state)),
)  # fmt: skip
def gradient_vectors(recurrence: Recurrence, emit: Emitter, sample: int, steps: Bounds = (None, None)) -> None:
    """Write `gradient/h` (step, unit), for an LSTM `gradient/c` too: δ[t, h] = ∂L/∂s_t[h], L = Σ_t ℓ_t of the sample.

    A total derivative: all later losses count; the other parts of the state of step t are held fixed. Only the rows of
    the steps from `steps[0]` to before `steps[1]` are written. Without a loss there is nothing to write.
    Source: Pascanu, Mikolov & Bengio 2013.
    """
    if recurrence.delta is None:
        return
    length = recurrence.length(sample)
    first, stop, _ = slice(*steps).indices(length)
    values = recurrence.in_order(recurrence.delta[:length, sample - recurrence.base], sample)[first:stop]
    for part, entries in recurrence.cell.parts.items():
        rows = values[:, entries]
        about = Describe(
            kind="gradient", unit=LOSS_UNIT, title=f"∂L/∂{part}ₜ", scale="diverging",
            source="Pascanu, Mikolov & Bengio 2013",
            formula=_formula(part, [other for other in recurrence.cell.parts if other != part]),
        )  # fmt: skip
        name, shape = f"{recurrence.place}:gradient/{part}", (length, rows.shape[1])
        fill = math.nan if len(rows) < length else None
        dtype = dtype_name(rows)
        emit.channel(about.channel(name, ("step", "unit"), shape, dtype, module=recurrence.module, fill=fill))
        if len(rows):
            emit.page(name, (first, 0), rows)


def _formula(part: str, others: Sequence[str]) -> str:
    """What is held fixed is said: of an LSTM ∂L/∂c_t leaves out what c_t does through h_t."""
    fixed = f" with {', '.join(f'{other}_t' for other in others)} held fixed" if others else ""
    total = "" if others else "total derivative: "
    return f"∂L/∂{part}_t{fixed}, L = Σ_t ℓ_t of the sample; {total}all later losses count"
