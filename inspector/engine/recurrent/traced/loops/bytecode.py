"""Where the loops of a function are in its bytecode, and how they divide its operations into iterations."""

from __future__ import annotations

import dis
import functools
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import CodeType

Span = tuple[int, int]
"""Offsets of the first and of the last instruction of a loop."""
Reaches = Callable[[int, int], bool]
ENDS = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"})


@functools.lru_cache(maxsize=1024)
def loops_of(code: CodeType) -> tuple[Span, ...]:
    """The loops of a function, outer ones before those inside them. A jump back is what makes a loop."""
    found: dict[int, int] = {}
    for instruction in dis.get_instructions(code):
        if "JUMP_BACKWARD" in instruction.opname:
            start = int(instruction.argval)
            found[start] = max(found.get(start, 0), instruction.offset)
    return tuple(sorted(found.items(), key=lambda span: (span[0], -span[1])))


@functools.lru_cache(maxsize=1024)
def within_a_round(code: CodeType, span: Span) -> Reaches:
    """Whether an instruction can be followed by another one without the loop's own jump back: not in two branches.

    Exceptions are not followed. Counter-example: operations of an `except` branch after one that raised begin an
    iteration of their own.
    """
    follows, offsets = _graph(code, span)
    known: dict[int, set[int]] = {}

    def reaches(before: int, now: int) -> bool:
        if before not in known:
            seen: set[int] = set()
            todo = [offsets[bisect_right(offsets, before) - 1]]
            while todo:
                new = [one for one in follows[todo.pop()] if one not in seen]
                seen.update(new)
                todo += new
            known[before] = seen
        return before == now or offsets[bisect_right(offsets, now) - 1] in known[before]

    return reaches


def _graph(code: CodeType, span: Span) -> tuple[dict[int, list[int]], list[int]]:
    """(which instructions may follow each one, except for the jumps back to the loop's beginning; all offsets)."""
    instructions = list(dis.get_instructions(code))
    offsets = [one.offset for one in instructions]
    follows: dict[int, list[int]] = {}
    for n, one in enumerate(instructions):
        jumps = one.opcode in dis.hasjrel or one.opcode in dis.hasjabs
        goes_on = one.opname not in ENDS and not one.opname.startswith(("JUMP_BACKWARD", "JUMP_FORWARD"))
        after = [int(one.argval)] if jumps else []
        after += offsets[n + 1 : n + 2] if goes_on else []
        inside = span[0] <= one.offset <= span[1]
        follows[one.offset] = [target for target in after if not (inside and target == span[0])]
    return follows, offsets


def begins(span: Span, inner: Sequence[Span], offsets: Sequence[int], reaches: Reaches | None = None) -> list[int]:
    """Where iterations of a loop begin among operations that all lie in it, by the offsets of their instructions.

    Within an iteration instructions follow each other; only a jump back leads to an earlier one, that of a loop inside
    or the loop's own, and only the loop's own leads from one branch into another (`reaches`, where it is known).
    Counter-example: where one instruction makes all the calls (`h = step(x, h)`), this finds no beginnings but the
    first, and iterations follow from the order of the operations (detection.py).
    """
    own = [one for one in inner if one != span and span[0] <= one[0] and one[1] <= span[1]]

    def begin(before: int, now: int) -> bool:
        back = now < before and not any(start <= now and before <= stop for start, stop in own)
        return back or (reaches is not None and not reaches(before, now))

    pairs = list(pairwise(offsets))
    first = {pair for pair in set(pairs) if begin(*pair)}
    return [0, *(n for n, pair in enumerate(pairs, 1) if pair in first)]
