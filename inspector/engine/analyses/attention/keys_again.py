"""Of which sequence keys are, where the run had no graph that shows it: the model is called once more, with one."""

from __future__ import annotations

from inspector.engine.analyses.attention.attended import following, recorded, with_gradients
from inspector.engine.analyses.rerun import undisturbed
from inspector.engine.errors import Unsupported
from inspector.engine.trace.attention import SOURCE_NOT_KNOWN, UNKNOWN_SOURCE
from inspector.engine.trace.trace import Attention, Trace

TAKEN_FOR_ITS_OWN = f"{SOURCE_NOT_KNOWN}: they are taken to be of the same sequence as the queries"


def name_sources(trace: Trace) -> None:
    """Name the keys of attentions to as many keys as queries whose source no name, no memory and no graph has told."""
    unknown = [one for one in trace.attentions if not one.source_asked]
    if not unknown:
        return
    try:
        with undisturbed(trace.subject.model, trace.seed), following(trace.subject.model):
            again = {one.place: one for one in recorded(trace, with_gradients(trace.batch))[1]}
    except Unsupported:
        again = {}
    for one in unknown:
        _name(one, again.get(one.place))


def _name(attention: Attention, seen: Attention | None) -> None:
    """Name the keys as those of a call that had a graph."""
    attention.source_asked = True
    if seen is None or not seen.source_asked:  # no graph, or no product of queries and keys in it
        attention.note = "; ".join(filter(None, (attention.note, TAKEN_FOR_ITS_OWN)))
    elif not seen.source_known:
        attention.keys_from = UNKNOWN_SOURCE
        attention.note = "; ".join(filter(None, (attention.note, SOURCE_NOT_KNOWN)))
    elif not seen.of_itself:
        attention.keys_from = seen.keys_from
