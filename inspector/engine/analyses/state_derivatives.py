"""∂h_t/∂θ by source step: what each earlier use of a parameter contributes to how the state at one step depends on it.

dh_t/dθ = Σ_{k≤t} J_{t:k} ∂⁺s_k/∂θ (rows of h), with J_{t:k} the product of step Jacobians and ∂⁺ the immediate
derivative, s_{k−1} held fixed (Pascanu, Mikolov & Bengio 2013, eq. 4 and 5 before a loss weights them). ∂⁺s_k/∂W is an
outer product that is never built: row n of the term is u_n ⊗ a_k with u (n, g) the gradients at the pre-activations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from inspector.engine.analyses.itemised_bptt import SECONDS, cut_, row_norms, seconds, unrolled_gradient
from inspector.engine.analyses.own_gradients import differing, floor_of
from inspector.engine.errors import Unsupported
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS
from inspector.engine.trace.trace import Recurrence

MOST_NUMBERS = 1 << 25
"""Entries of one ∂h_t/∂θ, which is summed over the source steps: 128 MB of float32."""
ROUNDINGS = 256.0
"""Roundings by which a row of the sum may differ from autograd's before all is rejected."""


@dataclass(slots=True)
class StateDerivative:
    """Of one parameter: ‖T_k‖_F of every term, (t + 1,) float64 in processing order, and the sum (n, g, r)."""

    terms: Tensor
    total: Tensor


def check_cost(recurrence: Recurrence, sample: int, steps: int) -> float:
    """Seconds that so many steps take at most. Raises Unsupported where that, or the memory, is too much."""
    cell, length = recurrence.cell, recurrence.length(sample)
    cell.check_items(length)
    if not cell.parameters():
        raise Unsupported(f"The step of {recurrence.place} names no parameters, so its derivatives cannot be itemised.")
    rows = cell.parts[cell.main].stop - cell.parts[cell.main].start
    for name, value in cell.parameters().items():
        if rows * value.numel() > MOST_NUMBERS:
            raise Unsupported(
                f"∂{cell.main}_t/∂{name} of {recurrence.place} has {rows * value.numel():,} numbers; the limit is "
                f"{MOST_NUMBERS:,}."
            )
    took = steps * seconds(cell, rows * length, length)
    if took > SECONDS:
        raise Unsupported(
            f"The derivatives of {steps} states of {recurrence.place} take about {took:,.0f} s; the limit is "
            f"{SECONDS:.0f} s, so choose fewer steps."
        )
    return took


def state_derivatives(recurrence: Recurrence, sample: int, at: int, emit: Emitter) -> dict[str, StateDerivative]:
    """Every parameter's terms of the main part of the state after processing step `at`."""
    cell = recurrence.cell
    part, s = cell.parts[cell.main], cell.state_size
    rows = torch.zeros(part.stop - part.start, s, dtype=recurrence.states.dtype)
    rows[:, part] = torch.eye(len(rows), dtype=rows.dtype)
    found: dict[str, StateDerivative] = {}
    for first, block in reversed(list(recurrence.blocks(sample, BLOCK_STEPS))):
        if first > at:
            continue
        emit.check()
        factors = block.factors()
        for offset in range(min(at - first, block.shape[0] - 1), -1, -1):
            signals = block.pull_(rows, offset)
            cut_(recurrence, first + offset, rows)
            for name, (signal, factor) in factors.items():
                own, read = signals[signal], factor[offset, 0]
                if name not in found:
                    empty = torch.zeros(at + 1, dtype=torch.float64)
                    found[name] = StateDerivative(empty, own.new_zeros(*own.shape, len(read)))
                size = torch.linalg.vector_norm(own, dtype=torch.float64)
                found[name].terms[first + offset] = size * row_norms(read[None])[0]
                found[name].total += own[:, :, None] * read
    return found


def check(
    recurrence: Recurrence, sample: int, at: int, found: dict[str, StateDerivative], emit: Emitter
) -> dict[str, float]:
    """How far one random combination of the rows of each sum is from autograd's, through the plain step, relative.

    Raises Unsupported where that is more than rounding.
    """
    part = recurrence.cell.parts[recurrence.cell.main]
    like = recurrence.states[1:]
    mix = torch.randn(part.stop - part.start, generator=torch.Generator().manual_seed(5), dtype=torch.float64).to(like)
    arriving = torch.zeros_like(like)
    arriving[at, sample - recurrence.base, part] = mix
    expected = unrolled_gradient(replace(recurrence, arriving=arriving), sample, emit)
    errors = {}
    floor = floor_of((float(one.terms.sum() * mix.double().norm()) for one in found.values()), mix.dtype)
    for name, one in found.items():
        mixed = torch.einsum("n,ngr->gr", mix.to(one.total), one.total)
        errors[name] = differing(mixed, expected[name].reshape(mixed.shape), floor)
        size = float(expected[name].double().norm())
        unit = ROUNDINGS * torch.finfo(mixed.dtype).eps * (at + 1) ** 0.5
        if errors[name] * size > unit * float(one.terms.sum()) * float(mix.double().norm()):
            raise Unsupported(
                f"The terms of ∂{recurrence.cell.main}_t/∂{name} of {recurrence.place} do not add up to autograd's: "
                f"they differ by {errors[name]:.3g} of it, so they are not shown."
            )
    return errors
