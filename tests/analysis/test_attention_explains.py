"""Rank correlations against their definitions, and the verdict that rests on them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.analysis.attention_explains import explains
from inspector.analysis.rank_correlation import Spread, kendall, ranks, spearman, spread

numbers = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=9)


def plain_ranks(values: list[int]) -> list[float]:
    return [sum(v < w for v in values) + (sum(v == w for v in values) + 1) / 2 for w in values]


@given(numbers)
def test_rank_correlations_are_their_definitions(pairs: list[tuple[int, int]]) -> None:
    one, two = ([pair[n] for pair in pairs] for n in (0, 1))
    a, b = plain_ranks(one), plain_ranks(two)
    np.testing.assert_allclose(ranks(np.array(one)), a)
    mean = (len(a) + 1) / 2
    size = math.sqrt(sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b))
    rho = spearman(np.array(one), np.array(two))
    if not size:
        assert math.isnan(rho)
        return
    assert rho == pytest.approx(sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True)) / size, abs=1e-12)
    agree = free_one = free_two = 0
    for i, j in itertools.combinations(range(len(one)), 2):
        first, second = np.sign(one[i] - one[j]), np.sign(two[i] - two[j])
        agree, free_one, free_two = agree + first * second, free_one + (first != 0), free_two + (second != 0)
    assert kendall(np.array(one), np.array(two)) == pytest.approx(agree / math.sqrt(free_one * free_two), abs=1e-12)


def test_the_spread_covers_the_standard_error() -> None:
    values = np.random.default_rng(0).normal(0.3, 1.0, 400)
    found = spread(np.append(values, math.nan))
    error = values.std() / math.sqrt(400)
    assert found.mean == pytest.approx(values.mean()) and found.rows == 400
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.1)
    assert math.isnan(spread(np.array([1.0])).low) and spread(np.array([])).rows == 0


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(0.6, 0.8, "explains"), (0.45, 0.8, "partly"), (-0.1, 0.15, "not"), (-0.1, 0.3, "partly")],
)
def test_the_verdict_has_its_numbers(low: float, high: float, word: str) -> None:
    found = explains("the rollout", Spread((low + high) / 2, low, high, 12))
    assert found.word == word and found.numbers["low"] == low
    assert f"{low:.2f} to {high:.2f} over 12 queries" in found.sentence and "wrong where" in found.sentence


def test_few_queries_decide_nothing() -> None:
    assert explains("the rollout", Spread(0.9, 0.8, 1.0, 4)).word == "unknown"
    assert "only 1 queries" in explains("the rollout", spread(np.array([0.5]))).sentence
