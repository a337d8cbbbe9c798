"""`inspector list` and `inspector export` of logs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from commands import called
from log_files import curve, event, events, histogram, scalar

NAME = "events.out.tfevents.1"


def logs(folder: Path) -> None:
    rows = [*curve("train/loss", [3, np.nan, 1]), event(0, histogram("w", [0, 1, 2], [1, 2, 3], 0, 2))]
    events(folder / "logs" / "a" / NAME, *rows)
    events(folder / "logs" / "b" / NAME, event(7, scalar("lr-AdamW", 0.5)))


def test_list_names_runs_curves_and_roles(tmp_path: Path) -> None:
    logs(tmp_path)
    said = called("list", "logs", cwd=tmp_path)
    assert said.code == 0 and said.stdout.splitlines() == [
        "logs: TensorBoard event files, 2 runs", "run a", "  log:train/loss  3 points  (loss)", "  log:w           1 histogram",
        "run b", "  log:lr-AdamW  1 point  (learning rate)",
    ]  # fmt: skip
    assert "run a" not in called("list", "logs", "--run", "b", cwd=tmp_path).stdout
    told = json.loads(called("list", "logs", "--json", cwd=tmp_path).stdout, parse_constant=lambda word: 1 / 0)
    assert [run["name"] for run in told["runs"]] == ["a", "b"]
    assert {one["name"]: one["role"] for one in told["runs"][0]["channels"]}["log:train/loss"] == "loss"


def test_export_takes_the_name_that_was_logged(tmp_path: Path) -> None:
    logs(tmp_path)
    for name in ("train/loss", "log:train/loss"):
        assert called("export", "logs", "--run", "a", "--channel", name, "--to", "x.npy", cwd=tmp_path).code == 0
        np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), [3, np.nan, 1])
    done = called("export", "logs", "--channel", "train/loss", "--to", "x.npy", cwd=tmp_path)
    assert (done.code, done.stderr) == (2, "logs has several runs: choose one with --run NAME; there are a, b.\n")
    done = called("export", "logs", "--run", "b", "--channel", "loss", "--to", "x.npy", cwd=tmp_path)
    assert (
        done.code == 2
        and "There is no channel 'loss'; there are: log:iteration, log:time, log:lr-AdamW." in done.stderr
    )


def test_damage_ends_an_export_unless_it_is_allowed(tmp_path: Path) -> None:
    path = events(tmp_path / NAME, *curve("loss", [3, 2, 1]))
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    words = ("export", NAME, "--channel", "loss", "--to", "x.npy")
    assert called(*words, cwd=tmp_path).code == 1 and not (tmp_path / "x.npy").exists()
    assert called(*words, "--damaged", cwd=tmp_path).code == 0 and len(np.load(tmp_path / "x.npy")) == 2
    assert "damaged: " in called("list", NAME, cwd=tmp_path).stdout


def test_what_is_neither_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello")
    done = called("list", "x.txt", cwd=tmp_path)
    assert done.code == 2 and done.stderr.startswith("x.txt is neither a capture") and done.stderr.count("\n") == 1
