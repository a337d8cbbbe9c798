"""Notes that wait for the end of a run: killed windows, several windows, replaced and removed captures, any name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication

from inspector.capture import CaptureError, Writer, notes, open_capture
from inspector.capture.noted import add_once, is_of_run, run_of
from inspector.gui.panel.overview.pending_notes import MOST
from inspector.gui.panel.registry import PANELS
from inspector.gui.panels.overview import Overview
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.remembered_notes import KEY, Pending, Remembered, decoded, encoded
from inspector.gui.state.settings import Settings
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.window.waiting_notes import may_close, remember_waiting, take_waiting
from inspector.records import Channel, Frame, Note, Noted, Page, RunStart, encode


@pytest.fixture
def panels(qapp: QApplication) -> Iterator[list[Overview]]:
    """The overviews of two windows, with the same settings."""
    made = [cast(Overview, PANELS["overview"](Cursor(), StepRange(), LIGHT)) for _ in range(2)]
    for one in made:
        take_waiting(Settings(), one)
    yield made
    for one in made:
        one.set_capture(None)
        one.deleteLater()


def going(path: Path, run: str = "r") -> Writer:
    writer = Writer(path, RunStart(run=run, title="t"))
    writer.write(Frame(index=0))
    writer.flush()
    return writer


def told(path: Path) -> list[str]:
    with open_capture(path) as capture:
        return [one.text for one in notes(capture)]


def keep(panel: Overview, path: Path, text: str) -> None:
    with open_capture(path) as capture:
        assert not panel.keep_note(capture, Noted(frame=0), text)


def in_another_process(code: str) -> str:
    """What a program prints that has the same settings, as another window has them."""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return said.stdout


def test_one_is_on_the_disk_as_soon_as_it_waits_and_until_it_is_written(panels: list[Overview], tmp_path: Path) -> None:
    path, seen = tmp_path / "a.inspect", "from inspector.gui.state.settings import *; print(Settings().text('"
    with going(path):
        keep(panels[0], path, "of worth")
        assert "of worth" in in_another_process(f"{seen}{KEY}'))")
        take_waiting(Settings(), panels[1])
        assert [one.text for one in panels[1].pending.all] == ["of worth"]
        assert "of worth" in in_another_process(f"{seen}{KEY}'))"), "the window that has taken it may be killed"
    for panel in panels:  # both windows have it
        panel.pending.write_all()
        assert not panel.pending.all and not panel.pending.said
    assert told(path) == ["of worth"] and not in_another_process(f"{seen}{KEY}'))").strip()


def test_what_another_window_remembers_stays(qapp: QApplication, tmp_path: Path) -> None:
    mine, known = Pending(tmp_path / "a.inspect", Noted(), "mine", 1.0), Remembered(Settings())
    assert not known.all() and not known.add([mine])
    in_another_process(
        "from pathlib import Path; from inspector.gui.state.settings import Settings; from inspector.records import *;"
        "from inspector.gui.state.remembered_notes import *;"
        "assert not Remembered(Settings()).add([Pending(Path('/b.inspect'), Noted(), 'theirs', 2.0)])"
    )
    later = Pending(tmp_path / "a.inspect", Noted(), "later", 3.0)
    assert not known.add([later])
    assert [one.text for one in known.all()] == ["mine", "theirs", "later"]
    known.drop([mine])
    assert [one.text for one in known.all()] == ["theirs", "later"]


def test_two_that_write_the_same_one_at_once_write_it_once(tmp_path: Path) -> None:
    path, note = tmp_path / "a.inspect", Note(Noted(frame=0), "once", 5.0)
    going(path).close()
    with open_capture(path) as first, open_capture(path) as second:
        add_once(first, note)
        add_once(second, note)  # it has not seen that of the first
        add_once(second, Note(Noted(frame=0), "once", 6.0))
    assert told(path) == ["once", "once"], "the same words at another time are another note"


def test_one_is_not_written_into_another_run(
    panels: list[Overview], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, panel = tmp_path / "a.inspect", panels[0]
    with going(path):
        keep(panel, path, "of the first run")
    shutil.rmtree(path)
    going(path, "another").close()
    assert panel.pending.write_first()
    assert panel.pending.said == (
        "A note could not be kept (a.inspect is of another run now, and its own is gone): of the first run"
    )
    assert not told(path) and "of the first run" in Settings().text(KEY), "it may not have been read yet"
    remember_waiting(Settings(), panel)
    assert "The capture of 1 note is gone: frame 0: of the first run" in capsys.readouterr().err
    assert not Settings().text(KEY)


def forged(path: Path, seed: int = 0, value: float = 0.0, pages: int = 1) -> None:
    """A capture of one name and time for all, as a script may give to each of its runs."""
    start = RunStart(run="r", title="t", created=5.0, seed=seed)
    with Writer(path, start) as writer:
        writer.write(Frame(index=0))
        writer.write(Channel(name="l:loss", kind="scalar", dims=("iteration",), shape=(None,)))
        for number in range(pages):
            writer.write(Page("l:loss", 0, (number,), np.array([value], np.float32)))


def test_two_runs_of_one_name_and_time_are_two(tmp_path: Path) -> None:
    """How they were begun tells them apart, or their first page; a copy, or a run that has grown, is the same."""
    path, found = tmp_path / "a.inspect", []
    for number, how in enumerate(({}, {"pages": 9}, {"seed": 1}, {"value": 1.0}, {"pages": 0})):
        forged(path, **how)  # type: ignore[arg-type]
        shutil.copytree(path, tmp_path / f"{number}")
        shutil.rmtree(path)
        with open_capture(tmp_path / f"{number}") as capture:
            found.append(run_of(capture))
    with open_capture(tmp_path / "0") as first:
        assert [is_of_run(first, one) for one in found] == [True, True, False, False, True], "without a page: unknown"
        assert is_of_run(first, "r 5.0") and not is_of_run(first, "r 6.0") and not is_of_run(first, "")


def test_of_what_an_earlier_version_remembered_it_is_said_that_its_run_is_not_known(
    panels: list[Overview], tmp_path: Path
) -> None:
    path, panel = tmp_path / "a.inspect", panels[0]
    going(path).close()
    panel.wait_for([Pending(path, Noted(frame=0), "of a run that nobody named")])
    assert panel.pending.write_first() and told(path) == ["of a run that nobody named"]
    assert panel.pending.said.startswith("A note of an earlier version") and "a.inspect" in panel.pending.said
    panel.pending.forget_lost()
    assert not panel.pending.said


def test_a_capture_that_is_removed_as_the_window_closes(
    panels: list[Overview], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.inspect"
    with going(path):
        keep(panels[0], path, "of a run that is gone")
    shutil.rmtree(path)
    window: Any = None
    assert may_close(window, Settings(), panels[0]), "it is remembered, so nothing is asked"
    remember_waiting(Settings(), panels[0])
    assert "The capture of 1 note is gone: frame 0: of a run that is gone" in capsys.readouterr().err
    take_waiting(Settings(), panels[1])
    assert panels[1].pending.write_first() and "of a run that is gone" in panels[1].pending.said
    panels[1].pending.forget_lost()
    assert not Settings().text(KEY)


def test_the_one_that_is_too_many_is_refused(panels: list[Overview], tmp_path: Path) -> None:
    path, panel = tmp_path / "a.inspect", panels[0]
    with going(path):
        panel.wait_for([Pending(path, Noted(), f"{number}", 1.0 + number) for number in range(MOST)])
        with pytest.raises(CaptureError, match="200 notes wait already"):
            keep(panel, path, "too many")
        assert len(panel.pending.all) == MOST
        panel.pending.all = []


@pytest.mark.skipif(sys.platform == "win32", reason="names that Windows does not have")
@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\udcffb", "{a", 'ä"\\\u2028 b'])
def test_any_name_of_a_folder_and_any_words(qapp: QApplication, name: str) -> None:
    note = Pending(Path("/runs") / name, Noted(step=3), "two\nlines\u2028and\ta tab \udcff", 1.25, "r 0.0")
    other = Pending(Path("/runs/a"), Noted(), "another", 2.0)
    known = Remembered(Settings())
    assert not known.add([note, other]) and not known.add([note])
    assert known.all() == [note, other] and encoded(note).isascii()


def test_what_an_earlier_version_remembered_is_read_and_what_a_later_one_did_stays(
    qapp: QApplication, tmp_path: Path
) -> None:
    path, kept = tmp_path / "a.inspect", Settings()
    going(path).close()
    record = encode(Note(Noted(frame=0), "old")).decode()
    kept.set_text(KEY, f'{path}\t{record}\n{{"of a later": "version"}}')
    (note,) = Remembered(kept).all()
    assert note == Pending(path, Noted(frame=0), "old") and decoded("") is None and decoded("[1]\t2") is None
    Remembered(kept).drop([note])
    assert kept.text(KEY) == '{"of a later": "version"}'
    with open_capture(path) as first, open_capture(path) as second:
        assert run_of(first).startswith("r 0.0 #") and is_of_run(first, "r 0.0"), "as an earlier version told it"
        for view in (first, second):  # no time was remembered: its words tell
            add_once(view, Note(note.where, note.text, note.written))
        second.refresh()
        (found,) = notes(second)
    assert found.text == "old" and found.written > 0
