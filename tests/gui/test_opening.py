"""Opening in the window: what fails or is cancelled leaves what was open, and says why."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import programs
import pytest
from in_process_worker import InProcessWorker
from opened import finish, needs_process, opened
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QLineEdit, QMessageBox, QPushButton

from inspector.capture import PACKED_SUFFIX, pack
from inspector.gui.dialogs.edit_dialog import EditDialog
from inspector.gui.dialogs.model_dialog import OpenModelDialog
from inspector.gui.window.main_window import Window
from inspector.gui.window.model_opening import OpenDialog
from inspector.records import InputSpec, Load
from inspector.workspace.samples import find_sample
from inspector.workspace.trainings import list_trainings

MODELS = """
import time
import torch
from torch import nn
class Good(nn.Module):
    def __init__(self, hidden=3):
        super().__init__()
        self.rnn = nn.GRU(2, hidden, batch_first=True)
    def forward(self, x):
        return self.rnn(x)[0]
def make(hidden=3):
    return Good(hidden)
def wrong():
    raise ValueError("no <b>weights</b> today")
"""


@pytest.fixture
def window(
    qtbot: object, qapp: QApplication, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Window]:
    monkeypatch.setattr(
        "inspector.gui.window.main_window.ask_trust", lambda _parent, asked, agreed, _refused: agreed(asked)
    )
    with opened(qtbot, process=needs_process(request), background=False) as made:
        yield made
        for box in qapp.topLevelWidgets():
            if isinstance(box, QDialog):
                box.close()


@pytest.fixture
def models(tmp_path: Path) -> Path:
    file = tmp_path / "models.py"
    file.write_text(MODELS)
    return file


@pytest.fixture
def reading(window: Window, qtbot: object) -> Window:
    """A window with a model open that has read a text."""
    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice"))
    finish(window, qtbot)
    return window


def press_open(dialog: OpenModelDialog, qtbot: object) -> None:
    button = next(b for b in dialog.findChildren(QPushButton) if b.text().replace("&", "") == "Open")
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def boxes(qapp: QApplication) -> list[QMessageBox]:
    return [w for w in qapp.topLevelWidgets() if isinstance(w, QMessageBox) and w.isVisible()]


def still_reads(window: Window, qtbot: object, kinds: list[str]) -> None:
    """The input bar, F5 and the title are those of the model that is open, and it runs."""
    assert window.session.subject == "char-elman"
    assert [window.input.kind.itemText(i) for i in range(window.input.kind.count())] == kinds
    window.activateWindow()  # shortcuts are those of the window in front
    qtbot.waitUntil(window.isActiveWindow, timeout=5000)
    qtbot.keyClick(window, Qt.Key.Key_F5)
    assert window.session.running and window.session.spec.value == "Alice"
    finish(window, qtbot)
    assert window.session.capture.labels("step") == tuple("Alice") and window.session.capture.status == "done"
    assert "Alice" in window.windowTitle()


def kinds_of(window: Window) -> list[str]:
    return [window.input.kind.itemText(i) for i in range(window.input.kind.count())]


# -- a failed open


def test_the_dialog_comes_back_with_its_fields_and_the_reason(
    reading: Window, qtbot: object, qapp: QApplication, models: Path, tmp_path: Path
) -> None:
    window, kinds = reading, kinds_of(reading)
    window.open_path(str(models))
    dialog = window.models.dialog
    assert dialog is not None and dialog.isVisible() and dialog.subject.text() == f"{models}:make"
    dialog.subject.setText(f"{models}:wrong")
    dialog.arguments.setText('{ "hidden":  7 }')
    dialog.checkpoint.setText(str(tmp_path / "none.pt"))
    press_open(dialog, qtbot)
    assert not dialog.isVisible() and window.session.opening is not None
    qtbot.waitUntil(dialog.isVisible, timeout=60_000)
    fields = [line.text() for line in (dialog.subject, dialog.arguments, dialog.checkpoint)]
    assert fields == [f"{models}:wrong", '{ "hidden":  7 }', str(tmp_path / "none.pt")]
    assert "cannot be called" in dialog.problem.text() and not boxes(qapp)
    assert window.session.sentence.endswith("is still open.")
    dialog.arguments.setText("{}")
    press_open(dialog, qtbot)
    qtbot.waitUntil(dialog.isVisible, timeout=60_000)
    assert "no <b>weights</b> today" in dialog.problem.text()
    assert dialog.problem.textFormat() == Qt.TextFormat.PlainText
    assert dialog.more.isVisible() and "line 14, in wrong" in dialog.details.toPlainText()
    dialog.more.click()
    assert dialog.details.isVisible() and dialog.details.isReadOnly()
    dialog.reject()
    still_reads(window, qtbot, kinds)


def test_once_it_opens_the_dialog_stays_away(window: Window, qtbot: object, models: Path) -> None:
    window.models.ask(str(models))
    dialog = window.models.dialog
    dialog.arguments.setText('{"hidden": 5}')
    press_open(dialog, qtbot)
    finish(window, qtbot)
    assert not dialog.isVisible() and window.session.subject == f"{models}:make"
    assert window.session.capture.extent("rnn.l0:h") == (64, 5)
    window.open_model()
    assert dialog.isVisible() and dialog.arguments.text() == '{"hidden": 5}' and not dialog.problem.isVisible()
    dialog.reject()


@pytest.mark.parametrize("how", ["import", "checkpoint", "consent"])
def test_the_model_before_stays_open(
    reading: Window, qtbot: object, qapp: QApplication, models: Path, tmp_path: Path, how: str
) -> None:
    window, kinds = reading, kinds_of(reading)
    checkpoint = ""
    if how == "import":
        models.write_text("import torch\n1 / 0")
    elif how == "checkpoint":
        (tmp_path / "bad.pt").write_bytes(b"nothing of the kind")
        checkpoint = str(tmp_path / "bad.pt")
    else:
        import torch

        fits = {"rnn.bias_ih_l0": torch.zeros(9)}  # one tensor of several; of none there is nothing to ask
        torch.save({"other.weight": torch.zeros(2), **fits}, tmp_path / "other.pt")
        checkpoint = str(tmp_path / "other.pt")
    window.open_model(Load(subject=f"{models}:make", checkpoint=checkpoint, trusted=True))
    if how == "consent":
        find = lambda: [w for w in qapp.topLevelWidgets() if w.windowTitle() == "Checkpoint" and w.isVisible()]  # noqa: E731
        qtbot.waitUntil(lambda: bool(find()), timeout=60_000)
        assert not window.status.stop.isVisible()
        find()[0].reject()
    else:
        qtbot.waitUntil(lambda: bool(boxes(qapp)), timeout=60_000)
        boxes(qapp)[0].close()
    assert window.session.opening is None and "is still open" in window.session.sentence
    still_reads(window, qtbot, kinds)


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_worker_that_dies_while_it_opens_takes_nothing_along(
    reading: Window, qtbot: object, qapp: QApplication, models: Path
) -> None:
    window, kinds = reading, kinds_of(reading)
    models.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    window.models.ask(f"{models}:make")
    press_open(window.models.dialog, qtbot)
    qtbot.waitUntil(window.models.dialog.isVisible, timeout=60_000)
    assert "killed" in window.models.dialog.problem.text()
    window.models.dialog.reject()
    assert window.status.restart.isVisible()
    window.status.restart.click()
    qtbot.waitUntil(lambda: window.session.loaded is not None, timeout=60_000)
    still_reads(window, qtbot, kinds)


# -- cancelling


HANGS = """
import time
from pathlib import Path
print("here", flush=True)
while not Path(__file__).with_name("ended").exists(): time.sleep(0.01)
"""


@pytest.fixture
def hangs(models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model that hangs until its worker is ended; a thread, which nobody can kill, is told by a file."""
    monkeypatch.setattr("inspector.gui.state.session.CANCEL_PATIENCE", 0.3)
    close = InProcessWorker.close

    def end(worker: InProcessWorker, patience: float = 1.0) -> None:
        models.with_name("ended").touch()
        close(worker, patience)

    monkeypatch.setattr(InProcessWorker, "close", end)
    models.write_text(HANGS)
    return models


@pytest.mark.parametrize("by", [pytest.param("key", marks=pytest.mark.process), "bar", "status"])
def test_an_opening_that_hangs_is_cancelled(reading: Window, qtbot: object, hangs: Path, by: str) -> None:
    window, kinds, models = reading, kinds_of(reading), hangs
    worker = window.session.worker
    window.open_model(Load(subject=f"{models}:make", trusted=True))
    qtbot.waitUntil(lambda: any(line.text == "here" for line in window.session.log), timeout=60_000)
    assert window.status.stop.isVisible() and window.status.bar.isVisible()
    assert window.status.sentence.whole.startswith("Opening") and window.input.go.text() == "Cancel"
    if by == "key":
        qtbot.keyClick(window, Qt.Key.Key_Escape)
    else:
        qtbot.mouseClick(window.input.go if by == "bar" else window.status.stop, Qt.MouseButton.LeftButton)
    assert window.session.sentence == "Cancelling …"
    qtbot.waitUntil(lambda: not window.input.go.isEnabled() and not window.status.stop.isEnabled(), timeout=5000)
    qtbot.waitUntil(lambda: window.session.loaded is None, timeout=30_000)
    assert window.session.worker is not worker and window.session.busy, "the model before is opened again"
    assert window.input.go.text() == "Run" and window.input.go.isEnabled() and not window.status.stop.isVisible()
    qtbot.waitUntil(lambda: window.session.loaded is not None, timeout=60_000)
    assert not worker.alive and not window.session.busy
    qtbot.waitUntil(lambda: window.input.go.text() == "Run", timeout=5000)
    assert not window.status.stop.isVisible() and "was cancelled" in window.session.sentence
    still_reads(window, qtbot, kinds)


def test_the_first_opening_can_be_cancelled_too(window: Window, qtbot: object, hangs: Path) -> None:
    window.open_model(Load(subject=f"{hangs}:make", trusted=True))
    assert window.input.go.isEnabled() and window.input.go.text() == "Cancel" and not window.input.line.isEnabled()
    qtbot.mouseClick(window.input.go, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "Open a model first" in window.session.sentence, timeout=30_000)
    assert not window.input.go.isEnabled()
    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice"))
    finish(window, qtbot)
    assert window.session.capture.labels("step") == tuple("Alice")


# -- the fields of the dialog


@pytest.fixture
def dialog(qtbot: object) -> OpenModelDialog:
    made = OpenModelDialog()
    qtbot.addWidget(made)
    made.show()
    return made


def test_a_file_that_is_chosen_gets_its_likeliest_callable(
    dialog: OpenModelDialog, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.gui.dialogs.model_dialog.QFileDialog.getOpenFileName", lambda *_: (str(models), ""))
    dialog._browse_model()
    assert dialog.subject.text() == f"{models}:make"
    assert dialog._names.stringList() == [f"{models}:{name}" for name in ("make", "Good", "wrong")]
    assert dialog.load() == Load(subject=f"{models}:make")


def test_the_device_is_one_of_those_that_are_there(dialog: OpenModelDialog) -> None:
    assert dialog.load().device == "cpu" and not dialog.device.isEnabled()
    dialog.offer_devices(("cpu", "cuda:0", "cuda:1"))
    assert dialog.device.isEnabled() and dialog.load().device == "cpu"
    dialog.device.setCurrentText("cuda:1")
    dialog.offer_devices(("cpu", "cuda:0", "cuda:1"))
    assert dialog.load().device == "cuda:1"
    dialog.offer_devices(("cpu",))
    assert dialog.load().device == "cpu"


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("", "Name the model"),
        ("models.py:", "There is no file models.py."),
        ("{models}:", "Name the callable that makes the model, as in models.py:make; models.py has make, Good, wrong."),
        ("{models}", "Name the callable that makes the model, as in models.py:make"),
        ("{empty}:", "none was found at its top level"),
        ("nowhere", "Name the model"),
    ],
)
def test_what_is_missing_is_said_in_the_dialog(
    dialog: OpenModelDialog, qtbot: object, models: Path, subject: str, said: str
) -> None:
    (models.parent / "empty.py").write_text("x = 1")
    dialog.subject.setText(subject.format(models=models, empty=models.parent / "empty.py"))
    press_open(dialog, qtbot)
    assert dialog.isVisible() and dialog.problem.isVisible() and said in dialog.problem.text()


@pytest.mark.qt_log_ignore("does not support")  # popups, without a screen
@pytest.mark.parametrize("suffix", [":make", ""])
def test_enter_opens_though_completions_are_listed(
    dialog: OpenModelDialog, qtbot: object, models: Path, suffix: str
) -> None:
    asked: list[Load] = []
    dialog.accepted.connect(lambda: asked.append(dialog.load()))
    dialog.subject.clear()
    qtbot.keyClicks(dialog.subject, f"{models}{suffix}")
    list_of = dialog.subject.completer().popup()
    qtbot.waitUntil(list_of.isVisible, timeout=5000)
    qtbot.keyClick(list_of, Qt.Key.Key_Return)
    if suffix:
        assert asked == [Load(subject=f"{models}:make")], "once, by one key"
    else:
        assert not asked and dialog.problem.isVisible() and "Name the callable" in dialog.problem.text()
    list_of.hide()


@pytest.mark.parametrize("subject", ["{models}:make", "package.module:Model", "char-lstm", "{models.parent}/bert"])
def test_what_can_be_asked_for_is(dialog: OpenModelDialog, qtbot: object, models: Path, subject: str) -> None:
    weights_folder(models.parent / "bert", "config.json", "model.safetensors")
    dialog.subject.setText(subject.format(models=models))
    press_open(dialog, qtbot)
    assert not dialog.isVisible()


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


# -- what is typed is what runs


@pytest.fixture
def numbers(window: Window, qtbot: object, models: Path) -> Window:
    """A window with a model of vectors that brings examples."""
    models.write_text(
        MODELS
        + "import types\ndef brings():\n    return types.SimpleNamespace(model=Good(), examples={'zeros': torch.zeros(9, 2)})\n"
    )
    window.open_model(Load(subject=f"{models}:brings", trusted=True))
    finish(window, qtbot)
    assert window.input.kind.currentText() == "Example" and window.session.capture.extent("rnn.l0:h") == (9, 3)
    return window


def type_into(window: Window, qtbot: object, text: str) -> None:
    window.input.line.clear()
    qtbot.keyClicks(window.input.line, text)


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


def weights_folder(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes(b"PK\x03\x04" if name.endswith(".pt") else b"{}")
    return folder


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
