"""Pause, one iteration, go on: of a training that another thread makes, from the window that follows it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from opened import opened
from PySide6.QtWidgets import QApplication
from torch import nn

import inspector
from inspector.capture import Writer
from inspector.engine.watch import Watcher
from inspector.gui.dialogs.break_dialog import BreakDialog
from inspector.gui.state.steering import ENDED, NOTHING, OTHER
from inspector.gui.window.main_window import Window
from inspector.records import Axis, Channel, Frame, RunStart


@pytest.fixture
def window(qtbot: Any, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        made.resize(1400, 800)
        yield made


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Watcher]:
    torch.manual_seed(0)
    model = nn.RNN(2, 3, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.001)
    over = threading.Event()
    watcher = inspector.watch(model, optimizer, tmp_path / "run.inspect", probe=torch.randn(1, 4, 2))

    def loop() -> None:
        while not over.is_set():
            model(torch.randn(2, 4, 2))[0].square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(0.01)

    thread = threading.Thread(target=loop)
    thread.start()
    yield watcher
    over.set()
    watcher.break_when(None)
    watcher.go_on()
    thread.join(30)
    watcher.close()


def enabled(window: Window) -> list[str]:
    return [text for text, one in window.status.controls.buttons.items() if one.isEnabled()]


def test_the_window_pauses_steps_and_lets_go_on(
    window: Window, training: Watcher, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait: Callable[[Callable[[], bool]], None] = lambda what: qtbot.waitUntil(what, timeout=30_000)  # noqa: E731
    controls, steering = window.status.controls, window.session.steering
    wait(lambda: training.iteration > 3 and training.path is not None and training.path.exists())
    window.open_capture(str(training.path))
    wait(lambda: enabled(window) == ["Pause", "Pause when…"])
    assert controls.isVisible()
    controls.buttons["Pause"].click()
    wait(lambda: enabled(window) == ["Step", "Go on", "Pause when…"])
    at = training.iteration
    assert window.status.training.text().startswith(
        f"The training waits at iteration {at}: the window asked for it; it goes on"
    )
    assert "It waits already." in controls.buttons["Pause"].toolTip()
    controls.buttons["Step"].click()
    wait(lambda: steering.paused is not None and steering.paused.iteration == at + 1)
    controls.buttons["Go on"].click()
    wait(lambda: training.iteration > at + 5)
    wait(lambda: enabled(window) == ["Pause", "Pause when…"])

    def typed(dialog: BreakDialog) -> int:
        dialog.field.setText("loss ! 3")
        dialog._accept()
        assert "no condition" in dialog.problem.text() and dialog.result() == 0
        dialog.field.setText("Loss > 1e9;loss<1e9")
        dialog._accept()
        return dialog.result()

    monkeypatch.setattr(BreakDialog, "exec", typed)
    controls.buttons["Pause when…"].click()
    wait(lambda: steering.condition == "loss > 1e9, loss < 1e9" and steering.paused is not None)
    assert controls.buttons["Pause when…"].text().endswith("●")
    training.break_when(None)
    controls.buttons["Go on"].click()
    wait(lambda: steering.condition == "" and steering.paused is None)
    training.close()
    wait(lambda: not enabled(window))
    assert steering.reason == ENDED and ENDED in controls.buttons["Pause"].toolTip()


def test_where_no_training_is_followed_the_reason_is_told(window: Window, tmp_path: Path, qtbot: Any) -> None:
    steering, controls = window.session.steering, window.status.controls
    window.tick()
    assert steering.reason == NOTHING and not controls.isVisible() and steering.ask("pause") == NOTHING
    with Writer(tmp_path / "own.inspect", RunStart(run="r", title="own", meta={"training": {}})) as writer:
        writer.write(Axis(name="iteration"))
        writer.write(Frame(index=0))
        writer.write(Channel(name="training:loss", kind="series", dims=("iteration",), shape=(None,), dtype="float64"))
        writer.flush()
        window.open_capture(str(tmp_path / "own.inspect"))
        qtbot.waitUntil(lambda: steering.reason == OTHER, timeout=10_000)
        window.show_state()
        assert controls.isVisible() and enabled(window) == []
        assert all("not written by inspector.watch" in one.toolTip() for one in controls.buttons.values())
        assert not (tmp_path / "own.inspect" / "control").exists()
