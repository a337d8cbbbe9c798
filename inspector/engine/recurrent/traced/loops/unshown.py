"""Loops and recursions that carry something from one iteration to the next and were not shown: where, and why not.

They are found by the code alone, without what `detection` and `state_choice` know: a fault there must not hide them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from inspector.engine.recurrent.traced.loops.bytecode import Span, loops_of
from inspector.engine.recurrent.traced.loops.loop import FEWEST
from inspector.engine.recurrent.traced.record.op_table import Table
from inspector.engine.recurrent.traced.record.operation import given_to
from inspector.engine.recurrent.traced.record.operator_traits import Kind
from inspector.engine.recurrent.traced.record.values import is_parameter

MOST_CALLS = 50_000
"""Calls of one loop that are examined: enough for its first iterations, which are as the later ones."""
SHARE = 0.6
"""Share of the iterations that read what the one before made, so that a loop carries something. Not 1: the first ones
may fill a window. Counter-example: a state that is changed at every second step is not reported."""
NO_USE = (Kind.QUESTION, Kind.CREATION, Kind.RANDOM, Kind.DETACH, Kind.JOIN, Kind.FUSED)
"""Torch's fused recurrent kernels among them: the state passed on from chunk to chunk is shown, or refused, by the
probe of their modules. Counter-example: a loop that calls such a kernel without a module is not reported."""
COMPLEX = "its state is complex and its step is not h = a h + b; derivatives of other complex steps are not computed"
UNKNOWN = "what it carries from one iteration to the next was not recognised as a state"
RECURSION = "calls of a function by itself are not followed; a loop over the same steps is"


@dataclass(frozen=True, slots=True)
class Unshown:
    """Something that repeats and is not shown. `calls`: numbers of its operations in the table."""

    what: str
    reason: str
    calls: tuple[int, ...]

    @property
    def sentence(self) -> str:
        """What was seen and why it is not shown."""
        return f"{self.what}, is not shown: {self.reason}."


def unshown(table: Table, shown: npt.NDArray[np.bool_]) -> list[Unshown]:
    """Loops, then recursions. `shown`: the calls that belong to a recurrence that is shown or was refused already."""
    found = [*_loops(table, shown), *_recursions(table, shown)]
    return [one for n, one in enumerate(found) if one.what not in {other.what for other in found[:n]}]


def _loops(table: Table, shown: npt.NDArray[np.bool_]) -> Iterator[Unshown]:
    deepest = max((len(outer) for outer, _ in table.wheres), default=-1)
    for level in range(deepest + 1):
        above = table.frames(level)
        own: dict[FrameType, list[int]] = {}
        for n, where in enumerate(table.where):
            frame = above[where]
            if frame is not None and not shown[n]:
                own.setdefault(frame, []).append(n)
        known: dict[tuple[CodeType, Span], list[list[int]]] = {}
        for frame, calls in own.items():
            for span in loops_of(frame.f_code):
                known.setdefault((frame.f_code, span), []).extend(_runs(table, calls, span, level))
        for (code, span), runs in known.items():
            yield from _of_code(table, code, span, runs, level)


def _of_code(table: Table, code: CodeType, span: Span, runs: Sequence[list[int]], level: int) -> Iterator[Unshown]:
    """The loop of one place in the code, once however often it was run: its longest run that carries something."""
    for run in sorted(runs, key=len, reverse=True)[:FEWEST]:
        iterations = _iterations(table, run[:MOST_CALLS], span, level, code)
        reason = _carries(table, iterations)
        if reason:
            times = f", run {len(runs)} times" if len(runs) > 1 else ""
            yield Unshown(f"{loop_text(len(iterations), code, span)}{times}", reason, tuple(run))
            return


def _runs(table: Table, calls: Sequence[int], span: Span, level: int) -> list[list[int]]:
    """The stretches of calls within a loop: it may be run several times."""
    runs: list[list[int]] = [[]]
    for n, offset in zip(calls, table.offsets(calls, level), strict=True):
        if span[0] <= offset <= span[1]:
            runs[-1].append(n)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if len(run) >= FEWEST]


def _iterations(table: Table, run: Sequence[int], span: Span, level: int, code: CodeType) -> list[list[int]]:
    """The calls of each iteration: it begins where the code goes back, or makes the same call once more."""
    inner = [one for one in loops_of(code) if one != span and span[0] <= one[0] and one[1] <= span[1]]
    offsets, below = table.offsets(run, level), table.frames(level + 1)
    found: list[list[int]] = [[run[0]]] if run else []
    for (a, before), (b, now) in pairwise(zip(run, offsets, strict=True)):
        again = now < before or (now == before and _called_anew(below[table.where[a]], below[table.where[b]]))
        within = any(start <= now <= stop and start <= before <= stop for start, stop in inner)
        if again and not within:
            found.append([])
        found[-1].append(b)
    return found


def _called_anew(before: FrameType | None, now: FrameType | None) -> bool:
    """Whether two calls at one instruction are in different calls of a function; without one, each is its own."""
    return before is not now or now is None


def _carries(table: Table, iterations: Sequence[Sequence[int]]) -> str:
    """Why a loop that carries something is not shown; "" for one that carries nothing, or is a stack of layers."""
    if len(iterations) < FEWEST or _layers(table, iterations):
        return ""
    at = {n: i for i, own in enumerate(iterations) for n in own}
    pairs, complex_ = set(), False
    for i, own in enumerate(iterations):
        for n in own:
            for given in _used(table, n):
                maker = table.maker(id(given))
                if maker is not None and at.get(maker) == i - 1 and maker in at:
                    pairs.add((i, tuple(given.shape)))
                    complex_ |= given.is_complex()
    steady = max((len([1 for _, shape in pairs if shape == one]) for _, one in pairs), default=0)
    if steady < max(FEWEST - 1, SHARE * (len(iterations) - 1)):
        return ""
    return COMPLEX if complex_ else UNKNOWN


def _used(table: Table, n: int) -> list[Tensor]:
    """The tensors of which a call computes something: not those that are only added to a sum, listed or asked."""
    op = table.op(n)
    if op.traits.kind in NO_USE or op.traits.rearranges:
        return []
    used = [one for number, one in op.operands() if not op.traits.adds(number, op.kwargs)]
    return [one for one in used if one.is_floating_point() or one.is_complex()]


def _layers(table: Table, iterations: Sequence[Sequence[int]]) -> bool:
    """Whether every iteration uses parameters of its own, as the layers of a stack do."""
    used = [{id(one) for n in own for one in given_to(table.calls[n]) if is_parameter(one)} for own in iterations]
    return all(used) and all(not (a & b) for a, b in pairwise(used))


def _recursions(table: Table, shown: npt.NDArray[np.bool_]) -> Iterator[Unshown]:
    """Functions that call themselves, with the same object, more often than twice inside each other.

    Calls around the model that do nothing by themselves contain the same operations, and count as one. What only makes,
    turns or joins tensors is no computation: a recursion over layers whose loops over time are shown has nothing else.
    """
    frames = [[*(frame for frame, _ in outer), inner] for outer, inner in table.wheres]
    nested = {number for number, own in enumerate(frames) if _twice(own)}
    calls: dict[tuple[CodeType, int], dict[FrameType, list[int]]] = {}
    for n, number in enumerate(table.where):
        if number in nested and not shown[n] and _used(table, n):
            for frame in dict.fromkeys(frames[number]):
                key = frame.f_code, id(_owner(frame))
                calls.setdefault(key, {}).setdefault(frame, []).append(n)
    for (code, _), own in calls.items():
        count = len({len(numbers) for numbers in own.values()})
        together = sorted(set().union(*own.values()))
        if count >= FEWEST and len(together) == max(map(len, own.values())):
            what = f"A recursion of {len(own)} calls of {_name(code)}(), line {code.co_firstlineno}"
            yield Unshown(what, RECURSION, tuple(together))


def _twice(frames: Sequence[FrameType]) -> bool:
    codes = [frame.f_code for frame in frames]
    return len(set(codes)) < len(codes)


def _owner(frame: FrameType) -> Any:
    """The object whose method a frame runs; None for a function."""
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount and code.co_varnames[0] == "self" else None


def loop_text(count: int, code: CodeType, span: Span | None, line: int = 0) -> str:
    """Where a loop is: "A loop of 12 iterations in decode(), line 40". `line`: that of a loop without a jump back."""
    if span is not None:
        line = next((at for start, end, at in code.co_lines() if start <= span[0] < end and at), 0)
    return f"A loop of {count} iterations in {_name(code)}(), line {line or code.co_firstlineno}"


def _name(code: CodeType) -> str:
    return code.co_qualname.rpartition("<locals>.")[2]
