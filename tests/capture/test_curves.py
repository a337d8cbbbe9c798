"""The curves of watched runs, of logs and of older histories in one list, and their points."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from panel_captures import Written, channel

from inspector.capture import Capture, Writer, curves_of, open_capture, open_log, points_of
from inspector.capture.curves import further
from inspector.records import Axis, Frame, Labels, Page, RunStart, RunStop

SPARSE = {"iteration": "iteration/logged"}


def written(path: Path, *parts: Written | Labels | Axis) -> Capture:
    """A run of channels, each with the page of its array."""
    with Writer(path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        for part in parts:
            if isinstance(part, tuple):
                writer.write(part[0])
                writer.write(Page(part[0].name, 0, (0,) * part[1].ndim, part[1]))
            else:
                writer.write(part)
        writer.write(RunStop("done"))
    return open_capture(path / "a.inspect")


def watched(path: Path) -> Capture:
    """As a watched run writes them: curves, tables by name, coordinates, an axis of its own for what is logged."""
    numbers = np.array([0.0, 10.0, 20.0, 30.0])
    return written(
        path,
        Axis(name="iteration", title="iteration", unit="iteration"),
        channel("training:iteration", "coordinate", ["iteration"], numbers, title="iteration"),
        channel("training:time", "coordinate", ["iteration"], numbers / 4, unit="s", title="time"),
        channel("training:iteration/logged", "coordinate", ["iteration"], numbers[1:3], title="iteration", domains=SPARSE),
        channel("training:tokens/logged", "coordinate", ["iteration"], np.array([640.0, 1280.0]), title="tokens",
                unit="tokens", domains=SPARSE),
        channel("training:loss", "series", ["iteration"], np.array([4.0, np.nan, np.inf, 1.0]), title="loss"),
        Labels("parameter", ("a.weight", "b.weight"), -1),
        channel("parameters:gradient/norm", "series", ["iteration", "parameter"], np.arange(8.0).reshape(4, 2),
                title="gradient norm", scale="log"),
        Labels("setting", ("group 0: lr", "group 0: betas 1"), -1),
        channel("training:optimizer", "series", ["iteration", "statistic"], np.tile([1e-3, 0.9], (4, 1)),
                title="settings of the optimizer", domains={"statistic": "setting"}),
        channel("training:logged", "series", ["iteration", "statistic"], np.array([[0.5], [0.25]]), title="logged",
                labels={"statistic": ("val_loss",)}, domains=SPARSE),
        channel("training:gradient_norm", "series", ["iteration", "statistic"], np.ones((4, 2)), scale="log",
                title="gradient norm, all parameters", labels={"statistic": ("before clipping", "after clipping")}),
        channel("rnn:h", "state", ["step", "unit"], np.ones((3, 2)), title="h"),
    )  # fmt: skip


def test_every_curve_has_a_name_a_group_and_a_role(tmp_path: Path) -> None:
    with watched(tmp_path) as capture:
        found = {curve.key: curve for curve in curves_of(capture)}
        assert list(found) == [
            "training:loss", "parameters:gradient/norm[a.weight]", "parameters:gradient/norm[b.weight]",
            "training:optimizer[group 0: lr]", "training:optimizer[group 0: betas 1]", "training:logged[val_loss]",
            "training:gradient_norm[before clipping]", "training:gradient_norm[after clipping]",
        ]  # fmt: skip
        roles = {key: curve.role for key, curve in found.items() if curve.role}
        assert roles == {
            "training:loss": "loss", "training:optimizer[group 0: lr]": "learning rate",
            "training:logged[val_loss]": "validation loss", "training:gradient_norm[before clipping]": "gradient norm",
            "training:gradient_norm[after clipping]": "gradient norm",
        }  # fmt: skip
        shared = {key for key, curve in found.items() if curve.shared}
        assert shared == {key for key in found if "norm" in key}, "settings and logged numbers have axes of their own"
        one = found["parameters:gradient/norm[b.weight]"]
        assert (one.group, one.name, one.column) == ("gradient norm", "b.weight", 1)
        assert found["training:loss"].group == "training"


def test_points_are_those_that_were_logged_also_where_they_are_not_finite(tmp_path: Path) -> None:
    with watched(tmp_path) as capture:
        found = {curve.key: curve for curve in curves_of(capture)}
        loss = points_of(capture, found["training:loss"])
        assert loss.x.tolist() == [0, 10, 20, 30] and loss.known.all()
        np.testing.assert_array_equal(loss.y, [4, np.nan, np.inf, 1])
        assert points_of(capture, found["parameters:gradient/norm[b.weight]"]).y.tolist() == [1, 3, 5, 7]
        assert points_of(capture, found["training:logged[val_loss]"]).x.tolist() == [10, 20]


def test_curves_can_be_drawn_by_time_and_by_tokens(tmp_path: Path) -> None:
    with watched(tmp_path) as capture:
        found = {curve.key: curve for curve in curves_of(capture)}
        assert further(capture) == ("tokens", "time")
        assert points_of(capture, found["training:loss"], "time").x.tolist() == [0, 2.5, 5, 7.5]
        np.testing.assert_array_equal(
            points_of(capture, found["training:loss"], "tokens").x, [np.nan, 640, 1280, np.nan]
        )
        assert points_of(capture, found["training:logged[val_loss]"], "time").x.tolist() == [2.5, 5]


def test_a_cell_that_was_not_logged_is_not_known(tmp_path: Path) -> None:
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        about, _ = channel("p:norm", "series", ["iteration", "parameter"], np.ones((3, 2)))
        writer.write(about)
        writer.write(Page("p:norm", 0, (0, 0), np.ones((1, 2))))
        writer.write(Page("p:norm", 0, (1, 1), np.full((2, 1), np.nan)))
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "a.inspect") as capture:
        first, second = curves_of(capture)
        assert [first.name, second.name] == ["parameter 0", "parameter 1"]
        assert points_of(capture, first).known.tolist() == [True, False, False]
        assert points_of(capture, second).known.all()


def test_an_older_history_is_numbered_by_its_own_column(tmp_path: Path) -> None:
    table = np.array([[0.0, 5.0, 10.0], [3.0, 2.0, 1.0]])
    about = {"labels": {"statistic": ("step", "loss")}, "title": "training"}
    with written(tmp_path, channel("p:training", "training", ["statistic", "iteration"], table, **about)) as capture:
        (curve,) = curves_of(capture)
        assert (curve.name, curve.role, curve.shared) == ("loss", "loss", False)
        points = points_of(capture, curve)
        assert points.x.tolist() == [0, 5, 10] and points.y.tolist() == [3, 2, 1]


@pytest.mark.parametrize("several", [False, True])
def test_the_curves_of_a_log_are_grouped_by_their_names_or_by_run(tmp_path: Path, several: bool) -> None:
    for name in ("one", "two")[: 1 + several]:
        (tmp_path / "runs" / name).mkdir(parents=True)
        rows = [{"step": n, "train/loss": 1 / (n + 1), "lr": 0.1} for n in range(3)]
        (tmp_path / "runs" / name / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with open_log(tmp_path / "runs") as log:
        found = curves_of(log)
        assert [curve.role for curve in found[:2]] == ["loss", "learning rate"]
        if several:
            assert [(curve.group, curve.name) for curve in found] == [
                (run, name) for run in ("one", "two") for name in ("train/loss", "lr")
            ]
        else:
            assert [(curve.group, curve.name) for curve in found] == [("train", "train/loss"), ("", "lr")]
        np.testing.assert_allclose(points_of(log, found[0]).y, [1, 1 / 2, 1 / 3])
