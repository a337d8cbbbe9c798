"""Two references channel by channel, and as distributions: against numpy on the arrays that were written."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compared import NORM, SPECTRUM, STATE, capture_of, frame_of, norms, states
from several_runs import watched

from inspector.analysis import compared_channels as module
from inspector.analysis.compared_channels import compared_channels
from inspector.analysis.distributions import distances, distributions
from inspector.capture import CaptureError, compare


def test_the_largest_difference_its_place_and_the_relative_norm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PART_CELLS", 7)  # several parts
    paths = [capture_of(tmp_path / f"{n}.inspect", frame_of(n)) for n in (1, 2)]
    with compare(*paths) as both:
        state, norm = compared_channels(both)
    a, b = states(1).astype(float), states(2).astype(float)
    at = np.unravel_index(np.abs(b - a).argmax(), a.shape)
    assert (state.name, state.how, state.unit, state.at) == (STATE.name, "difference", "mV", tuple(map(int, at)))
    assert state.largest == (b - a)[at] and (state.first, state.second) == (a[at], b[at])
    assert state.place == f"step {at[0]} {'abcdefghijkl'[at[0]]!r}, unit {at[1]}"
    assert state.relative == pytest.approx(np.linalg.norm(b - a) / np.linalg.norm(a), rel=1e-12)
    assert (state.cells, state.unknown, state.nonfinite, state.unequal) == (36, 0, 0, 36)
    p, q = norms(1).astype(float), norms(2).astype(float)
    n = int(np.abs(np.log(q / p)).argmax())
    assert (norm.how, norm.unit, norm.at, norm.largest) == ("ratio", "×", (n,), q[n] / p[n])
    assert norm.relative == pytest.approx(np.linalg.norm(q - p) / np.linalg.norm(p), rel=1e-12)


@pytest.mark.parametrize("size", [1e-200, 1e-320, 1e200])
def test_numbers_whose_squares_no_float_holds(tmp_path: Path, size: float) -> None:
    double = replace(STATE, dtype="float64")
    one, other = (np.full(states(1).shape, size * factor) for factor in (1.0, 1.5))
    paths = [
        capture_of(tmp_path / f"{n}.inspect", {STATE.name: numbers}, channels=(double,))
        for n, numbers in enumerate((one, other))
    ]
    with compare(*paths) as both:
        (found,) = compared_channels(both)
    assert found.relative == pytest.approx(float((other - one)[0, 0] / one[0, 0]), rel=1e-12)


def test_what_is_not_compared_is_listed_with_the_reason(tmp_path: Path) -> None:
    spectrum = {SPECTRUM.name: np.ones(3, np.float32)}
    narrow = replace(STATE, unit="V")
    first = capture_of(tmp_path / "a.inspect", {**frame_of(1), **spectrum}, channels=(STATE, NORM, SPECTRUM))
    second = capture_of(tmp_path / "b.inspect", {**frame_of(2), **spectrum}, channels=(narrow, SPECTRUM))
    with compare(first, second) as both:
        found = {one.name: (one.how, one.reason, one.largest) for one in compared_channels(both)}
    assert found == {
        STATE.name: ("", "It has the unit 'mV' in a.inspect, and 'V' in b.inspect.", None),
        NORM.name: ("", "Only a.inspect has it.", None),
        SPECTRUM.name: ("separate", "Its numbers are read one run at a time.", None),
    }


def test_another_dtype_is_compared_and_another_width_is_not(tmp_path: Path) -> None:
    double = replace(STATE, dtype="float64")
    first = capture_of(tmp_path / "a.inspect", frame_of(1))
    second = capture_of(tmp_path / "b.inspect", {STATE.name: states(2).astype(float)}, channels=(double,))
    third = capture_of(
        tmp_path / "c.inspect", {STATE.name: states(2, units=5)}, channels=(replace(STATE, shape=(None, 5)),)
    )
    with compare(first, second) as both:
        assert both.array(STATE.name).dtype == np.float64
        np.testing.assert_array_equal(both.array(STATE.name), states(2).astype(float) - states(1).astype(float))
    with compare(first, third) as both:
        assert both.refused[STATE.name] == "Its shapes differ: unit 3 and unit 5."


def test_numbers_that_are_not_finite_are_counted_and_do_not_hide_the_rest(tmp_path: Path) -> None:
    a, b = states(1), states(2)
    a[0, 0], b[1, 1], a[2, 2], b[2, 2] = np.nan, np.inf, np.nan, np.nan
    paths = [
        capture_of(tmp_path / f"{n}.inspect", {STATE.name: values}, channels=(STATE,))
        for n, values in enumerate((a, b))
    ]
    with compare(*paths) as both:
        (found,) = compared_channels(both)
    fine = np.isfinite(a) & np.isfinite(b)
    assert (found.nonfinite, found.unequal, found.unknown) == (3, 35, 0)
    assert found.largest is not None and abs(found.largest) == np.abs(b.astype(float) - a)[fine].max()


def test_equal_frames_and_a_first_of_zeros(tmp_path: Path) -> None:
    zero = {STATE.name: np.zeros((12, 3), np.float32), NORM.name: np.zeros(12, np.float32)}
    path = capture_of(tmp_path / "a.inspect", zero, zero, frame_of(1))
    with compare(f"{path}#0", f"{path}#1") as both:
        for one in compared_channels(both):
            assert (one.unequal, one.relative) == (0, 0.0) and one.largest == (1.0 if one.how == "ratio" else 0.0)
    with compare(f"{path}#0", f"{path}#2") as both:
        state, norm = compared_channels(both)
    assert state.relative == math.inf and norm.largest == math.inf


def test_a_place_among_aligned_steps_has_the_number_of_both_sides(tmp_path: Path) -> None:
    a, b = np.zeros((3, 3), np.float32), np.zeros((4, 3), np.float32)
    b[3, 1] = 5.0
    first = capture_of(tmp_path / "a.inspect", {STATE.name: a}, tokens="abc", channels=(STATE,))
    second = capture_of(tmp_path / "b.inspect", {STATE.name: b}, tokens="axbc", channels=(STATE,))
    with compare(first, second) as both:
        (found,) = compared_channels(both)
    assert found.place == "step 2 of the first and 3 of the second 'c', unit 1"
    assert (found.largest, found.unknown, found.cells) == (5.0, 3, 12)


def test_a_place_along_iterations_is_their_number(tmp_path: Path) -> None:
    first, second = (watched(tmp_path / f"{n}.inspect", np.ones(4) * n, every=25) for n in (1, 2))
    with compare(first, second) as both:
        found = {one.name: one for one in compared_channels(both)}
    assert found["training:loss"].place == "iteration 0"
    assert found["parameters:gradient/norm"].place == "iteration 0, parameter 1 'b'"
    late = watched(tmp_path / "c.inspect", np.array([1.0, 1.0, 1.0, 9.0]), every=25)
    with compare(first, late) as both:
        assert {one.name: one.place for one in compared_channels(both)}["training:loss"] == "iteration 75"


# -- distributions


def slow_distances(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """By the definitions, number by number."""
    places = np.unique(np.concatenate((one, other)))
    gaps = [abs((one <= x).mean() - (other <= x).mean()) for x in places]
    area = sum(gap * (after - x) for gap, x, after in zip(gaps, places, places[1:], strict=False))
    return max(gaps), area


@pytest.mark.parametrize("seed", range(5))
def test_distances_are_those_of_the_definitions(seed: int) -> None:
    random = np.random.default_rng(seed)
    one, other = np.sort(random.normal(size=37).round(1)), np.sort(random.normal(0.3, 2.0, size=53).round(1))
    assert distances(one, other) == pytest.approx(slow_distances(one, other), rel=1e-12)
    assert distances(one, one) == (0.0, 0.0)
    shifted = distances(one, one + 100.0)
    assert shifted == pytest.approx((1.0, 100.0))


def test_histograms_share_bins_and_say_their_n(tmp_path: Path) -> None:
    a, b = states(1), states(2, steps=20)
    a[0, 0] = np.nan
    first = capture_of(tmp_path / "a.inspect", {STATE.name: a}, channels=(STATE,))
    second = capture_of(tmp_path / "b.inspect", {STATE.name: b}, tokens="zyxwvutsrqponmlkjihg", channels=(STATE,))
    with compare(first, second, align=False) as both:
        found = distributions(both.before, both.after, STATE.name)
    fine = a[np.isfinite(a)].astype(float)
    for share, numbers in ((found.first, fine), (found.second, b.astype(float).ravel())):
        np.testing.assert_allclose(share, np.histogram(numbers, found.edges)[0] / numbers.size, rtol=0, atol=1e-15)
        assert share.sum() == pytest.approx(1.0)
    assert found.counts == (35, 60) and found.left_out == (1, 0) and not found.logarithmic
    assert (found.ks, found.wasserstein) == pytest.approx(
        slow_distances(np.sort(fine), np.sort(b.astype(float).ravel()))
    )
    assert found.sentence == (
        f"Kolmogorov–Smirnov distance {found.ks:.3g}, Wasserstein distance {found.wasserstein:.3g} "
        "(n = 35 and 60; 1 that are not finite are left out)"
    )


def test_of_many_numbers_some_are_taken_and_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.analysis.distributions.MOST_CELLS", 30)
    paths = [capture_of(tmp_path / f"{n}.inspect", frame_of(n), channels=(STATE,)) for n in (1, 2)]
    with compare(*paths) as both:
        found = distributions(both.before, both.after, STATE.name)
    assert found.cells == (36, 36) and all(10 < n <= 30 for n in found.counts)
    assert f"n = {found.counts[0]} of 36 and {found.counts[1]} of 36" in found.sentence


def test_norms_over_many_decades_have_logarithmic_bins(tmp_path: Path) -> None:
    wide = {NORM.name: np.geomspace(1e-6, 1e2, 12).astype(np.float32)}
    path = capture_of(tmp_path / "a.inspect", wide, wide, channels=(NORM,))
    with compare(f"{path}#0", f"{path}#1") as both:
        found = distributions(both.before, both.after, NORM.name)
    assert found.logarithmic and found.first.sum() == pytest.approx(1.0) and found.ks == 0.0


def test_other_units_and_nothing_finite_are_refused(tmp_path: Path) -> None:
    nothing = {STATE.name: np.full((12, 3), np.nan, np.float32)}
    first = capture_of(tmp_path / "a.inspect", frame_of(1), nothing)
    second = capture_of(tmp_path / "b.inspect", frame_of(2), channels=(replace(STATE, unit="V"),))
    with (
        compare(f"{first}#0", second) as both,
        pytest.raises(CaptureError, match=r"has the unit 'mV' in a.inspect#0, and 'V'"),
    ):
        distributions(both.before, both.after, STATE.name)
    with compare(f"{first}#0", f"{first}#1") as both:
        with pytest.raises(CaptureError, match=r"No number of rnn.l0:h is finite in a.inspect#1"):
            distributions(both.before, both.after, STATE.name)
        with pytest.raises(CaptureError, match=r"a.inspect#1 has no rnn.l0:jacobian/spectral_norm"):
            distributions(both.before, both.after, NORM.name)
