"""Saving from the window: one question where something is damaged, and the status row says what is where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captures import flip, numbers, write
from opened import opened
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox, QProgressDialog

from inspector.gui.export.figure_files import save_data, save_figure
from inspector.gui.window.saving import LEFT, export_all, save_panel

KINDS = {save_figure: "PNG (*.png)", save_data: "NPZ (*.npz)"}


@pytest.mark.parametrize("save", KINDS)
def test_what_is_damaged_is_saved_only_when_that_is_agreed(
    tmp_path: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch, save: Any
) -> None:
    whole, harmed = write(tmp_path / "a.inspect", numbers()), write(tmp_path / "b.inspect", numbers())
    flip(harmed, 2)
    asked: list[str] = []
    answer = [""]

    def reply(box: QMessageBox) -> int:
        asked.append(box.text())
        next(button for button in box.buttons() if (button.text() == LEFT) is bool(answer[0])).click()
        return 0

    monkeypatch.setattr(QMessageBox, "exec", reply)
    suffix = KINDS[save].partition("*")[2].rstrip(")")
    target = tmp_path / f"x{suffix}"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), KINDS[save]))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path / "figures"))
    (tmp_path / "figures").mkdir()
    with opened(qtbot) as window:
        panel = window.panels["states"]
        window.open_capture(str(whole))
        qtbot.waitUntil(lambda: panel.state == "figure")
        save_panel(window, panel, "states", save, KINDS[save])
        assert target.exists() and not asked
        assert window.status.sentence.whole == f"Saved States to {target}."
        target.unlink()
        export_all(window)
        drawn = list((tmp_path / "figures").iterdir())
        count = f"{len(drawn)} figure{'s' if len(drawn) > 1 else ''}"
        assert drawn and window.status.sentence.whole == f"Saved {count} to {tmp_path / 'figures'}."
        for path in drawn:
            path.unlink()
        window.open_capture(str(harmed))
        qtbot.waitUntil(lambda: panel.capture is not None and panel.capture.path == harmed)
        panel.redraw()
        save_panel(window, panel, "states", save, KINDS[save])
        assert not target.exists() and len(asked) == 1 and "steps 8–15" in asked[0]
        assert window.status.sentence.whole == "States was not saved: some of it is damaged."
        export_all(window)
        assert not list((tmp_path / "figures").iterdir()) and len(asked) == 2
        answer[0] = "yes"
        save_panel(window, panel, "states", save, KINDS[save])
        assert len(asked) == 3
        assert window.status.sentence.whole == f"Saved States to {target}, without what is damaged."
        if save is save_data:
            assert np.load(target)["rnn.l0:h_missing"].sum() == 32
        export_all(window)
        assert (tmp_path / "figures" / "states.png").exists() and "figure" in window.status.sentence.whole


def test_figures_that_the_window_draws_itself_have_progress_and_can_be_cancelled(
    tmp_path: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While two runs were compared the window neither answered nor was painted until all figures were drawn."""
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path / "f"))
    (tmp_path / "f").mkdir()
    texts: list[str] = []

    def cancel_at(word: str, count: int) -> None:
        def look() -> None:
            dialog = QApplication.activeModalWidget()
            if isinstance(dialog, QProgressDialog):
                texts.append(dialog.labelText())
                if sum(text.startswith(word) for text in set(texts)) == count:
                    dialog.cancel()

        watch.timeout.disconnect()
        watch.timeout.connect(look)

    with opened(qtbot) as window:
        watch = QTimer(window, interval=0)
        watch.timeout.connect(texts.clear)
        window.open_capture(str(write(tmp_path / "a.inspect", numbers())))
        qtbot.waitUntil(lambda: window.panels["states"].state == "figure")
        watch.start()
        cancel_at("Looking", 3)
        export_all(window)
        said = window.status.sentence.whole
        assert said == f"The export was cancelled; 0 figures of it are in {tmp_path / 'f'}."
        assert len(set(texts)) == 3 and not list((tmp_path / "f").iterdir())
        cancel_at("", 0)
        export_all(window)
        watch.stop()
    drawn = len(list((tmp_path / "f").iterdir()))
    assert drawn and len({text for text in texts if text.startswith("Drawing")}) == drawn
