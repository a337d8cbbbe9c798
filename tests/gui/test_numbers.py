"""How numbers are written: zero has no sign, however it came about."""

from __future__ import annotations

import numpy as np
import pytest

from inspector.gui.widgets.numbers import fixed, measured, number, short, with_fewer_digits


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, float])
def test_a_negative_zero_reads_0(kind: type) -> None:
    assert number(kind(-0.0)) == "0" and short(kind(-0.0)) == "0" and fixed(kind(-0.0)) == "0.00"


def test_what_rounds_to_nothing_has_no_sign_and_what_does_not_keeps_it() -> None:
    assert fixed(-0.004) == "0.00" and fixed(-0.006) == "-0.01" and fixed(-10.0) == "-10.00"
    assert short(-1e-9) == "-1e-09" and number(np.float32(-0.5)) == "-0.5"
    assert number(np.nan) == "NaN" and number(-np.inf) == "−∞" and number(np.int64(0)) == "0"


def test_a_text_is_read_with_four_digits_and_nothing_else_of_it_changes() -> None:
    for written, read in (
        ("0.03623402 nat", "0.03623 nat"), ("-1.5", "-1.5"), ("1234.5678", "1235"), ("123456.789", "123457"),
        ("1.234567e-09 nat", "1.235e-09 nat"), ("step 12345678", "step 12345678"), ("NaN", "NaN"), ("v1.23456.7", "v1.23456.7"),
        ("0.1234567, 0.7654321", "0.1235, 0.7654"), ("'a1.234567'", "'a1.234567'"), ("-0.00001234567", "-1.235e-05"),
    ):  # fmt: skip
        assert with_fewer_digits(written) == read


def test_several_steps_are_told_as_several() -> None:
    told = [measured(one, unit) for one, unit in ((1, "step"), (13, "step"), (np.float32(20.79), "step"), (2.0, "nat"))]
    assert told == ["1 step", "13 steps", "20.79 steps", "2 nat"] and measured(3, "1") == "3"
