"""The numbers of each sequence of a batch, (b,) float64 each, from the trace of its call. NaN is what is not known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inspector.engine.analyses.directions import frobenius_norms, orthonormal
from inspector.engine.analyses.idle_steps import computed
from inspector.engine.analyses.saturated import Saturated, saturated, squashed
from inspector.engine.cells.base import StepBlock
from inspector.engine.data_set.calls import Called
from inspector.engine.errors import Unsupported
from inspector.engine.trace.quantity import all_samples, refusal
from inspector.engine.trace.trace import Recurrence, Trace

LONGEST, DIRECTIONS, EXACT = 512, 2, 4
"""Lags up to which a product of Jacobians is followed, the directions in which, and entries of a state of which all are
followed."""
LOOKED_AT = 16
"""Steps whose norms are looked at together, so that calls for few numbers are few too."""
VANISHED, EXPLODED = 1e-3, 1e3
WHOLE_RUN = "sequences"
"""The place of numbers that are not of one layer."""
Visit = Callable[[Recurrence, StepBlock, Tensor, Mapping[str, Saturated]], None]


@dataclass(slots=True)
class Numbers:
    """Numbers by name ("sequences:loss", "rnn.l0:sequences/horizon"), and why others are missing."""

    values: dict[str, Tensor] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def numbers_of(called: Called, visit: Visit) -> Numbers:
    """Every number of every sequence of a call. `visit` gets every block of every layer, with its real steps."""
    trace, found = called.trace, Numbers(refused=dict(called.refused))
    put = found.values.__setitem__
    put(f"{WHOLE_RUN}:length", trace.batch.lengths.double())
    terms = _losses(called, found)
    bad = _nonfinite_outputs(trace)
    for recurrence in trace.recurrences:
        if recurrence.states.shape[1] != trace.batch.size:
            found.refused[f"{recurrence.place}:sequences"] = (
                f"{recurrence.place} ran on {recurrence.states.shape[1]} sequences while the batch has "
                f"{trace.batch.size}, so what it computed for each is not known."
            )
            continue
        bad = bad + _nonfinite(recurrence)
        with torch.no_grad():
            _of_layer(recurrence, terms, found, visit)
    put(f"{WHOLE_RUN}:nonfinite", bad)
    return found


def _losses(called: Called, found: Numbers) -> Tensor:
    """Mean loss, its terms, perplexity and gradient norm; returns (b,) how many terms each loss has.

    NaN that the model made is a term like any other. Without a term all of these are NaN.
    """
    trace = called.trace
    size = trace.batch.size
    if trace.loss is None:
        return torch.ones(size, dtype=torch.float64)
    assert trace.loss_carried is not None
    carried = trace.loss_carried.cpu()
    terms = carried.sum(1).double()
    mean = torch.where(carried, trace.loss.double().cpu(), 0.0).sum(1) / terms
    found.values[f"{WHOLE_RUN}:loss"] = mean
    found.values[f"{WHOLE_RUN}:terms"] = terms
    answer = trace.answer
    if trace.subject.next_token or (answer is not None and answer.ids is not None and trace.logits is not None):
        found.values[f"{WHOLE_RUN}:perplexity"] = mean.exp()
    if called.squares is not None:
        total = torch.stack([part.cpu() for part in called.squares.values()]).sum(0) if called.squares else mean * 0
        found.values[f"{WHOLE_RUN}:gradient_norm"] = total.sqrt() / terms
    return terms


def _nonfinite_outputs(trace: Trace) -> Tensor:
    """(b,) entries of output and scores that are NaN or infinite, and losses that are."""
    size = trace.batch.size
    count = torch.zeros(size, dtype=torch.float64)
    output = trace.output if isinstance(trace.output, Tensor) else None
    logits = trace.logits
    if output is not None and logits is not None and output.shape == logits.shape:
        logits = None if trace.scores_are_output else logits
    for values in (output, logits):
        fitting = values is not None and values.is_floating_point() and values.dim() and len(values) == size
        if values is not None and fitting and not _is_finite(values):
            count += (~values.detach().isfinite()).flatten(1).sum(1).cpu().double()
    if trace.loss is not None:
        assert trace.loss_carried is not None
        count += (trace.loss_carried & ~trace.loss.isfinite()).sum(1).double().cpu()
    return count


def _is_finite(values: Tensor) -> bool:
    """False where anything is NaN or infinite: the smallest and the largest number are NaN where any is."""
    if not values.numel():
        return True
    return all(bool(end.isfinite()) for end in torch.aminmax(values.detach()))


def _real(recurrence: Recurrence) -> Tensor:
    """(t, b) True at real steps."""
    return torch.arange(recurrence.steps)[:, None] < recurrence.lengths


def _nonfinite(recurrence: Recurrence) -> Tensor:
    """(b,) entries of states and of their gradients that are NaN or infinite."""
    real, count = _real(recurrence), torch.zeros(recurrence.states.shape[1], dtype=torch.float64)
    for values in (recurrence.states[1:], recurrence.followed):
        if values is not None and not _is_finite(values):
            bad = (~values.isfinite()).sum(-1).cpu()
            count += (bad * real).sum(0).double()
    return count


def _of_layer(recurrence: Recurrence, terms: Tensor, found: Numbers, visit: Visit) -> None:
    place = recurrence.place
    if recurrence.delta is not None:
        first, reach = gradient_reach(recurrence)
        found.values[f"{place}:sequences/gradient_first"] = first / terms
        found.values[f"{place}:sequences/gradient_reach"] = reach
    if recurrence.check is not None and not recurrence.check.passed:
        found.refused[f"{place}:sequences"] = refusal(recurrence)
        return
    hits = torch.zeros(recurrence.states.shape[1], dtype=torch.float64)
    many = torch.zeros_like(hits)
    blocks: list[StepBlock] = []
    start = 0
    for block, real in all_samples(recurrence):
        counts = {
            signal: saturated(values, signal, computed(recurrence, signal, real, start))
            for signal, values in squashed(recurrence.cell, block)
        }
        start += len(real)
        visit(recurrence, block, real, counts)
        for one in counts.values():
            hits += one.by_sample
            many += one.values
        blocks = [block] if block.shape[0] == recurrence.steps else []
    if bool(many.any()):
        found.values[f"{place}:sequences/saturated"] = hits / many
    try:
        found.values[f"{place}:sequences/horizon"] = horizon(recurrence, *blocks)
    except Unsupported as reason:
        found.refused[f"{place}:sequences/horizon"] = str(reason)


def gradient_reach(recurrence: Recurrence) -> tuple[Tensor, Tensor]:
    """(‖∂L/∂s_1‖ (b,), steps from the end back to the first one at which ‖∂L/∂s_t‖ is at least 10⁻³ of its largest).

    In processing order; L is the sum of the sequence's loss; NaN where no gradient is above 0.
    """
    assert recurrence.delta is not None
    real = _real(recurrence)
    norms = torch.where(real, torch.linalg.vector_norm(recurrence.delta, dim=-1, dtype=torch.float64).cpu(), 0.0)
    largest = norms.amax(0)
    there = (norms >= VANISHED * largest) & real
    reach = recurrence.lengths - there.to(torch.int8).argmax(0)
    known = (largest > 0) & largest.isfinite()
    return norms[0], torch.where(known, reach.double(), torch.nan)


def horizon(recurrence: Recurrence, whole: StepBlock | None = None) -> Tensor:
    """(b,) the first lag ℓ at which ‖∂s_T/∂s_{T−ℓ}‖_F / √S is below 10⁻³ or above 10³, T the last step; NaN: none is.

    The norm is estimated from a few random orthonormal directions at the last step, of all S where there are as few.
    `whole`: all steps as one block, where that exists.
    """
    s, t = recurrence.cell.state_size, recurrence.steps
    lengths = recurrence.lengths
    found = torch.full((len(lengths),), math.nan, dtype=torch.float64)
    if not t:
        return found
    start = orthonormal(s, s if s <= EXACT else DIRECTIONS, recurrence.states.dtype, seed=7)
    first = max(0, int(lengths.min()) - LONGEST)
    block = whole if whole is not None and not first else recurrence.block(first, t)
    carried = start.expand(1, len(lengths), *start.shape).contiguous()
    logs = torch.zeros(len(lengths), dtype=torch.float64)
    equal = bool((lengths == t).all())
    for last in range(t, first, -LOOKED_AT):
        steps = range(last - 1, max(first, last - LOOKED_AT) - 1, -1)
        rows = []
        for at in steps:
            begun = lengths > at
            moved = block.vjp(carried, slice(at - first, at - first + 1))
            norms = frobenius_norms(moved[0], (1, 2)).cpu() / start.shape[1] ** 0.5
            scale = torch.where((norms > 0) & norms.isfinite() & begun, norms, 1.0).to(moved)[None, :, None, None]
            moved = moved / scale
            carried = moved if equal else torch.where(begun[None, :, None, None].to(moved.device), moved, carried)
            rows.append(norms)
        numbers = torch.tensor(list(steps))[:, None]
        grown = torch.where(lengths > numbers, torch.stack(rows).log(), 0.0)
        sums = torch.cat((logs[None], grown)).cumsum(0)[1:]
        logs = sums[-1]
        passed = (lengths > numbers) & ((sums < math.log(VANISHED)) | (sums > math.log(EXPLODED)))
        which = passed.to(torch.int8).argmax(0)
        found = torch.where(passed.any(0) & found.isnan(), (lengths - numbers[which, 0]).double(), found)
        if not bool(found.isnan().any()):
            break
    return found
