"""A disk that is full for a while: training goes on with the same bits, and so does its capture once there is room."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from trainings import Case, train

import inspector
from inspector.capture.rows import Rows
from inspector.capture.store import Store

CASE, ITERATIONS = Case(model="lstm"), 30
FULL, FREE = 10, 20
"""After these iterations it is full, and there is room again."""


class Disk:
    """Takes nothing while it is full: neither pages nor, with `index`, rows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, index: bool) -> None:
        self.full, self.asked = False, 0
        places, store = Store._places, Rows.store

        def placing(own: Store, records: Any) -> Any:
            if self.full:
                raise OSError(errno.ENOSPC, "No space left on device")
            return places(own, records)

        def storing(own: Rows) -> None:
            if self.full and index:
                problem = sqlite3.OperationalError("database or disk is full")
                problem.sqlite_errorcode = sqlite3.SQLITE_FULL  # type: ignore[attr-defined]
                raise problem
            store(own)

        def usage(_path: Any) -> Any:
            self.asked += 1
            return SimpleNamespace(free=0 if self.full else 1 << 30)

        monkeypatch.setattr(Store, "_places", placing)
        monkeypatch.setattr(Rows, "store", storing)
        monkeypatch.setattr(shutil, "disk_usage", usage)
        monkeypatch.setattr("inspector.engine.watch.core.FLUSH_SECONDS", (0.0, 0.0))


def watched(path: Path, disk: Disk, seen: list[Any], free: int = FREE) -> Any:
    """Attach; the disk fills, and is free again. What was handed on is on its way to the disk at both times."""

    def attach(model: nn.Module, optimizer: torch.optim.Optimizer) -> Any:
        watcher = inspector.watch(model, optimizer, path, every=1)
        seen.append(watcher)

        def each(*_: object) -> None:
            if watcher.iteration in (FULL, FULL + 1, free):
                watcher._core.flush()
                watcher._commit()
                disk.full = watcher.iteration != free
            if watcher.iteration == FULL + 3:
                watcher.log(late=torch.tensor(7.0))
                watcher._core.event("mark", "while the disk was full")
            if watcher.iteration == free + 2:
                watcher.log(late=torch.tensor(8.0))

        optimizer.register_step_post_hook(each)
        return watcher

    return attach


@pytest.mark.parametrize("index", [False, True])
def test_it_goes_on_when_there_is_room(
    index: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, seen = train(CASE, ITERATIONS), list[Any]()
    monkeypatch.setattr("inspector.capture.resuming.RETRY_SECONDS", 0.0)
    assert train(CASE, ITERATIONS, watched(tmp_path / "run.inspect", Disk(monkeypatch, index=index), seen)) == plain
    assert seen[0].error is None
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and all(line.startswith("inspector: ") and "goes on" in line for line in lines)
    assert "full" in lines[0] and "room" in lines[1]
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.status == "done" and not capture.damage and not capture.verify()
        rows = capture.array("training:iteration").tolist()
        there = [int(n) for n in rows if n == n]
        assert len(rows) == ITERATIONS and there == sorted(set(there))
        assert {*range(1, FULL - 1), *range(FREE + 1, ITERATIONS + 1)} <= set(there)
        assert not set(range(FULL + 3, FREE - 2)) & set(there)
        assert len(capture.array("training:loss")) == ITERATIONS
        assert any("while the disk was full" in one.text for one in capture.events)
        (told,) = [one.text for one in capture.logs if "disk was full" in one.text]
        assert int(told.partition(" s, so ")[2].split()[0].replace(",", "")) >= FREE - FULL - 4
        assert capture.array("training:logged")[-1].tolist() == [8.0]


def test_it_is_looked_at_each_ten_seconds_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a training waits for it. At the end once more: then what was kept is written."""
    disk, seen = Disk(monkeypatch, index=True), list[Any]()
    plain = train(CASE, ITERATIONS)
    assert train(CASE, ITERATIONS, watched(tmp_path / "run.inspect", disk, seen)) == plain
    assert disk.asked == 1 and seen[0].error is None
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.status == "done" and any("disk was full" in one.text for one in capture.logs)


def test_one_that_stays_full_ends_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    disk, seen = Disk(monkeypatch, index=True), list[Any]()
    assert train(CASE, ITERATIONS, watched(tmp_path / "run.inspect", disk, seen, 99)) == train(CASE, ITERATIONS)
    assert "disk is full" in seen[0].error and capsys.readouterr().err.count("goes on") == 2
    disk.full = False
    with inspector.open_capture(tmp_path / "run.inspect") as capture:
        assert capture.status == "unfinished" and len(capture.array("training:iteration")) >= FULL - 2
