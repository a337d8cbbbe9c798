"""Sentences of small pictures: their numbers are those of the curves, and nothing that is not finite is passed over."""

from __future__ import annotations

import numpy as np
import pytest

from inspector.analysis.glances import course, extremes, mean_of, number, share_above, smallest_and_largest

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ([4.0, 2.0, 1.0, 3.0], "loss from 4 to 3, least 1 at iteration 20"),
        ([4.0, NAN, 1.0, 3.0], "loss from 4 to 3, least 1 at iteration 20; not finite first at iteration 10"),
        ([4.0, 2.0, INF, NAN], "loss from 4 to 2, least 2 at iteration 10; not finite from iteration 20 on"),
        ([7.5], "loss 7.5 at iteration 0"),
        ([0.1, 0.1, 0.1], "loss 0.1 throughout"),
        ([2.0, NAN, 2.0], "loss 2 where it is finite; not finite first at iteration 10"),
        ([NAN, NAN], "loss is never a finite number"),
        ([], "loss has no numbers"),
    ],
)
def test_where_a_curve_began_and_where_it_is(y: list[float], said: str) -> None:
    assert course("loss", 10.0 * np.arange(len(y)), np.array(y)) == said


def test_the_ends_of_a_long_curve_are_medians_so_that_one_point_does_not_decide() -> None:
    y = np.concatenate((np.full(50, 5.0), np.linspace(5, 1, 900), np.full(50, 1.0)))
    y[0], y[-1] = 500.0, 700.0
    said = "loss from 5 to 1 (medians of 50 at each end), least 1 at iteration 949"
    assert course("loss", np.arange(1000.0), y) == said  # which is not where it began: that was 500


def test_extremes_are_over_all_curves_with_their_places() -> None:
    a = ("rnn.l0", np.arange(3.0), np.array([0.0, 2.0, NAN]))
    b = ("rnn.l1", np.arange(3.0), np.array([0.5, 30.0, 4.0]))
    assert extremes([a, b], "nat") == (
        "from 0 nat at step 0 (rnn.l0) to 30 nat at step 1 (rnn.l1); exactly 0 at 1 step; not finite at 1 step"
    )
    assert extremes([("x", np.zeros(1), np.array([2.0]))]) == "2 at step 0"
    assert extremes([]) == "no numbers" and extremes([("x", np.zeros(1), np.array([NAN]))]) == "no finite number"


def test_means_shares_and_names() -> None:
    assert mean_of("loss", np.arange(3.0), np.array([1.0, 4.0, 1.0]), "nat") == "mean 2 nat, largest 4 at step 1"
    assert mean_of("loss", np.array([9.0]), np.array([2.5]), "nat") == "2.5 nat"
    assert share_above([("x", np.arange(4.0), np.array([0.5, 2.0, 3.0, 4.0]))], 1.0, "σ₁") == (
        "σ₁ median 2.5, above 1 in 75 %"
    )
    assert smallest_and_largest(["a", "b", "c"], np.array([3.0, NAN, 1.0]), "norm") == "norm from 1 (c) to 3 (a)"
    assert smallest_and_largest(["a"], np.array([NAN]), "norm") == "norm: no finite number"


@pytest.mark.parametrize(
    ("value", "text"), [(1234.5, "1,230"), (-0.00012, "−0.00012"), (2.14e7, "2.14e+07"), (0.0363403, "0.0363")]
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text
