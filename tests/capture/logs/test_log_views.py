"""A log as a view: axes that curves share, channels that panels read, titles, and what `open_capture` gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from captures import numbers, write
from log_files import curve, event, events, histogram, record, scalar

import inspector
from inspector.capture import CaptureError, LogView, coordinate_of, export_channel, numbers_along, open_log
from inspector.records import decode, encode

NAME = "events.out.tfevents.1"


@pytest.fixture
def log(tmp_path: Path) -> LogView:
    """Two curves at every step, one at every fifth, one that began late, histograms at every tenth."""
    rows = []
    for n in range(100):
        values = [scalar("loss", 100 - n), scalar("lr", 0.5)]
        values += [scalar("val", n)] if n % 5 == 0 else []
        values += [scalar("late", n)] if n >= 50 else []
        values += [histogram("w", [0, 1, n + 2], [0, n, 2], 0, n + 2)] if n % 10 == 0 else []
        rows.append(event(n, *values, time=1000.0 + n))
    events(tmp_path / "run" / NAME, *rows)
    return open_log(tmp_path / "run")


def test_curves_share_an_axis_where_their_iterations_are_the_same(log: LogView) -> None:
    axes = {name: channel.domain("iteration") for name, channel in log.channels.items() if channel.kind != "coordinate"}
    assert axes["log:loss"] == axes["log:lr"] == "iteration"
    assert len({axes["log:loss"], axes["log:val"], axes["log:late"], axes["log:w"]}) == 4
    assert axes["log:w"] == axes["log:w/edges"] and set(log.axes) == set(axes.values())
    assert log.axis("iteration").length == 100 and log.axis("iteration").unit == "iteration"


def test_the_axis_is_numbered_by_its_iterations_and_not_by_another_coordinate(log: LogView) -> None:
    for name, expected in {
        "loss": range(100),
        "val": range(0, 100, 5),
        "late": range(50, 100),
        "w": range(0, 100, 10),
    }.items():
        axis = log.channel(f"log:{name}").domain("iteration")
        assert coordinate_of(log, axis).name == f"log:{axis}"  # type: ignore[union-attr]
        np.testing.assert_array_equal(numbers_along(log, axis), list(expected))
        times = log.array(f"log:time{axis.removeprefix('iteration')}")
        np.testing.assert_array_equal(times, list(expected))


def test_every_record_of_it_travels(log: LogView) -> None:
    for one in (*log.channels.values(), *log.axes.values(), *log.events, log.start):
        assert decode(encode(one)) == one


def test_regions_and_overviews(log: LogView) -> None:
    np.testing.assert_array_equal(log.block("log:loss", -1, (slice(3, 6),)), [97, 96, 95])
    low, high = log.overview("log:loss", size=(10,))
    np.testing.assert_array_equal(low, np.arange(91, 0, -10))
    np.testing.assert_array_equal(high, np.arange(100, 0, -10))
    assert log.extent("log:w") == (10, 2) and log.overview("log:w", size=(5, 1))[1].shape == (5, 1)
    np.testing.assert_array_equal(log.overview("log:w", size=(10, 2))[0], log.array("log:w"))
    with pytest.raises(ValueError, match="read-only"):
        log.array("log:loss")[0] = 1
    assert log.frame_of("log:loss") == 0 and log.extent("log:loss") == (100,)


def test_what_was_not_logged_is_not_known(tmp_path: Path) -> None:
    path = events(tmp_path / NAME, *(event(n, scalar("a", n), scalar("b", n)) for n in range(5)))
    log = open_log(path)
    with path.open("ab") as file:
        file.write(record(event(5, scalar("a", 5))))
    log.refresh()
    assert log.channel("log:b").domain("iteration") == log.channel("log:a").domain("iteration")
    assert log.known("log:b").tolist() == [True] * 5 + [False] and np.isnan(log.array("log:b")[5])
    assert log.holes("log:b").missing == (((5, 6),),) and not log.holes("log:a") and not log.damage
    with path.open("ab") as file:
        file.write(record(event(5, scalar("b", 50))) + record(event(6, scalar("a", 6), scalar("b", 60))))
    log.refresh()
    assert list(log.array("log:b")) == [0, 1, 2, 3, 4, 50, 60] and log.known("log:b").all()


def test_it_is_exported_as_a_capture_is(log: LogView, tmp_path: Path) -> None:
    text = export_channel(log, "log:val", -1, tmp_path / "x.csv").read_text()
    assert text.splitlines()[1].startswith(("0,", "#")) and "95" in text
    np.testing.assert_array_equal(
        np.load(export_channel(log, "log:loss", -1, tmp_path / "x.npy")), np.arange(100, 0, -1)
    )
    with pytest.raises(CaptureError, match="There is no channel 'log:nothing'; there are: log:iteration"):
        log.array("log:nothing")


def test_open_capture_opens_it(log: LogView) -> None:
    with inspector.open_capture(log.path) as opened:
        assert isinstance(opened, LogView) and opened.start.title == "run"
    with pytest.raises(CaptureError, match="There is no run 'x' in run; there are run"):
        inspector.open_capture(log.path, run="x")


def test_a_capture_has_no_runs(tmp_path: Path) -> None:
    path = write(tmp_path / "x.inspect", numbers())
    assert not isinstance(inspector.open_capture(path), LogView)
    with pytest.raises(CaptureError, match=r"x.inspect is a capture, which has no runs"):
        inspector.open_capture(path, run="a")


def test_channels_of_all_runs_have_the_run_as_their_place(tmp_path: Path) -> None:
    for run in ("a", "b/c"):
        events(tmp_path / run / NAME, *curve("x: y", [1, 2]))
    log = open_log(tmp_path)
    assert [name for name, one in log.channels.items() if one.kind == "series"] == ["a:x. y", "b/c:x. y"]
    assert {one.place for one in log.channels.values()} == {"a", "b/c"}
    assert log.channel("b/c:x. y").title == "x: y" and log.start.title == tmp_path.name


def test_two_formats_in_one_folder_are_two_runs(tmp_path: Path) -> None:
    events(tmp_path / "version_0" / NAME, *curve("loss", [1, 2]))
    (tmp_path / "version_0" / "metrics.csv").write_text("step,loss\n0,5\n")
    log = open_log(tmp_path)
    assert log.runs == ("version_0", "version_0 (csv)")
    assert list(log.array("version_0:loss")) == [1, 2] and list(log.array("version_0 (csv):loss")) == [5]
    log.source._searched = -np.inf
    log.refresh()
    assert log.runs == ("version_0", "version_0 (csv)") and not log.events


def test_a_folder_and_one_of_that_name_in_it(tmp_path: Path) -> None:
    events(tmp_path / "runs" / NAME, *curve("loss", [1]))
    events(tmp_path / "runs" / "runs" / NAME, *curve("loss", [2]))
    log = open_log(tmp_path / "runs")
    assert sorted(float(log.one(run).array("log:loss")[0]) for run in log.runs) == [1, 2] and not log.events
