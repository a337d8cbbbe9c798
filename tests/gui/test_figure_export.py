"""File ▸ Export figures: the dialog's choices are options of the command, which draws in a process of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from captures import numbers, write
from opened import opened
from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog

from inspector.gui.dialogs.export_dialog import FIGURES, STEPS, Chosen, ExportDialog
from inspector.gui.window.own_command import told_by

PANELS = [("states", "States"), ("lags", "Lags")]


def test_the_fields_become_options_of_the_command(qtbot: Any) -> None:
    dialog = ExportDialog(PANELS, "lags", 1, (0, 39))
    qtbot.addWidget(dialog)
    assert [dialog.what.itemText(i) for i in range(dialog.what.count())] == [FIGURES, STEPS], "one frame is no training"
    assert dialog.chosen().panels == ("lags",) and not dialog.chosen().every_frame and not dialog.chosen().everything
    dialog.every_panel.setChecked(True)
    dialog.size_text.setCurrentText("85x60mm")
    dialog.theme.setCurrentText("Paper (white)")
    dialog.font_size.setValue(7)
    dialog.ranged.setChecked(True)
    dialog.first.setValue(3)
    dialog.last.setValue(8)
    dialog.numbers.setCurrentText("CSV")
    words = " ".join(dialog.chosen().words)
    assert dialog.chosen().panels == ("states", "lags") and dialog.chosen().everything
    for said in ("--size 85x60mm", "--theme paper", "--font-size 7", "--steps 3:9", "--numbers csv", "--format png"):
        assert said in words
    dialog.what.setCurrentText(STEPS)
    assert not dialog.go.isEnabled() and "one panel" in dialog.problem.text()
    dialog.panels.item(0).setCheckState(Qt.CheckState.Unchecked)
    assert dialog.go.isEnabled() and "--animate steps" in " ".join(dialog.chosen().words)
    dialog.last.setValue(1)
    assert not dialog.go.isEnabled() and "before the first" in dialog.problem.text()


@pytest.mark.process
def test_figures_are_drawn_beside_the_window_and_can_be_cancelled(
    tmp_path: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path / "f"))
    shown: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: shown.append(url.toLocalFile()))
    with opened(qtbot, background=False) as window:
        export = window._menus.exporting
        told: list[str] = []
        monkeypatch.setattr(window, "fail", told.append)
        export.ask()
        assert told == ["There is nothing to export: open a capture or a log, or run a model first."]
        all_of_it = Chosen(FIGURES, ("states", "lags"), False, "png", (), everything=True)
        window.open_capture(str(write(tmp_path / "a.inspect", numbers())))
        assert "--all-panels" in export._words(all_of_it, "x"), "what shows nothing after all is no failure"
        assert export._words(replace(all_of_it, everything=False), "x")[2:4] == ["--panels", "states,lags"]
        export.ask()
        assert export.dialog is not None and export.dialog.chosen_panels() == ("states",)
        export.dialog.accept()
        assert export.process is not None and export.progress is not None
        qtbot.waitUntil(lambda: export.process is None, timeout=60_000)
        assert [path.name for path in (tmp_path / "f").iterdir()] == ["states.png"]
        assert window.status.sentence.whole == f"Exported {tmp_path / 'f'}: 1 figure"
        window.status.folder.click()
        assert shown == [str(tmp_path / "f")]
        export.ask()
        assert export.dialog is not None
        export.dialog.accept()
        process = export.process
        assert process is not None and export.progress is not None
        ended: list[Any] = []
        process.finished.connect(lambda *_: ended.append(1))
        export.progress.canceled.emit()  # as its button does
        assert export.process is None and "cancelled" in window.status.sentence.whole
        qtbot.waitUntil(lambda: bool(ended), timeout=10_000)
        assert not told[1:], "a process that was ended is no failure"


def test_what_a_command_says_of_its_progress_is_no_part_of_what_it_told() -> None:
    said = b"  10 s: the capture is opened\n  20 s: 7 of 9, 12 % of this run\nLags has nothing\n  to show: 3 s: no.\n"
    process: Any = SimpleNamespace(readAllStandardError=lambda: QByteArray(said))
    assert told_by(process) == "Lags has nothing\n  to show: 3 s: no."
