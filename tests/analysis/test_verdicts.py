"""Verdicts name what their numbers say; every word can be reached, and the numbers are those of the arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest

from inspector.analysis.clipping import clipped_steps, clipping_verdict
from inspector.analysis.influence import influence_verdict
from inspector.analysis.itemised_gradient import immediate_part, sum_verdict
from inspector.analysis.lag_norms import centre_of, lag_verdict
from inspector.analysis.lyapunov import lyapunov_verdict
from inspector.analysis.spectrum import bound_verdict, eigenvalue_verdict
from inspector.analysis.truncation import truncation_verdict

NAN = math.nan


def falling(rate: float, size: int = 60) -> np.ndarray:
    return np.exp(-rate * np.arange(size))


@pytest.mark.parametrize(
    ("influence", "gradient", "reaches", "word"),
    [
        (np.zeros(60), falling(0.1), (NAN, 3.0), "independent"),
        (np.full(60, NAN), falling(0.1), (NAN, 3.0), "unknown"),
        (np.where(np.arange(60) < 1, NAN, 0.0), falling(0.1), (NAN, 3.0), "unknown"),
        (np.where(np.arange(60) % 2, NAN, 0.0), falling(0.1), (NAN, 3.0), "independent"),
        (falling(0.1), falling(0.1), (NAN, 29.0), "unknown"),
        (falling(0.1), None, (29.0, NAN), "unknown"),
        (falling(0.1), np.full(60, NAN), (29.0, NAN), "unknown"),
        (falling(0.05), falling(0.5), (40.0, 13.0), "vanished"),
        (np.ones(60), falling(-0.5), (59.0, 59.0), "exploded"),
        (np.ones(60), np.ones(60), (59.0, 59.0), "kept"),
        (falling(0.3), falling(0.3), (9.0, 23.0), "natural"),
    ],
)
def test_influence_beside_gradient(
    influence: np.ndarray, gradient: np.ndarray | None, reaches: tuple[float, float], word: str
) -> None:
    assert influence_verdict(influence, gradient, 0, reaches).word == word


def test_a_gradient_that_is_larger_at_shorter_lags_than_the_one_that_counts_has_not_exploded() -> None:
    first_counts = np.where(np.arange(60) == 59, 1.0, 1e-4)
    assert influence_verdict(first_counts, falling(0.2), 59, (59.0, 59.0)).word == "kept"
    middle = np.where(np.arange(60) == 30, 1.0, 1e-4)
    assert influence_verdict(middle, falling(-0.25), 30, (30.0, 59.0)).word == "exploded"
    assert influence_verdict(middle, falling(-0.2), 30, (30.0, 59.0)).word == "natural"


def test_an_influence_of_nan_is_not_called_none() -> None:
    late = np.where(np.arange(60) == 4, 0.3, NAN)
    for influence, reference in ((np.full(60, NAN), 0), (late, 4)):
        found = influence_verdict(influence, falling(0.1), reference, (NAN, 29.0))
        assert found.word == "unknown" and "the influence is NaN" in found.sentence
    unsure = influence_verdict(falling(0.1), falling(0.1), 0, (NAN, 29.0)).sentence
    assert "standard error" in unsure and "NaN" not in unsure


def test_an_explosion_names_the_first_lag_above_a_thousand() -> None:
    found = influence_verdict(np.ones(60), falling(-0.5), 0, (59.0, 59.0))
    assert found.numbers["first_lag"] == math.ceil(math.log(1000) / 0.5)


@pytest.mark.parametrize(
    ("largest", "word"),
    [(NAN, "unknown"), (-math.inf, "erased"), (0.001, "lasting"), (0.5, "chaotic"), (-0.5, "forgetting")],
)
def test_lyapunov(largest: float, word: str) -> None:
    assert lyapunov_verdict(largest, 100).word == word


def test_a_sign_within_two_standard_errors_is_not_told() -> None:
    assert (
        lyapunov_verdict(0.5, 100, 0.2).word == "chaotic"
        and "λ₁ = 0.5 ± 0.2" in lyapunov_verdict(0.5, 100, 0.2).sentence
    )
    assert lyapunov_verdict(-0.5, 100, 0.2).word == "forgetting"
    for largest in (0.012, -0.006):
        found = lyapunov_verdict(largest, 1000, 0.009)
        assert found.word == "undecided" and "chaotic or contracting is not decided" in found.sentence


def test_lyapunov_times() -> None:
    assert lyapunov_verdict(0.5, 100).numbers["doubling_steps"] == pytest.approx(math.log(2) / 0.5)
    assert lyapunov_verdict(-0.25, 100).numbers["memory_steps"] == 4.0


def test_norms_by_lag() -> None:
    logs = np.linspace(0, -6, 61)
    assert lag_verdict(logs, NAN).word == "kept" and "within 60 steps" in lag_verdict(logs, NAN).sentence
    assert lag_verdict(logs, 31.0).word == "vanished" and "after 31 steps" in lag_verdict(logs, 31.0).sentence
    assert lag_verdict(-logs, 31.0).word == "exploded"
    assert "the median is below" in lag_verdict(logs, 31.0).sentence
    dead = np.linspace(0, 0.6, 61)
    assert lag_verdict(logs, 31.0, "median", dead).sentence.endswith("; 31 % of the starts dead (exactly 0) by then")
    broken = np.where(np.arange(61) < 7, 0.0, NAN)
    assert lag_verdict(broken, NAN).word == "unknown" and "from lag 7 on" in lag_verdict(broken, NAN).sentence


def test_the_middle_of_a_table_by_lag_is_named_as_it_was_computed() -> None:
    assert centre_of("jacobian/lag", ("median", "p10", "p90", "mean")) == ("median", "median")
    assert centre_of("jacobian/lag", ("mean", "p10", "p90")) == ("mean", "geometric mean"), "an older capture"
    assert centre_of("path/retention_band", ("mean", "p10", "p90")) == ("mean", "mean")


def test_spectra() -> None:
    values = np.array([[0.0, 1.5], [0.3, 0.4]])
    found = eigenvalue_verdict(values, np.array([2.0, 0.1]))
    assert found.word == "expanding" and found.numbers == {"radius": 1.5, "outside": 1.0}
    assert found.sentence == "ρ = 1.5, σ₁ = 2, smallest shown 0.1, 1 of 2 eigenvalues outside the unit circle"
    assert eigenvalue_verdict(values[1:], np.array([])).word == "contracting"
    assert bound_verdict(0.99).word == "vanishing" and bound_verdict(1.0).word == "undecided"


def test_clipping_counts_what_is_not_finite_as_clipped() -> None:
    norms = np.array([0.5, 1.0, 2.0, NAN, math.inf])
    assert clipped_steps(norms, 1.0) == (3, 5)
    found = clipping_verdict(norms, 1.0, 0.25)
    assert found.word == "most" and "3 of 5 steps (60 %); it used 0.25" in found.sentence
    assert clipping_verdict(norms[:2], 1.0, NAN).word == "none"
    assert clipping_verdict(norms[:3], 1.0, NAN).word == "some"


def test_truncation_interpolates_the_cost_and_says_where_no_k_is_enough() -> None:
    ks, cost = np.array([1.0, 3.0, 5.0]), np.array([0.1, 0.3, 1.0])
    found = truncation_verdict(ks, cost, [("10 %", 2.0), ("1 %", NAN)])
    assert found.word == "short"
    assert found.sentence == "error within 10 %: K = 2, 20 % of the cost; within 1 %: no K up to 5"
    assert truncation_verdict(ks, cost, [("10 %", 2.0)]).word == "enough"


def test_items_of_the_gradient() -> None:
    assert sum_verdict(NAN).word == "unknown" and "1.0e-07" in sum_verdict(1e-7).sentence
    assert "cosine" not in immediate_part(2.0, 1.0, NAN).sentence
    assert immediate_part(2.0, 1.0, 0.5).sentence.endswith("cosine of the two 0.50")
