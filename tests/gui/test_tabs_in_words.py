"""Programs that read the screen are told that a pale tab has nothing to show: nothing is told by a colour alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from opened import opened
from PySide6.QtGui import QAccessible
from pytestqt.qtbot import QtBot

from inspector.capture import Writer
from inspector.gui.window.docking.panel_tabs import NOTHING
from inspector.gui.window.main_window import Window
from inspector.records import ANSWER_DOMAIN, Axis, Channel, Frame, Page, RunStart, RunStop


def written(path: Path) -> Path:
    """A run that has states and nothing else."""
    state = np.zeros((9, 3), np.float32)
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Channel(name="l:h", kind="state", dims=("step", "unit"), shape=state.shape, title="h"))
        writer.write(Page("l:h", 0, (0, 0), state))
        writer.write(RunStop("done"))
    return path


def along(path: Path, domain: str) -> Path:
    """A run whose attention is along one axis alone."""
    weights = np.full((2, 5, 5), 0.2, np.float32)
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Axis(name=domain, title=domain, length=5))
        domains = dict.fromkeys(("query", "key"), domain)
        dims = ("head", "query", "key")
        writer.write(
            Channel(name="a:attention", kind="attention", dims=dims, shape=weights.shape, title="a", domains=domains)
        )
        writer.write(Page("a:attention", 0, (0, 0, 0), weights))
        writer.write(RunStop("done"))
    return path


def shows(window: Window, path: Path) -> bool:
    """Whether a capture is the one that is shown."""
    return window.session.capture is not None and window.session.capture.path == path


def test_a_tab_is_not_pale_where_the_run_before_had_its_maps_along_another_axis(qtbot: QtBot, tmp_path: Path) -> None:
    first, then = along(tmp_path / "a.inspect", ANSWER_DOMAIN), along(tmp_path / "b.inspect", "step")
    with opened(qtbot, background=False, overview=True) as window:
        window.open_path(str(first))
        qtbot.waitUntil(lambda: window.session.capture is not None, timeout=20_000)
        window.docking.show_panel("attention")
        panel = window.panels["attention"]
        qtbot.waitUntil(lambda: panel.state == "figure", timeout=20_000)
        for path in (then, first, then):
            window.open_path(str(path))
            qtbot.waitUntil(partial(shows, window, path), timeout=20_000)
            assert not panel.on_screen and panel.stale
            window.docking.label_tabs()
            assert "attention" not in window.docking.tabs.pale


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
