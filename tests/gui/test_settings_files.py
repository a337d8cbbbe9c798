"""Settings where their file or folder is odd: the window opens all the same, and says what it cannot remember."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray
from pytestqt.qtbot import QtBot

from inspector.gui.runtime.crash_file import NativeCrashes
from inspector.gui.state import preferred
from inspector.gui.state import settings as module
from inspector.gui.state.settings import LARGEST, Settings
from inspector.gui.window.named_layouts import NamedLayouts
from inspector.transport.interpreter import chosen
from tests.support.opened import opened


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where settings are kept, not made yet."""
    monkeypatch.setattr(module.platformdirs, "user_config_dir", lambda *_, **__: str(tmp_path / "config" / "inspector"))
    return tmp_path / "config" / "inspector"


def remembered() -> str:
    one = Settings()
    one.set_text("marker", "kept")
    one._store.sync()
    return Settings().text("marker")


@pytest.mark.parametrize("what", ["nothing", "pipe", "folder", "huge", "a link that leads nowhere", "any bytes"])
def test_what_cannot_be_read_is_left_and_another_file_is_taken(folder: Path, what: str) -> None:
    file = folder / "window.ini"
    folder.mkdir(parents=True)
    if what in ("pipe", "a link that leads nowhere") and sys.platform == "win32":
        pytest.skip("there are none")
    if what == "pipe":
        os.mkfifo(file)
    elif what == "folder":
        file.mkdir()
    elif what == "huge":
        with file.open("wb") as made:
            made.truncate(LARGEST + 1)
    elif what == "a link that leads nowhere":
        file.symlink_to(folder / "elsewhere.ini")
    elif what == "any bytes":
        file.write_bytes(bytes(range(256)) * 100)
    assert remembered() == "kept" and not Settings().problem()
    assert (folder / "window-1.ini").exists() == (what in ("pipe", "folder", "huge"))


@pytest.mark.parametrize("what", ["a file in the way", "a disk that can only be read"])
def test_a_folder_that_cannot_be_made_is_said_and_choices_hold_until_the_end(
    folder: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "a file in the way":
        folder.parent.write_text("")
    else:
        folder.mkdir(parents=True)
        monkeypatch.setattr(os, "access", lambda *_: False)
    one = Settings()
    one.set_text("marker", "kept")
    assert one.text("marker") == "kept"
    assert one.problem() == f"Choices and layout are not remembered: the folder {folder} cannot be made or written to."


FORGED = (
    "[" * 5000,
    '{"a": [1, {"b": NaN}]}',
    "9" * 400,
    "-1",
    "1e999",
    "nan",
    "a\0b/../../c",
    "<b>\x1b[31m\u202e",
    "",
    "²",
)


@pytest.mark.parametrize("text", FORGED)
def test_a_choice_that_nobody_made_is_none(folder: Path, text: str) -> None:
    settings = Settings()
    for name in (preferred.POINTS, preferred.THREADS, preferred.MEMORY_GB, preferred.PYTHON, "budget"):
        settings.set_text(name, text)
    assert preferred.budget_of(settings, 30.0) == 30.0
    assert preferred.memory_of(settings) == 0.0 and preferred.threads_of(settings) == 0
    python, threads, memory = preferred.worker_of(settings)
    assert (threads, memory) == (0, 0.0) and isinstance(chosen(python), str)
    settings.set_text(preferred.RUNS, text)
    assert preferred.runs_of(settings) == (None if not text or "\0" in text else Path(text))


def test_a_budget_that_was_chosen_is_kept(folder: Path) -> None:
    settings = Settings()
    settings.set_text("budget", "2.5")
    settings.set_text(preferred.MEMORY_GB, "6")
    assert preferred.budget_of(settings, 30.0) == 2.5 and preferred.memory_of(settings) == 6.0


@pytest.mark.parametrize("text", FORGED[:2])
def test_a_window_opens_with_forged_choices(
    qtbot: QtBot, folder: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    def forged(_self: Settings, name: str, default: str = "") -> str:
        return default if name == preferred.PYTHON else text

    monkeypatch.setattr(Settings, "text", forged)
    monkeypatch.setattr(Settings, "layout", lambda _self: (QByteArray(b"\x01\xff"), QByteArray(text.encode())))
    with opened(qtbot) as window:
        assert window.session.background.budget > 0


@pytest.mark.skipif(sys.platform == "win32", reason="a named pipe")
def test_a_pipe_among_the_stacks_of_crashes_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "native-99999999.txt")
    (tmp_path / "native-99999998.txt").write_text("Current thread")
    crashes = NativeCrashes(tmp_path)
    found = crashes.begin()
    crashes.end()
    assert found is not None and "Current thread" in found.read_text()


def test_a_layout_that_the_disk_refuses_is_not_said_to_be_kept(
    folder: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until there is room again; what was chosen meanwhile is written then."""
    with opened(qtbot) as window:
        said, failed = list[str](), list[str]()
        monkeypatch.setattr(window, "say", said.append)
        monkeypatch.setattr(window, "fail", failed.append)
        layouts = NamedLayouts(window)
        layouts.save("first")
        assert said == ["The layout is kept as first: Window ▸ Layouts."] and not failed
        file = Path(window.settings._store.fileName())
        before, kept = file.read_bytes(), file.rename(folder.parent / "kept.ini")
        shutil.rmtree(folder)
        folder.write_text("in the way")
        layouts.save("second")
        why = f"It holds until this window is closed: {file} cannot be written to."
        assert failed == [f"The layout second could not be saved. {why}"] and len(said) == 1
        assert list(layouts.known()) == ["first", "second"] and kept.read_bytes() == before
        folder.unlink()
        folder.mkdir()
        kept.rename(file)
        layouts.save("third")
        assert len(said) == 2 and len(failed) == 1
        assert all(name in file.read_text() for name in ("first", "second", "third"))
