"""The bottom line: a sentence has the room that it needs, and a message of the status bar stands alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import opened
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent

from inspector.gui.window.main_window import Window
from inspector.gui.window.status_texts import StatusTexts

LONG = "No sequence of a data set was opened here, so there is none to go back to."


@pytest.fixture
def window(qtbot: Any) -> Iterator[Window]:
    with opened(qtbot, process=False, background=False) as made:
        yield made


def test_a_sentence_is_whole_beside_what_is_shown_at_1280_pixels(window: Window, qtbot: Any) -> None:
    window.resize(1280, 800)
    window.session.sentence = LONG
    window.show_state()
    window.status.show_what(["char-lstm", "step-003200.safetensors", "all 11 tensors loaded", "cpu"])
    qtbot.wait(50)
    assert window.status.sentence.text() == LONG
    assert window.status.what.isVisible() and window.status.what.text()
    assert window.status.sentence.geometry().right() < window.status.what.geometry().left()


@pytest.mark.parametrize("many", [0, 1, 3, 40])
def test_the_two_texts_share_the_row(many: int, qtbot: Any) -> None:
    texts = StatusTexts()
    qtbot.addWidget(texts)
    texts.resize(900, 20)
    texts.show_what("char-lstm")
    texts.show_sentence("it ran " * many)
    left, right = texts.sentence.geometry(), texts.what.geometry()
    assert left.right() < right.left() and right.right() == 899 and right.width() >= 0.2 * 900 - 1
    assert texts.sentence.text().endswith("…") is (many == 40)
    texts.show_what("")
    assert texts.sentence.width() > 850
    texts.show()
    texts.show_what("char-lstm")
    assert texts.sentence.geometry() == left


def test_what_is_shown_does_not_stand_over_what_a_menu_says(window: Window) -> None:
    """It was shown anew at each state, also where the status bar had hidden it under a message."""
    window.status.show_what(["char-lstm", "cpu"])
    assert window.status.what.isVisible()
    window.statusBar().showMessage("The keyboard goes to the next part of the window")
    window.status.show_what(["char-lstm", "cpu"])
    assert not window.status.what.isVisible() and not window.status.sentence.isVisible()
    window.statusBar().clearMessage()
    assert window.status.what.isVisible() and window.status.sentence.isVisible()


def dropped(window: Window, *urls: QUrl) -> QDropEvent:
    data = QMimeData()
    data.setUrls(list(urls))
    offered = Qt.DropAction.CopyAction | Qt.DropAction.MoveAction
    event = QDropEvent(QPointF(5, 5), offered, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    event.setDropAction(Qt.DropAction.MoveAction)
    window.dropEvent(event)
    return event


def test_a_file_manager_is_told_of_a_copy_and_never_of_a_move(window: Window, a_capture: Path) -> None:
    """What is told of a move may remove the file that was dragged."""
    event = dropped(window, QUrl.fromLocalFile(str(a_capture)))
    assert event.dropAction() is Qt.DropAction.CopyAction and event.isAccepted()
    assert window.session.capture is not None


def test_an_address_that_is_dropped_is_answered(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Window, "tell", lambda *_: None)
    dropped(window, QUrl("https://example.org/a.pt"))
    assert window.session.sentence.startswith("https://example.org/a.pt is no file of this machine")
