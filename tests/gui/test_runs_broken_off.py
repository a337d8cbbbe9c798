"""A run that breaks off: what empty panels say of it, at once, instead of that it goes on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import needs_process, opened
from PySide6.QtWidgets import QApplication, QMessageBox

from inspector.capture import Writer, open_capture
from inspector.gui.panel.missing import GOES_ON
from inspector.gui.state.session import DID_NOT_STOP
from inspector.gui.state.shown import BROKEN_OFF
from inspector.gui.window.main_window import Window
from inspector.records import Frame, Load, RunStart

MODEL = """
import os, signal, time
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(3, 4, batch_first=True)

    def forward(self, x):
        out, _ = self.rnn(x)
        print("here", flush=True)
        {what}
        return out

def make():
    return Model()
"""
RAISES = 'raise RuntimeError("begin " + "middle " * 200 + "what to do about it")'
HANGS, DIES = "time.sleep(600)", "os.kill(os.getpid(), signal.SIGKILL)"
KEY = "gradients"
"""A panel that has nothing until the model has returned."""


@pytest.fixture
def window(qtbot: Any, qapp: QApplication, request: pytest.FixtureRequest) -> Iterator[Window]:
    with opened(qtbot, process=needs_process(request), background=False) as made:
        qtbot.waitUntil(lambda: made.session.catalog is not None, timeout=60_000)
        yield made
        for box in qapp.topLevelWidgets():
            if isinstance(box, QMessageBox):
                box.close()


def said(window: Window) -> str:
    return str(window.panels.made[KEY]._empty.text())


def begin(window: Window, qtbot: Any, path: Path, what: str) -> None:
    """A run whose model does something when it was called."""
    path.write_text(MODEL.format(what=what))
    window.docking.show_panel(KEY)
    window.open_model(Load(subject=f"{path}:make", trusted=True))
    qtbot.waitUntil(lambda: any(line.text == "here" for line in window.session.log), timeout=60_000)
    qtbot.waitUntil(lambda: window.session.capture is not None, timeout=60_000)


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_of_a_model_that_does_not_stop_panels_say_so_at_once(
    window: Window, qtbot: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("inspector.gui.state.session.CANCEL_PATIENCE", 0.3)
    begin(window, qtbot, tmp_path / "model.py", HANGS)
    qtbot.waitUntil(lambda: GOES_ON in said(window), timeout=10_000)
    window.docking.show_panel("overview")
    about = window.panels["overview"].page.about
    qtbot.waitUntil(lambda: "still running" in about.text(), timeout=10_000)
    window.session.cancel()
    window.show_state()
    assert window.status.sentence.whole == "Cancelling …", "and no longer that the model runs"
    qtbot.waitUntil(lambda: not window.session.running, timeout=30_000)
    assert "never finished" in about.text() and window.session.capture.status == "unfinished"
    assert window.session.loaded is None, "its model is not open again yet"
    assert DID_NOT_STOP in said(window) and GOES_ON not in said(window)
    qtbot.waitUntil(lambda: window.session.loaded is not None, timeout=60_000)
    assert DID_NOT_STOP in said(window), "it stays true when the model is open again"


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_of_a_worker_that_died_panels_say_how_it_ended(window: Window, qtbot: Any, tmp_path: Path) -> None:
    begin(window, qtbot, tmp_path / "model.py", DIES)
    qtbot.waitUntil(lambda: window.session.worker_state == "ended", timeout=30_000)
    assert "The worker was killed" in said(window) and GOES_ON not in said(window)


def test_a_capture_whose_program_ended_in_the_middle_says_so_too(window: Window, qtbot: Any, tmp_path: Path) -> None:
    code = (
        "import os, sys; from inspector.capture import Writer; from inspector.records import Frame, RunStart\n"
        "w = Writer(sys.argv[1], RunStart(run='r', title='t')); w.write(Frame(index=0)); w.flush(); os._exit(0)"
    )
    path = tmp_path / "dead.inspect"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    window.open_capture(str(path))
    window.docking.show_panel(KEY)
    qtbot.waitUntil(lambda: BROKEN_OFF in said(window), timeout=10_000)
    with Writer(tmp_path / "live.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.flush()
        window.open_capture(str(tmp_path / "live.inspect"))
        assert window.session.shown.broken_off == "", "another capture, of which nothing is known yet"
        window.tick()
        assert window.session.capture.status == "running" and BROKEN_OFF not in said(window)


def test_all_of_what_a_model_said_that_raised_is_in_the_details_of_the_box(
    window: Window, qtbot: Any, qapp: QApplication, tmp_path: Path
) -> None:
    begin(window, qtbot, tmp_path / "model.py", RAISES)
    qtbot.waitUntil(lambda: not window.session.running, timeout=30_000)
    qtbot.waitUntil(lambda: any(isinstance(box, QMessageBox) for box in qapp.topLevelWidgets()), timeout=10_000)
    (box,) = [one for one in qapp.topLevelWidgets() if isinstance(one, QMessageBox)]
    assert "begin middle" in box.text() and "…" in box.text() and "what to do about it." in box.text()
    whole = box.detailedText()
    assert f"RuntimeError: begin {'middle ' * 200}what to do about it" in whole and "model.py" in whole
    assert "The run failed before it had anything of it: The model raised RuntimeError" in said(window)
    window.docking.show_panel("states")
    assert window.panels.made["states"].state == "figure", "what was recorded until then is shown"


def test_a_pale_picture_does_not_outlast_the_run_that_was_to_replace_it(tmp_path: Path, window: Window) -> None:
    window.panels.make(KEY)
    panel = window.panels.made[KEY]
    with Writer(tmp_path / "live.inspect", RunStart(run="r", title="t")) as writer:
        writer.flush()
        with open_capture(tmp_path / "live.inspect") as capture:
            panel.set_capture(capture)
            assert panel.growing
            panel.say_remaining(type(panel.remaining)(broken_off=BROKEN_OFF))
            assert not panel.growing
            panel.set_capture(None)
