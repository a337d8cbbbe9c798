"""Notes that are written on the overview: what they are about, and those that wait for the end of a run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from inspector.capture import Writer, notes, open_capture
from inspector.capture.noted import why_no_notes
from inspector.gui.panel.overview import pending_notes
from inspector.gui.panel.registry import PANELS
from inspector.gui.panels.overview import Overview
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.remembered_notes import KEY, Pending
from inspector.gui.state.settings import Settings
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.window.waiting_notes import remember_waiting, take_waiting
from inspector.records import Frame, Noted, RunStart, RunStop
from inspector.workspace.trainings import path_or_training


@pytest.fixture
def panel(qapp: QApplication) -> Iterator[Overview]:
    made = cast(Overview, PANELS["overview"](Cursor(), StepRange(), LIGHT))
    yield made
    made.set_capture(None)
    made.deleteLater()


def small(path: Path, frames: int = 1) -> Path:
    """A run that has nothing but frames."""
    with Writer(path, RunStart(run="r", title="t")) as writer:
        for index in range(frames):
            writer.write(Frame(index=index))
        writer.write(RunStop("done"))
    return path


def shown(panel: Overview, view: Any) -> None:
    panel.set_capture(view)
    panel.redraw()


def test_what_a_note_is_about_stays_while_it_is_written(panel: Overview, tmp_path: Path) -> None:
    about, field = panel.page.notes.about, panel.page.notes.field
    with open_capture(small(tmp_path / "a.inspect", frames=5)) as capture:
        shown(panel, capture)
        panel.looking.move(steps={"step": 3})
        about.setCurrentText("About step 3, frame 4")
        panel.looking.move(steps={"step": 5})
        assert about.currentText() == "About step 5, frame 4"  # nothing is written yet
        field.setText("lost here")
        panel.looking.move(steps={"step": 7}, frame=2)
        assert about.currentText() == "About step 5, frame 4"
        QTest.keyClick(field, Qt.Key.Key_Return)
        assert notes(capture)[-1].where == Noted(frame=4, step=5)
        assert about.currentText() == "About step 7, frame 2"
        field.setText("begun")
    with open_capture(small(tmp_path / "b.inspect")) as other:
        shown(panel, other)
        assert about.currentText() == "About the whole"
        panel.set_capture(None)


def test_tab_goes_down_the_page(panel: Overview) -> None:
    with open_capture(path_or_training("training-vanishing")) as capture:
        panel.set_capture(capture)
        panel.complete()
        page, met = panel.page, [cast(QWidget, panel.page)]
        last = page.notes.field
        while met[-1] is not last and len(met) < 200:
            met.append(met[-1].nextInFocusChain())
        places = [met.index(one) for one in (page.findings.cards[0], page.tiles["loss"], page.tiles["states"], last)]
        assert places == sorted(places)
        panel.set_capture(None)


def test_a_note_that_waits_opens_nothing_and_is_told_where_it_cannot_be_kept(
    panel: Overview, tmp_path: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.inspect"
    writer = Writer(path, RunStart(run="r", title="t"))
    writer.write(Frame(index=0))
    writer.flush()
    opened: list[Path] = []
    monkeypatch.setattr(pending_notes, "open_capture", lambda path: opened.append(path) or open_capture(path))
    with open_capture(path) as capture:
        shown(panel, capture)
        panel.write_note(Noted(frame=0), "worth keeping")
        panel._take()
        assert not opened
        writer.close()
        shutil.rmtree(path)
        qtbot.waitUntil(lambda: "worth keeping" in panel.page.notes.told.text(), timeout=10_000)
        panel.looking.move(steps={"step": 1})
        assert (
            "A note could not be kept" in panel.page.notes.told.text()
            and "worth keeping" in panel.page.notes.told.text()
        )
        assert "will be kept" not in panel.page.notes.told.text()
        panel.set_capture(None)


def test_a_capture_that_was_removed_is_not_called_packed(tmp_path: Path) -> None:
    with open_capture(small(tmp_path / "a.inspect")) as capture:
        shutil.rmtree(capture.path)
        assert why_no_notes(capture) == "a.inspect is no longer there: no note can be added."


def test_a_note_is_changed_and_removed_from_its_menu(panel: Overview, tmp_path: Path) -> None:
    with open_capture(small(tmp_path / "a.inspect")) as capture:
        shown(panel, capture)
        for text in ("here", "there"):
            panel.write_note(Noted(frame=0), text)
        page = panel.page.notes

        def chosen(number: int, name: str) -> None:
            menu = page._menu(number)
            next(one for one in menu.actions() if one.text() == name).trigger()
            menu.deleteLater()

        chosen(0, "Edit")
        assert page.field.text() == "here" and page.button.text() == "Change it" and not page.about.isEnabled()
        page.leave.click()
        assert not page.field.text() and page.about.isEnabled()
        chosen(0, "Edit")
        page.field.setText("elsewhere")
        page.button.click()
        assert [one.text for one in notes(capture)] == ["elsewhere", "there"] and not page.field.text()
        chosen(1, "Remove")
        assert [one.text for one in notes(capture)] == ["elsewhere"] and page.cards[1].isHidden()
        assert page.field.text() == "there"  # it can be noted again
        panel.set_capture(None)


def test_a_note_that_waits_outlives_the_window(panel: Overview, tmp_path: Path, qtbot: Any) -> None:
    ended, going, kept = small(tmp_path / "a.inspect"), tmp_path / "b.inspect", Settings()
    writer = Writer(going, RunStart(run="r", title="t"))
    writer.write(Frame(index=0))
    writer.flush()
    said = "two\nlines\u2028and\ta tab"
    first = Pending(going, Noted(frame=0), said)
    panel.wait_for([first, Pending(ended, Noted(), "its run has ended with the window")])
    remember_waiting(kept, panel)
    with open_capture(ended) as capture:
        assert [one.text for one in notes(capture)] == ["its run has ended with the window"]
    panel.pending.all.clear()
    writer.close()
    take_waiting(kept, panel)
    assert panel.pending.all == [first] and kept.text(KEY), "until it is written"
    qtbot.waitUntil(lambda: not panel.pending.all, timeout=10_000)
    assert not kept.text(KEY)
    with open_capture(going) as capture:
        assert [one.text for one in notes(capture)] == [said]
