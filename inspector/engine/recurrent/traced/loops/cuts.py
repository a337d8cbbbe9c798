"""The steps before which the model cuts the gradient of a loop's state: by `detach`, `.data` or without gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.values import ids_of


def cut_steps(flow: Flow, state: Sequence[Slot]) -> tuple[int, ...]:
    """Iterations i ≥ 1 whose new state depends on the one before, but passes no gradient on to it.

    Only a step in which every path is cut counts. Counter-example: of `h = f(h.detach()) + 0.5 * h` a part of the
    gradient flows on; it is not listed.
    """
    found: list[int] = []
    for i, members in flow.twins.members.items():
        silent = [_silent(flow, m) for m in members.tolist()]
        cut = {places: _is_cut(flow, state, i, places) for places in set(silent)}
        found += [m for m, places in zip(members.tolist(), silent, strict=True) if m > 0 and cut[places]]
    return tuple(sorted(found))


def _silent(flow: Flow, i: int) -> frozenset[int]:
    """Which operations of an iteration ran with autograd off, by their place in it: they pass no gradient on."""
    iterations = flow.loop.iterations
    off = iterations.table.without_gradient
    return frozenset(j for j, n in enumerate(iterations.numbers[i]) if off(int(n)))


def as_made(flow: Flow, state: Sequence[Slot]) -> tuple[Flow, list[Slot]]:
    """The flow and these slots with their values as they were before they were detached at the end of a step."""
    plain = {slot.index: before_cut(flow, slot) for slot in state}
    slots = [plain.get(slot.index, slot) for slot in flow.slots]
    return replace(flow, slots=slots, held=[ids_of(slot.values) for slot in slots]), [plain[s.index] for s in state]


def before_cut(flow: Flow, slot: Slot) -> Slot:
    """The same slot with its values as they were before they were detached at the end of a step.

    That is the state whose gradient is asked for: the loss reads it, and what is detached is what the next step reads.
    """
    values, made = list(slot.values), list(slot.made)
    for first, members in flow.twins.members.items():
        j = slot.made[first]
        found = _undetached(flow, first, j) if j >= 0 else j
        if found != j:
            for i, tensor in zip(members.tolist(), flow.twins.results(members, found, 0), strict=True):
                values[i + 1], made[i] = tensor, found
    return replace(slot, values=values, made=made)


def _undetached(flow: Flow, i: int, j: int) -> int:
    """The operation of iteration i whose value operation j only detaches; j itself where it computes something."""
    at, found = j, j
    while True:
        op = flow.op((i, at))
        plain = op.traits.kind in (Kind.DETACH, Kind.LAYOUT) and not op.in_place
        if not plain or op.outputs[0].shape != op.inputs[0].shape:
            return found
        before = flow.made_here(op.inputs[0], i, at)
        if before is None or before == at or flow.op((i, before)).outputs[0] is not op.inputs[0]:
            return found
        at = before
        if op.traits.kind is Kind.DETACH or found != j:
            found = at


def _is_cut(flow: Flow, state: Sequence[Slot], i: int, silent: frozenset[int]) -> bool:
    ops = flow.loop.iterations[i]
    old = range(max(0, i - max((slot.lags for slot in state), default=0)), i + 1)
    plain = [before_cut(flow, slot) for slot in state]
    joined = {id(slot.values[n]) for slot in plain for n in old}
    reached = {id(slot.values[n]) for slot in state for n in old} | joined
    for j, (_, op) in enumerate(ops):
        given = set(map(id, op.inputs))
        if given & reached and not op.traits.forgets:  # a reset depends on nothing
            reached |= set(map(id, op.outputs))
            if given & joined and op.traits.kind is not Kind.DETACH and j not in silent:
                joined |= set(map(id, op.outputs))
            elif op.traits.kind is Kind.DETACH and op.outputs[0] is op.inputs[0]:  # detach_: from here on
                joined.discard(id(op.inputs[0]))
    new = {id(slot.values[i + 1]) for slot in plain if slot.made[i] >= 0}
    kept = any(slot.made[i] < 0 for slot in state)
    return bool(new & reached) and not new & joined and not kept
