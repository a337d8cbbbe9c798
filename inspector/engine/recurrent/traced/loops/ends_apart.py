"""A first or a last step that is written on other lines than the loop: an iteration like all others.

The operations beside the loop must be those of an iteration, on the same weights, and read what the iteration before
made, operation by operation. So that nothing else is taken for a step (a decoder that begins where an encoder ended,
one more refinement), the loop must lack as many steps as are added, of those that an input has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from torch import nn

from inspector.engine.recurrent.traced.loops.loop import Loop
from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import given_to

MOST_BESIDE = 3
"""Operations in a row beside those of a step: zeros for its first state, a view of them."""
Source = tuple[bool, int] | None
"""What an operation reads: whether an operation of the same iteration made it or one of the iteration before, and which
one; None for anything else."""


def join_ends(loop: Loop, lengths: Collection[int]) -> None:
    """Add a first and a last step to a loop that has one or two iterations less than an input has steps."""
    count = len(loop.iterations)
    if loop.depth or count < 2 or count in lengths or not {count + 1, count + 2} & set(lengths):
        return
    first, last = _first(loop), _last(loop)
    added = bool(first) + bool(last)
    if added == 2 and count + 2 not in lengths:
        first, added = [], 1
    if not added or count + added not in lengths:
        return
    if first:
        loop.iterations.put_first(first)
    if last:
        loop.iterations.put_last(last)


def _first(loop: Loop) -> list[int]:
    """The operations before a loop that are a step, in order; none where there is no such step."""
    (own, after), labels = loop.iterations.numbers[:2], loop.iterations.labels
    if labels[0] != labels[1]:
        return []
    found = _aligned(loop, own[::-1], _beside(loop, own[0] - 1, -1))[::-1]
    table = loop.iterations.table
    whole = len(found) == len(own) and _alike(table, found, own)
    return found if whole and _carried(table, (own, after), (found, own)) is not None else []


def _last(loop: Loop) -> list[int]:
    """The operations after a loop that are a step, in order; the last ones may lack where they make no state."""
    before, own = loop.iterations.numbers[-2:]
    if loop.iterations.labels[-1] != loop.iterations.labels[-2]:
        return []
    found = _aligned(loop, own, _beside(loop, own[-1] + 1, 1))
    carried = _carried(loop.iterations.table, (before, own), (own, found)) if found else None
    return found if carried is not None and carried < len(found) else []


def _beside(loop: Loop, at: int, step: int) -> Iterator[int]:
    """The calls from `at` on in the frame of a loop, forwards or backwards."""
    table = loop.iterations.table
    frames = table.frames(loop.level)
    while 0 <= at < len(table) and frames[table.where[at]] is loop.frame:
        yield at
        at += step


def _aligned(loop: Loop, own: Sequence[int], beside: Iterable[int]) -> list[int]:
    """For the operations of an iteration, in order, those beside the loop that call the same functions."""
    calls = loop.iterations.table.calls
    found: list[int] = []
    passed = 0
    for n in beside:
        if len(found) == len(own) or passed > MOST_BESIDE:
            break
        same = calls[n][0] is calls[own[len(found)]][0]
        found, passed = ([*found, n], 0) if same else (found, passed + 1)
    return found


def _carried(
    table: Table, known: tuple[Sequence[int], Sequence[int]], new: tuple[Sequence[int], Sequence[int]]
) -> int | None:
    """The last operation whose result is carried into the next iteration; None where two pairs of iterations in a row
    do not read each other in the same way, or nothing is carried.

    `known` and `new`: (iteration, the one after it).
    """
    carried: set[int] = set()
    for one, two in zip(known[1], new[1], strict=False):
        sources = _sources(table, one, *known)
        if sources != _sources(table, two, *new) or not _same_weights(table, one, two):
            return None
        carried |= {source[1] for source in sources if source is not None and not source[0]}
    return max(carried, default=None)


def _alike(table: Table, one: Sequence[int], two: Sequence[int]) -> bool:
    """Whether two iterations compute the same from what they are given."""
    return all(
        _sources(table, a, (), one) == _sources(table, b, (), two) and _same_weights(table, a, b)
        for a, b in zip(one, two, strict=True)
    )


def _sources(table: Table, n: int, before: Sequence[int], own: Sequence[int]) -> list[Source]:
    """What a call reads."""
    found: list[Source] = []
    for given in given_to(table.calls[n]):
        maker = table.maker(id(given))
        if maker in own:
            found.append((True, own.index(maker)))
        elif maker in before:
            found.append((False, before.index(maker)))
        else:
            found.append(None)
    return found


def _same_weights(table: Table, one: int, two: int) -> bool:
    """Whether two calls are given the same parameters."""
    pairs = zip(given_to(table.calls[one]), given_to(table.calls[two]), strict=False)
    return all(a is b for a, b in pairs if isinstance(a, nn.Parameter) or isinstance(b, nn.Parameter))
