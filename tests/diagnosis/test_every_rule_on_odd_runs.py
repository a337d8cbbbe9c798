"""Every rule over the ill trainings that were recorded, as they would be with nothing but NaN, with one step or one
iteration, and before they ended: none fails, and none accuses numbers that are not there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import Capture, open_capture
from inspector.diagnosis import RULES, diagnose
from inspector.records import Channel

RECORDED = Path(__file__).parents[2] / "sample_models" / "illnesses" / "recorded"
ILL = sorted(path.parent.parent.name for path in RECORDED.glob("*/ill/run.inspect"))
OF_NAN = {"nonfinite", "nonfinite-training", "rows-without-keys", "one-batch"}
"""Rules that look for numbers that are not finite, or for shapes and structures alone."""
Change = Callable[[Channel, Any], Any]


def all_nan(channel: Channel, values: Any) -> Any:
    floats = values.dtype.kind == "f" and channel.kind not in ("coordinate", "structure", "health", "count")
    return np.full_like(values, np.nan) if floats else values


def one_step(channel: Channel, values: Any) -> Any:
    return values[tuple(slice(0, 1) if dim in ("step", "iteration") else slice(None) for dim in channel.dims)]


class Changed:
    """A capture with other numbers."""

    def __init__(self, run: Capture, change: Change, status: str) -> None:
        self._run, self._change, self.status = run, change, status

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    @property
    def scalars(self) -> Any:
        """Numbers of frames, too, but counts."""
        lost = self._change is all_nan
        return [
            replace(one, value=math.nan if lost and (one.value % 1 or "rate" in one.name) else one.value)
            for one in self._run.scalars
        ]

    def array(self, name: str, frame: int = -1) -> Any:
        return self._change(self._run.channel(name, frame), self._run.array(name, frame))

    def block(self, name: str, frame: int = -1, region: Any = ()) -> Any:
        return self.array(name, frame)[region]

    def extent(self, name: str, frame: int = -1) -> tuple[int, ...]:
        return tuple(np.shape(self.array(name, frame)))

    def known(self, name: str, frame: int = -1, region: Any = ()) -> Any:
        return np.ones(np.shape(self.block(name, frame, region)), bool)


def test_every_rule_has_a_recorded_illness() -> None:
    rules = {key.replace("-", "_") for key, rule in RULES.items() if rule.id.startswith("IN")}
    assert rules <= set(ILL) and {rule_of(name).replace("-", "_") for name in ILL} == rules


def rule_of(name: str) -> str:
    """The key of the rule that a case is of: a second one has a longer name."""
    key = name.replace("_", "-")
    return next(key[:n] for n in range(len(key), 0, -1) if key[:n] in RULES)


@pytest.mark.parametrize("name", ILL)
@pytest.mark.parametrize("change", [all_nan, one_step])
def test_no_rule_fails_or_accuses_what_is_not_there(name: str, change: Change) -> None:
    own = rule_of(name)
    with open_capture(RECORDED / name / "ill" / "run.inspect") as capture:
        found = diagnose(Changed(capture, change, "unfinished"), capture.frames)
    assert not found.broken
    if change is all_nan and RULES[own].trust != "exact" and own not in OF_NAN:
        assert own not in {one.rule for one in found.findings if one.severity != "info"}


@pytest.mark.parametrize("name", ILL)
def test_an_illness_is_named_before_the_training_ends(name: str) -> None:
    """The finding does not wait for the end of a run."""
    own = rule_of(name)
    with open_capture(RECORDED / name / "ill" / "run.inspect") as capture:
        found = diagnose(Changed(capture, lambda _channel, values: values, "unfinished"), capture.frames)
    assert own in {one.rule for one in found.findings}
