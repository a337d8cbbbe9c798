"""Every step axis of a run, written into its capture: name, title, length, layout, and names of layers."""

from __future__ import annotations

from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.step_axes import UNKNOWN, axes_beside, primary_axis, title_of
from inspector.engine.trace.trace import Trace
from inspector.records import LAYER_DOMAIN, Axis, place_name

OTHER_KEYS = "source step"
"""Label domain of keys of which it is known only that they are not the queries' own steps."""


def name_layers(trace: Trace, emit: Emitter) -> None:
    """Give every stack of layers an axis of its own; recurrences over the same layers share theirs.

    The first stack's is "layer", a further one's contains its place.
    """
    known: dict[object, str] = {}
    for recurrence in trace.recurrences:
        if recurrence.domain != LAYER_DOMAIN:
            continue
        place = place_name(recurrence.place)
        name = known.setdefault(recurrence.names or place, f"{LAYER_DOMAIN} of {place}" if known else LAYER_DOMAIN)
        recurrence.domain = emit.step_domains[place] = name
        if name not in emit.axes:
            emit.axis(Axis(name=name, title=LAYER_DOMAIN, length=recurrence.steps, layout="layers"))
            emit.labels(name, recurrence.names or tuple(f"layer {i}" for i in range(recurrence.steps)))


def write_axes(trace: Trace, emit: Emitter) -> None:
    """Describe the axes of inputs and output, and that of steps of unknown origin that all agree in number."""
    first = primary_axis(trace.batch)
    for axis in (*([first] if first is not None else []), *axes_beside(trace)):
        emit.axis(axis.record(trace.look_at))
    lengths: dict[str, set[int]] = {}
    for recurrence in trace.recurrences:
        if trace.look_at in range(recurrence.base, recurrence.base + len(recurrence.lengths)):
            lengths.setdefault(recurrence.domain, set()).add(recurrence.length(trace.look_at))
    for attention in trace.attentions:
        shape = (attention.query if attention.weights is None else attention.weights).shape
        keys = attention.key.shape[-2] if attention.weights is None else shape[-1]
        lengths.setdefault(attention.queries_from, set()).add(shape[-2])
        lengths.setdefault(attention.keys_from, set()).add(keys)
    for name in (UNKNOWN, OTHER_KEYS):
        if len(lengths.get(name, ())) == 1:
            emit.axis(Axis(name=name, title=title_of(name), length=lengths[name].pop()))
