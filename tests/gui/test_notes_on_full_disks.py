"""Notes that wait while the disks of their capture and of the settings are full, and the window closes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from inspector.capture import CaptureError, Writer, notes, open_capture
from inspector.gui.panel.overview import pending_notes
from inspector.gui.panel.overview.pending_notes import PendingNotes
from inspector.gui.state.remembered_notes import Pending
from inspector.records import Note, Noted, RunStart, RunStop

SUPPORT = Path(__file__).parents[1] / "support"
TEXT = "two\nlines of some worth"
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mounts and signals")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB in memory, where this user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this user may not mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def window(disk: Path, button: str, file: Path | str = "") -> tuple[list[str], str]:
    """What a window in a process says on stdout and stderr that is closed with a note that waits: by its button, what
    is asked being answered so, or for button "" by SIGTERM."""
    homes = {f"XDG_{name}_HOME": str(disk / name.lower()) for name in ("CONFIG", "DATA", "CACHE", "STATE")}
    rescued = disk.with_name("temporary")
    rescued.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(SUPPORT / "noting_window.py"), str(disk), button, str(file)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, **homes, "DISPLAY": ":none", "QT_QPA_PLATFORM": "offscreen:", "TMPDIR": str(rescued),
             "PYTHONPATH": os.pathsep.join([str(SUPPORT.parents[1]), str(SUPPORT)])},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        if first == "waiting\n" and not button:
            process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert first == "waiting\n" and "Traceback" not in errors, (first, out, errors)
    assert out.endswith("ended 0, writing a.inspect\n"), (out, errors)
    quiet = "This plugin does not support propagateSizeHints()\n"
    lines = errors.replace(quiet, "").splitlines()
    file = disk / "config" / "inspector" / "window.ini"
    assert lines[-1] == f"Layout and choices are not remembered: {file} cannot be written to.", errors
    return out.splitlines()[:-1], "\n".join(lines[:-1])


@linux
def test_a_signal_closes_it_unasked_and_the_notes_are_where_stderr_says(disk: Path) -> None:
    asked, errors = window(disk, "")
    (said,) = errors.splitlines()
    found = re.fullmatch(r"Notes that could not be kept where they belong are in (.+)\.", said)
    assert not asked and found is not None and Path(found[1]).parent == disk.with_name("temporary")
    assert Path(found[1]).read_text() == f"{disk / 'a.inspect'}\nframe 0\n{TEXT}\n"
    assert Path(found[1]).stat().st_mode & 0o777 == 0o600


@linux
def test_closing_asks_and_saves_elsewhere(disk: Path, tmp_path: Path) -> None:
    asked, errors = window(disk, "Save elsewhere…", tmp_path / "mine")
    assert len(asked) == 1 and "1 note may be lost: a.inspect cannot take it yet. " in asked[0], asked
    assert "window.ini cannot be written to" in asked[0] and not errors
    assert (tmp_path / "mine.txt").read_text() == f"{disk / 'a.inspect'}\nframe 0\n{TEXT}\n"


@linux
def test_what_is_to_be_discarded_is_discarded_and_cancel_keeps_it_open(disk: Path) -> None:
    asked, errors = window(disk, "Discard")
    assert len(asked) == 1 and not errors and not list(disk.with_name("temporary").glob("*.txt"))


@linux
def test_it_stays_open_where_that_is_chosen(disk: Path) -> None:
    asked, errors = window(disk, "Cancel")  # closed by a signal's way three seconds later
    assert len(asked) == 1 and "Notes that could not be kept where they belong are in " in errors


def test_a_capture_whose_disk_is_full_takes_the_note_later(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, written, full = tmp_path / "a.inspect", [], [True]
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(RunStop("done"))
    add = pending_notes.add_once

    def adds(view: Any, note: Note) -> None:
        if full[0]:
            raise CaptureError("a.inspect: no space is left on the disk.")
        add(view, note)

    monkeypatch.setattr(pending_notes, "add_once", adds)
    pending = PendingNotes(written.append)
    pending.add([Pending(path, Noted(), "one"), Pending(path, Noted(frame=0), "two")])
    assert pending.write_first() and len(pending.all) == 2
    assert pending.said == (
        "2 notes could not be kept yet; it is tried again: a.inspect: no space is left on the disk."
    )
    assert not pending.write_first(), "not at every tick"
    pending.write_all()
    assert len(pending.all) == 2 and not written, "none is lost as the window closes"
    full[0] = False
    monkeypatch.setattr(pending, "_again", 0.0)
    assert pending.write_first() and pending.write_first() and not pending.all
    pending.forget_lost()  # of what run they were is not known, which is said
    assert pending.said == ""
    with open_capture(path) as capture:
        assert {one.text for one in notes(capture)} == {"one", "two"}
    assert written == [path, path]
