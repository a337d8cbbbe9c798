"""The loops of modules that the app itself has written out: which operations are steps of one layer.

An edited run replaces torch's fused modules by loops. Where those are is known, so they are not searched for: between
them and the user's own code there may be loops over chunks, layers that follow each other and initial states, in which
a search finds other loops than the layers. A module that is called for one step at a time, from a state that is not the
one it returned, is a part of the user's own loop: that one is searched for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from types import FrameType

from inspector.engine.recurrent.traced.loops.bytecode import loops_of
from inspector.engine.recurrent.traced.record.op_table import Table

CALL = "sequence"
"""Local variable of the function that runs one layer: the number of the sequence that a call is a part of."""
Apart = tuple[int, list[int]]
"""(level of the frame that runs the layer, the operations of its steps in all calls)."""


def written_out(table: Table, layers: Container[int]) -> list[Apart]:
    """The operations of every layer, those of all calls for one sequence together: chunks with the state passed on.

    `layers`: ids of the objects that run a layer.
    """
    levels = [_level((*(frame for frame, _ in outer), inner), layers) for outer, inner in table.wheres]
    found: dict[tuple[int, int, int], list[int]] = {}
    for n, where in enumerate(table.where):
        level = levels[where]
        if level is not None:
            frame = table.frames(level)[where]
            assert frame is not None
            known = frame.f_locals
            found.setdefault((id(known["self"]), known[CALL], level), []).append(n)
    looped = [(layer, level, _in_the_loop(table, own, level)) for (layer, _, level), own in found.items()]
    longest: dict[int, int] = {}
    for layer, _, own in looped:
        longest[layer] = max(longest.get(layer, 0), _steps(table, own))
    return [(level, own) for layer, level, own in looped if longest[layer] > 1 and _is_own(table, own, level)]


def _is_own(table: Table, own: list[int], level: int) -> bool:
    """Whether this sequence is a recurrence of its own: not one step of a module that is a part of the user's loop."""
    frame = table.frames(level)[table.where[own[0]]]
    assert frame is not None
    return not frame.f_locals["self"].within or _steps(table, own) > 1


def is_written_out(frame: FrameType, layers: Container[int]) -> bool:
    """Whether the frame of a loop is that of a layer."""
    return _level((frame,), layers) is not None


def place_of_sequence(place: str, frame: FrameType, layers: Container[int]) -> str:
    """The place of a layer's steps by the number of their sequence, as the unedited run has it: "rnn#2.l0.reverse".

    `frame`: that of the loop; any other than a layer's leaves the place as it is.
    """
    number = frame.f_locals[CALL] if is_written_out(frame, layers) else 1
    if number == 1:
        return place
    module, _, layer = place.rpartition(".l")
    return f"{module}#{number}.l{layer}"


def _steps(table: Table, own: list[int]) -> int:
    """How many steps these operations of one sequence are: as many as one of them was made."""
    return max(Counter(table.bodies[n] for n in own).values(), default=0)


def _in_the_loop(table: Table, ops: list[int], level: int) -> list[int]:
    """Without what a call does before its first step and after its last one."""
    frame = table.frames(level)[table.where[ops[0]]]
    assert frame is not None
    ((first, last),) = loops_of(frame.f_code)
    return [n for n, offset in zip(ops, table.offsets(ops, level), strict=True) if first <= offset <= last]


def _level(frames: tuple[FrameType, ...], layers: Container[int]) -> int | None:
    """The level of the frame that runs a layer, or None."""
    for level, frame in enumerate(frames):
        if CALL in frame.f_code.co_varnames and id(frame.f_locals.get("self")) in layers:
            return level
    return None
