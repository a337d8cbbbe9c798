"""A log that grows, is truncated, replaced or gets new files: only what is new is read, and nothing wrong is shown."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from log_files import GROWING, curve, event, events, histogram, history, item, record, scalar, wandb_file, wandb_records

from inspector.capture import CaptureError, LogView, open_log
from inspector.capture.logs import curves

NAME = "events.out.tfevents.1"
ROWS = [history(n, item(["loss"], n), item(["fill"], "y" * 3000)) for n in range(12)]


def loss(log: LogView) -> list[float]:
    return list(log.array("log:loss"))


@pytest.mark.parametrize("name", GROWING)
def test_every_prefix_of_a_growing_file_shows_whole_points_only(tmp_path: Path, name: str) -> None:
    file, content = GROWING[name]
    whole, path = content(12), tmp_path / file
    cuts = sorted({len(content(4)), *np.linspace(len(content(4)), len(whole), 40).astype(int).tolist(), len(whole)})
    path.write_bytes(whole[: cuts[0]])
    log = open_log(path)
    seen = [len(loss(log))]
    for first, stop in pairwise(cuts):
        with path.open("ab") as growing:
            growing.write(whole[first:stop])
        log.refresh()
        assert loss(log) == list(range(len(loss(log)))) and not log.damage
        seen.append(len(loss(log)))
    assert seen == sorted(seen) and seen[0] == 4 and seen[-1] == 12


@pytest.mark.parametrize("name", GROWING)
def test_only_what_is_new_is_read(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file, content = GROWING[name]
    path = tmp_path / file
    path.write_bytes(content(30))
    log = open_log(path)
    before = log.revision("log:loss")
    assert log.refresh() == frozenset() and log.revision("log:loss") == before
    rows: list[int] = []
    real = curves.Curves.append
    monkeypatch.setattr(
        curves.Curves, "append", lambda self, one, block: (rows.append(len(block.values)), real(self, one, block))
    )
    path.write_bytes(content(33))  # written anew in place, with the same beginning
    assert "log:loss" in log.refresh() and log.revision("log:loss") > before
    assert max(rows) == 3 and loss(log) == list(range(33))


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("how", ["truncated", "replaced", "rewritten"])
def test_a_file_that_is_another_one_is_read_anew(tmp_path: Path, name: str, how: str) -> None:
    file, content = GROWING[name]
    path = tmp_path / file
    path.write_bytes(content(20))
    log = open_log(path)
    before = log.revision("log:loss")
    if how == "truncated":
        path.write_bytes(content(5))
    elif how == "replaced":
        (tmp_path / "new").write_bytes(content(25))
        (tmp_path / "new").replace(path)
    else:
        changed = bytearray(content(22))
        changed[5 if name == "csv" else 40] ^= 2
        path.write_bytes(changed)
    log.refresh()
    anew = open_log(path)
    assert set(log.channels) == set(anew.channels) and log.damaged == anew.damaged
    for channel in anew.channels:
        np.testing.assert_array_equal(log.array(channel), anew.array(channel))
    if how != "rewritten":
        assert len(loss(log)) == (5 if how == "truncated" else 25) and log.revision("log:loss") > before
    assert not log.events


def test_a_column_that_comes_to_lightnings_table(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss\n0,1\n1,2\n")
    log = open_log(tmp_path)
    path.write_text("step,loss,val\n0,1,\n1,2,\n1,,5\n")
    log.refresh()
    assert loss(log) == [1, 2] and list(log.array("log:val")) == [5]


def test_new_files_and_folders_are_found(tmp_path: Path) -> None:
    events(tmp_path / "a" / f"{NAME}00", *curve("loss", range(5)))
    log = open_log(tmp_path)
    assert log.shown == ("a",)
    events(tmp_path / "a" / f"{NAME}01", *curve("loss", [30, 40], first=3))
    events(tmp_path / "b" / NAME, *curve("loss", [7]))
    log.source._searched = -math.inf
    log.refresh()
    assert loss(log) == [0, 1, 2, 30, 40] and log.runs == ("a", "b") and log.shown == ("a",)
    assert [one.kind for one in log.events] == ["restart"]
    assert list(open_log(tmp_path).array("b:loss")) == [7]


def test_a_file_that_is_removed_leaves_what_was_read(tmp_path: Path) -> None:
    path = events(tmp_path / NAME, *curve("loss", range(5)))
    log = open_log(path)
    path.unlink()
    log.refresh()
    assert loss(log) == list(range(5)) and not log.damage


def test_a_histogram_whose_file_is_gone(tmp_path: Path) -> None:
    path = events(tmp_path / NAME, event(1, histogram("w", [0, 1], [0, 1], 0, 1)))
    log = open_log(path)
    path.unlink()
    with pytest.raises(CaptureError, match="cannot be read: No such file or directory"):
        log.array("log:w")


def test_a_document_is_kept_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_text('{"step": [0], "loss": [1]}')
    log = open_log(path)
    path.write_text('{"step": [0, 1], "lo')
    log.refresh()
    assert loss(log) == [1] and not log.damage
    path.write_text('{"step": [0, 1], "loss": [1, 2]}')
    log.refresh()
    assert loss(log) == [1, 2]


def test_one_run_of_several_follows_the_same_files(tmp_path: Path) -> None:
    path = events(tmp_path / "a" / NAME, *curve("loss", range(2)))
    events(tmp_path / "b" / NAME, *curve("loss", range(2)))
    both = open_log(tmp_path)
    one = both.one("a")
    with path.open("ab") as file:
        file.write(record(event(2, scalar("loss", 2))))
    assert both.refresh() >= {"a:loss"} and one.refresh() >= {"log:loss"}
    assert loss(one) == [0, 1, 2] == list(both.array("a:loss"))


def test_wandb_and_its_unfinished_block(tmp_path: Path) -> None:
    path = wandb_file(tmp_path / "run-x.wandb", *ROWS[:10])
    log = open_log(path)
    more = wandb_records(path.stat().st_size, *ROWS[10:12])
    with path.open("ab") as file:
        file.write(more[:3005])  # the first of a record's pieces and half of the next
    log.refresh()
    with path.open("ab") as file:
        file.write(more[3005:])
    log.refresh()
    assert loss(log) == list(range(12))
