"""Loops as the bytecode has them."""

from __future__ import annotations

import pytest

from inspector.engine.recurrent.traced.loops.bytecode import begins, loops_of


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
