"""Where the gradient of each step's loss goes: the step × step map, for all pairs by one backward sweep."""

from __future__ import annotations

import torch

from inspector.engine.analyses.itemised_bptt import cut_, row_norms
from inspector.engine.analyses.own_gradients import as_ran
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS, Describe, dtype_name, per_recurrence
from inspector.engine.trace.trace import Recurrence
from inspector.records.catalogue import LOSS

BUDGET = 4e11
ABOUT = Describe(
    kind="map", compare="ratio", title="gradient from step to source step", unit="nat", scale="log",
    formula="M[t, k] = ‖(∂s_t/∂s_k)ᵀ a_t‖₂, a_t = the loss gradient that enters the recurrence at "
    "step t (∂ℓ_t/∂s_t where step t's loss reads only s_t); Σ_t of the vectors is ∂L/∂s_k",
    source="Cashman et al. 2018 (RNNbow); Pascanu, Mikolov & Bengio 2013",
)  # fmt: skip


@QUANTITIES.register("gradient/lag_map")
@per_recurrence(
    signal="gradient/lag_map",
    summary="how far back the gradient of each step's loss reaches (step × step)",
    order=80,
    needs=(LOSS,),
)
def gradient_map(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `gradient/lag_map`, (step, source): row t, column k ≤ t. Without a loss there is nothing to write."""
    own, unfollowed = recurrence.cell.state_size, recurrence.unfollowed
    recurrence = as_ran(recurrence)
    if recurrence.arriving is None:
        return
    length, s = recurrence.length(sample), recurrence.cell.state_size
    if float(length) ** 2 * s * s * 2 > BUDGET:
        raise Unsupported(
            f"The map of {length} × {length} steps with {s} state entries takes too long; use a shorter sequence."
        )
    carried = recurrence.arriving[:length, sample - recurrence.base].clone()  # row t: (∂s_t/∂s_k)ᵀ a_t at the present k
    columns = carried.new_zeros(length, length)
    for begin, block in reversed(list(recurrence.blocks(sample, BLOCK_STEPS))):
        emit.check()
        for offset in range(block.shape[0] - 1, -1, -1):
            k = begin + offset
            columns[k, k:] = row_norms(carried[k:, :own]).to(carried.dtype)
            block.back_(carried[k:], offset)
            cut_(recurrence, k, carried[k:])
    if unfollowed is not None:  # what arrives at a state that needs no gradient
        columns.diagonal()[unfollowed[:length].any(1)] = torch.nan
    result = columns.T
    if recurrence.reverse:
        result = result.flip(0, 1)
    name = f"{recurrence.place}:gradient/lag_map"
    shape = (length, length)
    emit.array(ABOUT.channel(name, ("step", "source"), shape, dtype_name(result), module=recurrence.module), result)
