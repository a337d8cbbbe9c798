"""Settings where their file or folder is odd: the window opens all the same, and says what it cannot remember."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from inspector.gui.state import settings as module
from inspector.gui.state.settings import LARGEST, Settings


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
