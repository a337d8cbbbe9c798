"""A panel is made and drawn in two turns: keys, mouse and timers are answered between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import opened
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from inspector.capture import Writer
from inspector.gui.panels.gates import Gates
from inspector.gui.window.main_window import Window
from inspector.records import Channel, Frame, Page, RunStart, RunStop


@pytest.fixture
def window(qtbot: Any, a_capture: Path) -> Iterator[Window]:
    with opened(qtbot) as made:
        made.open_capture(str(a_capture))
        made.tick()
        yield made


def test_a_timer_comes_between_making_a_panel_and_drawing_it(
    window: Window, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    real = Gates.redraw
    monkeypatch.setattr(Gates, "redraw", lambda self: (told.append("drawn") if self.capture else None, real(self))[1])
    timer = QTimer(interval=0, singleShot=True)
    timer.timeout.connect(lambda: told.append("answered"))
    timer.start()
    window.docking.show_panel("gates")
    QApplication.processEvents()  # Qt tells of a dock that has come to the front
    gates = window.panels.made["gates"]
    qtbot.waitUntil(lambda: not gates.stale)
    assert told == ["answered", "drawn"] and gates.state == "figure"


def test_until_it_is_drawn_it_is_blank_and_whoever_asks_gets_it_drawn(window: Window, qapp: QApplication) -> None:
    window.docking.show_panel("health")
    window.panels.make("health")
    health = window.panels.made["health"]
    if health.stale:
        assert health.state == "blank"
    assert window.panels["health"].state != "blank" and not health.stale
    beside = next(
        key for key, dock in window.docks.items() if dock in window.tabifiedDockWidgets(window.docks["health"])
    )
    window.docking.show_panel(beside)
    for _ in range(20):
        qapp.processEvents()
    assert not health.on_screen, "what is behind another is not on screen, whether its turn came or not"


def test_what_was_behind_the_overview_is_drawn_after_events_once_that_is_left(
    window: Window, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.docking.show_panel("gates")
    qtbot.waitUntil(lambda: window.panels.made["gates"].state == "figure")
    window.docking.show_panel("gradients")
    qtbot.waitUntil(lambda: {"gates", "gradients"} <= window.docking.seen)
    window.docking.show_panel("overview")
    qtbot.waitUntil(lambda: window.docking.enlarged == "overview")
    below = window.panels.made["gradients"]
    qtbot.waitUntil(lambda: not below.on_screen)
    below.stale = True
    told: list[str] = []
    real_restore, real_redraw = window.docking.restore, below.redraw
    monkeypatch.setattr(window.docking, "restore", lambda: (real_restore(), told.append("rows")))
    monkeypatch.setattr(below, "redraw", lambda: (told.append("drawn"), real_redraw()))
    window.docks["gates"].raise_()  # as a click at its tab
    qtbot.waitUntil(lambda: not window.docking.enlarged and below.on_screen and not below.stale)
    assert told[:2] == ["rows", "drawn"] and below.state == "figure"


THOUSANDS, LARGE = (700, 4, 2), (40, 1_024, 64)
"""(pages, steps of each, units) of a training that committed often, and of a run of many steps."""


def a_long_capture(path: Path, pages: int, steps: int, units: int) -> Path:
    state = Channel(name="rnn:h", kind="gate", dims=("step", "unit"), shape=(None, units), title="h")
    with Writer(path, RunStart(run="long", title="long")) as writer:
        writer.write(Frame(index=0))
        writer.write(state)
        for number in range(pages):
            values = np.full((steps, units), number / pages, np.float32)
            writer.write(Page(state.name, 0, (steps * number, 0), values))
        writer.write(RunStop("done"))
    return path


@pytest.mark.parametrize("size", [THOUSANDS, LARGE], ids=["thousands of pages", "large pages"])
def test_a_panel_that_comes_on_screen_reads_much_between_events(
    window: Window, qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int, int]
) -> None:
    window.docking.show_panel("gates")
    gates = window.panels["gates"]
    window.docking.show_panel("states")
    qtbot.waitUntil(lambda: not gates.on_screen)
    window.open_capture(str(a_long_capture(tmp_path / "long.inspect", *size)))
    qtbot.waitUntil(lambda: window.session.capture is not None and window.session.capture.path.name == "long.inspect")
    monkeypatch.setattr("inspector.gui.panel.reading_ahead.SLICE_SECONDS", 0.0)
    read: list[int] = []
    real = type(gates).read_some
    monkeypatch.setattr(
        type(gates), "read_some",
        lambda self: (real(self), read.append(self.capture.unread("rnn:h", 0)))[0] if self.key == "gates" else real(self),
    )  # fmt: skip
    window.docking.show_panel("gates")
    assert gates.state == "blank", "no picture of the capture before is seen meanwhile"
    qtbot.waitUntil(lambda: gates.state == "figure" and not gates.stale)
    assert len(read) > 10 and read == sorted(read, reverse=True), read
    qtbot.waitUntil(gates.updatesEnabled)


def test_what_is_asked_of_a_panel_that_waits_for_its_turn_is_done_at_once(
    window: Window, qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.gui.panel.drawn_when_seen.TURN_MS", 60_000)
    window.docking.show_panel("gates")
    made = window.panels.made["gates"]
    assert made.state == "blank" and not made.on_screen
    asked = window.panels["gates"]
    assert asked is made and asked.on_screen and not asked.stale and asked.state == "figure"
    drawn: list[bool] = []
    asked.drawn.connect(lambda: drawn.append(True))
    asked.looking.move(frame=0, step=1)
    asked.draw_if_seen()
    assert drawn, "and not when its turn would have come"
