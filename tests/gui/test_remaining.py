"""The time that a run still takes, by a clock that is fed: at one speed, at several, and where nothing is reported."""

from __future__ import annotations

import math
import re

import pytest

from inspector.engine.session.seldom import AT_ONCE, PROGRESS_SECONDS, Seldom
from inspector.gui.state.remaining import LEAST_SECONDS, OVERDUE, Remaining


class Fed:
    """A run whose reports come at given times."""

    def __init__(self) -> None:
        self.now = 50.0
        self.left = Remaining(lambda: self.now)
        self.left.take(0.0, 10.0)

    def step(self, seconds: float, done: float) -> None:
        self.now += seconds
        self.left.take(done, 10.0)


def test_at_one_speed_the_rest_takes_as_long_as_its_share_of_the_work() -> None:
    run = Fed()
    assert run.left.seconds is None and run.left.words() == ""
    for done in range(1, 17):
        run.step(1.0, done / 2)
        assert run.left.seconds == pytest.approx(20.0 - done)
    assert run.left.words() == "about 4 s left"
    run.now += 1.0
    assert run.left.seconds == pytest.approx(3.0)
    run.step(2.5, 9.6)
    assert run.left.words() == "", "short"


def test_nothing_is_told_before_anything_was_timed() -> None:
    run = Fed()
    run.step(LEAST_SECONDS / 4, 1.0)
    assert run.left.seconds is None
    run.step(0.01, 1.05)  # less than is timed as one
    assert run.left.seconds is None
    run.now += LEAST_SECONDS
    assert run.left.seconds is not None


@pytest.mark.parametrize(("slower", "told"), [(3.0, "range"), (0.25, "range"), (1.0, "one number")])
def test_a_load_that_begins_or_ends_half_way_is_followed(slower: float, told: str) -> None:
    run = Fed()
    for done in range(1, 15):
        run.step(1.0 if done <= 8 else slower, done / 2)
    truth, overall = 3 * 2.0 * slower, (8.0 + 6.0 * slower) / 7 * 3
    seconds = run.left.seconds
    assert seconds is not None
    wrong, wrong_before = abs(math.log(seconds / truth)), abs(math.log(overall / truth))
    assert wrong <= math.log(2) and (slower == 1.0 or wrong < 0.7 * wrong_before)
    least, most = run.left.bounds
    assert slower < 1 or least <= truth <= most, "the range that is told has it"
    words = run.left.words()
    assert (re.fullmatch(r"about \d+ s left", words) is None) is (told == "range" and bool(words))


def test_what_takes_longer_than_it_should_is_never_told_to_be_over() -> None:
    run = Fed()
    for done in (2.0, 4.0, 6.0, 8.0):
        run.step(3.0, done)
    assert run.left.seconds == pytest.approx(3.0)
    for late in (2.0, 10.0, 70.0):
        run.now += late
    assert run.left.seconds == pytest.approx(OVERDUE * 82.0) and run.left.words() != ""
    run = Fed()
    for done in (1.0, 2.0):
        run.step(1.0, done)
    run.now += 5.0  # the third tenth takes five times as long: so may the seven that follow it
    assert run.left.seconds == pytest.approx((2.0 * 0.5**0.5 + 5.0) / 3 * 7, rel=0.2)


def test_a_range_is_in_one_unit_and_a_short_time_begins_at_none() -> None:
    run = Fed()
    for number, done in enumerate((2.0, 4.0, 5.0, 6.0)):
        run.step(1.0 if number % 2 else 12.0, done)
    words = run.left.words()
    assert re.fullmatch(r"about \d+ to \d+ s left|up to \d+ s left", words), words
    for number, done in enumerate((8.0, 9.5)):
        run.step(0.2 if number % 2 else 12.0, done)
    words = run.left.words()
    assert words == "" or re.fullmatch(r"up to \d+ s left", words), words


def test_another_total_begins_another_part_and_a_report_of_less_changes_nothing() -> None:
    run = Fed()
    for done in (2.0, 4.0, 6.0):
        run.step(2.0, done)
    known = run.left.seconds
    run.left.take(1.0, 10.0)
    assert run.left.seconds == known
    run.left.take(0.0, 3.0)
    assert run.left.seconds is None
    run.left.take(0.0, 0.0)
    run.now += 10.0
    run.left.take(1.0, 0.0)
    assert run.left.seconds is None and run.left.words() == ""


def test_another_quantity_is_told_at_once_and_how_far_it_is_now_and_then() -> None:
    now = [0.0]
    seldom = Seldom(lambda: now[0])
    assert seldom.passes(0.0, 10.0, "a") and seldom.passes(1.0, 10.0, "b")
    assert not seldom.passes(1.1, 10.0, "b")
    now[0] += PROGRESS_SECONDS
    assert seldom.passes(1.2, 10.0, "b") and not seldom.passes(1.3, 10.0, "b")
    assert seldom.passes(10.0, 10.0, "b"), "that all is done is always told"
    passed = sum(seldom.passes(1.0, 10.0, f"token {n}") for n in range(1000))
    assert passed <= AT_ONCE, "what changes its text all the time is told seldom too"
    passed = 0
    for n in range(1000):
        now[0] += PROGRESS_SECONDS / 10
        passed += seldom.passes(1.0, 10.0, f"step {n}")
    assert 95 <= passed <= 105 + AT_ONCE


RECORDED = {
    "an LSTM, 1,200 steps": [
        (0.0, 0.0), (0.05, 0.02), (0.26, 0.054), (0.46, 0.084), (0.59, 0.112), (0.72, 0.133), (0.87, 0.154),
        (1.02, 0.174), (1.22, 0.195), (1.47, 0.222), (1.63, 0.243), (1.77, 0.263), (1.94, 0.291), (2.12, 0.319),
        (2.35, 0.341), (2.65, 0.366), (2.95, 0.396), (3.26, 0.417), (3.41, 0.438), (3.56, 0.459), (3.8, 0.487),
        (4.01, 0.508), (4.23, 0.534), (4.4, 0.555), (4.5, 0.576), (4.62, 0.611), (4.77, 0.639), (4.89, 0.666),
        (5.13, 0.69), (5.6, 0.715), (6.16, 0.739), (6.58, 0.767), (6.88, 0.792), (7.42, 0.816), (7.91, 0.841),
        (8.4, 0.862), (9.23, 0.884), (9.89, 0.905), (10.35, 0.927), (10.83, 0.952), (11.34, 0.972), (11.81, 0.992),
        (11.98, 1.0),
    ],
    "an Elman network, 4,000 steps": [
        (0.0, 0.0), (0.05, 0.022), (0.49, 0.062), (0.94, 0.086), (1.46, 0.111), (1.96, 0.136), (2.46, 0.16),
        (2.84, 0.185), (3.33, 0.209), (3.71, 0.234), (4.04, 0.259), (4.38, 0.283), (4.82, 0.308), (5.26, 0.332),
        (5.72, 0.357), (6.11, 0.378), (6.93, 0.401), (7.51, 0.422), (8.13, 0.445), (8.67, 0.465), (8.67, 0.492),
        (8.83, 0.516), (9.19, 0.536), (9.19, 0.556), (9.24, 0.587), (9.69, 0.61), (10.09, 0.632), (10.5, 0.655),
        (10.97, 0.675), (11.46, 0.696), (11.82, 0.716), (12.46, 0.737), (12.82, 0.759), (13.52, 0.78),
        (14.34, 0.802), (15.4, 0.824), (16.38, 0.846), (17.18, 0.872), (17.36, 0.893), (17.61, 0.922),
        (17.88, 0.943), (18.1, 0.967), (18.32, 0.993), (18.6, 1.0),
    ],
}  # fmt: skip
"""(seconds, share of the work) as runs of samples reported them while each core had one program more that was busy."""


@pytest.mark.parametrize("name", list(RECORDED))
def test_of_runs_on_a_busy_machine_the_time_that_was_left_lies_in_the_range(name: str) -> None:
    reports, end, told = RECORDED[name], RECORDED[name][-1][0], list[bool]()
    run, begun = Fed(), 50.0
    for half in range(1, int(2 * end) - 1):
        at = half / 2
        for when, share in reports:
            if begun - 50.0 < when <= at:
                run.now = 50.0 + when
                run.left.take(10.0 * share, 10.0)
        begun = run.now = 50.0 + at
        if run.left.words():
            least, most = run.left.bounds
            told.append(least <= end - at <= most)
            assert re.fullmatch(r"about \d+ s left", run.left.words()) is None, (
                "no single number where speeds differ so"
            )
    assert len(told) > 15 and sum(told) >= 0.9 * len(told)
