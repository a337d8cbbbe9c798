"""A checkpoint dropped on a window without a model is rebuilt and run; what cannot be rebuilt is asked about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from opened import finish, opened
from torch import nn

from inspector.gui.window.main_window import Window
from inspector.records import InputSpec


@pytest.fixture
def window(qtbot: object) -> Iterator[Window]:
    with opened(qtbot, process=False, background=False) as made:
        yield made


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.emb, self.rnn, self.head = nn.Embedding(9, 4), nn.GRU(4, 6, batch_first=True), nn.Linear(6, 9)


def test_a_checkpoint_alone_is_opened_and_run(window: Window, qtbot: object, tmp_path: Path) -> None:
    torch.manual_seed(0)
    torch.save(Tagger().state_dict(), tmp_path / "w.pt")
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=30_000)  # type: ignore[attr-defined]
    window.open_path(str(tmp_path / "w.pt"))
    qtbot.waitUntil(lambda: window.session.loaded is not None, timeout=60_000)  # type: ignore[attr-defined]
    assert window.session.subject == str(tmp_path / "w.pt") and window.models.dialog is None
    window.run(InputSpec(kind="ids", value="1 2 3 4"))
    finish(window, qtbot)
    assert "rnn.l0:h" in window.session.capture.channels
    assert any(
        "this one is rebuilt from the names and shapes of w.pt" in one.text for one in window.session.capture.logs
    )


def test_weights_that_are_not_rebuilt_are_shown_and_their_model_can_be_named(
    window: Window, qtbot: object, tmp_path: Path
) -> None:
    torch.save(nn.Linear(3, 4).state_dict(), tmp_path / "w.pt")
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=30_000)  # type: ignore[attr-defined]
    window.open_path(str(tmp_path / "w.pt"))
    qtbot.waitUntil(lambda: window.session.capture is not None, timeout=60_000)  # type: ignore[attr-defined]
    finish(window, qtbot)
    assert window.session.loaded.kind == "weights" and window.models.dialog is None
    assert "nothing of it could be rebuilt" in window.rebuilt.line.whole and not window.input.go.isEnabled()
    window.rebuilt.name.click()
    dialog = window.models.dialog
    assert dialog.checkpoint.text() == str(tmp_path / "w.pt") and dialog.subject.text() == ""
    dialog.reject()


def test_the_dialog_of_a_model_shows_only_the_tensors(window: Window, qtbot: object, tmp_path: Path) -> None:
    torch.save(Tagger().state_dict(), tmp_path / "w.pt")
    window.settings.set_text("subject", "other.py:make")
    qtbot.waitUntil(lambda: window.session.catalog is not None, timeout=30_000)  # type: ignore[attr-defined]
    window.open_path(str(tmp_path / "w.pt"))
    dialog = window.models.dialog
    assert dialog.subject.text() == "other.py:make" and dialog.look.isEnabled()
    dialog.look.click()
    qtbot.waitUntil(lambda: window.session.capture is not None, timeout=60_000)  # type: ignore[attr-defined]
    finish(window, qtbot)
    assert window.session.loaded.kind == "weights" and "emb.weight:weights/values" in window.session.capture.channels


@pytest.mark.parametrize("model", ["", "other.py:make"])
def test_the_dialog_takes_a_checkpoint_without_a_model(window: Window, model: str, tmp_path: Path) -> None:
    window.models.ask(model, str(tmp_path / "w.pt"))
    load = window.models.dialog.load()
    assert (load.subject, load.checkpoint) == (
        (model, str(tmp_path / "w.pt")) if model else (str(tmp_path / "w.pt"), "")
    )
    window.models.dialog.reject()
