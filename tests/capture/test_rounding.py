"""Differences of two runs of one model that are no more than rounding are none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from captures import START, channel

from inspector.capture import Comparison, Difference, Reference, Writer, open_capture
from inspector.records import Channel, Frame, Page, RunStop

STATE = channel("rnn.l0:h", shape=(6, 3))
CURVE = channel("output:surprise", dims=("step",), shape=(6,), kind="output")
MAP = channel("a:attention", "float16", dims=("head", "query", "key"), shape=(2, 3, 3), kind="attention")
NORM = channel("rnn.l0:norm", dims=("step",), shape=(6,), kind="jacobian", compare="ratio")


def both(path: Path, described: Channel, before: npt.NDArray[np.generic], after: npt.NDArray[np.generic]) -> Path:
    with Writer(path, START) as writer:
        writer.write(described)
        for frame, values in enumerate((before, after)):
            writer.write(Frame(index=frame))
            writer.write(Page(described.name, frame, (0,) * values.ndim, values.astype(described.dtype)))
        writer.write(RunStop("done"))
    return path


def test_rounding_of_a_state_is_none_and_a_change_is_exact(tmp_path: Path) -> None:
    before = np.random.default_rng(0).uniform(-1, 1, (6, 3)).astype(np.float32)
    before[:, 0] = 0.9
    before[:, 2] *= 1e-3  # a small unit is rounded as the sum that it comes from
    after = before + np.float32(1.2e-7)
    after[4, 1] += 0.25
    with open_capture(both(tmp_path / "a.inspect", STATE, before, after)) as capture:
        found = Difference(capture, 0, 1)
        values = found.array(STATE.name)
        assert np.argwhere(values != 0).tolist() == [[4, 1]] and values[4, 1] == after[4, 1] - before[4, 1]
        for unit in range(3):
            part = found.block(STATE.name, -1, (slice(None), slice(unit, unit + 1)))
            np.testing.assert_array_equal(part, values[:, unit : unit + 1])
        low, _ = found.overview(STATE.name)
        np.testing.assert_array_equal(low, values)
        assert "differences up to 16 roundings of float32 count as 0" in found.channel(STATE.name).method
        other = Comparison(Reference(capture, 0), Reference(capture, 1))
        assert (other.array(STATE.name) != 0).all() and "roundings" not in other.channel(STATE.name).method


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_what_is_not_finite_sets_no_size(tmp_path: Path, broken: float) -> None:
    before = np.full((6, 3), 0.5, np.float32)
    after = before.copy()
    after[2, 0] = broken
    after[2, 1] += 1e-3
    with open_capture(both(tmp_path / "a.inspect", STATE, before, after)) as capture:
        values = Difference(capture, 0, 1).array(STATE.name)
        assert not np.isfinite(values[2, 0]) and values[2, 1] == pytest.approx(1e-3, rel=1e-3)
        assert not values[[0, 1, 3, 4, 5]].any()


def test_a_curve_is_rounded_by_its_largest_number_and_a_map_by_each(tmp_path: Path) -> None:
    before = np.array([4.0, 1e-3, 2.0, 0.5, 1e-6, 3.0], np.float32)
    after = before + np.float32(4e-7)
    with open_capture(both(tmp_path / "a.inspect", CURVE, before, after)) as capture:
        assert not Difference(capture, 0, 1).array(CURVE.name).any()
    weights = np.full((2, 3, 3), 1 / 3)
    changed = weights.copy()
    changed[1, 2] = (0.34, 0.33, 0.33)
    with open_capture(both(tmp_path / "b.inspect", MAP, weights, changed)) as capture:
        found = Difference(capture, 0, 1).array(MAP.name)
        assert found[1, 2].all() and not found[0].any()


def test_ratios_are_as_they_are(tmp_path: Path) -> None:
    before = np.ones(6, np.float32)
    with open_capture(both(tmp_path / "a.inspect", NORM, before, before + np.float32(1e-6))) as capture:
        assert (Difference(capture, 0, 1).array(NORM.name) > 1).all()
