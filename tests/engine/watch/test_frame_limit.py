"""Frames keep to a limit of bytes by being further and further apart, and what was committed stays as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import inspector
from inspector.engine.watch.frame_limit import FrameLimit
from inspector.records import ITERATION_DOMAIN


@pytest.mark.parametrize("size", [1, 10, 25])
def test_a_training_of_any_length_keeps_to_the_limit(size: int) -> None:
    """The walk over frames that a prober makes, to the end of a training of 1,000 times the first half's length."""
    limit, steps, following = FrameLimit(1000.0), [], 0
    first = 5 * (500 // size + 1)
    while following <= 1000 * first:
        assert limit.has_room
        steps.append(following)
        limit.wrote(size)
        following += limit.distance(following, 5)
    assert limit.used == size * len(steps) <= 1000
    dense = 500 // size
    assert steps[:dense] == list(range(0, 5 * dense, 5)), "the first half as asked for"
    gaps = np.diff(steps)
    assert (np.diff(gaps) >= 0).all() and steps[-1] > 100 * first


def test_one_frame_is_written_though_it_is_larger_than_the_limit() -> None:
    limit = FrameLimit(100.0)
    assert limit.has_room and limit.wrote(500) and not limit.has_room


def run(path: Path, frames_gb: float, iterations: int = 160) -> torch.Tensor:
    torch.manual_seed(0)
    model = nn.RNN(2, 4, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    options = {"probe": torch.randn(1, 5, 2), "quantities": ("states",), "probe_every": 2, "frames_gb": frames_gb}
    with inspector.watch(model, optimizer, path, every=1, cost="light", **options) as watcher:
        for _ in range(iterations):
            model(torch.randn(2, 5, 2))[0].square().mean().backward()
            optimizer.step()
        assert watcher.error is None
    return model.weight_hh_l0.detach()


def test_frames_of_a_watched_training_become_rarer(tmp_path: Path) -> None:
    wide, narrow = run(tmp_path / "wide.inspect", 1.0), run(tmp_path / "narrow.inspect", 2e-6)
    assert torch.equal(wide, narrow)
    with (
        inspector.open_capture(tmp_path / "wide.inspect") as whole,
        inspector.open_capture(tmp_path / "narrow.inspect") as few,
    ):
        assert [frame.step for frame in whole.frames] == list(range(0, 161, 2)) and not whole.logs
        steps = [frame.step for frame in few.frames]
        gaps = np.diff(steps)
        assert gaps[0] == 2 and gaps[-1] >= 20 and (np.diff(gaps) >= 0).all()
        (name,) = (name for name in few.channels if name.endswith(":h"))
        for number, step in enumerate(steps):
            np.testing.assert_array_equal(few.array(name, number), whole.array(name, step // 2))
        assert "they become rarer" in few.logs[0].text
        assert sum(few.array(n, f).nbytes for f in range(len(steps)) for n in (name,)) <= 2000
        assert len(few.array("training:" + ITERATION_DOMAIN)) == 160, "rows are of every iteration still"


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan")])
def test_a_limit_that_is_none_is_refused(tmp_path: Path, wrong: float) -> None:
    with pytest.raises(ValueError, match=r"frames_gb is .*; expected gigabytes"):
        inspector.watch(nn.RNN(2, 3), None, tmp_path / "a.inspect", frames_gb=wrong)
