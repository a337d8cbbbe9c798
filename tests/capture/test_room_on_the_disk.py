"""A disk that is full for a while: an ordinary run pauses, says so, and goes on; nothing of it is lost."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from inspector.capture import CaptureError, Writer, open_capture
from inspector.capture import writer as module
from inspector.capture.store import Store
from inspector.records import Channel, Frame, Page, RunStart, RunStop

PAGE = np.arange(64, dtype=np.float32).reshape(8, 8)


class Disk:
    """Says how much is free, and refuses pages while that is nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full, self.refused = False, 0
        places = Store._places

        def placing(own: Store, records: Any) -> Any:
            if self.full and any(isinstance(one, Page) for one in records):
                self.refused += 1
                raise OSError(28, "No space left on device")
            return places(own, records)

        monkeypatch.setattr(Store, "_places", placing)
        self.free, self.asked = 1 << 30, 0  # no plenty: it is asked for at every write
        monkeypatch.setattr(shutil, "disk_usage", self._usage)

    def _usage(self, _folder: Any) -> Any:
        self.asked += 1
        return SimpleNamespace(free=0 if self.full else self.free)


def begin(path: Path, said: list[str], **how: Any) -> Writer:
    writer = Writer(path, RunStart(run="r", title="t"), say=said.append, **how)
    writer.write(Channel(name="a:h", kind="state", dims=("step", "unit"), shape=(None, 8)))
    writer.write(Frame(index=0))
    writer.write(Page("a:h", 0, (0, 0), PAGE))
    writer.flush()
    return writer


def until(done: Any) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_it_pauses_says_so_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, said = Disk(monkeypatch), list[str]()
    with begin(tmp_path / "a.inspect", said) as writer:
        disk.full = True
        writer.write(Page("a:h", 0, (8, 0), 2 * PAGE))
        until(lambda: said)
        assert "full" in said[0] and str(tmp_path) in said[0] and writer.error is None
        threading.Timer(0.3, lambda: setattr(disk, "full", False)).start()
        writer.write(Page("a:h", 0, (16, 0), 3 * PAGE))
        writer.write(RunStop("done"))
    assert len(said) == 2 and "goes on" in said[1] and not disk.refused
    with open_capture(tmp_path / "a.inspect") as capture:
        assert capture.status == "done" and not capture.verify()
        np.testing.assert_array_equal(capture.array("a:h"), np.concatenate([PAGE, 2 * PAGE, 3 * PAGE]))


def test_it_says_again_that_it_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something else is computed, and told, while the last pages wait: the window shows what was told last."""
    monkeypatch.setattr(module, "SAID_SECONDS", 0.2)
    disk, said = Disk(monkeypatch), list[str]()
    with begin(tmp_path / "a.inspect", said) as writer:
        disk.full = True
        writer.write(Page("a:h", 0, (8, 0), 2 * PAGE))
        until(lambda: len(said) > 2)
        disk.full = False
        writer.write(RunStop("done"))
    times = [float(one.partition("for up to ")[2].partition(" s")[0]) for one in said[:-1]]
    assert times[0] == module.ROOM_SECONDS >= times[-1] and "goes on" in said[-1]


def test_a_process_that_was_stopped_while_it_paused_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time in which it was stopped (Ctrl+Z, SIGSTOP) is none in which somebody could have made room."""
    disk, said = Disk(monkeypatch), list[str]()
    clock, stopped = time.monotonic, [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock() + stopped[0])
    with begin(tmp_path / "a.inspect", said) as writer:
        disk.full = True
        writer.write(Page("a:h", 0, (8, 0), 2 * PAGE))
        until(lambda: said)
        stopped[0] = 100 * module.ROOM_SECONDS
        threading.Timer(0.5, lambda: setattr(disk, "full", False)).start()
        writer.write(RunStop("done"))
    assert len(said) == 2 and "goes on" in said[1] and not disk.refused


def test_where_nobody_makes_room_it_ends_and_keeps_what_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROOM_SECONDS", 0.2)
    disk, said = Disk(monkeypatch), list[str]()
    writer = begin(tmp_path / "a.inspect", said)
    disk.full = True
    writer.write(Page("a:h", 0, (8, 0), 2 * PAGE))
    with pytest.raises(CaptureError, match="The disk is full"):
        writer.close()
    assert len(said) == 1 and disk.refused
    with open_capture(tmp_path / "a.inspect") as capture:
        assert not capture.verify()
        np.testing.assert_array_equal(capture.array("a:h"), PAGE)


@pytest.mark.parametrize("how", [{"block": False}, {"hurried": True}])
def test_a_training_and_a_cancelled_run_do_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    disk, said = Disk(monkeypatch), list[str]()
    hurried = how.pop("hurried", False)
    writer = begin(tmp_path / "a.inspect", said, **how)
    writer.patient = writer.patient and not hurried
    disk.full = True
    writer.write(Page("a:h", 0, (8, 0), 2 * PAGE))
    with pytest.raises(CaptureError, match="The disk is full"):
        writer.close()
    assert not said and disk.refused


def test_where_there_is_plenty_it_is_not_asked_for_at_each_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PLENTY_SECONDS", 1e6)
    asked = []
    for name, free in (("plenty", 1 << 40), ("enough", 1 << 30)):
        disk = Disk(monkeypatch)
        disk.free = free
        with begin(tmp_path / f"{name}.inspect", []) as writer:
            for step in range(1, 6):
                writer.write(Page("a:h", 0, (8 * step, 0), PAGE))
                writer.flush()
        asked.append(disk.asked)
    assert asked == [1, 6]
