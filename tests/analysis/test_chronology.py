"""What moved first before a spike."""

from __future__ import annotations

import numpy as np
import pytest

from inspector.analysis.chronology import NOTHING, STILL, Track, chronology

RNG = np.random.default_rng(0)
N = 300


def track(what: str, name: str, begins: int | None, *, factor: float = 3.0, every: int = 1) -> Track:
    """A curve of usual noise, that grows from one iteration on."""
    x = np.arange(1, N + 1, dtype=float)
    y = 1 + 0.05 * RNG.normal(size=N)
    if begins is not None:
        y[begins - 1 :] *= factor ** np.arange(1, N - begins + 2)
    return Track(what, name, x[::every], y[::every])


def test_the_order_is_that_in_which_curves_left_their_usual_size() -> None:
    found = chronology([track("gradient", "a", 297), track("loss", "", 298), track("update", "b", 295),
                        track("update", "a", 298), track("gradient", "still", None)], 300)  # fmt: skip
    assert [(one.what, one.name, one.iteration) for one in found.moves] == [
        ("update", "b", 295), ("gradient", "a", 297), ("loss", "", 298), ("update", "a", 298),
    ]  # fmt: skip
    assert found.verdict.word == "update" and found.verdict.numbers["before"] == 5
    assert found.verdict.sentence.startswith("first the update of b at iteration 295 (")
    assert "usually 1" in found.verdict.sentence and "1 more curve" in found.verdict.sentence


def test_within_one_iteration_the_order_is_that_of_the_computation() -> None:
    found = chronology([track(what, "", 300) for what in ("update", "gradient", "loss")], 300)
    assert [one.what for one in found.moves] == ["loss", "gradient", "update"]


def test_what_came_back_has_not_moved() -> None:
    blip = track("loss", "", None)
    blip.values[280] = 50.0
    found = chronology([blip, track("gradient", "", 300)], 300)
    assert [one.what for one in found.moves] == ["gradient"]


def test_values_that_are_not_finite_have_moved() -> None:
    broken = track("loss", "", None)
    broken.values[297:] = np.nan
    found = chronology([broken], 300)
    assert found.moves[0].iteration == 298 and "not finite" in found.verdict.sentence


def test_too_little_and_nothing_are_told_apart() -> None:
    assert chronology([], 300).verdict.sentence == NOTHING
    short = Track("loss", "", np.arange(1.0, 6.0), np.array([1, 1, 1, 1, 90.0]))
    assert chronology([short], 5).verdict.sentence == NOTHING
    assert chronology([track("loss", "", None)], 300).verdict.sentence == STILL
    assert chronology([track("loss", "", 300)], 299.5).verdict.word == "unknown"  # not recorded there


def test_iterations_that_lie_apart_are_said() -> None:
    found = chronology([track("loss", "", 270, every=10)], 291)
    assert found.wrong.startswith("Recorded iterations lie up to 10 apart here. ")
    assert "1 apart" not in chronology([track("loss", "", 300)], 300).wrong


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_the_unit_does_not_matter(scale: float) -> None:
    one = track("loss", "", 299)
    found = chronology([Track("loss", "", one.iterations, one.values * scale)], 300)
    assert [move.iteration for move in found.moves] == [299]
