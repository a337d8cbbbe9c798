"""Where the user's code repeats: iterations of a Python loop, found from the order of its operations.

Within one frame the same instruction calls the same operation repeatedly. The first operation that occurs again marks
where an iteration begins; the loop ends with the first operation that none of its iterations had.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Generator, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain, pairwise
from types import FrameType
from typing import TypeVar

from inspector.engine.recurrent.traced.loops.as_written import Operations, as_written
from inspector.engine.recurrent.traced.loops.chunks import loop_of_steps
from inspector.engine.recurrent.traced.loops.loop import FEWEST, Iterations, Label, Labelling, Loop
from inspector.engine.recurrent.traced.loops.nesting import loop_of_parts, pieces, repeats
from inspector.engine.recurrent.traced.loops.repeats_within import one_of_each_call
from inspector.engine.recurrent.traced.loops.weights import Weights
from inspector.engine.recurrent.traced.loops.written_out import Apart
from inspector.engine.recurrent.traced.record.op_table import Table

FEWEST_IN_A_CHUNK = 2
"""Steps in the longest chunk of a loop over chunks: all chunks together have enough."""
Found = TypeVar("Found")
MAY_BE_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""Such a call may go on after its caller did something else."""
Search = Generator[Loop, bool, Found]


def find_loops(table: Table, fixed: Set[int] = frozenset(), apart: Sequence[Apart] = ()) -> Search[None]:
    """Loops, those of the outermost frames first; `send(True)` reports that the last one was used.

    Loops over the same code come before loops over equal layers (`depth`), and what repeats inside the layers of a
    stack comes before the stack. Of a loop that was used, what is inside its steps is not searched again.
    `fixed`: ids of tensors of the model that are weights beside its parameters. The operations of each of `apart` are
    searched by themselves, before all others.
    """
    taken = set(chain.from_iterable(ops for _, ops in apart))
    for level, ops in apart:
        frame = table.frames(level)[table.where[ops[-1]]]
        assert frame is not None
        yield from _loops_of(table, frame, ops, level, depth=False)
    yield from _inside(_Searched(table, Weights(table, fixed)), [n for n in range(len(table)) if n not in taken], 0)


@dataclass(frozen=True, slots=True)
class _Searched:
    """What is searched: the calls, and the weights that they use."""

    table: Table
    weights: Weights


def _inside(searched: _Searched, ops: list[int], level: int) -> Search[bool]:
    """Loops among these calls; whether one of them was used."""
    used = False
    if len(ops) < FEWEST:
        return used
    table = searched.table
    for frame, own in _by_frame(table, ops, level).items():
        if _one_call(table, own, level):
            used |= yield from _inside(searched, own, level + 1)
            continue
        left = own
        for depth in (False, True):
            done: set[int] = set()
            for loop in _loops_of(table, frame, left, level, depth=depth):
                if _one_call(table, list(chain.from_iterable(loop.iterations.numbers)), level):
                    continue  # the loop is in a function called here
                found, calls = yield from _nested(searched, loop)
                used |= found
                done |= calls
            left = [n for n in left if n not in done] if done else left
        used |= yield from _inside(searched, left, level + 1)
    return used


def _nested(searched: _Searched, loop: Loop) -> Search[tuple[bool, set[int]]]:
    """A loop, or those that are parts of it. (Whether one of them was used, calls that need not be searched again.)"""
    every = set(chain.from_iterable(loop.iterations.numbers))
    parts = pieces(loop, searched.weights)
    if parts.runs and (yield from _whole(searched, loop_of_parts(loop, parts.runs))):
        return True, every
    found = yield from _each(searched, parts.layers or parts.runs, loop.level)
    if found:
        return True, every
    for steps in _steps_of_chunks(loop):
        if (yield from _whole(searched, steps)):
            return True, every
    if (yield from _whole(searched, loop)):
        return True, every
    inner = repeats(loop)
    found = yield from _each(searched, inner, loop.level)
    return found, set(chain.from_iterable(inner))


def _steps_of_chunks(loop: Loop) -> Iterator[Loop]:
    """The loop over the steps inside a loop over chunks, if it is one."""
    inner = [] if loop.depth else repeats(loop, FEWEST_IN_A_CHUNK)
    for one in _within(loop.iterations.table, max(inner, key=len), loop.level) if inner else ():
        steps = loop_of_steps(loop, one)
        if steps is not None:
            yield steps


def _within(table: Table, ops: list[int], level: int) -> Iterator[Loop]:
    """The loops among the operations of an iteration, those of its own frame first."""
    for frame, own in _by_frame(table, ops, level).items():
        for loop in (
            ()
            if _one_call(table, own, level)
            else _loops_of(table, frame, own, level, depth=False, fewest=FEWEST_IN_A_CHUNK)
        ):
            if not _one_call(table, list(chain.from_iterable(loop.iterations.numbers)), level):
                yield loop
        yield from _within(table, own, level + 1)


def _whole(searched: _Searched, loop: Loop) -> Search[bool]:
    """A loop, and where it is used what repeats within its iterations beside its steps; whether it was used."""
    if not (yield loop):
        return False
    yield from _each(searched, [[n for n in own if n not in loop.steps] for own in repeats(loop)], loop.level)
    return True


def _each(searched: _Searched, parts: Sequence[list[int]], level: int) -> Search[bool]:
    found = False
    for part in parts:
        found |= yield from _inside(searched, part, level)
    return found


def loops_inside(loop: Loop) -> Iterator[Loop]:
    """Loops in the first iteration of a loop, in the same frame: `for sequence in batch: for step in sequence:`."""
    table, own = loop.iterations.table, loop.iterations.numbers[0]
    yield from _loops_of(table, loop.frame, own, loop.level, depth=False)


def _by_frame(table: Table, ops: list[int], level: int) -> dict[FrameType, list[int]]:
    above = table.frames(level)
    known = {above[where] for where in set(map(table.where.__getitem__, ops))}
    if len(known) == 1:
        (only,) = known
        return {} if only is None else {only: ops}
    frames: dict[FrameType, list[int]] = {}
    for n in ops:
        frame = above[table.where[n]]
        if frame is not None:
            frames.setdefault(frame, []).append(n)
    return frames


def _one_call(table: Table, ops: Sequence[int], level: int) -> bool:
    """True where all operations are in the same call at the next level."""
    below = table.frames(level + 1)
    first = below[table.where[ops[0]]]
    return first is not None and all(below[where] is first for where in set(map(table.where.__getitem__, ops)))


def _loops_of(
    table: Table, frame: FrameType, ops: list[int], level: int, *, depth: bool, fewest: int = FEWEST
) -> Iterator[Loop]:
    keys = table.keys(ops, level, depth=depth)
    sites: list[tuple[int, int]] = []
    counts = Counter(keys)
    often = {key for key, count in counts.items() if count >= fewest}
    at = 0
    while often and at < len(ops):
        if keys[at] not in often:
            at += 1
            continue
        starts, end = _extent(keys, at)
        if not depth and len(starts) >= fewest:
            sites = sites or list(zip(table.offsets(ops, level), table.keys(ops, level, depth=True), strict=True))
            starts, end = as_written(Operations(table, frame, level, ops, keys, sites), starts, end)
        if len(starts) >= fewest:
            starts = one_of_each_call(table, ops, keys, starts, level)
        if not depth and len(starts) >= fewest:
            end = _after_the_call(table, ops, level, end)
        own = list(zip(ops[starts[0] : end], keys[starts[0] : end], strict=True))
        wrong = (
            _same_modules(table, [n for n, _ in own], level) if depth
            else _many_modules(table, [n for n, key in own if counts[key] == 1], level)
        )  # fmt: skip
        if len(starts) >= fewest and not wrong:
            bounds = list(pairwise([*starts, end]))
            labelling = Labelling()
            labels = [labelling(tuple(keys[a:b])) for a, b in bounds]
            iterations = Iterations(table, [ops[a:b] for a, b in bounds], labels)
            if not depth:
                _as_second(iterations, level)
            _turn(iterations, level)
            yield Loop(frame, level, iterations, depth)
        at = max(end, at + 1)


def _as_second(iterations: Iterations, level: int) -> None:
    """Label operations of the first iteration as the same ones of the second although they read a parameter (a learned
    initial state) where those of the second read a state."""
    first, second = iterations.labels[:2]
    known, labels = set(first), set(second)
    keys = [iterations.table.keys(numbers, level, depth=True) for numbers in iterations.numbers[:2]]
    waiting: dict[int, list[Label]] = {}
    for label, key in zip(second, keys[1], strict=True):
        if label not in known:
            waiting.setdefault(key, []).append(label)
    if not waiting:
        return
    found = []
    for label, key in zip(first, keys[0], strict=True):
        same = waiting.get(key) if label not in labels else None
        found.append(same.pop(0) if same else label)
    iterations.labels[0] = second if found == second else found


def _turn(iterations: Iterations, level: int) -> None:
    """Divide the operations again so that the last iteration is complete.

    Where it ends early, what all others do after that point is what they do before the next (`if t: h = 0.9 * h`):
    these operations belong to the iteration that follows, and the first one has none of them. Where the last one does
    all the same, less often, it is a shorter chunk of steps.
    """
    numbers, labels = iterations.numbers, iterations.labels
    rest = labels[-2][len(labels[-1]) :]
    cut = len(rest)
    if not cut or labels[-2][:-cut] != labels[-1] or any(own[-cut:] != rest for own in labels[:-1]):
        return
    keys = [set(iterations.table.keys(own, level, depth=False)) for own in (numbers[-2][-cut:], numbers[-1])]
    if keys[0] <= keys[1]:
        return
    same: dict[tuple[Label, ...], list[Label]] = {}
    turned = []
    for n in range(len(labels)):
        head = labels[n] if n == len(labels) - 1 else labels[n][:-cut]
        whole = [*(rest if n else ()), *head]
        turned.append(same.setdefault(tuple(whole), whole))
    tails = [[], *(own[-cut:] for own in numbers[:-1])]
    heads = [*(own[:-cut] for own in numbers[:-1]), numbers[-1]]
    iterations.numbers = [tail + head for tail, head in zip(tails, heads, strict=True)]
    iterations.labels = turned


def _many_modules(table: Table, alone: list[int], level: int) -> bool:
    """True where one instruction goes through different modules, each of them once: a stack of layers.

    Counter-example: a loop over time whose steps each have a module of their own (weights that are not shared) is shown
    as a stack.
    """
    return any(count > 1 for count in Counter(table.keys(alone, level, depth=True)).values())


def _same_modules(table: Table, ops: list[int], level: int) -> bool:
    """True where the same weights are used repeatedly: not a stack of layers.

    Counter-example: a deep net of which three layers share their weights is not shown over its depth.
    """
    used = Counter(table.keys([n for n in ops if table.bodies[n] in table.weights], level, depth=False))
    return any(count >= FEWEST for count in used.values())


def _extent(keys: list[int], at: int) -> tuple[list[int], int]:
    """(where each iteration begins, where the loop ends) of the loop whose first operation is at `at`.

    It ends with the first operation that none of its iterations had. Counter-example: the same function applied once
    more after the loop, on the same line, belongs to it; an iteration that is not like the others is dropped or has a
    program of its own.
    """
    anchor = keys[at]
    starts = [n for n in range(at, len(keys)) if keys[n] == anchor]
    body = set(keys[starts[0] : starts[-1]]) if len(starts) > 1 else {anchor}
    end = starts[-1] + 1
    while end < len(keys) and keys[end] in body:
        end += 1
    return starts, end


def _after_the_call(table: Table, ops: Sequence[int], level: int, end: int) -> int:
    """Where a loop ends that would end inside a function that its last iteration called: after that call.

    Generators go on over several iterations; they are left out.
    """
    below = table.frames(level + 1)
    last = below[table.where[ops[end - 1]]]
    if last is None or last.f_code.co_flags & MAY_BE_RESUMED:
        return end
    while end < len(ops) and below[table.where[ops[end]]] is last:
        end += 1
    return end
