"""What is behind other tabs is not drawn until it is seen, and panels side by side come one in each turn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compared import STATE, capture_of, frame_of
from opened import opened
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from inspector.gui.panel.base import Panel
from inspector.gui.window.comparing.compare_bar import SIDES
from inspector.gui.window.main_window import Window


@pytest.fixture
def window(qtbot: Any, qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setattr("inspector.gui.state.session.Session.start_worker", lambda _session: None)
    with opened(qtbot, background=False) as made:
        yield made


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The key of each panel that is drawn, as it is drawn."""
    found: list[str] = []
    plain = Panel.redraw

    def noted(panel: Panel) -> None:
        found.append(panel.key)
        plain(panel)

    monkeypatch.setattr(Panel, "redraw", noted)
    return found


def test_steps_in_view_are_not_read_for_what_is_behind_others(
    window: Window, a_capture: Path, qapp: QApplication, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.open_capture(str(a_capture))
    for key in ("outputs", "units", "spectra", "jacobians", "states"):
        window.docking.show_panel(key)
        qapp.processEvents()
    behind = [window.panels.made[key] for key in ("outputs", "units", "spectra") if window.panels.has_data(key)]
    assert behind and not any(panel.on_screen for panel in behind)
    read: list[str] = []
    for kind in {type(panel) for panel in behind}:
        plain = kind.update_contents
        monkeypatch.setattr(kind, "update_contents", lambda panel, do=plain: (read.append(panel.key), do(panel)))
    for name in ("_draw_together", "_draw_fan"):
        for kind in {type(panel) for panel in behind if hasattr(panel, name)}:
            monkeypatch.setattr(kind, name, lambda panel: read.append(panel.key))
    front = behind[0]
    front.steps.set(1.0, 4.0)
    qapp.processEvents()
    assert not read and all(panel.stale for panel in behind)
    window.docking.show_panel(front.key)
    qtbot.waitUntil(lambda: front.key in read)
    assert front.plots[0].vb.viewRange()[0] == [1.0, 4.0] and not front.stale


def test_only_what_is_on_screen_is_drawn_and_the_rest_when_it_is_seen(
    window: Window, tmp_path: Path, drawn: list[str], qapp: QApplication, qtbot: Any
) -> None:
    paths = [capture_of(tmp_path / f"{n}.inspect", frame_of(n)) for n in (1, 2)]
    window.open_capture(str(paths[0]))
    for key in ("gates", "outputs", "states"):
        window.docks[key].raise_()
        qapp.processEvents()
    behind = {key for key in window.panels.made if key not in window.docking.seen}
    assert {"gates", "outputs"} <= behind and "states" not in behind
    drawn.clear()
    window.open_capture(str(paths[1]))
    window.looking.move(step=1)
    window.choose_theme("Dark")
    qtbot.waitUntil(lambda: "states" in drawn)
    assert not behind & set(drawn)
    assert all(window.panels.made[key].stale for key in behind)
    drawn.clear()
    window.docks["outputs"].raise_()
    qtbot.waitUntil(lambda: "outputs" in drawn)
    assert not window.panels.made["outputs"].stale and "gates" not in drawn
    assert window.panels["gates"].stale is False and "gates" in drawn, "whoever asks for it sees it as it is"


def test_a_panel_that_comes_back_shows_the_capture_and_the_step_of_now(
    window: Window, tmp_path: Path, qapp: QApplication
) -> None:
    paths = [capture_of(tmp_path / f"{n}.inspect", frame_of(n)) for n in (1, 2)]
    window.open_capture(str(paths[0]))
    window.docks["states"].raise_()
    qapp.processEvents()
    panel: Any = window.panels.made["states"]
    window.docks["outputs"].raise_()
    qapp.processEvents()
    window.open_capture(str(paths[1]))
    window.looking.move(step=2, unit=1)
    window.docks["states"].raise_()
    qapp.processEvents()
    assert panel.state == "figure" and panel.row.plot._line.value() == 2
    np.testing.assert_array_equal(panel.data()[STATE.name], window.session.capture.array(STATE.name))  # type: ignore[union-attr]


def test_panels_beside_others_are_made_one_in_each_turn(
    window: Window, tmp_path: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [capture_of(tmp_path / f"{n}.inspect", frame_of(n)) for n in (1, 2)]
    window.open_capture(str(paths[1]))
    qtbot.wait(50)
    turns, made = [0], []
    beat = QTimer(interval=0)
    beat.timeout.connect(lambda: turns.__setitem__(0, turns[0] + 1))
    beside = window.comparing.beside
    plain = beside._make
    monkeypatch.setattr(beside, "_make", lambda kind: (made.append((turns[0], kind.key)), plain(kind))[1])
    window.comparing.begin(str(paths[0]))
    window.compare.way.setCurrentIndex(window.compare.way.findData(SIDES))
    beat.start()
    window.compare.way.activated.emit(0)
    assert not made, "nothing is made in the click itself"
    seen = {key for key in window.panels.made if key in window.docking.seen}
    qtbot.waitUntil(lambda: set(beside.twins) == seen)
    beat.stop()
    assert len(seen) > 1 and len({turn for turn, _ in made}) == len(made) == len(seen)
    window.comparing.end()
    assert not beside.twins and not beside._next.isActive()
