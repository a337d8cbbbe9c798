"""The iterations of a loop as its code defines them: where the bytecode goes back, or calls a function again."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from types import FrameType

from inspector.engine.recurrent.traced.loops.bytecode import Span, begins, loops_of, within_a_round
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
                return found, last
    return starts, end


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
        firsts = one_of_each(operations.table, operations.ops, keys, starts, groups)
        if len(firsts) > len(rounds):
            return False
    held = Counter(chain.from_iterable(set(keys[a:b]) for a, b in pairwise([*found, last])))
    by_turns = max(rounds) - min(rounds) >= len(rounds)  # iterations without it lie between those with it
    return by_turns or max(held.values()) >= ALIKE * len(found)
