"""Loops as the bytecode has them."""

from __future__ import annotations

import dis
from types import CodeType

import pytest

from inspector.engine.recurrent.traced.loops.bytecode import begins, loops_of, within_a_round
from inspector.engine.recurrent.traced.record.call_offsets import moved


def nested(rows: list[list[int]]) -> int:
    total = 0
    for row in rows:
        for one in row:
            if one < 0:
                continue
            total += one
        total -= 1
    while total > 9:
        total -= 2
    return total


def straight(a: int) -> int:
    return a + 1


def test_the_loops_of_a_function() -> None:
    outer, inner, last = loops_of(nested.__code__)
    assert outer[0] < inner[0] <= inner[1] < outer[1] < last[0]
    assert loops_of(straight.__code__) == ()


@pytest.mark.parametrize(("offsets", "expected"), [
    ([10, 20, 30, 10, 20, 30], [0, 3]),  # straight
    ([20, 30, 10, 30, 20, 30], [0, 2, 4]),  # branches at the head
    ([10, 42, 44, 42, 44, 60, 10, 42, 44, 60], [0, 6]),  # a loop inside goes round
    ([10, 10, 20, 20], [0]),  # one instruction may make several operations
])  # fmt: skip
def test_iterations_begin_where_the_code_jumps_back(offsets: list[int], expected: list[int]) -> None:
    assert begins((0, 70), [(0, 70), (40, 50), (80, 90)], offsets) == expected


def branching(rows: list[int], note: list[str]) -> None:
    for row in rows:
        before(row)
        if row % 2:
            odd(row)
        elif row > 9:
            large(row)
        else:
            for _ in range(row):
                inner(row)
        after(row)
    while rows:
        only(rows)


def before(*_: object) -> None: ...
def odd(*_: object) -> None: ...
def large(*_: object) -> None: ...
def inner(*_: object) -> None: ...
def after(*_: object) -> None: ...
def only(*_: object) -> None: ...


def calls_of(code: CodeType) -> dict[str, int]:
    """{name of a function: offset of the instruction that calls it}."""
    found, name = {}, ""
    for one in dis.get_instructions(code):
        if one.opname == "LOAD_GLOBAL":
            name = str(one.argval)
        elif one.opname == "CALL":
            found[name] = one.offset
    return found


def test_one_round_has_one_branch() -> None:
    outer, nested_loop, last = loops_of(branching.__code__)
    reaches, at = within_a_round(branching.__code__, outer), calls_of(branching.__code__)
    order = {"before": 0, "odd": 1, "large": 1, "inner": 1, "after": 2}
    for one in order:
        for two in order:
            expected = order[one] < order[two] or one == two
            assert reaches(at[one], at[two]) == expected, (one, two)
    inside = within_a_round(branching.__code__, nested_loop)
    assert inside(at["inner"], at["inner"])
    assert within_a_round(branching.__code__, last)(at["only"], at["only"])
    rounds = [
        "before",
        "odd",
        "after",
        "before",
        "large",
        "after",
        "before",
        "inner",
        "inner",
        "after",
        "before",
        "after",
    ]
    loops, offsets = loops_of(branching.__code__), [at[name] for name in rounds]
    assert begins(outer, loops, offsets, reaches) == [0, 3, 6, 10]
    alone = [at[name] for name in ("odd", "large", "odd", "inner", "inner", "large")]
    assert begins(outer, loops, alone, reaches) == [0, 1, 2, 3, 5]
    assert begins(outer, loops, alone) == [0, 2, 5], "by the order of the instructions alone"


def total(values: list[int]) -> int:
    return sum(value for value in values)


def test_a_call_has_one_offset_however_it_is_made() -> None:
    """Python 3.11 makes a call that it has made often from the instruction before; later versions have one for both."""
    names = {one.offset: one.opname for one in dis.get_instructions(total)}
    early = {offset for offset, name in names.items() if name == "PRECALL"}
    assert set(moved(total.__code__)) == early
    assert all(names[offset] == "CALL" for offset in moved(total.__code__).values())
