"""Parameters that act on a state by other ways than its steps: through other values that the loop carries beside it (a
lower layer's state), and through what the loop is given."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.program.gates import leading_to
from inspector.engine.trace.upstream import Upstream


def acting_beside(flow: Flow, state: Sequence[Slot], names: Mapping[int, str]) -> frozenset[str]:
    """Names of the parameters that make what other carried values hand on from step to step, and this state reads.

    ∂s_t/∂θ of such a parameter has terms through the other values' own steps, which are no part of this state's.
    `names`: id of a parameter → its name.
    """
    reached = 0 if flow.loop.depth else _read(flow, state)
    feeding = [slot for slot in flow.slots if slot not in state and reached >> slot.index & 1]
    return frozenset(
        names[id(given)]
        for slot in feeding
        for i in flow.twins.members
        for j in leading_to(flow, [slot], i)
        for given in flow.loop.iterations[i][j][1].inputs
        if id(given) in names
    )


def _read(flow: Flow, state: Sequence[Slot]) -> int:
    """The carried values (bits) that steps of the state read, at once or through further ones."""
    reached = sum(1 << slot.index for slot in state)
    while True:
        known = [slot for slot in flow.slots if reached >> slot.index & 1]
        found = reached
        for i in flow.twins.members:
            for j in leading_to(flow, known, i, through_others=True):
                found |= flow.reach[i][j]
        if found == reached:
            return reached
        reached = found


def acting_before(flow: Flow, parameters: Collection[int]) -> frozenset[int] | None:
    """The ids of the leaves of autograd's graph that all was computed from that the loop is given, its first state
    included; None where there are too many operations to search.

    `parameters`: ids of what counts as a parameter of the steps, which is not searched.
    """
    search = Upstream()
    search.add(flow.twins.used(flow.twins.outside() - set(parameters)))
    return search.found()
