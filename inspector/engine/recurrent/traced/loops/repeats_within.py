"""Operations that one iteration repeats for each part of its state, and that are therefore no iterations themselves.

`state = tuple(v.detach() for v in state)` at the head of a loop's body makes the same call for every part. What tells it
from a loop over steps inside the iteration is that no repeat reads what an earlier one made.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import numpy as np

from inspector.engine.recurrent.traced.loops.loop import FEWEST
from inspector.engine.recurrent.traced.record.op_table import Table


def one_of_each_call(table: Table, ops: Sequence[int], keys: Sequence[int], starts: list[int], level: int) -> list[int]:
    """These beginnings of iterations without those that only repeat an earlier one in the same call.

    The call is that of a comprehension or of a function, at the next level of the stack of frames.
    Counter-example: a function that is called for every chunk and whose steps do not depend on each other; each chunk
    is then one iteration, as nothing is carried inside it.
    """
    below = table.frames(level + 1)
    groups = [0]
    for p, q in pairwise(starts):
        frame = below[table.where[ops[q]]]
        same = frame is not None and all(below[table.where[ops[n]]] is frame for n in range(p, q))
        groups.append(groups[-1] + (not same))
    return one_of_each(table, ops, keys, starts, groups)


def one_of_each(
    table: Table, ops: Sequence[int], keys: Sequence[int], starts: list[int], groups: Sequence[int]
) -> list[int]:
    """The first of these beginnings in each group; all of them where one repeat in a group depends on another.

    `groups`: ascending, for each of `starts`.
    """
    together = [[start for _, start in own] for _, own in groupby(zip(groups, starts, strict=True), lambda one: one[0])]
    if len(together) < FEWEST or len(together) == len(starts):
        return starts
    stops = [own[0] for own in together[1:]] + [len(ops)]
    if any(_depend(table, ops, keys, own, stop) for own, stop in zip(together, stops, strict=True) if len(own) > 1):
        return starts
    return [own[0] for own in together]


def _depend(table: Table, ops: Sequence[int], keys: Sequence[int], starts: Sequence[int], stop: int) -> bool:
    """Whether a repeat reads what an earlier one made. The last one ends where its operations are no longer theirs."""
    body = set(keys[starts[0] : starts[-1]])
    end = starts[-1]
    while end < stop and keys[end] in body:
        end += 1
    made: set[int] = set()
    for a, b in pairwise([*starts, end]):
        own = np.asarray(ops[a:b], dtype=np.int64)
        if made and not made.isdisjoint(table.given.of(own).tolist()):
            return True
        made.update(table.made.of(own).tolist())
    return False
