"""The window listens for trainings on other machines and shows them as they arrive."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from opened import opened
from PySide6.QtWidgets import QApplication
from torch import nn

import inspector
from inspector.gui.dialogs.listen_dialog import ListenDialog
from inspector.gui.window.main_window import Window


@pytest.fixture
def window(qtbot: Any, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        yield made


def listening(window: Window, folder: Path) -> ListenDialog:
    window.listen()
    dialog = window._listen
    assert dialog is not None and dialog.isVisible() and dialog.host.text() == "127.0.0.1"
    dialog.folder.setText(str(folder))
    dialog.port.setValue(0)
    return dialog


def test_a_training_that_arrives_is_listed_shown_and_followed(window: Window, tmp_path: Path, qtbot: Any) -> None:
    dialog = listening(window, tmp_path / "captures")
    dialog.switch.click()
    assert (
        dialog.switch.text() == "Stop" and not dialog.folder.isEnabled() and "Listening at tcp://" in dialog.said.text()
    )
    port = dialog.listening._listener.port  # type: ignore[union-attr]
    model = nn.RNN(2, 3, batch_first=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    secret = tmp_path / "captures" / "secret"
    dialog.close()  # it goes on listening
    with inspector.watch(model, optimizer, f"tcp://127.0.0.1:{port}/far", secret=secret, every=1) as watcher:
        for _ in range(5):
            model(torch.randn(2, 4, 2))[0].square().mean().backward()
            optimizer.step()
        qtbot.waitUntil(lambda: window.session.capture is not None, timeout=30_000)
        assert window.session.capture.path.name.startswith("far-")  # type: ignore[union-attr]
        assert dialog.list.item(0).text().endswith(": connected")
        assert watcher.error is None
    qtbot.waitUntil(lambda: dialog.list.item(0).text().endswith(": ended"), timeout=30_000)
    qtbot.waitUntil(lambda: window.session.capture.stop is not None, timeout=30_000)  # type: ignore[union-attr]
    window.new_capture()
    window.session.shown.close()
    dialog._open(0)
    assert window.session.capture is not None
    dialog.switch.click()
    assert dialog.switch.text() == "Listen" and not dialog.listening.on and dialog.list.count() == 0
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", port), 2):
        pass


def test_what_is_wrong_is_said_and_others_are_warned_of(window: Window, tmp_path: Path) -> None:
    dialog = listening(window, tmp_path / "captures")
    (tmp_path / "short").write_text("secret")
    dialog.secret.setText(str(tmp_path / "short"))
    dialog.switch.click()
    assert "at least 16" in dialog.said.text() and not dialog.listening.on
    dialog.secret.setText("")
    dialog.host.setText("203.0.113.7")
    assert dialog.warning.isVisible() and "Other machines can reach it" in dialog.warning.text()
    dialog.switch.click()
    assert dialog.said.text().startswith("Cannot listen at 203.0.113.7:0 for ") and dialog.switch.text() == "Listen"
    dialog.host.setText("127.0.0.1")
    assert not dialog.warning.isVisible()
    dialog.folder.setText("")
    dialog.switch.click()
    assert dialog.said.text().startswith("No folder was given")
