"""Captures and logs as one view of curves: numbers are those of each, names and settings say which run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from captures import START
from commands import call
from log_files import event, events, part, scalar, tensor
from several_runs import logged, watched

from inspector.capture import CaptureError, Writer, curves_of, open_any, open_capture, open_log, points_of
from inspector.capture.comparing.together import MOST_RUNS, Together, differing_settings, settings_of
from inspector.records import RunStop


def test_curves_of_captures_and_logs_have_their_runs_and_numbers(tmp_path: Path) -> None:
    one, two = np.geomspace(5, 1, 20), np.geomspace(5, 0.1, 30)
    paths = [watched(tmp_path / "a.inspect", one), watched(tmp_path / "b.inspect", two, every=10),
             logged(tmp_path / "log.jsonl", 12)]  # fmt: skip
    with Together([open_any(path) for path in paths]) as whole:
        assert whole.runs == ("a", "b", "log.jsonl")
        curves = curves_of(whole)
        assert [(c.run, c.name, c.role) for c in curves] == [
            ("a", "loss", "loss"), ("a", "gradient norm: w", ""), ("a", "gradient norm: b", ""),
            ("b", "loss", "loss"), ("b", "gradient norm: w", ""), ("b", "gradient norm: b", ""),
            ("log.jsonl", "train/loss", "loss"),
        ]  # fmt: skip
        by_key = {(c.run, c.name): points_of(whole, c) for c in curves}
        np.testing.assert_array_equal(by_key["a", "loss"].y, one)
        np.testing.assert_array_equal(by_key["b", "gradient norm: b"].y, 2 * two)
        np.testing.assert_array_equal(by_key["b", "loss"].x, 10.0 * np.arange(30))
        np.testing.assert_array_equal(by_key["log.jsonl", "train/loss"].y, 1 / np.arange(1, 13))
        alone = whole.one("b")
        assert {c.run for c in curves_of(alone)} == {"b"} and alone.shown == ("b",) and alone.runs == whole.runs


def test_equal_names_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        watched(tmp_path / folder / "run.inspect", np.ones(3))
    with Together([open_capture(tmp_path / folder / "run.inspect") for folder in ("x", "y")]) as whole:
        assert whole.runs == ("x/run", "y/run")
    twice = [open_capture(tmp_path / "x" / "run.inspect") for _ in range(2)]
    with Together(twice) as whole:
        assert whole.runs == ("run", "run (2)")


def test_every_run_of_a_log_counts_and_no_more_than_twelve(tmp_path: Path) -> None:
    for n in range(MOST_RUNS + 1):
        logged(tmp_path / "logs" / f"run{n:02}.jsonl", 3)
    with pytest.raises(CaptureError, match="At most 12 runs are drawn together; these are 13"):
        Together([open_any(tmp_path / "logs")])
    (tmp_path / "logs" / "run12.jsonl").unlink()
    with Together([open_any(tmp_path / "logs")]) as whole:
        assert len(whole.runs) == 12 and len(curves_of(whole)) == 12
    with pytest.raises(CaptureError, match="no run to be drawn"):
        Together([])


def test_what_grows_is_read_on(tmp_path: Path) -> None:
    path = watched(tmp_path / "a.inspect", np.ones(3))
    log = logged(tmp_path / "log.jsonl", 3)
    with Together([open_capture(path), open_any(log)]) as whole:
        names = list(whole.channels)
        logged(log, 9)
        assert whole.changed()
        changed = whole.refresh()
        assert any(name.startswith("log.jsonl:") for name in changed) and not any(n.startswith("a:") for n in changed)
        assert list(whole.channels) == names
        loss = next(c for c in curves_of(whole) if c.run == "log.jsonl")
        assert len(points_of(whole, loss).y) == 9


def test_texts_of_a_log_are_settings(tmp_path: Path) -> None:
    for name, text in (("one", "with warm-up"), ("two", "none\nat all")):
        note = tensor("note", 7, part(8, text), plugin="text")
        (tmp_path / name).mkdir()
        events(tmp_path / name / "events.out.tfevents.1", event(0, note), event(1, scalar("loss", 2.0)))
    log = open_log(tmp_path)
    assert [settings_of(log.one(name)) for name in log.runs] == [{"note": "with warm-up"}, {"note": "none↵at all"}]
    assert "settings: note=with warm-up" in call("list", ".", cwd=tmp_path).stdout


def test_settings_that_differ_and_only_those(tmp_path: Path) -> None:
    paths = [
        watched(tmp_path / "a.inspect", np.ones(3), settings={"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-8}),
        watched(tmp_path / "b.inspect", np.ones(3), settings={"lr": 0.2, "betas": (0.9, 0.99)}),
        logged(tmp_path / "log.jsonl", 3),
    ]
    with Together([open_any(path) for path in paths]) as whole:
        settings = whole.settings()
    assert settings["a"]["optimizers.0.settings.lr"] == 0.1
    assert differing_settings(settings) == [
        ("optimizers.0.settings.lr", [0.1, 0.2, None]), ("optimizers.0.settings.eps", [1e-8, None, None]),
    ]  # fmt: skip
    with Writer(tmp_path / "c.inspect", START) as writer:
        writer.write(RunStop("done"))
    with open_capture(tmp_path / "c.inspect") as plain:
        assert settings_of(plain) == {}
