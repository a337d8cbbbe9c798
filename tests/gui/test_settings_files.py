"""Settings where their file or folder is odd: the window opens all the same, and says what it cannot remember."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QByteArray
from pytestqt.qtbot import QtBot

from inspector.gui.app import keep_or_say
from inspector.gui.runtime import crash_file
from inspector.gui.runtime.crash_file import NativeCrashes
from inspector.gui.state import preferred
from inspector.gui.state import settings as module
from inspector.gui.state.opening import Wanted
from inspector.gui.state.settings import LARGEST, Settings
from inspector.gui.window.named_layouts import NamedLayouts
from inspector.gui.window.preferences import chosen_now, use
from inspector.records import InputSpec
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
    folder: Path, what: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
    if what == "a file in the way":  # a file that is opened speaks over what is said at the start: it is said later too
        file = folder / "window.ini"
        assert [one.newly_lost(), one.newly_lost()] == [
            f"What is chosen is not remembered: {file} cannot be written to.", "",
        ]  # fmt: skip
        keep_or_say(one)
        assert capsys.readouterr().err.rstrip().endswith(one.problem())


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


def in_the_way(folder: Path) -> None:
    """Nothing can be written to the settings."""
    folder.rename(folder.with_name("aside"))
    folder.write_text("in the way")


def out_of_the_way(folder: Path) -> None:
    folder.unlink()
    folder.with_name("aside").rename(folder)


def test_it_is_said_once_that_nothing_is_remembered_and_again_when_that_begins_anew(folder: Path) -> None:
    one = Settings()
    assert one.newly_lost() == "", "nothing was chosen"
    file = folder / "window.ini"
    said = f"What is chosen is not remembered: {file} cannot be written to."
    for word in ("first", "second"):
        in_the_way(folder)
        one.add_recent(word)
        assert [one.newly_lost(), one.newly_lost()] == [said, ""]
        out_of_the_way(folder)
        assert one.newly_lost() == "" and word in file.read_text(), "what was chosen meanwhile is written"


def test_a_choice_in_the_preferences_that_is_not_kept_is_said(folder: Path, qtbot: QtBot) -> None:
    with opened(qtbot) as window:
        now = chosen_now(window)
        in_the_way(folder)
        use(window, now, replace(now, runs=str(folder.parent / "runs")))
        assert window.session.sentence.startswith("It holds until this window is closed: ")
        window.settings.set_text("marker", "kept")
        window.settings._lost = False
        window.check_settings()
        assert window.session.sentence.startswith("What is chosen is not remembered: ")
        said = window.session.sentence
        window.tick()
        assert any(said == line.text for line in window.session.log)
        out_of_the_way(folder)


def test_half_a_file_of_an_error_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(self: Path, text: str, **more: object) -> int:
        self.write_bytes(text.encode()[:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    assert crash_file.write("details", tmp_path) is None and not list(tmp_path.iterdir())
    monkeypatch.undo()
    made = [crash_file.write("details", tmp_path) for _ in range(crash_file.KEPT)]
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: (_ for _ in ()).throw(OSError(30, "Read-only file system")))
    more = crash_file.write("details", tmp_path)
    assert more is not None and more.exists() and all(made), "an old one that stays is no reason"


def test_a_run_that_cannot_be_stored_is_said_and_none_begins(
    folder: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(qtbot) as window:
        sent: list[object] = []
        monkeypatch.setattr(window.session.connection, "send", sent.append)
        full = OSError(30, "Read-only file system", str(folder / "runs"))
        monkeypatch.setattr(window.session.shown, "next_path", lambda: (_ for _ in ()).throw(full))
        window.session.begin_run(Wanted(InputSpec()))
        assert not sent and not window.session.running
        assert window.session.sentence == (
            f"The run cannot be stored: {folder / 'runs'} cannot be made or written to (Read-only file system)."
        )
