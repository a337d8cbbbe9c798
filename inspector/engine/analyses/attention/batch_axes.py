"""Which axis of an attention is the batch, where sizes alone do not say it: the model is called with one sequence.

As many heads or steps as sequences, or a batch merged with something else in an order that no reshape showed: the map
of the selected sequence alone, in a call without the others, is the map of it among the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from inspector.engine.analyses.attention.attended import recorded
from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.attention.rows import Rows
from inspector.engine.errors import Unsupported
from inspector.engine.model.batch import Batch, selected
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention, Trace

CHOICES = 3
"""Axes of the size of the batch that are tried, and the orders in which it may be merged with others."""
WHY = (
    "Which axis of the attention of {} is the batch is not known: sizes do not say it (the batch has {} sequences), "
    "and {}."
)
ALONE = "no choice gives the map that the selected sequence has in a call by itself"
NOT_CALLED = "the model could not be called with the selected sequence alone ({})"
OBSERVED = "the model was not called again"
ROWS = 64
"""Rows of a map that are compared."""


def settle_axes(trace: Trace, emit: Emitter) -> None:
    """Settle which axis is the batch, of every attention whose sizes do not say it; what remains open is refused."""
    repeated = _repeated(trace)
    if not repeated and not any(one.open_axes for one in trace.attentions):
        return
    try:
        alone = {one.place: one for one in _attentions(trace, _alone(trace.batch))}
        _open_loops(trace, repeated, alone)
        reason, again = ALONE, _chosen(trace, alone)
    except Unsupported as fault:
        reason, again = NOT_CALLED.format(fault), {}
    for number, one in enumerate(trace.attentions):
        if one.open_axes and one.place in again:
            trace.attentions[number] = again[one.place]
    refuse_open(trace, emit, reason)


def _repeated(trace: Trace) -> set[str]:
    """The modules with as many calls as there are sequences, which may be a loop over these."""
    calls = Counter(one.called for one in trace.attentions if not one.equivalent)
    return {place for place, count in calls.items() if count >= trace.batch.size > 1}


def _open_loops(trace: Trace, repeated: set[str], alone: Mapping[str, Attention]) -> None:
    """In a loop over the sequences there is one call for each of them: an axis as long as the batch is heads, say."""
    many, few = (Counter(one.called for one in some) for some in (trace.attentions, alone.values()))
    for one in trace.attentions:
        one.open_axes |= one.called in repeated and many[one.called] != few[one.called]


def refuse_open(trace: Trace, emit: Emitter, reason: str = OBSERVED) -> None:
    """Remove attentions whose batch is not known."""
    for one in [one for one in trace.attentions if one.open_axes]:
        emit.refuse(f"{one.place}:attention", WHY.format(one.place, trace.batch.size, reason))
        trace.attentions.remove(one)


def _chosen(trace: Trace, alone: Mapping[str, Attention]) -> dict[str, Attention]:
    """By place, attentions whose batch is known. Raises Unsupported."""
    model = trace.subject.model
    found: dict[str, Attention] = {}
    for choice in range(CHOICES):
        waiting = [one.place for one in trace.attentions if one.open_axes and one.place not in found]
        if not waiting:
            break
        kept = choice == 0 and not any(module.training for module in model.modules())
        trace.batch_axes |= {_called(trace, place): choice for place in waiting if choice}
        again = {one.place: one for one in (trace.attentions if kept else _attentions(trace, trace.batch))}
        right = [place for place in waiting if _alike(again.get(place), alone.get(place), trace.look_at)]
        if right and choice:  # as the run had it, with its dropout
            with undisturbed(model, trace.seed), torch.no_grad():
                again = {one.place: one for one in recorded(trace)[1]}
        elif right:
            again = {one.place: one for one in trace.attentions}
        for place in right:
            if place in again:
                again[place].open_axes = False
                found[place] = again[place]
    return found


def _called(trace: Trace, place: str) -> str:
    return next((one.called for one in trace.attentions if one.place == place), place)


def _attentions(trace: Trace, batch: Batch) -> list[Attention]:
    with undisturbed(trace.subject.model, trace.seed), _evaluating(trace.subject.model), torch.no_grad():
        return recorded(trace, batch)[1]


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Without dropout, whose noise is another one for another batch."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _alone(batch: Batch) -> Batch:
    """The selected sequence, with the padding that it has among the others."""
    at, given = batch.look_at, batch.targets
    by_row = isinstance(given, Tensor) and given.dim() and len(given) == batch.size
    targets: Any = given[at : at + 1] if by_row else given
    return selected(batch, [at], targets)


def _alike(one: Attention | None, other: Attention | None, sample: int) -> bool:
    """Whether two maps of the selected sequence, the second in a batch of it alone, are the same up to rounding."""
    if one is None or other is None:
        return False
    mine, yours = Rows(one, sample), Rows(other, 0)
    if (mine.heads, mine.queries, mine.keys) != (yours.heads, yours.queries, yours.keys):
        return False
    last = min(ROWS, mine.queries)
    a, b = (rows.block(0, last).full().nan_to_num(nan=-1.0) for rows in (mine, yours))
    near = {torch.float64: 1e-9, torch.float32: 1e-4}.get(a.dtype, 2e-2)
    return bool(((a - b).abs() <= near * b.abs().amax().clamp_min(1e-30)).all())
