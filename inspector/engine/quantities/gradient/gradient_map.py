"""Where the gradient of each step's loss goes: the step × step map, for all pairs by one backward sweep."""

from __future__ import annotations

import torch
from torch import Tensor

from inspector.engine.analyses.itemised_bptt import cut_, row_norms
from inspector.engine.analyses.own_gradients import as_ran
from inspector.engine.errors import Unsupported
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS, Describe, dtype_name, per_recurrence
from inspector.engine.trace.trace import Recurrence
from inspector.engine.trace.work import Size, Work
from inspector.records import LOSS_UNIT
from inspector.records.catalogue import LOSS

BUDGET = 4e11
SMALL, RAISE = 2.0**-40, 2.0**-60
"""Norm below which a row is multiplied by a power of two, and the power by which its numbers are then too large."""
ABOUT = Describe(
    kind="map", compare="ratio", title="gradient from step to source step", unit=LOSS_UNIT, scale="log",
    formula="M[t, k] = ‖(∂s_t/∂s_k)ᵀ a_t‖₂, a_t = the loss gradient that enters the recurrence at "
    "step t (∂ℓ_t/∂s_t where step t's loss reads only s_t); Σ_t of the vectors is ∂L/∂s_k",
    source="Cashman et al. 2018 (RNNbow); Pascanu, Mikolov & Bengio 2013",
)  # fmt: skip


def check_size(recurrence: Recurrence, sample: int) -> None:
    """Raises Unsupported where the map takes too long."""
    recurrence = as_ran(recurrence)
    length, s = recurrence.length(sample), recurrence.cell.state_size
    if recurrence.arriving is not None and too_long(length, s):
        raise Unsupported(
            f"The map of {length} × {length} steps with {s} state entries takes too long; use a shorter sequence."
        )


@QUANTITIES.register("gradient/lag_map")
@per_recurrence(
    signal="gradient/lag_map",
    summary="how far back the gradient of each step's loss reaches (step × step)",
    order=80,
    needs=(LOSS,),
    work=lambda size: counted(size),
    jacobians=True,
    limit=check_size,
)
def gradient_map(recurrence: Recurrence, emit: Emitter, sample: int) -> None:
    """Write `gradient/lag_map`, (step, source): row t, column k ≤ t. Without a loss there is nothing to write."""
    own, unfollowed = recurrence.cell.state_size, recurrence.unfollowed
    recurrence = as_ran(recurrence)
    if recurrence.arriving is None:
        return
    length = recurrence.length(sample)
    result = _norms(recurrence, emit, sample, own)
    if unfollowed is not None:  # what arrives at a state that needs no gradient
        for t in torch.nonzero(unfollowed[:length].any(1))[:, 0].tolist():
            result[: t + 1, t] = torch.nan
    result = result.T
    if recurrence.reverse:
        result = result.flip(0, 1)
    name = f"{recurrence.place}:gradient/lag_map"
    shape = (length, length)
    emit.array(ABOUT.channel(name, ("step", "source"), shape, dtype_name(result), module=recurrence.module), result)


def too_long(length: int, s: int) -> bool:
    """Whether the map is refused."""
    return float(length) ** 2 * s * s * 2 > BUDGET


def counted(size: Size) -> Work:
    """Its work, of which there is none where it is refused. The latest rows vanish on their way back and are dropped,
    which is taken to halve the products. Counter-example: nothing vanishes in a network that keeps everything."""
    if too_long(size.steps, size.state):
        return Work()
    pairs = size.steps**2 / 2
    return Work(pairs * size.push / 2, numbers=4 * pairs * size.state, calls=48.0 * size.steps)


def _norms(recurrence: Recurrence, emit: Emitter, sample: int, own: int) -> Tensor:
    """‖(∂s_t/∂s_k)ᵀ a_t‖₂ of the first `own` entries of the state at [k, t], in processing order.

    Rows that become small are multiplied by a power of two: numbers below the normal ones of float32 make products
    twenty times as slow. The latest rows are dropped once their norms are zero in the dtype that is written.
    """
    assert recurrence.arriving is not None
    # Row t: (∂s_t/∂s_k)ᵀ a_t at the present k, divided by factors[t].
    carried = recurrence.arriving[: recurrence.length(sample), sample - recurrence.base].clone()
    inside = None if recurrence.inside is None else recurrence.inside[:, sample - recurrence.base]
    length = last = len(carried)
    numbers = torch.finfo(carried.dtype)
    small_length = SMALL if numbers.max > 1 / RAISE else -1.0
    columns, factors = carried.new_zeros(length, length), torch.ones(length, dtype=torch.float64)
    nothing = numbers.smallest_normal * numbers.eps / 2  # rounds to zero
    for begin, block in reversed(list(recurrence.blocks(sample, BLOCK_STEPS))):
        emit.check()
        emit.tell(length - begin - block.shape[0], length)
        for k in range(begin + block.shape[0] - 1, begin - 1, -1):
            rows, factor = carried[k:last], factors[k:last]
            lengths = row_norms(rows)
            norms = lengths * factor
            shown = norms if rows.shape[1] == own else row_norms(rows[:, :own]) * factor
            if inside is not None:
                shown[:1] = row_norms(rows[:1, :own] + inside[k])
            columns[k, k:last] = shown.to(carried.dtype)
            if bool((lengths < small_length).any()):
                small = (lengths < small_length) & (lengths > 0)
                rows[small] *= 1 / RAISE
                factor[small] *= RAISE
                living = torch.nonzero(~(norms <= nothing))
                last = k + int(living[-1]) + 1 if len(living) else k
            block.back_(carried[k:last], k - begin)
            cut_(recurrence, k, carried[k:last])
    return columns
