"""Names of the iterations of a loop over layers: the module that each of them runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot


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
