"""Which carried variables are one recurrent state, and which are not a state.

Slots that influence each other through an iteration belong together: h and c of an LSTM do, the states of two stacked
layers do not, as the lower one does not depend on the upper one.
"""

from __future__ import annotations

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot


def states(flow: Flow) -> list[list[Slot]]:
    """Groups of slots that are one recurrent state each, in the order in which their first values are made."""
    count = len(flow.slots)
    influence = [0] * count
    for slot in flow.slots:
        for i, made in enumerate(slot.made):
            influence[slot.index] |= flow.reach[i][made] if made >= 0 else 1 << slot.index
    for k in range(count):
        for n in range(count):
            if influence[n] >> k & 1:
                influence[n] |= influence[k]
    groups: list[list[Slot]] = []
    taken: set[int] = set()
    for slot in flow.slots:
        n = slot.index
        if n in taken or not influence[n] >> n & 1:
            continue
        members = [s for s in flow.slots if influence[n] >> s.index & 1 and influence[s.index] >> n & 1]
        taken |= {s.index for s in members}
        if not (len(members) == 1 and _collects(flow, slot)):
            groups.append(members)
    return sorted(groups, key=lambda group: min(made for slot in group for made in slot.made[-2:]))


def _collects(flow: Flow, slot: Slot) -> bool:
    """True for a running sum or a list that grows: in every iteration the old value is only added to.

    The sign of what is added does not matter. Counter-examples, which are recurrences: `acc = x - acc`, a factor
    (`torch.add(x, acc, alpha=0.9)`), and a variable that is a sum at some steps only.
    """
    return all(_adds(flow, slot, i) for i in flow.twins.members if slot.made[i] >= 0)


def _adds(flow: Flow, slot: Slot, i: int) -> bool:
    """True where only additions lead from the slot's old value to the one that iteration i makes."""
    bit, ops, row = 1 << slot.index, flow.loop.iterations[i], flow.reach[i]
    old = set(map(id, slot.values[max(0, i - slot.lags) : i + 1]))
    seen, todo = set(), [slot.made[i]]
    while todo:
        j = todo.pop()
        if j in seen or not row[j] & bit:
            continue
        seen.add(j)
        op = ops[j][1]
        for number, given in op.operands():
            made = flow.made_here(given, i, j)
            makers = [*([] if made is None else [made]), *(written for _, written in flow.writers(given, (i, j)))]
            carried = any(row[k] & bit for k in makers) if makers else id(given) in old
            if carried and not op.traits.adds(number, op.kwargs):
                return False
            todo += makers
    return True
