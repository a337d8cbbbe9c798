"""Captures, folders and programs that are opened in the window, and what becomes of a sequence without a model."""

from __future__ import annotations

from pathlib import Path

import programs
import pytest
from opened import finish
from opening_windows import boxes, type_into, weights_folder
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLineEdit, QPushButton

from inspector.capture import PACKED_SUFFIX, pack
from inspector.gui.window.main_window import Window
from inspector.gui.window.model_opening import OpenDialog
from inspector.workspace.samples import find_sample
from inspector.workspace.trainings import list_trainings

# -- one dialog for everything that can be opened


def name_and_open(dialog: OpenDialog, path: str) -> None:
    """Put a path into the dialog's line and press its button."""
    line = dialog.findChild(QLineEdit)
    line.setText(path)
    button = next(b for b in dialog.findChildren(QPushButton) if "Open" in b.text())
    QApplication.processEvents()
    assert button.isEnabled(), path
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


@pytest.mark.parametrize("which", ["folder", "packed", "index", "entered", "without suffix"])
def test_captures_packed_or_not_are_chosen_in_one_dialog(
    window: Window, qtbot: object, a_capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    if which == "packed":
        wanted = str(pack(a_capture, tmp_path / f"run{PACKED_SUFFIX}"))
    elif which == "without suffix":
        (tmp_path / "renamed").symlink_to(a_capture)
        wanted = str(tmp_path / "renamed")
    else:
        wanted = str(a_capture)

    def choose(dialog: OpenDialog) -> int:
        dialog.show()
        QApplication.processEvents()
        if which == "entered":
            dialog.directoryEntered.emit(wanted)
        else:
            name_and_open(dialog, f"{wanted}/index.sqlite" if which == "index" else wanted)
        assert dialog.result() == QDialog.DialogCode.Accepted and dialog.chosen == wanted
        return dialog.result()

    monkeypatch.setattr(OpenDialog, "exec", choose)
    next(a for a in window.menu_actions if a.objectName() == "action-open").trigger()
    assert window.session.capture is not None and window.panels["states"].state == "figure"
    assert window.session.capture.start.title == "<b>a run</b>"


def test_a_folder_that_is_no_capture_is_entered_and_other_files_are_opened_as_what_they_are(
    window: Window, qtbot: object, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (models.parent / "folder").mkdir()

    def choose(dialog: OpenDialog) -> int:
        dialog.show()
        name_and_open(dialog, str(models.parent / "folder"))
        assert dialog.isVisible() and not dialog.chosen
        name_and_open(dialog, str(models))
        return dialog.result()

    monkeypatch.setattr(OpenDialog, "exec", choose)
    next(a for a in window.menu_actions if a.objectName() == "action-open").trigger()
    assert window.models.dialog.isVisible() and window.models.dialog.subject.text() == f"{models}:make"
    window.models.dialog.reject()


def test_a_capture_that_is_entered_is_not_where_the_next_dialog_begins(qtbot: object, a_capture: Path) -> None:
    dialog = OpenDialog()
    qtbot.addWidget(dialog)
    dialog.setDirectory(str(a_capture))
    dialog.directoryEntered.emit(str(a_capture))
    assert dialog.chosen == str(a_capture) and Path(dialog.directory().path()) == a_capture.parent


def test_a_sequence_without_a_model_is_answered_where_the_user_looks(
    window: Window, qtbot: object, qapp: QApplication, tmp_path: Path
) -> None:
    (tmp_path / "mine.txt").write_text("text")
    window.open_path(str(tmp_path / "mine.txt"))
    assert window.session.catalog is not None or "as soon as the worker is ready" in window.session.sentence
    qtbot.waitUntil(lambda: bool(boxes(qapp)), timeout=30_000)  # what reads .txt is known when the worker has told
    (box,) = boxes(qapp)
    assert "mine.txt is a sequence: open the model that is to read it first" in box.text()
    box.close()


@pytest.mark.process  # one that is not ready at once
def test_a_folder_that_waited_for_the_worker_is_not_said_to_wait_once_it_is_opened(
    window: Window, qtbot: object
) -> None:
    sample = find_sample("char-elman-vanishing")
    assert sample is not None
    window._wait_to_open(str(sample.checkpoints[0].parent))
    assert "as soon as the worker is ready" in window.session.sentence
    qtbot.waitUntil(lambda: window.sweeps.dialog is not None, timeout=30_000)
    assert "as soon as" not in window.session.sentence
    window.sweeps.dialog.close()


def test_a_sequence_that_comes_while_a_model_is_opened_is_answered_below_the_line(
    reading: Window, qtbot: object, tmp_path: Path
) -> None:
    (tmp_path / "mine.txt").write_text("text")
    reading.open_sample("char-gru", "")
    reading.open_path(str(tmp_path / "mine.txt"))
    assert reading.input.problem.isVisible() and "still being opened" in reading.input.problem.whole
    finish(reading, qtbot)


@pytest.mark.parametrize("typed", [False, True])
def test_of_what_was_refused_nothing_is_left_once_a_capture_is_opened(
    numbers: Window, qtbot: object, tmp_path: Path, a_capture: Path, typed: bool
) -> None:
    """And the line is said to belong to the model, which did not make the capture."""
    window, kind = numbers, numbers.input.kind.currentText()
    if typed:
        type_into(window, qtbot, "the white rabbit")
        qtbot.keyClick(window.input.line, Qt.Key.Key_Return)
    else:
        (tmp_path / "f.npy").write_bytes(b"nothing of the kind")
        window.open_path(str(tmp_path / "f.npy"))
    finish(window, qtbot)
    qtbot.waitUntil(window.input.problem.isVisible, timeout=5000)
    assert not window.input.whose.isVisible(), "what is shown is of the model that runs"
    window.open_path(str(a_capture))
    assert not window.input.problem.isVisible()
    assert window.input.line.text() == ("the white rabbit" if typed else "")
    assert typed or window.input.kind.currentText() == kind
    assert window.status.sentence.whole == "a.inspect is shown." and not window.status.elapsed.text()
    assert window.input.whose.isVisible() and window.input.whose.text() == "runs models.py:brings"
    type_into(window, qtbot, "1 2; 3 4")
    qtbot.keyClick(window.input.line, Qt.Key.Key_Return)
    finish(window, qtbot)
    assert not window.input.whose.isVisible()


def test_a_folder_with_one_checkpoint_is_opened_as_that_checkpoint(reading: Window, tmp_path: Path) -> None:
    folder = weights_folder(tmp_path / "run", "last.pt", "log.json", "loss.png")
    reading.open_path(str(folder))
    dialog = reading.models.dialog
    assert dialog is not None and dialog.isVisible() and not reading.session.running
    assert dialog.checkpoint.text() == str(folder / "last.pt")
    dialog.reject()


def test_a_folder_of_weights_is_not_run_as_sequences(
    reading: Window, qtbot: object, qapp: QApplication, tmp_path: Path
) -> None:
    before = reading.session.subject
    reading.open_path(str(weights_folder(tmp_path / "weights", "config.json", "merges.txt", "model.safetensors")))
    assert not reading.session.running
    qtbot.waitUntil(lambda: bool(boxes(qapp)), timeout=30_000)
    (box,) = boxes(qapp)
    assert "names no model_type; expected" in box.text() and reading.session.subject == before
    box.close()


@pytest.mark.parametrize("names", [("a.pt", "b.pt"), ("checkpoint-5/config.json", "checkpoint-5/model.safetensors")])
def test_a_folder_of_checkpoints_is_offered_as_one(
    reading: Window, tmp_path: Path, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading.session.sweeping, "look_into", lambda _paths: None)  # needs a worker of its own
    (tmp_path / "run" / "checkpoint-5").mkdir(parents=True)
    for name in names:
        (tmp_path / "run" / name).write_bytes(b"{}")
    reading.open_path(str(tmp_path / "run"))
    dialog = reading.sweeps.dialog
    assert dialog is not None and dialog.isVisible() and dialog.paths == (str(tmp_path / "run"),)
    assert dialog.fields.subject.text() == reading.session.subject
    dialog.reject()


def test_a_folder_of_sequences_is_run(reading: Window, qtbot: object, tmp_path: Path) -> None:
    reading.open_path(str(weights_folder(tmp_path / "texts", "a.txt", "b.txt", "config.json")))
    assert reading.session.running
    finish(reading, qtbot)


def test_a_recorded_training_opens_on_its_timeline(window: Window, qtbot: object) -> None:
    (top,) = window.opener.findItems("Recorded trainings", Qt.MatchFlag.MatchExactly)
    names = [top.child(n).text(0) for n in range(top.childCount())]
    assert names == [one.name for one in list_trainings()] and len(names) == 5
    window.opener.itemActivated.emit(top.child(names.index("training-spike")), 0)
    qtbot.waitUntil(lambda: window.session.capture is not None and window.timeline_row.isVisible())  # type: ignore[attr-defined]
    assert window.session.capture is not None
    assert window.session.capture.path == list_trainings()[names.index("training-spike")].capture


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["pt2", "ts"])
def test_a_program_is_opened_as_the_model_though_another_one_is_open(
    reading: Window, qtbot: object, tmp_path: Path, kind: str
) -> None:
    model, path = programs.made(programs.Tagger("gru")), tmp_path / f"tagger.{kind}"
    programs.exported(model, programs.numbers(), path) if kind == "pt2" else programs.scripted(model, path)
    assert reading.offered.is_model(str(path)) and not reading.offered.is_model("weights.pt")
    reading.open_path(str(path))
    qtbot.waitUntil(lambda: reading.session.subject == str(path) and not reading.session.busy, timeout=60_000)
    finish(reading, qtbot)
    assert "rnn.gru.l0:h" in reading.session.capture.channels
    assert any("This model is a program of" in line.text for line in reading.session.capture.logs)
