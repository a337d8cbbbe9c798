"""Where the user's code goes round: iterations of a Python loop, found from the order of its operations.

Within one frame the same instruction asks for the same operation again and again. The first operation that comes
back marks where an iteration begins; the loop ends with the first operation that none of its iterations had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import FrameType

from torch.nn import Parameter

from inspector.engine.handwritten.recording import Op

FEWEST = 3
"""Iterations that make a loop: the first, the last, and one that has both neighbours."""

Key = tuple[Hashable, ...]
Label = int
"""An operation of the loop's body: a number for its key and the how-manieth with that key it is in its iteration."""


@dataclass(slots=True)
class Loop:
    """One loop: the frame that holds it, and for each iteration the operations with their labels.

    `depth`: True where the iterations call different modules (a stack of layers), False for one and the same code.
    """

    frame: FrameType
    level: int
    iterations: list[list[tuple[Label, Op]]]
    depth: bool


Search = Generator[Loop, bool, None]


def find_loops(ops: Sequence[Op]) -> Search:
    """Loops, those of the outermost frames first; `send(True)` says that the last one was of use.

    What lies inside a loop of use is not looked at again. Loops over one and the same code come before loops over
    equal layers (`depth`).
    """
    yield from _inside(list(ops), 0)


def _inside(ops: list[Op], level: int) -> Search:
    frames: dict[FrameType, list[Op]] = {}
    for op in ops:
        if len(op.chain) > level:
            frames.setdefault(op.chain[level][0], []).append(op)
    for frame, own in frames.items():
        if _one_call(own, level):
            yield from _inside(own, level + 1)
            continue
        left = own
        for depth in (False, True):
            used: set[int] = set()
            for loop in _loops_of(frame, left, level, depth):
                if not _deeper(loop, level) and (yield loop):
                    used |= {id(op) for ops in loop.iterations for _, op in ops}
            left = [op for op in left if id(op) not in used] if used else left
        yield from _inside(left, level + 1)


def _deeper(loop: Loop, level: int) -> bool:
    """True when the loop is that of a function called here: all its operations are in one and the same call."""
    return _one_call([op for ops in loop.iterations for _, op in ops], level)


def _one_call(ops: Sequence[Op], level: int) -> bool:
    first = ops[0].chain
    if len(first) <= level + 1:
        return False
    inner = first[level + 1][0]
    return all(len(op.chain) > level + 1 and op.chain[level + 1][0] is inner for op in ops)


def key_of(op: Op, level: int, depth: bool) -> Key:
    """What makes two operations the same one of a loop's body: instruction, calls below it, function, module.

    The module is known by the `self` of the innermost call and by the parameters that are used.
    """
    chain = op.chain
    below = tuple((frame.f_code, at) for frame, at in chain[level + 1 :])
    here = chain[level][1]
    if depth:
        return here, below, op.name
    weights = tuple(id(given) for given in op.inputs if type(given) is Parameter)
    return here, below, op.name, id(op.owner), weights


def _loops_of(frame: FrameType, ops: list[Op], level: int, depth: bool) -> Iterator[Loop]:
    keys = [key_of(op, level, depth) for op in ops]
    counts = Counter(keys)
    at = 0
    while at < len(ops):
        if counts[keys[at]] < FEWEST:
            at += 1
            continue
        starts, end = _extent(keys, at)
        inside = slice(starts[0], end)
        own = ops[inside]
        wrong = _same_modules(own, level) if depth else _many_modules(own, keys[inside], counts, level)
        if len(starts) >= FEWEST and not wrong:
            bounds, numbers = [*starts, end], dict[tuple[Key, int], Label]()
            iterations = [_labelled(keys, ops, a, b, numbers) for a, b in pairwise(bounds)]
            if not depth:
                iterations[0] = _as_second(iterations[0], iterations[1], level)
            yield Loop(frame, level, _turned(iterations), depth)
        at = max(end, at + 1)


def _as_second(first: list[tuple[Label, Op]], second: list[tuple[Label, Op]], level: int) -> list[tuple[Label, Op]]:
    """The first iteration, its operations labelled as the same ones of the second although it is given a parameter
    (a learned first state) where that one is given a state."""
    known, labels = {label for label, _ in first}, {label for label, _ in second}
    waiting: dict[Key, list[Label]] = {}
    for label, op in second:
        if label not in known:
            waiting.setdefault(key_of(op, level, True), []).append(label)
    found = []
    for label, op in first:
        same = waiting.get(key_of(op, level, True)) if label not in labels else None
        found.append((same.pop(0) if same else label, op))
    return found


def _turned(iterations: list[list[tuple[Label, Op]]]) -> list[list[tuple[Label, Op]]]:
    """The same operations, divided so that the last iteration is whole.

    Where it ends early, what all others do after that point is what they do before the next (`if t: h = 0.9 * h`):
    it belongs to the iteration that follows, and the first one has none of it.
    """
    labels = [label for label, _ in iterations[-1]]
    body = [label for label, _ in iterations[-2]]
    rest = body[len(labels) :]
    if not rest or body[: len(labels)] != labels:
        return iterations
    if any([label for label, _ in ops[-len(rest) :]] != rest for ops in iterations[:-1]):
        return iterations
    tails = [[], *(ops[-len(rest) :] for ops in iterations[:-1])]
    heads = [*(ops[: -len(rest)] for ops in iterations[:-1]), iterations[-1]]
    return [tail + head for tail, head in zip(tails, heads, strict=True)]


def _many_modules(ops: list[Op], keys: list[Key], counts: Counter[Key], level: int) -> bool:
    """True where one instruction goes through different modules, each of them once: a stack of layers."""
    alike = [key_of(op, level, True) for op, key in zip(ops, keys, strict=True) if counts[key] == 1]
    return any(count > 1 for count in Counter(alike).values())


def _same_modules(ops: list[Op], level: int) -> bool:
    """True where the same weights come again and again: no stack of layers."""
    used = Counter(key_of(op, level, False) for op in ops if any(type(given) is Parameter for given in op.inputs))
    return any(count >= FEWEST for count in used.values())


def _extent(keys: list[Key], at: int) -> tuple[list[int], int]:
    """(where each iteration begins, where the loop ends) of the loop whose first operation is at `at`."""
    anchor = keys[at]
    starts = [n for n in range(at, len(keys)) if keys[n] == anchor]
    body = set(keys[starts[0] : starts[-1]]) if len(starts) > 1 else {anchor}
    end = starts[-1] + 1
    while end < len(keys) and keys[end] in body:
        end += 1
    return starts, end


def _labelled(
    keys: list[Key], ops: list[Op], start: int, stop: int, numbers: dict[tuple[Key, int], Label]
) -> list[tuple[Label, Op]]:
    seen: dict[Key, int] = {}
    found = []
    for n in range(start, stop):
        key = keys[n]
        count = seen.get(key, 0)
        seen[key] = count + 1
        found.append((numbers.setdefault((key, count), len(numbers)), ops[n]))
    return found
