"""Programs that read the screen are told that a pale tab has nothing to show: nothing is told by a colour alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from opened import opened
from PySide6.QtGui import QAccessible
from pytestqt.qtbot import QtBot

from inspector.capture import Writer
from inspector.gui.window.panel_tabs import NOTHING
from inspector.records import Channel, Frame, Page, RunStart, RunStop


def written(path: Path) -> Path:
    """A run that has states and nothing else."""
    state = np.zeros((9, 3), np.float32)
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Channel(name="l:h", kind="state", dims=("step", "unit"), shape=state.shape, title="h"))
        writer.write(Page("l:h", 0, (0, 0), state))
        writer.write(RunStop("done"))
    return path


def test_what_is_pale_is_said(qtbot: QtBot, tmp_path: Path) -> None:
    with opened(qtbot, background=False) as window:
        window.resize(1600, 900)
        window.open_path(str(written(tmp_path / "a.inspect")))
        said: dict[str, str] = {}

        def read() -> bool:
            for bar in window.docking.tabs.bars():
                told = QAccessible.queryAccessibleInterface(bar)
                for place in range(bar.count()):
                    said[bar.tabText(place)] = told.child(place).text(QAccessible.Text.Name)
            return said.get("Attention") == f"Attention, {NOTHING}" and said.get("States") == "States"

        qtbot.waitUntil(read, timeout=20_000)
        assert said["Gates"] == f"Gates, {NOTHING}" and said["Ask"] == "Ask"
