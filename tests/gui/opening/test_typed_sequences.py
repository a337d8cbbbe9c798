"""Sequences that are typed into the input bar."""

from __future__ import annotations

import json

import numpy as np
import pytest
from opened import finish
from opening_windows import boxes, type_into
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from inspector.gui.dialogs.edit_dialog import EditDialog
from inspector.gui.window.main_window import Window
from inspector.records import InputSpec


@pytest.mark.parametrize("by", ["enter", "button", "f5"])
def test_numbers_that_are_typed_run(numbers: Window, qtbot: object, by: str) -> None:
    type_into(numbers, qtbot, "0.1 0.5; 1 2; 3 4")
    if by == "enter":
        qtbot.keyClick(numbers.input.line, Qt.Key.Key_Return)
    elif by == "button":
        qtbot.mouseClick(numbers.input.go, Qt.MouseButton.LeftButton)
    else:
        qtbot.keyClick(numbers, Qt.Key.Key_F5)
    assert numbers.session.spec == InputSpec(kind="vectors", value="0.1 0.5; 1 2; 3 4")
    finish(numbers, qtbot)
    assert numbers.session.capture.extent("rnn.l0:h") == (3, 3) and numbers.input.line.text() == "0.1 0.5; 1 2; 3 4"


def test_text_for_a_model_of_numbers_is_refused_in_a_sentence_and_kept(
    numbers: Window, qtbot: object, qapp: QApplication
) -> None:
    before = numbers.session.capture.path
    type_into(numbers, qtbot, "the white rabbit")
    qtbot.keyClick(numbers.input.line, Qt.Key.Key_Return)
    finish(numbers, qtbot)
    qtbot.waitUntil(numbers.input.problem.isVisible, timeout=5000)
    assert "'the' is not a number; expected numbers" in numbers.input.problem.whole and not boxes(qapp)
    assert numbers.input.line.text() == "the white rabbit" and numbers.session.capture.path == before
    np.testing.assert_array_equal(numbers.session.capture.extent("rnn.l0:h"), (9, 3))


@pytest.mark.parametrize("by", ["ctrl+e", "f5"])
def test_after_a_refused_line_keys_in_its_field_are_of_the_run_that_is_shown(
    numbers: Window, qtbot: object, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[EditDialog] = []
    monkeypatch.setattr(EditDialog, "exec", lambda dialog: asked.append(dialog) or dialog.add.click() or 1)
    type_into(numbers, qtbot, "the white rabbit")
    qtbot.keyClick(numbers.input.line, Qt.Key.Key_Return)
    finish(numbers, qtbot)
    assert numbers.input.problem.isVisible()
    numbers.activateWindow()
    qtbot.waitUntil(numbers.isActiveWindow, timeout=5000)
    numbers.input.line.setFocus()
    control = Qt.KeyboardModifier.ControlModifier
    qtbot.keyClick(numbers.input.line, *((Qt.Key.Key_E, control) if by == "ctrl+e" else (Qt.Key.Key_F5,)))
    assert numbers.session.running and numbers.session.spec == InputSpec()
    finish(numbers, qtbot)
    assert len(numbers.session.capture.frames) == (2 if asked else 1) == (2 if by == "ctrl+e" else 1)
    assert numbers.input.line.text() == "the white rabbit"
    assert numbers.input.problem.isVisible() and "not a number" in numbers.input.problem.whole


def test_a_ready_sequence_that_is_chosen_runs_though_something_was_typed(numbers: Window, qtbot: object) -> None:
    type_into(numbers, qtbot, "1 2")
    numbers.input.examples.activated.emit(0)
    assert numbers.session.spec == InputSpec(kind="example", value="zeros") and not numbers.input.typed
    finish(numbers, qtbot)


def test_the_same_model_opened_again_leaves_what_was_typed(numbers: Window, qtbot: object) -> None:
    type_into(numbers, qtbot, "1 2; 3")
    numbers.session.worker.die()
    qtbot.waitUntil(lambda: numbers.session.worker_state == "ended", timeout=10_000)
    numbers.status.restart.click()
    qtbot.waitUntil(lambda: numbers.session.loaded is not None, timeout=60_000)
    assert numbers.input.line.text() == "1 2; 3" and numbers.input.typed


def test_text_typed_beside_an_example_of_a_model_of_text_runs_by_the_button_too(reading: Window, qtbot: object) -> None:
    reading.input.kind.setCurrentText("Example")
    type_into(reading, qtbot, "rabbit")
    qtbot.mouseClick(reading.input.go, Qt.MouseButton.LeftButton)
    assert reading.session.spec == InputSpec(kind="text", value="rabbit")
    finish(reading, qtbot)
    json.dumps(reading.session.capture.labels("step"))
    assert reading.session.capture.labels("step") == tuple("rabbit")
