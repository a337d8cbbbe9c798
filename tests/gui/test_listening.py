"""The window listens for trainings on other machines and shows them as they arrive."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from network import LOSS, RUN, page
from opened import opened
from PySide6.QtWidgets import QApplication
from torch import nn

import inspector
from inspector.gui.dialogs.listen_dialog import ListenDialog
from inspector.gui.state import followed, steering
from inspector.gui.window.main_window import Window
from inspector.records import Axis, Frame, RunStart
from inspector.transport.network import sender as sending
from inspector.transport.network.address import Address


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


def test_a_training_whose_connection_broke_is_said_to_be_waited_for(
    window: Window, tmp_path: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window that was stopped for minutes finds its connections broken; the training comes back seconds later."""
    monkeypatch.setattr(sending, "AGAIN_SECONDS", (3.0, 3.0))
    dialog = listening(window, tmp_path / "captures")
    dialog.switch.click()
    listener = dialog.listening._listener
    assert listener is not None
    secret = (tmp_path / "captures" / "secret").read_text().strip().encode()
    meta = {"training": {"can_pause": True}}
    one = sending.Sender(Address("127.0.0.1", listener.port, "far"), secret, RunStart(run=RUN, title="t", meta=meta))
    for record in (Frame(index=0), Axis(name="iteration"), LOSS, page(0)):
        one.write(record)
    row, said = window.status, set()

    def reads(words: str) -> bool:
        said.add(row.training.text())
        return row.training.text().startswith(words)

    qtbot.waitUntil(lambda: reads(followed.RUNNING), timeout=30_000)
    qtbot.waitUntil(lambda: not window.session.steering.reason, timeout=30_000)
    for connection in list(listener._open):
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
    qtbot.waitUntil(lambda: reads("No connection to the training since "), timeout=30_000)
    assert ": it is waited for" in row.training.text()
    qtbot.waitUntil(lambda: window.session.steering.reason == steering.AWAITED, timeout=30_000)
    assert dialog.list.item(0) is None or "ended" not in dialog.list.item(0).text()
    qtbot.waitUntil(lambda: reads(followed.RUNNING), timeout=30_000)
    assert not any(text.startswith(followed.DIED) for text in said)
    one._fail("the test is over")
    one._thread.join(10)
