"""What is seen of the run before while a slow model runs again: its picture as it was, pale."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QColor

from inspector.gui.panel.old_picture import PALE
from inspector.gui.window.main_window import Window
from inspector.records import InputSpec, Load
from tests.support.opened import finish, opened

STEPS = 12
MODEL = """
import time
import torch
from torch import nn

class Slow(nn.Module):
    waits = False

    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(2, 8)

    def forward(self, x):
        h = torch.zeros(x.shape[0], 8)
        found = []
        for step in range(x.shape[1]):
            time.sleep(0.4 if step == 0 and Slow.waits else 0.05)
            h = self.cell(x[:, step], h)
            found.append(h)
        Slow.waits = True
        return torch.stack(found, 1)

def make():
    torch.manual_seed(0)
    return Slow()
"""


@pytest.fixture
def window(qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setattr(
        "inspector.gui.window.main_window.ask_trust", lambda _parent, asked, agreed, _refused: agreed(asked)
    )
    with opened(qtbot, background=False) as made:
        yield made


def test_a_slow_run_shows_the_one_before_pale_and_as_it_was(window: Window, qtbot: Any, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(MODEL)
    spec = InputSpec(kind="generated", value="noise", options={"steps": STEPS})
    window.open_model(Load(subject=f"{tmp_path / 'slow.py'}:make"))
    qtbot.waitUntil(lambda: window.session.loaded is not None, timeout=60_000)
    finish(window, qtbot)
    window.run(spec)
    finish(window, qtbot)
    window.docking.show_panel("states")
    states: Any = window.panels["states"]
    qtbot.waitUntil(lambda: states.state == "figure" and window.steps.bounds[1] == STEPS - 0.5, timeout=10_000)
    window.steps.set(2.5, 9.5)  # a part in view is part of the picture
    qtbot.wait(100)
    before = states.stack.grab().toImage()
    window.run(spec)
    qtbot.waitUntil(lambda: states.old.shown, timeout=60_000)
    assert states.state == "empty" and window.session.running
    kept, seen = states.old._picture.toImage(), states.old.grab().toImage()
    assert kept.size() == before.size() == seen.size()
    ground = states.palette().window().color()
    points = [(x, y) for x in range(3, before.width(), 29) for y in range(60, before.height(), 23)]
    assert len({before.pixel(x, y) for x, y in points}) > 5, "there is something to be seen"
    for x, y in points:
        old = before.pixelColor(x, y)
        assert kept.pixelColor(x, y) == old
        for got, was, under in zip(_rgb(seen.pixelColor(x, y)), _rgb(old), _rgb(ground), strict=True):
            assert abs(got - (PALE * was + (1 - PALE) * under)) <= 3
    finish(window, qtbot)
    qtbot.waitUntil(lambda: not states.old.shown and states.state == "figure", timeout=60_000)
    assert window.steps.bounds == (2.5, 9.5), "and what is in view stays"


def _rgb(colour: QColor) -> tuple[int, int, int]:
    return colour.red(), colour.green(), colour.blue()
