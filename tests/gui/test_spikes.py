"""A spike in the timeline is opened: its model is asked for, its code agreed to, and its iteration is run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from opened import finish, opened
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from torch import nn

import inspector
from inspector.gui.dialogs.spike_dialog import SpikeDialog
from inspector.gui.dialogs.trust_dialog import TrustDialog
from inspector.gui.window.main_window import Window
from inspector.gui.window.spikes import NONE

CODE = """
from torch import nn

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0])

def make():
    return Tagger()
"""


@pytest.fixture
def window(qtbot: Any, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        made.resize(1400, 900)
        yield made


@pytest.fixture
def training(tmp_path: Path) -> Path:
    """A training with a spike at its iteration 61, made by sample 1 at step 7."""
    code: dict[str, Any] = {}
    exec(CODE, code)
    (tmp_path / "tagger.py").write_text(CODE)
    torch.manual_seed(0)
    model: nn.Module = code["make"]()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    with inspector.watch(model, optimizer, tmp_path / "run.inspect", every=1):
        for n in range(70):
            x, y = torch.randn(6, 12, 3), torch.randint(0, 2, (6, 12))
            losses = nn.functional.cross_entropy(model(x).transpose(1, 2), y, reduction="none")
            losses = losses * (1 + 5e3 * (torch.arange(72).view(6, 12) == 12 + 7)) if n == 60 else losses
            losses.mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    return tmp_path / "run.inspect"


def double_click(window: Window, iteration: float) -> None:
    view = window.timeline.view
    QTest.mouseDClick(view, Qt.MouseButton.LeftButton, pos=QPoint(round(view.x_of(iteration)) + 2, view.height() - 24))


def test_a_double_click_on_a_spike_shows_what_made_it(
    window: Window, training: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.open_capture(str(training))
    qtbot.waitUntil(lambda: window.timeline.view.data.events != (), timeout=10_000)
    double_click(window, 61)
    dialog = window.models.dialog
    assert dialog is not None and dialog.isVisible() and "those of iteration 61" in dialog.problem.text()
    dialog.fill(f"{training.parent / 'tagger.py'}:make")
    dialog._accept()
    qtbot.waitUntil(lambda: any(one.isVisible() for one in window.findChildren(TrustDialog)), timeout=60_000)
    next(one for one in window.findChildren(TrustDialog) if one.isVisible()).accept()
    qtbot.waitUntil(lambda: window.session.capture is not None and window.session.capture.path != training,
                    timeout=60_000)  # fmt: skip
    finish(window, qtbot)
    capture = window.session.capture
    assert capture is not None and capture.status == "done" and capture.start.meta["spike"]["iteration"] == 61
    panel = window.panels["spike"]
    assert panel.state == "figure" and not window.docks["spike"].isHidden()
    assert (
        panel.told.text.startswith("Iteration 61: sample 1 of 6 (the first is 0) has ")
        and "of which loss step 7 has" in panel.told.text
    )
    assert "The recorded gradient norms are met within" in panel.told.text
    assert panel.chronology.text.startswith("Chronology: first the loss at iteration 61 (")
    assert panel.shares[2] is not None and len(panel.shares[2]) == 12
    shown = window.session.capture
    window.run_again()
    qtbot.waitUntil(lambda: window.session.capture is not shown, timeout=60_000)
    finish(window, qtbot)
    assert "spike" in window.session.capture.start.meta  # type: ignore[union-attr]
    window.spikes.back()
    assert window.session.capture.path == training  # type: ignore[union-attr]
    asked: list[Any] = []
    monkeypatch.setattr(window.models, "ask", lambda *more, **named: asked.append(more))
    double_click(window, 61)  # its model is open now
    qtbot.waitUntil(lambda: window.session.capture is not None and window.session.capture.path != training,
                    timeout=60_000)  # fmt: skip
    finish(window, qtbot)
    assert not asked


def test_spikes_are_listed_with_what_moved_first(
    window: Window, training: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(window, "fail", lambda sentence, details="": told.append(sentence))
    window.spikes.list()
    assert told == [NONE]
    window.open_capture(str(training))
    chosen: list[float] = []
    monkeypatch.setattr(window.spikes, "open", chosen.append)

    def read(dialog: SpikeDialog) -> int:
        assert dialog.list.count() >= 1 and dialog.again.isEnabled()
        row = next(n for n in range(dialog.list.count()) if dialog.list.item(n).text().startswith("61 "))
        dialog.list.setCurrentRow(row)
        text = dialog.text.toPlainText()
        assert text.startswith("First the loss at iteration 61 (") and "What would make this wrong: " in text
        dialog._choose()
        return dialog.result()

    monkeypatch.setattr(SpikeDialog, "exec", read)
    window.spikes.list()
    assert chosen == [61]


def test_what_was_not_kept_is_told(window: Window, training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in (training / "spikes").iterdir():
        file.unlink()
    (training / "spikes" / "0001.safetensors").write_bytes(b"\xff" * 40)
    told: list[str] = []
    monkeypatch.setattr(window, "fail", lambda sentence, details="": told.append(sentence))
    window.open_capture(str(training))
    window.spikes.open(61)
    assert len(told) == 1 and told[0].startswith("Iteration 61 was marked, and not kept")
