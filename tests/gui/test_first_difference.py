"""The first difference of two runs in the window: what `inspector diverge` says, and the way to the frame."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from diverging import run as recorded
from opened import opened
from PySide6.QtWidgets import QApplication, QMessageBox
from several_runs import logged
from torch import nn

import inspector
from inspector.gui.state.first_difference import rows_of
from inspector.gui.window.main_window import Window


def train(path: Path, other_from: int = 99) -> Path:
    """A watched training with a frame at every fourth iteration; from one on, a gradient is another one."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = torch.Generator().manual_seed(7)
    probe = torch.randn(2, 4, 3, generator=data)
    with inspector.watch(model, optimizer, path, every=1, fingerprints=True, probe=probe, probe_every=4):
        for n in range(1, 13):
            model(torch.randn(8, 3, generator=data)).square().mean().backward()
            if n >= other_from:
                model[2].bias.grad.mul_(1.5)
            optimizer.step()
            optimizer.zero_grad()
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    train(folder / "a.inspect")
    train(folder / "b.inspect", other_from=6)
    return folder


@pytest.fixture
def window(qtbot: Any, qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setattr("inspector.gui.state.session.Session.start_worker", lambda _session: None)
    with opened(qtbot, background=False) as made:
        made.resize(1280, 800)
        yield made
        for box in qapp.topLevelWidgets():
            if isinstance(box, QMessageBox):
                box.close()


def cells(window: Window) -> list[list[str]]:
    table = window.comparison.first.table
    return [[table.item(n, m).text() for m in range(table.columnCount())] for n in range(table.rowCount())]


def test_of_two_trainings_it_leads_to_the_frame(window: Window, trained: Path, qtbot: Any) -> None:
    told = inspector.first_divergence(trained / "a.inspect", trained / "b.inspect")
    assert told.trainings is not None and told.trainings.parting is not None and told.trainings.parting.iteration == 6
    window.open_capture(str(trained / "b.inspect"))
    window.comparing.begin(str(trained / "a.inspect"))
    window.compare.first.click()
    first = window.comparison.first
    assert window.comparison.tabs.currentWidget() is first and not first.button.isEnabled()
    qtbot.waitUntil(lambda: first.table.rowCount() > 0, timeout=30_000)
    assert first.said.toPlainText().split("\n") == told.lines() and first.names.whole.startswith("A: a.inspect")
    (row,) = cells(window)
    assert row[:2] == ["gradient", "2.bias"] and row[4] == "6"
    assert float(row[2]) == pytest.approx(told.trainings.parting.relative, rel=1e-2)
    steps = [frame.step for frame in window.session.capture.frames]  # type: ignore[union-attr]
    assert window.frames.current == steps.index(12) and 8 in steps
    first.table.cellClicked.emit(0, 0)
    assert window.frames.current == steps.index(8)  # the first frame that has it
    assert window.compare.frame == steps.index(8) and cells(window) == [row]
    window.comparing.end()
    assert not first.begun and not first.table.rowCount()


def test_of_two_logs_curves_are_compared_and_of_one_run_nothing(window: Window, tmp_path: Path, qtbot: Any) -> None:
    window.comparing.find_first()
    assert window.session.sentence.startswith("Two runs are needed: ")
    paths = [str(logged(tmp_path / f"{name}.jsonl", 12)) for name in "ab"]
    text = Path(paths[1]).read_text().splitlines()
    window.open_together(paths)
    qtbot.waitUntil(lambda: window.session.capture is not None)
    window.comparing.find_first()
    first = window.comparison.first
    qtbot.waitUntil(lambda: not first._timer.isActive(), timeout=30_000)
    assert "training: no difference" in first.said.toPlainText() and first.isVisible() and len(text) == 12
    assert not window.comparison.tabs.isTabVisible(0)


def test_of_operations_the_line_and_the_module_are_told(tmp_path: Path) -> None:
    one = recorded(tmp_path, "a")
    other = recorded(tmp_path, "b", ("        h = self.norm(h)\n", "        h = self.norm(h) * 1.01\n"))
    found = inspector.first_divergence(one, other)
    assert found.operations is not None and found.compared is not None and found.compared.cause is not None
    rows = rows_of(found)
    assert rows[0].name == found.compared.cause.b.where and "* 1.01" in rows[0].name  # type: ignore[union-attr]
    assert rows[0].what == found.operations.word and rows[0].relative == pytest.approx(0.01, rel=0.2)
    results = {row.name: row.relative for row in rows if row.what == "result"}
    assert results == found.compared.results and np.all(np.diff(list(results.values())) <= 0)
    assert {row.place for row in rows if row.name == "gradient of head.weight"} == {"head"}
    alone = [row for row in rows if row.what == "only in B"]
    assert len(alone) == len(found.compared.only_b) > 0 and all(math.isnan(row.relative) for row in alone[1:])
