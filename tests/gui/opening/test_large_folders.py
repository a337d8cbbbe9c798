"""Folders of many files, and slow disks: the window goes on while they are looked through."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from several_runs import logged

from inspector.capture import CancelledError, is_log
from inspector.capture.logs import search
from inspector.gui.state import folder_look
from inspector.gui.window.main_window import Window

SLOW, MOST = 0.02, 0.5


def nested(folder: Path, many: int = 100) -> Path:
    for number in range(many):
        (folder / f"f{number:03d}").mkdir(parents=True)
    return folder


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing a folder takes its time, and the window waits no longer than it does for a person."""
    plain = os.scandir

    def scandir(*given: Any) -> Any:
        time.sleep(SLOW)
        return plain(*given)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(folder_look, "PATIENCE", 0.05)


def seconds(window: Window, path: Path) -> float:
    began = time.perf_counter()
    window.open_paths([str(path)])
    return time.perf_counter() - began


def test_a_slow_folder_holds_nothing_up_and_the_row_says_so(
    window: Window, qtbot: Any, tmp_path: Path, slow_disk: None
) -> None:
    taken = seconds(window, nested(tmp_path / "data"))
    assert taken < MOST < 100 * SLOW
    window.tick()
    assert window.session.sentence.startswith("Looking through the folder data")
    assert not window.status.stop.isHidden()
    qtbot.waitUntil(lambda: "data is a folder: open the model" in window.session.sentence, timeout=20_000)
    assert window.session.reading is None


def test_esc_ends_the_look(window: Window, qtbot: Any, tmp_path: Path, slow_disk: None) -> None:
    window.open_path(str(nested(tmp_path / "data")))
    window.session.cancel()
    qtbot.waitUntil(lambda: window.session.sentence == "Reading data was cancelled.", timeout=1000)


def test_a_log_deep_in_a_slow_folder_is_opened_once_it_was_found(
    window: Window, qtbot: Any, tmp_path: Path, slow_disk: None
) -> None:
    logged(nested(tmp_path / "data", 20) / "f019" / "log.jsonl", 12)
    window.open_path(str(tmp_path / "data"))
    qtbot.waitUntil(lambda: window.session.sentence == "data is shown.", timeout=20_000)


def test_what_is_opened_meanwhile_is_what_is_opened(
    window: Window, qtbot: Any, tmp_path: Path, slow_disk: None
) -> None:
    window.open_path(str(nested(tmp_path / "data")))
    logged(tmp_path / "log.jsonl", 12)
    window.open_path(str(tmp_path / "log.jsonl"))
    qtbot.waitUntil(lambda: window.session.sentence == "log.jsonl is shown.", timeout=20_000)
    qtbot.wait(100)
    assert window.session.sentence == "log.jsonl is shown."


def test_of_two_folders_the_later_one_is_opened(
    window: Window, qtbot: Any, tmp_path: Path, slow_disk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.open_path(str(nested(tmp_path / "data", 20)))
    monkeypatch.setattr(folder_look, "PATIENCE", 10.0)
    window.open_path(str(nested(tmp_path / "other", 1)))
    assert window.session.reading is None
    qtbot.wait(800)
    assert "other is a folder: open the model" in window.session.sentence


def test_a_run_is_added_from_a_slow_folder(window: Window, qtbot: Any, tmp_path: Path, slow_disk: None) -> None:
    logged(tmp_path / "log.jsonl", 12)
    window.open_path(str(tmp_path / "log.jsonl"))
    qtbot.waitUntil(lambda: window.session.reading is None, timeout=20_000)
    began = time.perf_counter()
    window.add_run(str(nested(tmp_path / "data")))
    assert time.perf_counter() - began < MOST
    qtbot.waitUntil(lambda: "data is neither a capture nor a log" in window.session.sentence, timeout=20_000)


def test_the_look_stops_at_the_first_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged(nested(tmp_path / "data") / "a.jsonl", 12)
    looked: list[Any] = []
    plain = search.recognise

    def recognise(path: Path, **how: Any) -> str:
        looked.append(path)
        return plain(path, **how)

    monkeypatch.setattr(search, "recognise", recognise)
    for number in range(50):
        (tmp_path / "data" / f"z{number}.jsonl").write_text("{}\n")
    assert is_log(tmp_path / "data") and len(looked) == 1
    assert len(search.search(tmp_path / "data").found) == 1 and len(looked) == 52


def test_a_look_says_how_far_it_is_and_can_be_ended(tmp_path: Path) -> None:
    seen: list[int] = []
    for number in range(600):
        (tmp_path / f"{number}.txt").touch()
    assert not is_log(tmp_path, seen.append) and seen == [0, 256, 512]

    def stop(_: int) -> None:
        raise CancelledError("Cancelled.")

    with pytest.raises(CancelledError):
        is_log(tmp_path, stop)
