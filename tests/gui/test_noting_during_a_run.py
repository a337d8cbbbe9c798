"""Bookmarks and notes on steps and units that are written while a run writes the capture: none is lost."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import opened

from inspector.capture import Writer, notes, open_capture
from inspector.capture.in_turn import in_turn
from inspector.capture.noted import MOST_CHARACTERS
from inspector.capture.store import LOCK_SECONDS
from inspector.gui.state.remembered_notes import KEY
from inspector.gui.window import holding
from inspector.gui.window.main_window import Window
from inspector.records import Frame, Labels, Noted, RunStart, RunStop

UNIT = Noted(frame=0, step=11, unit=3, place="rnn.l0")


@pytest.fixture
def window(qtbot: Any) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        yield made


@pytest.fixture
def path(window: Window, qtbot: Any, a_capture: Path, tmp_path: Path) -> Path:
    """A capture that the window shows, with the cursor at a unit."""
    path = tmp_path / "b.inspect"
    shutil.copytree(a_capture, path)
    window.open_path(str(path))
    qtbot.waitUntil(lambda: window.session.capture is not None and window.looking.length == 300)
    window.looking.move(step=11, unit=3, place="rnn.l0")
    return path


def going_on(path: Path) -> Writer:
    """A run that writes the capture."""
    with open_capture(path) as capture:
        return Writer(path, capture.start, again=True)


def told(path: Path) -> list[tuple[Noted, str]]:
    """The notes of a capture as another program reads them."""
    with open_capture(path) as capture:
        return [(one.where, one.text) for one in notes(capture)]


def test_a_bookmark_waits_for_the_end_of_the_run(window: Window, path: Path, qtbot: Any) -> None:
    before, failed = told(path), list[str]()
    window.fail = failed.append  # type: ignore[method-assign, assignment]
    with going_on(path):
        window.holding.bookmark()
        assert window.session.sentence == f"Noted: {UNIT.words}; it will be kept when the run has ended."
        qtbot.wait(200)
        assert told(path) == before
    qtbot.waitUntil(lambda: told(path) == [*before, (UNIT, "Bookmark")])
    qtbot.waitUntil(lambda: window.session.sentence == f"Noted in the capture: {UNIT.words}.")
    window.looking.move(step=0, unit=0)
    window.holding.next_note(1)
    assert window.looking.position.step == 11 and not failed


@pytest.mark.skipif(sys.platform == "win32", reason="turns are SQLite's own locks there")
def test_a_writer_that_was_stopped_as_it_began_holds_no_window(window: Window, path: Path, qtbot: Any) -> None:
    """It has the turn and no lease yet, or none any more: the bookmark waits, and not the window."""
    before, failed = told(path), list[str]()
    window.fail = failed.append  # type: ignore[method-assign, assignment]
    with in_turn(path, 5.0) as alone:
        assert alone
        began = time.monotonic()
        window.holding.bookmark()
        assert time.monotonic() - began < 0.8 * LOCK_SECONDS
        assert window.session.sentence.endswith("it will be kept when the run has ended.")
        qtbot.wait(200)
    qtbot.waitUntil(lambda: told(path) == [*before, (UNIT, "Bookmark")])
    assert not failed


def test_one_that_waits_as_the_window_closes_is_remembered(window: Window, path: Path, qtbot: Any) -> None:
    with going_on(path):
        window.holding.bookmark()
        window.close()
        assert "Bookmark" in window.settings.text(KEY) and str(path) in window.settings.text(KEY)


def test_a_note_is_about_what_it_was_asked_about(
    window: Window, path: Path, monkeypatch: pytest.MonkeyPatch, qtbot: Any
) -> None:
    """Also where another frame came, or the cursor was moved by a run, while it was written."""

    def written(_parent: Any, _title: str, _question: str, _text: str = "") -> str:
        window.looking.move(step=20, unit=1)
        return "of worth"

    monkeypatch.setattr(holding, "ask_for_text", written)
    with going_on(path):
        window.holding.note()
    qtbot.waitUntil(lambda: (UNIT, "of worth") in told(path))


def test_what_cannot_be_kept_is_asked_for_again_with_its_words(
    window: Window, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, failed = list[str](), list[str]()

    def written(_parent: Any, _title: str, _question: str, text: str = "") -> str:
        asked.append(text)
        return ["x" * (MOST_CHARACTERS + 1), "short", ""][len(asked) - 1]

    monkeypatch.setattr(holding, "ask_for_text", written)
    window.fail = failed.append  # type: ignore[method-assign, assignment]
    with going_on(path):  # one that waited would never be written
        window.holding.note()
    assert [len(one) for one in asked] == [0, MOST_CHARACTERS + 1] and len(failed) == 1
    assert f"at most {MOST_CHARACTERS:,} are kept" in failed[0]


def test_of_a_capture_that_is_only_read_nothing_waits(
    window: Window, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = list[str]()
    window.fail = failed.append  # type: ignore[method-assign, assignment]
    window.panels.make("overview")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with going_on(path):
        window.holding.bookmark()
        overview: Any = window.panels.made["overview"]
        assert failed == ["b.inspect is read-only: no note can be added."] and not overview.pending.all


def test_a_place_is_bookmarked_once(window: Window, path: Path, qtbot: Any) -> None:
    before = told(path)
    with going_on(path):
        window.holding.bookmark()
        window.holding.bookmark()  # while the first one waits
        assert window.session.sentence == f"There is a bookmark already: {UNIT.words}."
    qtbot.waitUntil(lambda: told(path) == [*before, (UNIT, "Bookmark")])
    window.holding.bookmark()
    assert told(path) == [*before, (UNIT, "Bookmark")]
    window.looking.move(step=12)
    window.holding.bookmark()
    assert len(told(path)) == len(before) + 2


@pytest.mark.parametrize("tokens, kept", [(300, True), (11, False), (0, False)])
def test_a_run_that_has_no_numbers_yet(
    window: Window, path: Path, tmp_path: Path, qtbot: Any, tokens: int, kept: bool
) -> None:
    """What is shown pale is of the run before: the step is noted that the cursor comes back to, where it is there."""
    failed, begun = list[str](), tmp_path / "c.inspect"
    window.fail = failed.append  # type: ignore[method-assign, assignment]
    with Writer(begun, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0, label="typed"))
        writer.write(Labels("step", ("a",) * tokens))
        writer.flush()
        window.open_path(str(begun))
        qtbot.waitUntil(lambda: window.session.capture.path == begun and window.looking.position.step is None)  # type: ignore[union-attr]
        window.holding.bookmark()
        assert failed == ([] if kept else [holding.NO_STEP_YET])
        writer.write(RunStop("done"))
    marked = [(Noted(frame=0, step=11), "Bookmark")] if kept else []  # of a unit nothing is known yet
    qtbot.waitUntil(lambda: told(begun) == marked)
