"""Windows with a worker in a thread, and models to open in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from opened import finish, needs_process, opened
from PySide6.QtWidgets import QApplication, QDialog

from inspector.gui.window.main_window import Window
from inspector.records import InputSpec, Load

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
