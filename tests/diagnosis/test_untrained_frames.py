"""What fits the model before its first step alone is not said of a training whose later frames show otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.diagnosis.rule import RULES
from tests.support.generated_run import Measured, judged, of_rule

NAME = "attention:attention/entropy_normalised"


def rows(*heads: float) -> dict[str, Measured]:
    """Heads with the same entropy at each of twelve queries but the first."""
    table = np.repeat(np.array(heads, np.float32)[:, None], 12, 1)
    table[:, 0] = np.nan
    return {NAME: Measured("attention_statistic", ("head", "query"), table)}


EVEN, SHARP = rows(1.0, 0.5), rows(0.5, 0.5)


@pytest.mark.parametrize(
    ("frames", "steps", "found"),
    [
        ([EVEN, SHARP, SHARP], [0, 100, 200], []),
        ([EVEN, EVEN, SHARP], [0, 100, 200], [0, 1]),  # it was not only the beginning
        ([EVEN, SHARP, EVEN], [0, 100, 200], [0, 2]),
        ([EVEN], [0], [0]),  # there is nothing else to judge
        ([EVEN, {}], [0, 100], [0]),  # the later frame does not have it
        ([EVEN, SHARP], [], [0]),  # frames of no training
        ([EVEN, SHARP], [50, 100], [0]),
    ],
)
def test_a_frame_before_the_first_step(tmp_path: Path, frames: Any, steps: list[int], found: list[int]) -> None:
    said = judged(tmp_path / "a.inspect", frames, steps=steps)
    assert [one.frame for one in of_rule(said, "uniform-attention")] == found


def test_rules_that_do_more_than_describe_speak_of_every_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RULES["uniform-attention"], "trust", "exact")
    said = judged(tmp_path / "a.inspect", [EVEN, SHARP], steps=[0, 100])
    assert [one.frame for one in of_rule(said, "uniform-attention")] == [0]
