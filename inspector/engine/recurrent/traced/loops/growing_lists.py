"""Lists that grow while a loop runs, and what reads their entries: `torch.stack(mem)`, or one call for each entry."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable

from inspector.engine.recurrent.traced.loops.iteration_classes import Twins
from inspector.engine.recurrent.traced.loops.loop import Label, Loop
from inspector.engine.recurrent.traced.record.operation import Op
from inspector.engine.recurrent.traced.record.operator_traits import Kind

Site = tuple[Label, int]
"""Where a value is read: the operation of the loop's body, and the number of its input."""


def growing(loop: Loop, twins: Twins) -> list[set[Site]]:
    """For each list the places that read its entries.

    That a list grows shows in how many entries are read: an operation that joins tensors has more of them at later
    iterations, or the same call is made more often. Counter-example: a branch that is taken once or twice an iteration
    looks like a list of two; that changes only what an initial value counts as that both read.
    """
    joined: dict[Label, set[int]] = defaultdict(set)
    calls: dict[Hashable, set[int]] = defaultdict(set)
    read: dict[tuple[Hashable, int], set[Site]] = defaultdict(set)
    for i in twins.members:
        keys = loop.iterations.table.keys(loop.iterations.numbers[i], loop.level, depth=loop.depth)
        places = [_place(op, key, loop.level) for key, (_, op) in zip(keys, loop.iterations[i], strict=True)]
        for place, count in Counter(places).items():
            calls[place].add(count)
        for place, (label, op) in zip(places, loop.iterations[i], strict=True):
            for n in range(len(op.inputs)):
                read[place, 0 if op.traits.kind is Kind.SUM else n].add((label, n))
            if op.traits.kind is Kind.JOIN:
                joined[label].add(len(op.inputs))
    found = [{(label, n) for n in range(max(counts))} for label, counts in joined.items() if len(counts) > 1]
    for (place, _), sites in read.items():
        if len(calls[place]) > 1 and len({label for label, _ in sites}) > 1:
            found.append(sites)
    return found


def _place(op: Op, key: int, level: int) -> Hashable:
    """The place of a call in the code: of `sum(mem)` that of `0 + mem[0]` too, whose operands are in reverse order."""
    if op.traits.kind is not Kind.SUM:
        return key
    return op.traits.name, tuple((frame.f_code, at) for frame, at in op.chain[level:])
