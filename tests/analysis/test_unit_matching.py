"""Brushing against loops that take one unit and one step at a time."""

from __future__ import annotations

import time

import numpy as np
import pytest

from inspector.analysis.unit_matching import (
    MOST_SPANS,
    Match,
    choose,
    find_spans,
    longest_range,
    neighbourhood,
    score_units,
    share_on,
    states_of,
    word_at,
)


def slow_scores(values: np.ndarray, first: int, stop: int, threshold: float, signed: bool) -> list[tuple]:
    found = []
    for unit in range(values.shape[1]):
        best = None
        for sign in (1, -1) if signed else (1,):
            on = [bool(sign * values[t, unit] > threshold) for t in range(len(values))]
            tp = sum(on[t] for t in range(first, stop))
            fp = sum(on[t] for t in range(len(on)) if not first <= t < stop)
            fn = (stop - first) - tp
            f1 = 2 * tp / (2 * tp + fp + fn)
            exact = tp == stop - first
            exact = exact and not (first > 0 and on[first - 1]) and not (stop < len(on) and on[stop])
            if best is None or f1 > best[2]:
                best = (unit, sign, f1, exact)
        found.append(best)
    return sorted(found, key=lambda row: (not row[3], -row[2], row[0]))


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("inside", [(4, 9), (0, 3), (17, 20), (0, 20)])
def test_scores_equal_a_loop_over_units_and_steps(inside: tuple[int, int], signed: bool) -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(20, 30)).astype(np.float32)
    values[inside[0] : inside[1], 3] = 2.0
    values[inside[1] :, 3] = values[: inside[0], 3] = 0.0
    values[2, 7] = np.nan
    found = score_units(values, slice(*inside), 0.4, signed=signed)
    expected = slow_scores(values, *inside, 0.4, signed)
    assert [(m.unit, m.sign, m.exact) for m in found] == [(row[0], row[1], row[3]) for row in expected]
    np.testing.assert_allclose([m.f1 for m in found], [row[2] for row in expected])
    assert found[0].unit == 3 and found[0].exact and found[0].f1 == 1.0


def test_a_unit_that_is_negative_exactly_there_is_found_with_its_sign() -> None:
    values = np.zeros((12, 2))
    values[5:8, 1] = -0.9
    assert score_units(values, slice(5, 8), 0.5, signed=True)[0] == Match(1, -1, 1.0, True)
    assert not score_units(values, slice(5, 8), 0.5, signed=False)[0].exact
    assert states_of(values[:, [1]], [Match(1, -1, 1.0, True)], 0.5)[:, 0].nonzero()[0].tolist() == [5, 6, 7]


def slow_spans(on: np.ndarray, length: int, avoid: tuple[int, int]) -> list[tuple]:
    found, start = [], None
    for t in range(len(on) + 1):
        many = t < len(on) and sum(bool(v) for v in on[t]) > on.shape[1] / 2
        if many and start is None:
            start = t
        if not many and start is not None:
            share = float(np.mean([on[i, j] for i in range(start, t) for j in range(on.shape[1])]))
            n = t - start
            if t - 1 < avoid[0] or start > avoid[1]:
                found.append((start, t - 1, share, share * min(n, length) / max(n, length)))
            start = None
    return sorted(found, key=lambda row: (-row[3], row[0]))[:MOST_SPANS]


@pytest.mark.parametrize("units", [1, 2, 5])
def test_spans_equal_a_loop_over_steps(units: int) -> None:
    on = np.random.default_rng(1).random((200, units)) < 0.45
    on[-1] = True
    on[40:46] = True
    found = find_spans(on, 6, (40, 45))
    expected = slow_spans(on, 6, (40, 45))
    assert [(s.first, s.last) for s in found] == [row[:2] for row in expected]
    np.testing.assert_allclose([(s.share, s.score) for s in found], [row[2:] for row in expected])
    assert all(not s.first <= 45 or not s.last >= 40 for s in found)


def test_what_is_not_known_is_neither_on_nor_off() -> None:
    """Unit 0 is on inside as far as it is known, unit 1 is on outside only where it is not known, unit 2 is unknown."""
    values = np.zeros((20, 3))
    values[5:10, :2] = 1.0
    known = np.ones(values.shape, bool)
    known[7:10, 0], known[12:15, 1], known[5:10, 2] = False, False, False
    values[12:15, 1] = 1.0
    values[7:10, 0] = np.nan
    found = score_units(values, slice(5, 10), 0.5, signed=True, known=known)
    assert [(m.unit, m.f1, m.exact) for m in found] == [(1, 1.0, True), (0, 1.0, False)]
    known[4, 1] = False
    assert not score_units(values, slice(5, 10), 0.5, signed=True, known=known)[0].exact
    assert not score_units(values, slice(5, 10), 0.5, signed=True, known=np.zeros_like(known))
    on = states_of(values[:, :2], [Match(0, 1, 1.0, False), Match(1, 1, 1.0, True)], 0.5, known[:, :2])
    assert not on[7:10, 0].any() and not on[12:15, 1].any() and on[5:7].all()
    share = share_on(on, known[:, :2])
    assert share[5:10].tolist() == [1.0] * 5 and np.isnan(share_on(on[:, :1], known[:, :1])[7:10]).all()
    assert np.flatnonzero(np.isnan(share)).size == 0


def test_a_passage_is_one_whatever_the_unknown_units_are() -> None:
    on, known = np.zeros((20, 3), bool), np.ones((20, 3), bool)
    on[5:8, :2] = True
    known[5:8, 2] = False
    on[12:15, 0] = True
    known[12:15, 1:] = False
    (span,) = find_spans(on, 3, (0, 1), known)
    assert (span.first, span.last, span.share) == (5, 7, 1.0)


def test_nothing_on_and_everything_on() -> None:
    assert find_spans(np.zeros((5, 3), bool), 2, (0, 1)) == []
    assert find_spans(np.ones((5, 3), bool), 2, (2, 2)) == []
    assert find_spans(np.zeros((0, 3), bool), 2, (0, 0)) == []
    assert choose([]) == []


def test_units_near_the_best_are_chosen() -> None:
    scores = [1.0, 0.9, 0.8, 0.7, 0.4]
    matches = [Match(i, 1, f1, False) for i, f1 in enumerate(scores)]
    assert [m.unit for m in choose(matches)] == [0, 1, 2]
    assert [m.unit for m in choose([Match(9, 1, 0.1, False), Match(3, 1, 0.05, False)])] == [9]
    assert [m.unit for m in choose([Match(4, 1, 0.3, True), Match(9, 1, 0.9, False), Match(3, 1, 0.2, False)])] == [
        4,
        9,
    ]
    assert len(choose([Match(i, 1, 1.0, True) for i in range(40)])) == 12


def test_the_neighbourhood_stays_in_the_sequence_and_in_the_budget() -> None:
    assert neighbourhood(20, 39, 100) == (0, 60) and neighbourhood(50, 50, 100) == (42, 59)
    assert neighbourhood(0, 99, 100) == (0, 100)
    assert longest_range(2000) * 3 * 2000 <= 1 << 23 and longest_range(10**9) == 1


@pytest.mark.parametrize(
    ("text", "step", "word"),
    [("the cat sat", 5, "cat"), ("the cat sat", 3, "cat"), ("the", 0, "the"), ("a ", 1, "a"), (" ", 0, " ")],
)
def test_the_word_at_a_step(text: str, step: int, word: str) -> None:
    first, last = word_at(text, step, len(text))
    assert text[first : last + 1] == word


def test_the_word_without_names() -> None:
    assert word_at((), 10, 100) == (8, 12) and word_at((), 0, 1) == (0, 0)


def test_two_thousand_units_and_a_hundred_thousand_steps_take_moments() -> None:
    random = np.random.default_rng(0)
    values = random.standard_normal((3 * longest_range(2000), 2000), dtype=np.float32)
    on = random.random((100_000, 12)) < 0.5
    began = time.perf_counter()
    score_units(values, slice(1398, 2796), 0.5, signed=True)
    find_spans(on, 20, (5, 9))
    assert time.perf_counter() - began < 2.0
