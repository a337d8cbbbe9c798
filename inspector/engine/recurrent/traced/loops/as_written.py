"""The iterations of a loop as its code defines them: where the bytecode goes back, or calls a function again."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from types import FrameType

from inspector.engine.recurrent.traced.loops.bytecode import Span, begins, loops_of, within_a_round
from inspector.engine.recurrent.traced.loops.loop import FEWEST
from inspector.engine.recurrent.traced.loops.repeats_within import by_calls, one_of_each
from inspector.engine.recurrent.traced.record.op_table import Table

ALIKE = 0.8
"""Share of the iterations of a loop in the bytecode that must have an operation in common to be taken for its
iterations, where those without it all come first or last. Not 1: some steps of a loop do something else. Not less: a
loop whose first half encodes and whose second half decodes is two recurrences. Counter-example: of a loop that decodes
in its last fifth only, by other operations, both are taken for one recurrence, whose steps have two programs."""


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations of one frame. `sites`: (offset of the instruction, kind) of every operation."""

    table: Table
    frame: FrameType
    level: int
    ops: list[int]
    keys: list[int]
    sites: list[tuple[int, int]]


def as_written(operations: Operations, starts: list[int], end: int) -> tuple[list[int], int]:
    """The same loop with its iterations as the code defines them, where its bytecode shows it: the operation that
    repeats in each iteration need not be its first (`if` at its head).

    It is the innermost loop none of whose iterations has two of these starts (or has them for parts of the state that
    do not depend on each other), nearly all of which have an operation in common, and in which no other operation has
    their place in the code (alternating layers do).
    """
    keys, sites = operations.keys, operations.sites
    loops, offsets = loops_of(operations.frame.f_code), [offset for offset, _ in sites]
    one = {(offsets[n], offsets[n]) for n in starts}  # reduce and the like: one instruction makes all calls
    for span in [*(one if len(one) == 1 else ()), *reversed(loops)]:
        if not all(span[0] <= offsets[n] <= span[1] for n in starts):
            continue
        first, last = starts[0], starts[0]
        while first > 0 and span[0] <= offsets[first - 1] <= span[1]:
            first -= 1
        while last < len(keys) and span[0] <= offsets[last] <= span[1]:
            last += 1
        if last <= starts[-1] or sites[first:last].count(sites[starts[0]]) != len(starts):
            continue
        for found in _rounds(operations, span, first, last, starts):
            if _are_iterations(operations, found, starts, last):
                return rounds_of_cells(operations, found) or (found, last)
    return rounds_of_cells(operations, starts) or (starts, end)


def rounds_of_cells(operations: Operations, starts: Sequence[int]) -> tuple[list[int], int] | None:
    """The iterations of the loop around an inner one that calls another cell in each of its iterations
    (`for k in …: s[k] = cells[k](x_t, s[k])`): these are one step together, also where some of them pause.

    In each iteration of the loop around no weight is used twice, and in several the same ones are. None elsewhere, and
    where nothing is computed in the loop around but by the cells, since the bytecode does not show then where it goes
    back. Counter-example: two halves of one sequence that go through different weights, as many times as an outer loop
    is repeated.
    """
    table, code = operations.table, operations.frame.f_code
    offsets = [offset for offset, _ in operations.sites]
    held = [span for span in loops_of(code) if all(span[0] <= offsets[n] <= span[1] for n in starts)]
    if len(held) < 2 or len(starts) < 2:
        return None
    around = held[-2]
    first, last = starts[0], starts[-1]
    while first > 0 and around[0] <= offsets[first - 1] <= around[1]:
        first -= 1
    while last < len(offsets) and around[0] <= offsets[last] <= around[1]:
        last += 1
    rounds = [first + n for n in begins(around, held, offsets[first:last], within_a_round(code, around))]
    used = [
        frozenset(chain.from_iterable(table.weights.get(table.bodies[n], ()) for n in operations.ops[a:b]))
        for a, b in pairwise([*starts, last])
    ]
    groups: dict[int, list[frozenset[int]]] = {}
    for n, weights in zip(starts, used, strict=True):
        groups.setdefault(bisect_right(rounds, n), []).append(weights)
    apart = all(own and sum(map(len, own)) == len(frozenset().union(*own)) for own in groups.values())
    together = max(map(len, groups.values())) > 1 and len(set(used)) * 2 <= len(used)
    return (rounds, last) if all(used) and apart and together and len(groups) == len(rounds) > 2 else None


def _rounds(operations: Operations, span: Span, first: int, last: int, starts: list[int]) -> Iterator[list[int]]:
    """Where the iterations of a loop may begin: first, where there are more of them, those of which some make one and
    the same call only, which does not show where one ends."""
    loops, code = loops_of(operations.frame.f_code), operations.frame.f_code
    offsets = [offset for offset, _ in operations.sites[first:last]]
    plain = begins(span, loops, offsets, within_a_round(code, span))
    inner = [one for one in loops if one != span and span[0] <= one[0] and one[1] <= span[1]]
    again = by_calls(
        operations.table, operations.ops[first:last], offsets, operations.level, frozenset(n - first for n in starts)
    )
    more = {n for n in again if not any(a <= offsets[n] <= b for a, b in inner)}
    if not more <= set(plain):
        yield [first + n for n in sorted(more | set(plain))]
    yield [first + n for n in plain]


def _are_iterations(operations: Operations, found: list[int], starts: list[int], last: int) -> bool:
    """Whether a loop whose operations repeat at `starts` has its iterations at `found`."""
    keys = operations.keys
    groups = [bisect_right(found, n) for n in starts]
    rounds = Counter(groups)
    if max(rounds.values()) > 1:
        firsts = one_of_each(operations.table, operations.ops, keys, starts, groups, FEWEST)
        if len(firsts) > len(rounds):
            return False
    held = Counter(chain.from_iterable(set(keys[a:b]) for a, b in pairwise([*found, last])))
    by_turns = max(rounds) - min(rounds) >= len(rounds)  # iterations without it lie between those with it
    return by_turns or max(held.values()) >= ALIKE * len(found)
