"""The log: a line that has begun is there at once, and in its place when it ends."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt

from inspector.gui.window.log_pane import LogPane
from inspector.records import Log
from inspector.transport.inbox import Inbox


@pytest.fixture
def pane(qtbot: Any) -> LogPane:
    made = LogPane()
    qtbot.addWidget(made)
    return made


def lines(*texts: str) -> list[Log]:
    return [Log(text, "info", "model") for text in texts]


def test_a_line_that_has_begun_is_shown_and_goes_on_in_its_place(pane: LogPane) -> None:
    pane.add([], lines("step 1 of 9"))
    assert pane.toPlainText() == "model: step 1 of 9"
    pane.add([], lines("step 2 of 9"))
    assert pane.toPlainText() == "model: step 2 of 9"
    pane.add(lines("step 9 of 9"), lines("nex"))
    assert pane.toPlainText() == "model: step 9 of 9\nmodel: nex"
    pane.add(lines("next"))
    assert pane.toPlainText() == "model: step 9 of 9\nmodel: next"


def test_lines_of_two_streams_that_have_begun_stand_one_below_the_other(pane: LogPane) -> None:
    pane.add(lines("a"), lines("b", "c"))
    pane.add(lines("d"), lines("e"))
    assert pane.toPlainText().split("\n") == ["model: a", "model: d", "model: e"]


def test_what_has_begun_is_found_where_the_log_is_full(pane: LogPane) -> None:
    pane.add(lines(*map(str, range(6_000))), lines("begun"))
    pane.add(lines("ended"), ())
    shown = pane.toPlainText().split("\n")
    assert shown[-2:] == ["model: 5999", "model: ended"]


def test_what_has_begun_comes_after_all_that_was_printed_before() -> None:
    inbox = Inbox()
    inbox.on_output("stdout", "one\ntwo\nthr")
    assert inbox.begun() == [], "the lines before it are still to be taken"
    assert [line.text for line in inbox.lines(9)] == ["one", "two"]
    assert inbox.begun() == [Log("thr", "info", "model")]
    inbox.on_output("stdout", "ee\n")
    assert inbox.begun() == [] and [line.text for line in inbox.lines(9)] == ["three"]


def test_of_a_progress_bar_its_present_state_is_shown() -> None:
    inbox = Inbox()
    inbox.on_output("stderr", " 10 %\r 20 %\r")
    assert [line.text for line in inbox.begun()] == [" 20 %"]


def test_the_log_opens_at_its_end_and_goes_where_keys_say(pane: LogPane, qtbot: Any) -> None:
    pane.resize(300, 120)
    pane.add(lines(*map(str, range(6_000))))
    pane.show()
    bar = pane.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() == bar.maximum() > 1000, timeout=3000)
    control = Qt.KeyboardModifier.ControlModifier
    qtbot.mouseClick(pane.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(20, 40))
    qtbot.keyClick(pane, Qt.Key.Key_Home, control)
    assert bar.value() == 0 and pane.isReadOnly()
    pane.hide()
    pane.add(lines("one more"))
    pane.show()
    qtbot.wait(30)
    assert bar.value() < 10, "what was looked at stays"
    qtbot.keyClick(pane, Qt.Key.Key_End, control)
    assert bar.value() >= bar.maximum() - 1
    pane.hide()
    pane.add(lines(*map(str, range(900))))
    pane.show()
    qtbot.waitUntil(lambda: bar.value() == bar.maximum(), timeout=3000)
    qtbot.keyClicks(pane, "x")
    assert pane.toPlainText().endswith("model: 899")
