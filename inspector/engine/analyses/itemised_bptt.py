"""Backpropagation through time item by item: every pair (loss term t, step k ≤ t) in one sweep back over the steps.

dL/dθ = Σ_t Σ_{k≤t} a_tᵀ J_{t:k} ∂⁺s_k/∂θ with a_t the loss gradient that enters the recurrence at step t, J_{t:k} the
product of step Jacobians and ∂⁺ the immediate derivative, s_{k-1} held fixed (Pascanu, Mikolov & Bengio 2013, eq. 4).
All a_tᵀ J_{t:k} of one k are the rows of one matrix, and ∂⁺s_k/∂W is an outer product that is never built.

Letters: t step of the loss, k step of the parameter's use, n rows (by lag t − k), g entry of a gradient at the
pre-activations, r entry of what a parameter is multiplied with.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.analyses.own_gradients import Compared, compared, differing, floor_of, unit_of
from inspector.engine.cells.base import Cell
from inspector.engine.errors import NotApplicable, Unsupported
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.quantity import BLOCK_STEPS
from inspector.engine.trace.trace import Recurrence

SOURCE = "Pascanu, Mikolov & Bengio 2013; Cashman et al. 2018 (RNNbow)"
RATE = 2e10
"""Multiplications a second that one core is assumed to do when the cost of a sweep is estimated."""
STEP_SECONDS = 1e-4
"""The least seconds that a step costs, however small it is."""
SECONDS = 120.0
"""Longest sweep that is begun; a longer one is rejected, and the message gives its cost."""


@dataclass(frozen=True, slots=True)
class Source:
    """Everything that reaches the parameters at one step.

    Attributes:
        step: k, in processing order.
        rows: {signal: (n, g)}; row n belongs to the loss of step k + n. With a window of w lags, row w (where there is
            one) is the sum over all lags ≥ w.
        factors: {parameter: (signal, (r,))}: the contribution of row n is the outer product of the two.
    """

    step: int
    rows: dict[str, Tensor]
    factors: dict[str, tuple[str, Tensor]]


def begin(recurrence: Recurrence, sample: int) -> Tensor:
    """(t, s) what arrives at each state of the sample, of a recurrence as it ran. NotApplicable without a loss."""
    if recurrence.arriving is None:
        raise NotApplicable("There is no loss.")
    recurrence.cell.check_items(recurrence.length(sample))
    if not recurrence.cell.parameters():
        raise Unsupported(f"The step of {recurrence.place} names no parameters, so its gradient cannot be itemised.")
    return recurrence.arriving[: recurrence.length(sample), sample - recurrence.base]


def say_ahead(recurrence: Recurrence, signal: str, emit: Emitter) -> None:
    """Say which parameters have no items because the steps read what was computed from them before the loop."""
    if recurrence.ahead:
        emit.refuse(f"{recurrence.place}:{signal}/computed_ahead", recurrence.ahead)


def pairs(length: int, window: int) -> int:
    """Rows that a sweep carries: Σ_k min(t − k, w + 1), t (t + 1) / 2 where the window is the whole sequence."""
    short = min(window + 1, length)
    return short * (short + 1) // 2 + (length - short) * short


def seconds(cell: Cell, count: int, length: int) -> float:
    """About how long `count` rows in `length` steps take on one core."""
    return count * cell.row_cost() / RATE + length * STEP_SECONDS


def announce(recurrence: Recurrence, length: int, window: int, what: str, emit: Emitter) -> str:
    """Report what a sweep is going to cost, before it begins. Raises Unsupported where that is too much."""
    text = sweep_cost(recurrence, length, window, what)
    emit.progress(0.0, 1.0, text)
    return text


def sweep_cost(recurrence: Recurrence, length: int, window: int, what: str) -> str:
    """What a sweep is going to cost, as text. Raises Unsupported where that is too much."""
    count = pairs(length, window)
    took = seconds(recurrence.cell, count, length)
    text = f"{what} of {recurrence.place}: {count:,} pairs of steps, {_duration(took)} on one core"
    if took > SECONDS:
        raise Unsupported(f"{text}; the limit is {SECONDS:.0f} s, so use a shorter sequence.")
    return text


def _duration(took: float) -> str:
    if took < 0.1:
        return "0.1 s at most"
    return (
        f"about {took:.2g} s"
        if took < 100
        else f"about {took / 60:.0f} min"
        if took < 6000
        else f"about {took / 3600:,.0f} h"
    )


def sweep(recurrence: Recurrence, sample: int, emit: Emitter, text: str, window: int | None = None) -> Iterator[Source]:
    """All steps of the sample, the last first, with every gradient that passes through it. See Source."""
    carried = begin(recurrence, sample).clone()
    length = len(carried)
    reach = length if window is None else window
    total, done = pairs(length, reach), 0
    for first, block in reversed(list(recurrence.blocks(sample, BLOCK_STEPS))):
        emit.check()
        emit.progress(done / total, 1.0, text)
        factors = block.factors()
        for offset in range(block.shape[0] - 1, -1, -1):
            k = first + offset
            beyond = k + reach
            if beyond + 1 < length:
                carried[beyond] += carried[beyond + 1]
            rows = carried[k : beyond + 1]
            done += len(rows)
            found = block.pull_(rows, offset)
            cut_(recurrence, k, rows)
            yield Source(k, found, {name: (signal, value[offset, 0]) for name, (signal, value) in factors.items()})


def cut_(recurrence: Recurrence, k: int, rows: Tensor) -> None:
    """Gradients before step k (n, s), in place: 0 where the model had detached the state."""
    if k in recurrence.cuts:
        rows *= recurrence.cuts[k].to(rows)


def row_norms(rows: Tensor) -> Tensor:
    """‖row‖₂ of (n, g), (n,), summed in float64: squares of float32 numbers neither vanish nor overflow there."""
    norms: Tensor = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64)
    return norms


def all_factors(recurrence: Recurrence, sample: int) -> dict[str, Tensor]:
    """{parameter: (t, r)} over all steps of the sample, in processing order."""
    parts: dict[str, list[Tensor]] = {}
    for _, block in recurrence.blocks(sample, BLOCK_STEPS):
        for name, (_, value) in block.factors().items():
            parts.setdefault(name, []).append(value[:, 0])
    return {name: torch.cat(values) for name, values in parts.items()}


def signals(recurrence: Recurrence, sample: int) -> dict[str, str]:
    """{parameter: its signal}."""
    _, block = next(recurrence.blocks(sample, BLOCK_STEPS))
    return {name: signal for name, (signal, _) in block.factors().items()}


def unrolled_gradient(recurrence: Recurrence, sample: int, emit: Emitter) -> dict[str, Tensor]:
    """dL/dθ by autograd over the plain step function, chunk by chunk from the end: {parameter: its shape}.

    For a recurrence that no run made: with a run its own gradients are the reference. Every state is set to the
    captured one (its derivative stays), so that a network that amplifies rounding is linearised at the same states;
    gradients flow over the chunks' edges, and are cut where the model detached the state.
    """
    arriving = begin(recurrence, sample)
    index = sample - recurrence.base
    states = recurrence.states[:, index]
    total = {name: torch.zeros_like(value) for name, value in recurrence.cell.parameters().items()}
    flowing = torch.zeros_like(states[0])
    starts = range(0, len(arriving), BLOCK_STEPS)
    with torch.enable_grad():
        for start in reversed(starts):
            emit.check()
            stop = min(start + BLOCK_STEPS, len(arriving))
            leaves = {name: value.clone().requires_grad_() for name, value in recurrence.cell.parameters().items()}
            cell = recurrence.cell.with_parameters(leaves)
            before = state = states[start].clone().requires_grad_()
            loss = torch.zeros((), dtype=states.dtype)
            for t in range(start, stop):
                made = recurrence.again(cell, t, _joined(recurrence, t, state), index)
                state = made + (states[t + 1] - made).detach()
                loss = loss + (arriving[t] * state).sum()
            loss = loss + (flowing * state).sum()
            inputs = [before, *leaves.values()]
            gradients = torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)
            flowing = gradients[0]
            for name, gradient in zip(leaves, gradients[1:], strict=True):
                total[name] += gradient
    return total


def _joined(recurrence: Recurrence, k: int, state: Tensor) -> Tensor:
    """The state before step k, detached where the model detached it."""
    joined = recurrence.cuts.get(k)
    return state if joined is None else torch.where(joined.to(state) > 0, state, state.detach())


def confirmed(
    recurrence: Recurrence, sample: int, name: str, total: Tensor, size: float, expected: Mapping[str, Compared]
) -> float:
    """The relative difference of the sum of all items of a weight from autograd's gradient. Raises Unsupported.

    `expected` as `references` gives it, `size` the sum of the norms of all items.
    """
    known = expected[name]
    if known.reason:
        raise Unsupported(f"The items of {recurrence.place} {name} are not shown: {known.reason}.")
    assert known.local is not None
    truth = known.local.reshape(total.shape)
    error = differing(total, truth, known.floor)
    if error * float(truth.double().norm()) > unit_of(recurrence, truth.dtype) * size or error == math.inf:
        raise Unsupported(
            f"The items of {recurrence.place} {name} do not add up to autograd's gradient: they differ by "
            f"{error:.3g} of it, so they are not shown."
        )
    return max(error, known.error, key=lambda one: math.inf if math.isnan(one) else one)


def references(recurrence: Recurrence, sample: int, emit: Emitter) -> dict[str, Compared]:
    """{weight: what the sum of its items has to be, with the reason where that is not known}."""
    if recurrence.run is not None:
        return compared(recurrence, sample)
    found = unrolled_gradient(recurrence, sample, emit)
    floor = floor_of((float(value.double().norm()) for value in found.values()), recurrence.states.dtype)
    return {name: Compared(value, floor=floor) for name, value in found.items()}
