"""Stacks of layers: which loops over layers are shown as one, and the module that each iteration runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from inspector.engine.model.batch import Batch
from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.loops.loop import Loop

DEEPEST_STATE = 1024
"""A stack of layers is shown as a recurrence over depth when its signal has no more entries a sample: pictures and
sequences that pass through layers have more. Counter-example: a plain deep net 2,000 units wide is not shown so."""


def layer_names(flow: Flow, state: Sequence[Slot], names: Mapping[int, str]) -> tuple[str, ...]:
    """The module of each iteration ("layers.0", …); () where modules alone do not distinguish the iterations.

    A module that every iteration runs (an activation in the loop's own code) is not used as a name.
    `names`: id of a module, or of a parameter of it → the module's qualified name.
    """
    ran: list[set[str]] = [
        {
            names[id(one)]
            for _, op in flow.loop.iterations[i][: max(slot.made[i] for slot in state) + 1]
            for one in (op.owner, *op.inputs)
            if id(one) in names
        }
        for i in range(len(flow.loop.iterations))
    ]
    everywhere = ran[0].intersection(*ran[1:])
    found = tuple(within(places - everywhere) for places in ran)
    return found if "" not in found and len(set(found)) == len(found) else ()


def within(places: Iterable[str]) -> str:
    """The longest common part of the names of modules; "" where there is none."""
    paths = [place.split(".") for place in dict.fromkeys(places)]
    common: list[str] = []
    for level in zip(*paths, strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return ".".join(common)


def is_regular(loop: Loop) -> bool:
    """True when every layer does the same operations; the last may end early."""
    bodies = loop.iterations.labels
    return all(body == bodies[0] for body in bodies[:-1])


def may_be_a_stack(state: Sequence[Slot], batch: Batch) -> bool:
    """True for a signal of moderate width that has no axis of steps: layers of a transformer are recorded by other
    probes.

    Counter-example: a deep net whose width is the number of steps is not shown over its depth; another length shows it.
    """
    steps = batch.steps
    if steps > 1 and any(steps in slot.values[0].shape[1:] for slot in state):
        return False
    size = max(1, int(batch.lengths.numel()))
    return sum(slot.values[0].numel() for slot in state) // size <= DEEPEST_STATE
