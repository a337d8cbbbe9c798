"""Gates between a state and the output: they multiply what a step makes of its new state, and no state reads them.

The highway gate of an SRU (Lei et al. 2018, equation 4) and the output gate of a state that is not fed back are such
gates. They are no part of the recurrence.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot


def towards_output(flow: Flow, state: Sequence[Slot], i: int, inner: set[int]) -> set[int]:
    """Operations of iteration i that scale what is made of its new state, with the gates by which they do so.

    `inner`: operations that lead to a new value of any state. A gate that multiplies nothing made of the state is not
    one of these. Counter-example: a sigmoid readout that multiplies another one is taken for its gate.
    """
    reached = {id(slot.values[i + 1]) for slot in state if slot.made[i] >= 0}
    found: set[int] = set()
    for j, (_, op) in enumerate(flow.loop.iterations[i]):
        if j in inner or not any(id(given) in reached for given in op.inputs):
            continue
        reached |= set(map(id, op.outputs))
        if op.traits.scales:
            found |= {j}.union(*(_gate(flow, i, j, given, inner) for given in op.inputs))
    return found


def _gate(flow: Flow, i: int, j: int, given: Tensor, inner: set[int]) -> set[int]:
    """The operations by which a factor was made: a gate, and pieces of it or one minus it; none where it is no gate."""
    ops = flow.loop.iterations[i]
    found: set[int] = set()
    while True:
        made = flow.made_here(given, i, j)
        if made is None or made in inner:
            return set()
        op, j = ops[made][1], made
        found.add(made)
        if op.traits.unit and not op.traits.normalises:
            return found
        through = op.traits.rearranges or op.traits.keeps_entries or op.traits.name == "sub"
        if not through or len(op.inputs) != 1:
            return set()
        given = op.inputs[0]


def read_inside(flow: Flow, i: int, inner: set[int]) -> set[int]:
    """Ids of all that operations leading to a state are given."""
    ops = flow.loop.iterations[i]
    return {id(given) for j in inner for given in ops[j][1].inputs}
