"""Opening a model from the window: what comes back, what stays open, what ends it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from in_process_worker import InProcessWorker
from opened import finish
from opening_windows import boxes, kinds_of, press_open, still_reads
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from inspector.gui.window.main_window import Window
from inspector.records import InputSpec, Load

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
