"""The window with its worker: open a sample, see it fill, walk, edit, cancel, break, close."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from opened import finish, needs_process, opened
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QMessageBox

from inspector.gui.app import make_window
from inspector.gui.window.docking.side_docks import DATA
from inspector.gui.window.main_window import Window
from inspector.records import InputSpec, Load

MODEL = """
import time
from torch import nn
class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(2, 3)
    def forward(self, x):
        h = None
        for t in range(x.shape[1]):
            time.sleep(0.02)
            h = self.cell(x[:, t], h)
        return h
"""


@pytest.fixture
def window(qtbot: object, qapp: QApplication, request: pytest.FixtureRequest) -> Iterator[Window]:
    with opened(qtbot, process=needs_process(request), background=needs_process(request)) as made:
        yield made


def close_boxes(qapp: QApplication) -> list[str]:
    said = []
    for widget in qapp.topLevelWidgets():
        if isinstance(widget, QMessageBox) and widget.isVisible():
            said.append(widget.text())
            widget.close()
    return said


@pytest.mark.process
def test_from_sample_to_numbers(window: Window, qtbot: object, qapp: QApplication) -> None:
    window.open_sample("char-gru", "")
    qtbot.waitUntil(lambda: window.session.running, timeout=60_000)
    finish(window, qtbot)
    capture = window.session.capture
    assert capture is not None and capture.status == "done"
    states = {key: panel.state for key, panel in window.panels.items()}
    assert states["states"] == states["gates"] == states["jacobians"] == "figure", states
    assert "error" not in states.values()
    window.looking.move(step=12, unit=4, place="rnn.l0")
    qtbot.waitUntil(lambda: window.readout.rowCount() > 5, timeout=5000)
    shown = {
        window.readout.item(i, 0).text(): window.readout.item(i, 1).data(DATA) for i in range(window.readout.rowCount())
    }
    assert float(shown["h[12, 4]  rnn.l0"]) == pytest.approx(float(capture.array("rnn.l0:h")[12, 4]), rel=1e-5)
    assert window.sequence.colour_by.currentText() == "output:surprise"
    before = window.looking.position.step
    qtbot.keyClick(window.panels["states"], Qt.Key.Key_Right)
    assert window.looking.position.step == before + 1
    window.play()
    qtbot.waitUntil(lambda: window.looking.position.step > before + 2, timeout=5000)
    window.play()


def test_editing_the_text_runs_again_at_once(window: Window, qtbot: object) -> None:
    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice"))
    finish(window, qtbot)
    window.input.kind.setCurrentText("Text")
    window.input.line.setText("the white rabbit<s>")
    qtbot.keyClick(window.input.line, Qt.Key.Key_Return)
    assert window.session.running
    finish(window, qtbot)
    assert window.session.capture.labels("step")[-3:] == ("<", "s", ">")
    assert window.looking.length == len("the white rabbit<s>")


def test_bad_input_is_one_sentence_and_the_window_goes_on(window: Window, qtbot: object, qapp: QApplication) -> None:
    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice"))
    finish(window, qtbot)
    window.run(InputSpec(kind="text", value="naïve"))
    finish(window, qtbot)
    qtbot.wait(50)
    assert any("'ï' at position 2" in said for said in close_boxes(qapp))
    assert window.session.capture.labels("step") == tuple("Alice"), "what was captured stays on show"


def test_cancel_keeps_what_came(window: Window, qtbot: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "slow.py"
    file.write_text(MODEL)
    monkeypatch.setattr(
        "inspector.gui.window.main_window.ask_trust", lambda _parent, asked, agreed, _refused: agreed(asked)
    )
    window.open_model(Load(subject=f"{file}:Slow", trusted=True))
    qtbot.waitUntil(
        lambda: window.session.capture is not None and "cell:h" in window.session.capture.channels, timeout=60_000
    )
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    window.session.cancel()
    finish(window, qtbot)
    assert window.session.capture.status in ("cancelled", "unfinished")
    assert window.session.capture.extent("cell:h")[0] > 0


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_worker_is_told_and_can_be_started_again(window: Window, qtbot: object, qapp: QApplication) -> None:
    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice"))
    finish(window, qtbot)
    os.kill(window.session.worker.pid, signal.SIGKILL)
    qtbot.waitUntil(lambda: window.session.worker_state == "ended", timeout=10_000)
    qtbot.wait(50)
    assert any("killed" in said for said in close_boxes(qapp))
    assert window.status.restart.isVisible() and window.session.capture.status == "done"
    window.status.restart.click()
    qtbot.waitUntil(lambda: window.session.worker_state == "ready", timeout=60_000)
    window.run(InputSpec(kind="text", value="again"))
    finish(window, qtbot)
    assert window.session.capture.labels("step") == tuple("again")


@pytest.mark.process
def test_closing_during_a_run_leaves_no_process(window: Window, qtbot: object) -> None:
    window.open_sample("char-lstm", "", InputSpec(kind="example", value="long passage"))
    qtbot.waitUntil(lambda: window.session.running, timeout=60_000)
    qtbot.wait(200)
    pid = window.session.worker.pid
    window.close()
    window.session.wait_for_end()
    if sys.platform == "linux":
        gone = not Path(f"/proc/{pid}").exists()
        assert gone or Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_captures_from_disk_and_two_windows_on_one(window: Window, qtbot: object, a_capture: Path) -> None:
    other = make_window()
    qtbot.addWidget(other)
    other.session.start_worker = lambda: None
    other.show()
    other.load_panels()
    for each in (window, other):
        each.open_path(str(a_capture))
        assert each.session.capture.status == "done" and each.panels["states"].state == "figure"
        np.testing.assert_array_equal(
            each.panels["states"].data()["rnn.l0:h"], window.session.capture.array("rnn.l0:h")
        )
    assert str(a_capture) in window.settings.recent()
    assert window.windowTitle().startswith("<b>a run</b>")
    other.close()


def test_what_cannot_be_opened_is_told(window: Window, qapp: QApplication, tmp_path: Path) -> None:
    (tmp_path / "x.inspect").mkdir()
    window.open_path(str(tmp_path / "x.inspect"))
    window.open_path(str(tmp_path / "y.doc"))
    said = close_boxes(qapp)
    assert any("not a capture" in text for text in said) and any("cannot be opened here" in text for text in said)


def test_themes_and_layout_are_remembered(window: Window, qtbot: object) -> None:
    window.choose_theme("Dark")
    assert window.theme.dark and window.panels["states"].theme.dark
    window.docks["open"].hide()
    window.close()
    again = make_window()
    qtbot.addWidget(again)
    again.show()
    again.load_panels()
    assert again.theme.dark and again.docks["open"].isHidden()
    again.docking.reset()
    assert not again.docks["open"].isHidden()
    again.choose_theme("Light")
    again.close()


def test_copying_a_figure_from_the_menu(window: Window, a_capture: Path) -> None:
    from PySide6.QtGui import QGuiApplication

    from inspector.gui.export.figure_files import forget_clipboard

    window.open_path(str(a_capture))
    next(a for a in window.menu_actions if a.text() == "States: Copy figure").trigger()
    assert QGuiApplication.clipboard().mimeData().hasImage()
    forget_clipboard()


def test_every_action_has_a_name_and_the_usual_ones_a_key(window: Window) -> None:
    names = {action.text().replace("&", "") for action in window.menu_actions}
    assert {"Open…", "Open model…", "Run again", "Cancel", "Whole sequence", "Keys"} <= names
    keys = [action.shortcut().toString() for action in window.menu_actions if not action.shortcut().isEmpty()]
    assert len(keys) == len(set(keys)), "two actions share a key"
    assert any("Copy figure" in name for name in names)


def test_the_window_loads_neither_torch_nor_plots_before_it_stands() -> None:
    code = (
        "import sys\nfrom PySide6.QtWidgets import QApplication\nimport inspector.gui.app as app\n"
        "a = QApplication([])\nw = app.make_window()\nw.show()\na.processEvents()\n"
        "print([m for m in ('torch', 'pyqtgraph', 'scipy') if m in sys.modules])\n"
        "w.load_panels()\nprint('torch' in sys.modules)\nw.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    )
    assert done.stdout.split("\n")[:2] == ["[]", "False"], done.stdout + done.stderr


def test_many_emits_and_frames_take_no_references_from_none_and_true(qapp: QApplication, a_capture: Path) -> None:
    from inspector.capture import open_capture
    from inspector.gui.export.offscreen import Stage

    if sys.version_info >= (3, 12):
        pytest.skip("None and True are immortal here")
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (600, 400))
        panel = stage.panel("states")
        before = sys.getrefcount(None), sys.getrefcount(True)
        for i in range(2000):
            stage.cursor.move(step=i % 300)
            if i % 8 == 0:
                panel.figure.grab()
        after = sys.getrefcount(None), sys.getrefcount(True)
        stage.close()
    assert after[0] > before[0] - 200 and after[1] > before[1] - 50


def test_a_double_click_on_the_strip_edits_and_runs(
    window: Window, qtbot: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inspector.gui.dialogs.edit_dialog import EditDialog
    from inspector.records import Edit

    def put_in(dialog: EditDialog) -> int:
        dialog.token.setText("x")
        dialog.go.click()
        return dialog.result()

    monkeypatch.setattr(EditDialog, "exec", put_in)
    window.open_sample("char-elman", "", InputSpec(kind="text", value="the white rabbit"))
    finish(window, qtbot)
    window.looking.move(step=4)
    window.sequence.strip.editing.emit()
    finish(window, qtbot)
    capture = window.session.capture
    assert window.session.edits == (Edit(place="input", text="x", start=4),)
    assert "".join(capture.labels("step", 1)) == "the xhite rabbit" and len(capture.frames) == 2
    window.looking.move(step=6, unit=2)
    window.panels["states"].editing.emit("rnn.l0:h")
    finish(window, qtbot)
    assert window.session.edits[-1] == Edit(place="rnn.l0", signal="h", unit=2, start=6), "a panel asks the same dialog"
    position = window.looking.position
    assert (position.step, position.unit) == (6, 2), "what is held is looked at in the new run too"
