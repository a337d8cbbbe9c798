"""Rules over trials that are made before a training, at both sides of each limit, which a project may move."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from inspector.capture import open_capture
from inspector.diagnosis import Settings, diagnose
from inspector.records import Labels
from tests.support.generated_run import Measured, judged, severities

Wrote = Callable[[Path], object]
EVEN = np.log(8)


def first_loss(mean: float) -> Wrote:
    """The mean loss beside that of even probabilities over eight classes."""
    return lambda path: judged(path, [{"model:trial/initial_loss": Measured("trial", ("value",), [mean, EVEN])}])


def by_heart(first: float, least: float) -> Wrote:
    losses = Measured("trial", ("step",), [first, least], {"unit": "nat"})
    return lambda path: judged(path, [{"model:trial/one_batch": losses}])


def rounded(lost: float) -> Wrote:
    """A step that changes one parameter well, and loses a part of the entries of another."""
    table = np.array([[1.0, 1.0], [1e-3, 1e-3], [0.0, lost]])
    measured = Measured("trial", ("statistic", "parameter"), table, {"method": "adam"})
    return lambda path: judged(
        path, [{"model:trial/first_step": measured}], more=[Labels("parameter", ("a", "b"), frame=0)]
    )


def needed(share: float, near: float = 0.0, sequences: float = 8) -> Wrote:
    """What an input twelve steps back tells, and one two steps back; the gradient reaches four."""
    table = np.zeros((3, 20))
    table[:, 12] = share, 0.0, 1.0
    table[:, 2] = near, 0.0, 1.0
    channels = {
        "model:trial/reach": Measured("trial", ("statistic", "lag"), table, {"method": "counted"}),
        "model:trial/reach/gradient": Measured("trial", ("lag",), np.ones(20)),
    }
    scalars = {"trial/reach/gradient_most": 4.0, "trial/reach/gradient": 4.0, "trial/reach/gradient_least": 4.0}
    return lambda path: judged(path, [channels], {**scalars, "trial/reach/sequences": sequences})


CASES: list[tuple[str, Wrote, Wrote, list[str], float]] = [
    ("initial-loss.high", first_loss(1.51 * EVEN), first_loss(1.49 * EVEN), [], 1.6),
    ("initial-loss.high", first_loss(EVEN / 1.51), first_loss(EVEN / 1.49), [], 1.6),
    ("initial-loss.known", first_loss(0.101), first_loss(0.099), [], 0.2),
    ("one-batch.learned", by_heart(2.0, 1.01), by_heart(2.0, 0.99), [], 0.6),
    ("one-batch.known", by_heart(0.101, 0.1), by_heart(0.099, 0.098), [], 0.2),
    ("would-not-move.lost", rounded(0.51), rounded(0.49), [], 0.6),
    ("needed-lag.share", needed(0.051), needed(0.049), [], 0.1),
    ("needed-lag.times", needed(0.41, near=0.2), needed(0.39, near=0.2), [], 3.0),
    ("needed-lag.sequences", needed(0.9), needed(0.9, sequences=7), [], 9.0),
]


@pytest.mark.parametrize(("limit", "beyond", "within", "else_told", "moved"), CASES)
def test_what_is_told_on_either_side_of_a_limit(
    tmp_path: Path, limit: str, beyond: Wrote, within: Wrote, else_told: list[str], moved: float
) -> None:
    rule = limit.partition(".")[0]
    assert severities(beyond(tmp_path / "a.inspect"), rule) == ["warning"]
    assert severities(within(tmp_path / "b.inspect"), rule) == else_told
    with open_capture(tmp_path / "a.inspect") as capture:
        found = diagnose(capture, capture.frames, Settings(limits={limit: moved}))
    assert not found.broken and severities(found, rule) == else_told
