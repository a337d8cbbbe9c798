"""What is said, and refused, where hooks of the user's changed gradients of the run."""

from __future__ import annotations

import re

from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.missing_gradients import SPLIT
from inspector.engine.trace.trace import Recurrence, Trace

HOOKED = (
    "A hook on a tensor (register_hook) changed the gradient within the steps of {}, so the gradient is not split by "
    "the step of the loss: products of the steps' derivatives do not have that change."
)
MODULE_HOOKED = (
    "A backward hook of the module {1} changed the gradient within the steps of {0}, so the gradient is not split by "
    "the step of the loss: products of the steps' derivatives do not have that change."
)
NODE_HOOKED = (
    "{1} takes nodes of autograd's graph (grad_fn) and registers hooks on them within the steps of {0}, which may "
    "change the gradient, so it is not split by the step of the loss."
)
CHANGED = (
    "Hooks changed gradients in this run ({}): the gradients that are shown are those after that change, as training "
    "has them."
)
MOST = 4


def refuse_items(recurrence: Recurrence, emit: Emitter, reason: str = "") -> None:
    """Leave the gradients at the states, which are autograd's, and refuse what would be split by the step of the
    loss."""
    recurrence.arriving = recurrence.ran = recurrence.inside = None
    for signal in SPLIT:
        if f"{recurrence.place}:{signal}" not in {name for name, _ in emit.refused}:
            emit.refuse(f"{recurrence.place}:{signal}", reason or HOOKED.format(recurrence.place))


def refuse_changed(trace: Trace, emit: Emitter) -> None:
    """Refuse what hooks made untrue, and say which hooks changed a gradient."""
    _refuse_tensors(trace, emit)
    _refuse_modules(trace, emit)
    changed = {id(one.tensor) for one in (*trace.hooks, *trace.user_hooks.parameters) if one.changed}
    trace.parameter_gradients.hooked |= changed & trace.parameter_gradients.names.keys()
    what = [
        *(f"on the parameter {name}" for n, name in trace.parameter_gradients.names.items() if n in changed),
        *(f"of the module {one.name or 'model'}" for one in trace.user_hooks.modules if one.changed),
        *(["on other tensors"] if changed - trace.parameter_gradients.names.keys() else []),
        *(f"on nodes of the graph in {one}, perhaps" for one, _ in trace.node_hooks),
    ]
    what = list(dict.fromkeys(what))
    if what:
        more = f" and {len(what) - MOST} others" if len(what) > MOST else ""
        emit.refuse("model:gradient/hooks", CHANGED.format(", ".join(what[:MOST]) + more))


def _refuse_tensors(trace: Trace, emit: Emitter) -> None:
    """Drop the gradients of calls of modules whose state may be a tensor whose gradient a hook changed.

    A tensor as wide as a part of the state may be one. Counter-example: a hook on another value of that width, through
    which no state's gradient flows; the gradients are then refused although they are right.
    """
    own = trace.parameter_gradients.names
    changed = [one.tensor for one in trace.hooks if one.changed and id(one.tensor) not in own]
    changed += [tensor for _, tensor in trace.node_hooks]
    widths = {tensor.shape[-1] for tensor in changed if tensor is not None and tensor.dim()}
    for recurrence in trace.recurrences if widths else ():
        parts = recurrence.cell.parts.values()
        if type(recurrence) is Recurrence and any(part.stop - part.start in widths for part in parts):
            recurrence.delta = None
            refuse_items(recurrence, emit)
            emit.refuse(f"{recurrence.place}:gradient", HOOKED.format(recurrence.place))


def _refuse_modules(trace: Trace, emit: Emitter) -> None:
    """Refuse the items of recurrences in whose steps a module's hook changed a gradient.

    That is the module of the step, one inside it, or one around it, that was called more than once; and a fused module
    itself, whose output may be seen before or after the hook. Counter-example: of two loops over one module the hook
    changes something in only; both are refused.
    """
    for recurrence in trace.recurrences:
        place = re.sub(r"#\d+", "", recurrence.place).removesuffix(".reverse")
        place = re.sub(r"\.l\d+$", "", place) if type(recurrence) is Recurrence else place
        place = "" if place == "model" else place
        for one in trace.user_hooks.modules:
            around = one.calls > 1 and (_inside(one.name, place) or _inside(place, one.name))
            if one.changed and (around or (type(recurrence) is Recurrence and one.name == place)):
                reason = MODULE_HOOKED.format(recurrence.place, one.name or "model")
                refuse_items(recurrence, emit, reason)
                if type(recurrence) is Recurrence:
                    recurrence.delta = None
                    emit.refuse(f"{recurrence.place}:gradient", reason)


def _inside(name: str, outer: str) -> bool:
    return not outer or name == outer or name.startswith(f"{outer}.")
