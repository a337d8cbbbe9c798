"""What was guessed of a model that was rebuilt is told in a bar and changed in a dialog; folders of checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from opened import finish, opened
from PySide6.QtCore import Qt
from torch import nn

from inspector.gui.dialogs.rebuilt_dialog import BACKWARD, LAYER, RebuiltDialog
from inspector.gui.dialogs.sweep_table import in_bytes, written_and_size
from inspector.gui.window.main_window import Window
from inspector.records import InputSpec


@pytest.fixture
def window(qtbot: object) -> Iterator[Window]:
    with opened(qtbot, process=False, background=False) as made:
        yield made


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb, self.one, self.other = nn.Embedding(9, 4), nn.GRU(4, 6), nn.GRU(4, 6)
        self.head = nn.Linear(6, 9)


def open_file(window: Window, qtbot: Any, path: Path) -> None:
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=60_000)
    window.open_path(str(path))
    qtbot.waitUntil(lambda: window.session.loaded is not None, timeout=60_000)
    finish(window, qtbot)


def test_the_guess_is_shown_and_built_again(window: Window, qtbot: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Two()
    torch.save(model.state_dict(), tmp_path / "w.pt")
    open_file(window, qtbot, tmp_path / "w.pt")
    assert window.rebuilt.isVisibleTo(window) and "one: GRU 4 → 6" in window.rebuilt.line.whole
    window.rebuilt.change.click()
    dialog = window.weights.dialog
    assert isinstance(dialog, RebuiltDialog)
    assert dialog.arguments() == {
        "layers": ["one"], "embedding": "emb", "before": None, "head": "head", "task": "next token",
    }  # fmt: skip
    dialog.layers.item(0, LAYER).setCheckState(Qt.CheckState.Unchecked)
    dialog.layers.item(1, LAYER).setCheckState(Qt.CheckState.Checked)
    dialog.layers.item(1, BACKWARD).setCheckState(Qt.CheckState.Checked)
    dialog.task.setCurrentText("none")
    dialog.accept()
    qtbot.waitUntil(lambda: "other: GRU" in window.rebuilt.line.whole, timeout=60_000)
    finish(window, qtbot)
    window.run(InputSpec(kind="ids", value="1 2 3 4"))
    finish(window, qtbot)
    assert window.session.capture is not None
    ids = torch.tensor([4, 3, 2, 1])
    states = window.session.capture.array("other.l0:h", 0)
    with torch.no_grad():
        own = model.other(model.emb(ids)[:, None])[0][:, 0].numpy()
    assert abs(states - own).max() < 1e-5  # in the order in which the layer has read them


def test_what_cannot_be_built_comes_back_with_its_reason(window: Window, qtbot: Any, tmp_path: Path) -> None:
    torch.save(Two().state_dict(), tmp_path / "w.pt")
    open_file(window, qtbot, tmp_path / "w.pt")
    window.weights.change()
    dialog = window.weights.dialog
    assert dialog is not None
    dialog.gates.setText("ifgo")
    dialog.accept()
    qtbot.waitUntil(lambda: bool(dialog.problem.text()), timeout=60_000)
    assert "order of gates" in dialog.problem.text() and dialog.isVisible()
    assert window.session.loaded is not None
    dialog.reject()


def test_layers_are_put_in_another_order(qtbot: Any) -> None:
    guess = {
        "arguments": {"layers": ["a", "b"]},
        "layers": [["a", "a: GRU"], ["b", "<b>b</b>: GRU"]],
        "tasks": ["none"],
    }
    dialog = RebuiltDialog("told", guess)
    qtbot.addWidget(dialog)
    dialog.layers.setCurrentCell(1, LAYER)
    dialog.move_layer(-1)
    assert dialog.arguments()["layers"] == ["b", "a"]
    dialog.move_layer(-1)
    assert dialog.arguments()["layers"] == ["b", "a"]
    assert dialog.layers.item(0, LAYER).text() == "<b>b</b>: GRU"
    for row in (0, 1):
        dialog.layers.item(row, LAYER).setCheckState(Qt.CheckState.Unchecked)
    dialog.go.click()
    assert dialog.problem.text() == "Check at least one layer."


def test_a_model_of_code_has_no_bar(window: Window, qtbot: Any) -> None:
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=60_000)
    window.open_sample("char-gru")
    finish(window, qtbot)
    assert not window.rebuilt.isVisibleTo(window)
    told: list[str] = []
    window.fail = lambda text, details="": told.append(text)  # type: ignore[method-assign]
    window.weights.change()
    assert told == ["The model that is open was not rebuilt from a file of weights, so nothing of it was guessed."]


@pytest.fixture
def with_processes(qtbot: object) -> Iterator[Window]:
    with opened(qtbot, process=True, background=False) as made:
        yield made


def test_one_checkpoint_of_a_folder_is_opened(with_processes: Window, qtbot: Any, tmp_path: Path) -> None:
    window = with_processes
    for step in (10, 20):
        torch.save({"model": {"w": torch.full((2, 2), float(step))}, "global_step": step}, tmp_path / f"step-{step}.pt")
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=60_000)
    window.open_path(str(tmp_path))
    dialog = window.sweeps.dialog
    assert dialog is not None
    qtbot.waitUntil(lambda: dialog.table.rowCount() == 2, timeout=120_000)
    assert [dialog.table.item(row, 1).text() for row in (0, 1)] == ["10", "20"]
    size = (tmp_path / "step-20.pt").stat().st_size
    assert dialog.table.item(1, 4).text() == in_bytes(size) and dialog.table.item(1, 3).text()
    assert not dialog.alone.isEnabled()
    dialog.table.selectRow(1)
    dialog.alone.click()
    qtbot.waitUntil(lambda: window.session.capture is not None, timeout=60_000)
    finish(window, qtbot)
    assert not dialog.isVisible() and window.session.subject.endswith("step-20.pt")
    assert (window.session.capture.array("w:weights/values", 0) == 20).all()


def test_a_folder_of_one_checkpoint_opens_it(window: Window, qtbot: Any, tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2, 2)}, tmp_path / "only.pt")
    open_file(window, qtbot, tmp_path)
    assert window.session.subject == str(tmp_path / "only.pt")


def test_sizes_are_written_in_their_unit(tmp_path: Path) -> None:
    assert [in_bytes(size) for size in (0, 999, 1000, 1234, 123_456, 5e9)] == [
        "0 B", "999 B", "1 kB", "1.23 kB", "123 kB", "5 GB",
    ]  # fmt: skip
    (tmp_path / "a").write_bytes(b"x" * 700)
    (tmp_path / "b").write_bytes(b"x" * 800)
    assert written_and_size(str(tmp_path))[1] == "1.5 kB" and written_and_size(str(tmp_path / "none")) == ("", "")
