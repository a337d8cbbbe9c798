"""Which carried variables are one recurrent state, and which are not a state.

Slots that influence each other through an iteration belong together: h and c of an LSTM do, the states of two stacked
layers do not, as the lower one does not depend on the upper one.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from inspector.engine.recurrent.traced.loops.carried_state import Flow, Slot
from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.operator_traits import Kind

PRODUCTS = frozenset({"einsum", "outer", "ger", "tensordot", "inner"})
"""Products that are no operators of the table by which values are followed."""


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
        if not (len(members) == 1 and _collects(flow, slot)) or _remembers(flow, slot):
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


def _remembers(flow: Flow, slot: Slot) -> bool:
    """True for a running sum that is a memory: of keys times values, as linear attention has, and read by a query.

    In its middle iteration the sum is multiplied with something that is no parameter, and it is a matrix for each
    sequence: outer products are added, or it has three axes. Counter-examples: one whose keys and values have one entry
    each is not shown, and a sum of maps over layers that each layer multiplies with a gate is.
    """
    made = [i for i, j in enumerate(slot.made) if j >= 0]
    if not made:
        return False
    i = made[len(made) // 2]
    shape = slot.values[i].shape
    is_matrix = len(shape) > 2 and min(shape[-2:]) > 1
    return (is_matrix or any(_is_outer(op) for op in _before(flow, i, slot.made[i]))) and _is_asked(flow, slot, i)


def _is_asked(flow: Flow, slot: Slot, i: int) -> bool:
    """Whether an iteration multiplies the variable with something that is neither a parameter nor a number."""
    bit, ops, row = 1 << slot.index, flow.loop.iterations[i], flow.reach[i]
    own = set(_ancestors(flow, i, slot.made[i]))
    for j in (j for j in range(len(ops)) if row[j] & bit and j not in own and _multiplies(ops[j][1])):
        others = [given for _, given in ops[j][1].operands() if not _reached(flow, given, (i, j), bit)]
        if any(not isinstance(given, nn.Parameter) and given.numel() > 1 for given in others):
            return True
    return False


def _reached(flow: Flow, given: Tensor, place: tuple[int, int], bit: int) -> bool:
    """Whether an operand depends on the variable: it was made in this iteration from it, or by another iteration."""
    made = flow.made_here(given, *place)
    return bool(flow.reach[place[0]][made] & bit) if made is not None else id(given) in flow.source


def _multiplies(op: Op) -> bool:
    return op.traits.kind in (Kind.MATRIX, Kind.PRODUCT) or op.traits.name in PRODUCTS or op.name in PRODUCTS


def _is_outer(op: Op) -> bool:
    """A product with more entries than each of its factors has."""
    most = max((given.numel() for given in op.inputs), default=0)
    return _multiplies(op) and len(op.inputs) > 1 and bool(op.outputs) and op.outputs[0].numel() > most


def _before(flow: Flow, i: int, j: int) -> Iterator[Op]:
    """The operations of an iteration from which one of them is computed."""
    return (flow.op((i, k)) for k in _ancestors(flow, i, j))


def _ancestors(flow: Flow, i: int, j: int) -> Iterator[int]:
    seen, todo = set(), [j]
    while todo:
        k = todo.pop()
        if k in seen:
            continue
        seen.add(k)
        yield k
        for _, given in flow.op((i, k)).operands():
            made = flow.made_here(given, i, k)
            todo += [] if made is None else [made]
            todo += flow.last_writer(given, (i, k))
