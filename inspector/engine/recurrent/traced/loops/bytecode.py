"""Where the loops of a function are in its bytecode, and how its operations fall into iterations by that."""

from __future__ import annotations

import dis
import functools
from collections.abc import Sequence
from types import CodeType

Span = tuple[int, int]
"""Offsets of the first and of the last instruction of a loop."""


@functools.lru_cache(maxsize=1024)
def loops_of(code: CodeType) -> tuple[Span, ...]:
    """The loops of a function, outer ones before those inside them. A jump back is what makes a loop."""
    found: dict[int, int] = {}
    for instruction in dis.get_instructions(code):
        if "JUMP_BACKWARD" in instruction.opname:
            start = int(instruction.argval)
            found[start] = max(found.get(start, 0), instruction.offset)
    return tuple(sorted(found.items(), key=lambda span: (span[0], -span[1])))


def begins(span: Span, inner: Sequence[Span], offsets: Sequence[int]) -> list[int]:
    """Where iterations of a loop begin among operations that all lie in it, by the offsets of their instructions.

    Within an iteration instructions follow each other; to an earlier one only a jump back leads, that of a loop inside
    or the loop's own. Where one instruction calls all there is, this finds no beginnings but the first.
    """
    own = [one for one in inner if one != span and span[0] <= one[0] and one[1] <= span[1]]
    found = [0]
    for n in range(1, len(offsets)):
        before, now = offsets[n - 1], offsets[n]
        if now < before and not any(start <= now and before <= stop for start, stop in own):
            found.append(n)
    return found
