"""Loops over chunks of a sequence with a loop over steps inside: their iterations are the steps of all chunks.

What lies between the last step of a chunk and the first of the next one (`h = h.detach()`) is done by that first step.
Small steps within a step are no such loop: a step of a sequence reads something that no other step does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from itertools import chain, pairwise

from torch import Tensor
from torch.nn import Parameter

from inspector.engine.recurrent.traced.loops.loop import FEWEST, Iterations, Labelling, Loop
from inspector.engine.recurrent.traced.record.op_table import Table

DEEP = 4
"""Operations by which a part of a weight may be taken. Counter-example: weights that a longer computation makes for
each small step within a step count as inputs; the small steps are then shown as steps."""
Read = tuple[object, ...]
"""A value that no step made, and what an operation takes of it."""


def loop_of_steps(loop: Loop, inner: Loop) -> Loop | None:
    """The loop over the steps of all chunks, or None where these are no chunks of one sequence.

    `inner`: a loop in one iteration of the other. Each of its steps must read something of its own, and the next chunk
    must begin with the state that the last step of the one before ended with, changed by no weights.
    Counter-example: chunks in which the model runs on without an input are taken for steps of several small steps.
    """
    table, every = loop.iterations.table, loop.iterations.numbers
    numbers = _steps(table, every[:FEWEST], inner, loop.level)  # most loops are none of chunks
    numbers = numbers and _steps(table, every, inner, loop.level)
    if len(numbers) < FEWEST:
        return None
    labelling = Labelling()
    labels = [labelling(tuple(table.keys(own, loop.level, depth=False))) for own in numbers]
    return Loop(inner.frame, loop.level, Iterations(table, numbers, labels), depth=False)


def _steps(table: Table, every: Sequence[Sequence[int]], inner: Loop, level: int) -> list[list[int]]:
    """The operations of every step, of chunks with these operations; [] where they are no chunks."""
    chunks = [_segments(table, numbers, inner) for numbers in every]
    if not all(chunks):
        return []
    steps = list(chain.from_iterable(chunks))
    between = _connecting(table, list(chain.from_iterable(every)), steps, level)
    if not (_continue(table, chunks, between) and _read_their_own(table, steps, between)):
        return []
    return _with_what_precedes(steps, between)


def _segments(table: Table, numbers: Sequence[int], inner: Loop) -> list[list[int]]:
    """The steps among the operations of one chunk: what begins as the steps of `inner` do, and has their operations.

    [] where the steps of `inner` begin in several ways, or something else is among them.
    """
    level, own = inner.level, inner.iterations.numbers
    deep = [n for n in numbers if table.frames(level)[table.where[n]] is not None]
    keys = dict(zip(deep, table.keys(deep, level, depth=False), strict=True))
    heads = set(table.keys([step[0] for step in own], level, depth=False))
    body = set(table.keys(list(chain.from_iterable(own)), level, depth=False))
    starts = [at for at, n in enumerate(numbers) if keys.get(n) in heads]
    if len(heads) > 1 or not starts:
        return []
    end = starts[-1]
    while end < len(numbers) and keys.get(numbers[end]) in body:
        end += 1
    found = [list(numbers[a:b]) for a, b in pairwise([*starts, end])]
    return found if all(keys.get(n) in body for step in found for n in step) else []


def _connecting(table: Table, every: Sequence[int], steps: Sequence[Sequence[int]], level: int) -> set[int]:
    """The operations outside the steps that compute what a later step reads from what an earlier one made."""
    inside = set(chain.from_iterable(steps))
    depends: set[int] = set()
    reached = set()
    for n in every:
        op = table.op(n)
        if n in inside or not (op.traits.forgets or depends.isdisjoint(map(id, op.inputs))):
            depends.update(map(id, op.outputs))
            reached.add(n)
    found = _leading(table, every, inside, reached)
    ops = [n for n in every if n not in inside]
    keys = dict(zip(ops, table.keys(ops, level, depth=False), strict=True))
    same = {keys[n] for n in found}  # 0.5 * m, of which the first m comes from outside
    return _leading(table, every, inside, reached | {n for n in ops if keys[n] in same})


def _leading(table: Table, every: Sequence[int], inside: Set[int], among: Set[int]) -> set[int]:
    """Of the operations `among`, those that make what a step reads later. `inside`: the operations of the steps."""
    wanted: set[int] = set()
    found = set()
    for n in reversed(every):
        op = table.op(n)
        if n in inside or (n in among and (op.in_place or not wanted.isdisjoint(map(id, op.outputs)))):
            wanted.update(map(id, op.inputs))
            found.add(n)
    return found - inside


def _with_what_precedes(steps: Sequence[Sequence[int]], between: set[int]) -> list[list[int]]:
    """The steps, each with the operations since the one before that lead to it or to a later one."""
    found, waiting = [], sorted(between)
    for step in steps:
        before = [n for n in waiting if n < step[0]]
        waiting = waiting[len(before) :]
        found.append([*before, *step])
    return found


def _continue(table: Table, chunks: Sequence[Sequence[Sequence[int]]], between: set[int]) -> bool:
    """Whether the first step of each chunk reads what the last one before made, where others read the step before."""
    carried = _carried(table, chunks)
    for before, after in pairwise(chunks):
        made = _made(table, before[-1])
        for n in sorted(n for n in between if before[-1][-1] < n < after[0][0]):
            op = table.op(n)
            plain = not op.traits.forgets and not any(isinstance(one, Parameter) for one in op.inputs)
            if plain and not made.isdisjoint(map(id, op.inputs)):
                made.update(map(id, op.outputs))
        if not any(id(given) in made for place, given in _given(table, after[0]) if place in carried):
            return False
    return True


def _carried(table: Table, chunks: Sequence[Sequence[Sequence[int]]]) -> set[tuple[int, int]]:
    """Where steps read what the step before made."""
    return {
        place for chunk in chunks for before, step in pairwise(chunk)
        for made in [_made(table, before)]
        for place, given in _given(table, step) if id(given) in made
    }  # fmt: skip


def _given(table: Table, step: Sequence[int]) -> Iterator[tuple[tuple[int, int], Tensor]]:
    """((number of the operation in the step, number of the input), input)."""
    return (((j, k), given) for j, n in enumerate(step) for k, given in enumerate(table.op(n).inputs))


def _made(table: Table, step: Sequence[int]) -> set[int]:
    return {id(one) for n in step for one in table.op(n).outputs}


def _read_their_own(table: Table, steps: Sequence[Sequence[int]], between: set[int]) -> bool:
    """Whether every step reads something from outside that no other step reads."""
    carried = {id(one) for n in (*chain.from_iterable(steps), *between) for one in table.op(n).outputs}
    reads = [
        {
            (id(given), *_taken(table, n))
            for n in step for given in table.op(n).inputs
            if id(given) not in carried and not _of_weights(table, given)
        }
        for step in steps
    ]  # fmt: skip
    counts = Counter(chain.from_iterable(reads))
    return all(any(counts[read] == 1 for read in own) for own in reads)


def _taken(table: Table, n: int) -> Read:
    """Which part of a tensor an operation takes: its other arguments, where it only rearranges."""
    op = table.op(n)
    plain = [one for one in (*op.args, *op.kwargs.values()) if not isinstance(one, Tensor)]
    return (op.name, repr(plain)) if op.traits.rearranges else ()


def _of_weights(table: Table, tensor: Tensor, deep: int = DEEP) -> bool:
    """Whether a tensor is made of parameters alone, by few operations: a weight for each small step within a step."""
    if isinstance(tensor, Parameter):
        return True
    maker = table.maker(id(tensor)) if deep else None
    inputs = () if maker is None else table.op(maker).inputs
    return bool(inputs) and all(_of_weights(table, one, deep - 1) for one in inputs if one is not tensor)
