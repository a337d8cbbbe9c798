"""The steps before which the model cuts the gradient of a loop's state: by `detach`, `.data` or without gradients."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.record.operator_traits import Kind


def cut_steps(flow: Flow, state: Sequence[Slot]) -> tuple[int, ...]:
    """Iterations i ≥ 1 whose new state depends on the one before, but passes no gradient on to it.

    Only a step in which every path is cut counts. Counter-example: of `h = f(h.detach()) + 0.5 * h` a part of the
    gradient flows on; it is not listed.
    """
    found: list[int] = []
    table = flow.twins.table
    for i, members in flow.twins.members.items():
        makers = [flow.twins.calls(members, slot.made[i]).tolist() for slot in state if slot.made[i] >= 0]
        off = [all(map(table.without_gradient, calls)) for calls in zip(*makers, strict=True)] or [False] * len(members)
        cut = _is_cut(flow, state, i)
        found += [m for m, silent in zip(members.tolist(), off, strict=True) if m > 0 and (cut or silent)]
    return tuple(sorted(found))


def _is_cut(flow: Flow, state: Sequence[Slot], i: int) -> bool:
    ops = flow.loop.iterations[i]
    before = {id(slot.values[n]) for slot in state for n in range(max(0, i - slot.lags), i + 1)}
    joined: set[int] = set()
    reached: set[int] = set()
    for _, op in ops:
        given = set(map(id, op.inputs))
        if given & (before | reached) and not op.traits.forgets:  # a reset depends on nothing
            reached |= set(map(id, op.outputs))
            if given & (before | joined) and op.traits.kind is not Kind.DETACH:
                joined |= set(map(id, op.outputs))
            elif op.traits.kind is Kind.DETACH and op.outputs[0] is op.inputs[0]:  # detach_: from here on
                before.discard(id(op.inputs[0]))
                joined.discard(id(op.inputs[0]))
    new = {id(slot.values[i + 1]) for slot in state if slot.made[i] >= 0}
    kept = any(slot.made[i] < 0 for slot in state)
    return bool(new & reached) and not new & joined and not kept
