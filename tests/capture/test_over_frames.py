"""One number of a channel for each frame, against the same worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.capture import Capture, CaptureError, Writer, open_capture, summaries_of
from inspector.records import Channel, Frame, Page, RunStart, RunStop


def written(
    path: Path, steps: tuple[int | None, ...], name: str, frames: list[np.ndarray | None], **about: Any
) -> Capture:
    with Writer(path / "a.inspect", RunStart(run="r", title="t")) as writer:
        for n, step in enumerate(steps):
            writer.write(Frame(index=n, step=step))
        shape = (None,) * len(about["dims"])
        for n, values in enumerate(frames):
            if values is not None:
                writer.write(Channel(name=name, shape=shape, dtype="float64", **about))
                writer.write(Page(name, n, (0,) * values.ndim, np.ascontiguousarray(values, dtype=np.float64)))
        writer.write(RunStop("done"))
    return open_capture(path / "a.inspect")


STATES = [np.array([[1.0, 5], [2, 8]]), None, np.array([[np.nan, np.inf], [3, 4]]), np.full((2, 2), np.nan)]


@pytest.mark.parametrize(("summary", "expected"), [
    ("mean", [4, np.inf, np.nan]), ("median", [2, 4, np.nan]), ("largest", [8, np.inf, np.nan]),
    ("smallest", [1, 3, np.nan]), ("last", [8, 4, np.nan]), ("p90", [8, np.inf, np.nan]), ("p10", [1, 3, np.nan]),
    ("share above", [0.75, 1.0, np.nan]),
])  # fmt: skip
def test_every_summary_along_the_iterations_of_its_frames(tmp_path: Path, summary: str, expected: list[float]) -> None:
    about = {"kind": "state", "dims": ("step", "unit"), "unit": "V"}
    with written(tmp_path, (0, 10, 40, 90), "rnn:h", STATES, **about) as capture:
        found = capture.over_frames("rnn:h", summary, 1.5)
        assert found.frames == (0, 2, 3) and found.iterations.tolist() == [0, 40, 90] and found.word == "iteration"
        assert found.names == ("",) and found.unit == ("1" if summary == "share above" else "V")
        np.testing.assert_array_equal(found.values[:, 0], expected)


def test_the_horizon_is_the_first_lag_at_which_the_median_has_vanished_or_exploded(tmp_path: Path) -> None:
    decay, growth = 0.1 ** np.arange(8.0), 10 ** np.arange(8.0)
    kept, unknown = np.ones(8), np.array([1, np.nan, 1e-9, 1, 1, 1, 1, 1])
    tables = [np.stack((np.full(8, 7.0), row)) for row in (decay, growth, kept, unknown)]
    about = {"kind": "lag", "dims": ("statistic", "lag"), "labels": {"statistic": ("mean", "median")}}
    with written(tmp_path, (1, 2, 3, 4), "rnn:jacobian/lag", tables, **about) as capture:
        found = capture.over_frames("rnn:jacobian/lag", "horizon")
        np.testing.assert_array_equal(found.values[:, 0], [4, 4, np.inf, np.nan])
        assert found.unit == "steps"


def test_gates_are_saturated_near_their_limits(tmp_path: Path) -> None:
    gates = [np.array([[0.05, 0.5, 0.95, 0.1]]), np.array([[0.5, 0.6, np.nan, 0.99]])]
    about = {"kind": "gate", "dims": ("step", "unit"), "limits": (0, 1)}
    with written(tmp_path, (0, 5), "rnn:gate/forget", gates, **about) as capture:
        assert summaries_of(capture.channel("rnn:gate/forget"))[0] == "share saturated"
        np.testing.assert_allclose(capture.over_frames("rnn:gate/forget", "share saturated").values[:, 0], [0.5, 1 / 3])


def test_heads_and_eigenvalues_stay_apart(tmp_path: Path) -> None:
    heads = [np.array([[1.0, 3], [5, 7]]), np.array([[2.0, 2], [0, 4]])]
    (tmp_path / "a").mkdir()
    with written(
        tmp_path / "a", (0, 5), "attn:entropy", heads, kind="attention_statistic", dims=("head", "query")
    ) as found:
        over = found.over_frames("attn:entropy", "mean")
        assert over.names == ("head 0", "head 1") and over.values.tolist() == [[2, 6], [2, 2]]
    eigen = [np.array([[3.0, 4], [10, 0]]), np.array([[0.0, 2], [1, 0]])]
    with written(tmp_path, (0, 5), "rnn:W", eigen, kind="spectrum", dims=("eigenvalue", "part")) as found:
        assert found.over_frames("rnn:W", "mean").values.tolist() == [[10, 5], [2, 1]]


@pytest.mark.parametrize("steps", [(None, None), (7, 7), (None, 3)])
def test_frames_without_iterations_are_counted(tmp_path: Path, steps: tuple[int | None, ...]) -> None:
    with written(tmp_path, steps, "a:h", [np.ones(2), np.zeros(2)], kind="state", dims=("step",)) as capture:
        found = capture.over_frames("a:h", "mean")
        assert found.word == "frame" and found.iterations.tolist() == [0, 1]


def test_a_summary_that_does_not_exist_is_refused_with_those_that_do(tmp_path: Path) -> None:
    said = r"a:h has no summary 'horizon' over frames; it has mean, median"
    with (
        written(tmp_path, (0,), "a:h", [np.ones(2)], kind="state", dims=("step",)) as capture,
        pytest.raises(CaptureError, match=said),
    ):
        capture.over_frames("a:h", "horizon")


@pytest.mark.parametrize("kind", ["health", "clipping"])
def test_no_mean_is_made_of_counts_and_norms_of_different_things(kind: str) -> None:
    channel = Channel(name=f"rnn:{kind}/h", kind=kind, dims=("count",), shape=(7,), dtype="int64", title="health")
    assert summaries_of(channel) == ()
