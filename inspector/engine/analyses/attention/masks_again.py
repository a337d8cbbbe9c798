"""Which keys are masked, where the run had no graph that shows it: the model is called once more, with one."""

from __future__ import annotations

from inspector.engine.analyses.attention.attended import following, recorded, with_gradients
from inspector.engine.analyses.attention.keys_again import StillFollowed
from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.errors import Unsupported
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention, Trace

WHY = "The attention of {} is not shown: {}."


def settle_masks(trace: Trace, emit: Emitter) -> None:
    """Take the masks from a call with a graph, of every attention of which they are not known; what remains is
    refused."""
    waiting = [one for one in trace.attentions if one.unclear]
    if not waiting:
        return
    try:
        with undisturbed(trace.subject.model, trace.seed), following(trace.subject.model), StillFollowed():
            again = {one.place: one for one in recorded(trace, with_gradients(trace.batch))[1]}
    except Unsupported:
        again = {}
    for one in waiting:
        _take(one, again.get(one.place))
    refuse_unclear(trace, emit)


def _take(attention: Attention, seen: Attention | None) -> None:
    if seen is None or seen.unclear or seen.weights is None or attention.weights is None:
        return
    if seen.weights.shape == attention.weights.shape:
        attention.mask, attention.margins, attention.unclear = seen.mask, seen.margins, ""


def refuse_unclear(trace: Trace, emit: Emitter) -> None:
    """Remove attentions whose masks are not known."""
    for one in [one for one in trace.attentions if one.unclear]:
        emit.refuse(f"{one.place}:attention", WHY.format(one.place, one.unclear))
        trace.attentions.remove(one)
