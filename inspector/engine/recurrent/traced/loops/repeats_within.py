"""Operations that one iteration repeats for each part of its state, and that are therefore no iterations themselves.

`state = tuple(v.detach() for v in state)` at the head of a loop makes the same call for every part. No repeat reads
what an earlier one made, unlike the steps of a loop inside the iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import numpy as np

from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.values import Numbers

FEWEST_CALLS = 2
"""Calls that each do the same for several values: two are enough to see that no value of a call needs another."""


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
    return one_of_each(table, ops, keys, starts, groups, fewest=FEWEST_CALLS)


def one_of_each(
    table: Table, ops: Sequence[int], keys: Sequence[int], starts: list[int], groups: Sequence[int], fewest: int
) -> list[int]:
    """The first of these beginnings in each group; all of them where one repeat in a group depends on another, or
    there are not `fewest` groups.

    `groups`: ascending, for each of `starts`.
    """
    together = [[start for _, start in own] for _, own in groupby(zip(groups, starts, strict=True), lambda one: one[0])]
    if len(together) < fewest or len(together) == len(starts):
        return starts
    stops = [own[0] for own in together[1:]] + [len(ops)]
    if any(_depend(table, ops, keys, own, stop) for own, stop in zip(together, stops, strict=True) if len(own) > 1):
        return starts
    return [own[0] for own in together]


def by_calls(table: Table, ops: Sequence[int], offsets: Sequence[int], level: int, known: frozenset[int]) -> list[int]:
    """Where an instruction calls a function again that computes with what its call before made: steps of a loop.

    Returned are the numbers of the first operations of such calls among `ops`, of which `offsets` are the
    instructions; nothing where all of them are `known` anyway. Two calls for two parts of a state, as by `map`, do not
    depend on each other. Counter-example: a function that is called by `map` and keeps what it made for its next call.
    """
    below = table.frames(level + 1)
    calls = [below[table.where[n]] for n in ops]
    begins = [0, *(n for n, (a, b) in enumerate(pairwise(calls), 1) if a is not b)]
    stops = [*begins[1:], len(ops)]
    pairs = [
        (a, b, stop) for (a, b), stop in zip(pairwise(begins), stops[1:], strict=False)
        if offsets[a] == offsets[b] and calls[a] is not None and calls[b] is not None
    ]  # fmt: skip
    if known >= {b for _, b, _ in pairs}:
        return []
    return [b for a, b, stop in pairs if _reads(table, ops[b:stop], set(table.made.of(_numbers(ops[a:b])).tolist()))]


def _numbers(ops: Sequence[int]) -> Numbers:
    return np.asarray(ops, dtype=np.int64)


def _reads(table: Table, ops: Sequence[int], made: set[int]) -> bool:
    return not made.isdisjoint(table.given.of(_numbers(ops)).tolist())


def _only_adds(table: Table, ops: Sequence[int], made: set[int]) -> bool:
    """Whether these operations add to what was made, and do nothing else with it."""
    return all(
        op.traits.kind is Kind.SUM and op.traits.adds(number, op.kwargs)
        for op in map(table.op, ops)
        for number, given in op.operands()
        if id(given) in made
    )


def _depend(table: Table, ops: Sequence[int], keys: Sequence[int], starts: Sequence[int], stop: int) -> bool:
    """Whether a repeat computes with what an earlier one made. The last one ends where its operations are no longer
    theirs. A sum over a list (`sum(memory)`) only adds to it: its terms are no steps."""
    body = set(keys[starts[0] : starts[-1]])
    end = starts[-1]
    while end < stop and keys[end] in body:
        end += 1
    made: set[int] = set()
    for a, b in pairwise([*starts, end]):
        if made and _reads(table, ops[a:b], made) and not _only_adds(table, ops[a:b], made):
            return True
        made.update(table.made.of(_numbers(ops[a:b])).tolist())
    return False
