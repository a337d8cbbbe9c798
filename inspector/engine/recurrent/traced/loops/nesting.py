"""Loops inside loops: which of them goes over layers, and where one loop of the code runs several times.

`for layer in layers: for row in x:` is a recurrence over the rows in every layer; what is passed from layer to layer is
a whole sequence and no state. Layers have weights of their own, steps of time share theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice, pairwise

import numpy as np

from inspector.engine.recurrent.traced.loops.bytecode import loops_of
from inspector.engine.recurrent.traced.loops.loop import FEWEST, Iterations, Labelling, Loop
from inspector.engine.recurrent.traced.loops.weights import Weights
from inspector.engine.recurrent.traced.record.op_table import Table


def repeats(loop: Loop, fewest: int = FEWEST) -> list[list[int]]:
    """The calls of each iteration in which something is repeated often enough to be a loop of its own."""
    often: dict[int, bool] = {}
    found = []
    for numbers, labels in zip(loop.iterations.numbers, loop.iterations.labels, strict=True):
        if id(labels) not in often:
            often[id(labels)] = _most(loop.iterations.table, numbers, loop.level) >= fewest
        if often[id(labels)]:
            found.append(numbers)
    return found


def _most(table: Table, numbers: Sequence[int], level: int) -> int:
    """How often the most frequent operation occurs: by its place in the code, whatever its module."""
    return max(Counter(table.keys(numbers, level, depth=True)).values(), default=0)


@dataclass(frozen=True, slots=True)
class Pieces:
    """The calls of parts of a loop: its layers, or the runs of one loop of the code that is inside another."""

    layers: Sequence[list[int]] = ()
    runs: Sequence[list[int]] = ()


def pieces(loop: Loop, weights: Weights) -> Pieces:
    """The parts of a loop that are recurrences of their own, if any.

    They are its iterations, where each has weights of its own and something repeats in it, and the runs of one loop of
    the code that is inside another, where a run has other weights or does not continue from the state of the one
    before.
    Counter-example: two passes over one sequence with the same weights, of which the second begins with the state that
    the first one ended with, are one recurrence of twice as many steps.
    """
    own = loop.iterations.numbers
    used = weights.of(own)
    if len(_changes(used)) == len(own) - 1:
        return Pieces(layers=own if repeats(loop) else ())
    if loop.depth:
        return Pieces()
    cuts = _changes(_shared(used))
    runs = _runs(loop)
    wanted = {n for n, continues in runs.items() if not continues}
    wanted |= {n for n in cuts if n in runs or not _fed(loop, n)}
    if not wanted:
        return Pieces()
    bounds = [0, *(n + 1 for n in sorted(wanted)), len(own)]
    parts = [list(chain.from_iterable(own[a:b])) for a, b in pairwise(bounds)]
    return Pieces(layers=parts) if cuts or len(parts) < FEWEST else Pieces(runs=parts)


def loop_of_parts(loop: Loop, parts: Sequence[list[int]]) -> Loop:
    """The loop around one that runs several times: each run is an iteration of it."""
    table = loop.iterations.table
    labelling = Labelling()
    labels = [labelling(tuple(table.keys(part, loop.level, depth=False))) for part in parts]
    return Loop(loop.frame, loop.level, Iterations(table, [list(part) for part in parts], labels), depth=False)


def _shared(used: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """The same without what one iteration alone uses: a learned initial state is no weight of the steps."""
    if len(set(used)) == 1:
        return list(used)
    counts = Counter(chain.from_iterable(used))
    return [frozenset(one for one in own if counts[one] > 1) for own in used]


def _changes(used: Sequence[frozenset[int]]) -> set[int]:
    """After which iterations the weights change for good: each side has weights at the change that the other has
    nowhere."""
    if len(set(used)) == 1:
        return set()
    before = list(accumulate(used, _both))
    after = list(accumulate(reversed(used), _both))[::-1]
    return {
        n for n, (one, other) in enumerate(pairwise(used))
        if one != other and not one <= after[n + 1] and not other <= before[n]
    }  # fmt: skip


def _both(one: frozenset[int], other: frozenset[int]) -> frozenset[int]:
    return one | other


def _runs(loop: Loop) -> dict[int, bool]:
    """After which iterations the loop of the code ended and began again, and whether the next run continues the state.

    That is seen from operations between two iterations that lie outside the innermost loop of the code.
    """
    if len(loops_of(loop.frame.f_code)) < 2:
        return {}
    table, own = loop.iterations.table, loop.iterations.numbers
    offsets = iter(table.offsets(list(chain.from_iterable(own)), loop.level))
    sites = [list(islice(offsets, len(numbers))) for numbers in own]
    firsts = {one[0] for one in sites}
    spans = [span for span in loops_of(loop.frame.f_code) if all(span[0] <= at <= span[1] for at in firsts)]
    found: dict[int, bool] = {}
    first = 0
    for n, places in enumerate(sites[:-1] if len(spans) > 1 else ()):
        outside = [at for at, place in zip(own[n], places, strict=True) if not spans[-1][0] <= place <= spans[-1][1]]
        if outside:
            found[n] = _continues(loop, first, n, outside)
            first = n + 1
    return found


def _continues(loop: Loop, first: int, n: int, outside: Sequence[int]) -> bool:
    """Whether the iteration after n computes with what iteration n made: directly, or through operations outside that
    use no earlier iteration of the run (those make whole sequences)."""
    table, own = loop.iterations.table, loop.iterations.numbers
    between = set(outside)
    earlier = _made(table, list(chain.from_iterable(own[first:n])))
    state = _made(table, [at for at in own[n] if at not in between]) - earlier
    for at in outside:
        given = _given(table, [at])
        if given & earlier:
            earlier |= _made(table, [at])
        elif given & state:
            state |= _made(table, [at])
    return bool(_given(table, own[n + 1]) & state)


def _fed(loop: Loop, n: int) -> bool:
    """Whether the iteration after n reads anything that iteration n made."""
    table, own = loop.iterations.table, loop.iterations.numbers
    return bool(_given(table, own[n + 1]) & _made(table, own[n]))


def _made(table: Table, numbers: Sequence[int]) -> set[int]:
    return set(table.made.of(np.asarray(numbers, dtype=np.int64)).tolist())


def _given(table: Table, numbers: Sequence[int]) -> set[int]:
    return set(table.given.of(np.asarray(numbers, dtype=np.int64)).tolist())
