"""Another theme: what is on screen has it at once, panels behind others in their turn, and nothing keeps the old one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyqtgraph as pg
import pytest
from opened import opened
from PySide6.QtGui import QBrush, QImage, QPalette, QPen
from PySide6.QtWidgets import QApplication, QWidget

from inspector.gui.widgets.theme import DARK, LIGHT, Theme
from inspector.gui.window.main_window import Window

MADE = ("gates", "lags", "outputs", "states")
"""The last of them is in front."""


@pytest.fixture
def window(qtbot: Any, qapp: QApplication, a_capture: Path) -> Iterator[Window]:
    before = QPalette(qapp.palette())
    with opened(qtbot, background=False) as made:
        made.resize(1280, 800)
        made.choose_theme("Light")
        made.open_capture(str(a_capture))
        for key in MADE:
            made.docking.show_panel(key)
            qtbot.wait(50)
        yield made
    qapp.setPalette(before)


def pixels(widget: QWidget) -> np.ndarray:
    """Its picture, (height, width, 3)."""
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine() // 4, 4)
    return rows[:, : image.width(), :3].astype(int)


def change(window: Window, qtbot: Any, name: str) -> None:
    """Another theme, until every panel has it."""
    window.choose_theme(name)
    qtbot.waitUntil(lambda: {panel.theme for panel in window.panels.made.values()} == {window.theme}, timeout=20_000)
    qtbot.wait(50)


def test_panels_behind_others_have_it_in_their_turn(window: Window, qtbot: Any) -> None:
    behind = {key: panel for key, panel in window.panels.made.items() if not panel.on_screen}
    assert {"gates", "outputs"} <= set(behind)
    window.choose_theme("Dark")
    front = window.panels.made["states"]
    assert front.on_screen and front.theme is DARK
    assert all(panel.theme is LIGHT for panel in behind.values())
    assert window.panels["gates"].theme is DARK, "whoever asks for it sees it as it is"
    qtbot.waitUntil(lambda: all(panel.theme is DARK for panel in behind.values()))


def test_a_panel_that_is_seen_first_has_it_first(window: Window, qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window.dressing, "_next", lambda: None)
    window.dressing._timer.stop()
    window.choose_theme("Dark")
    window.dressing._timer.stop()
    window.docking.show_panel("outputs")
    qtbot.waitUntil(lambda: window.panels.made["outputs"].on_screen)
    assert window.panels.made["outputs"].theme is DARK and window.panels.made["gates"].theme is LIGHT


def test_two_changes_in_a_row_end_with_the_second(window: Window, qtbot: Any) -> None:
    window.choose_theme("Dark")
    change(window, qtbot, "Light")
    assert {panel.theme for panel in window.panels.made.values()} == {LIGHT}


def test_there_and_back_every_panel_looks_as_before(window: Window, qtbot: Any) -> None:
    """Also the parts that a style sheet paints: bars, tabs, headers, lists, fields."""
    before = {}
    for key in MADE:
        window.docking.show_panel(key)
        qtbot.wait(100)
        before[key] = pixels(window)
    change(window, qtbot, "Dark")
    dark = pixels(window)
    assert (dark.sum(-1) > 3 * 225).mean() < 0.1 < (before[MADE[-1]].sum(-1) > 3 * 225).mean()
    change(window, qtbot, "Light")
    for key in MADE:
        window.docking.show_panel(key)
        qtbot.wait(100)
        assert (pixels(window) != before[key]).any(-1).mean() < 0.002, key


def test_a_window_that_was_switched_looks_as_one_that_began_so(window: Window, qtbot: Any, a_capture: Path) -> None:
    change(window, qtbot, "Dark")
    switched, docks = pixels(window), window.saveState()
    window.close()
    with opened(qtbot, background=False) as again:
        again.resize(1280, 800)
        assert again.theme is DARK
        again.open_capture(str(a_capture))
        for key in MADE:
            again.docking.show_panel(key)
            qtbot.wait(50)
        again.restoreState(docks)
        qtbot.wait(300)
        assert (pixels(again) != switched).any(-1).mean() < 0.02


def colours(scene: pg.GraphicsScene) -> set[str]:
    """Of the pens and brushes of what a plot draws."""
    found = set()
    for item in (item for item in scene.items() if item.isVisible()):
        options = getattr(item, "opts", {})
        held = [options.get(name) for name in ("pen", "brush", "symbolBrush", "fillBrush", "symbolPen")]
        held += [item.pen] if isinstance(item, pg.InfiniteLine) else []
        found |= {one.color().name() for one in held if isinstance(one, QPen | QBrush) and one.style()}
    return found


def test_nothing_that_is_drawn_keeps_a_colour_of_the_other_theme(window: Window, qtbot: Any) -> None:
    def of(theme: Theme) -> set[str]:
        named = (getattr(theme, field.name) for field in fields(theme) if field.name not in ("dark", "series"))
        return {*named, *theme.series}

    only = {LIGHT.dark: of(LIGHT) - of(DARK), DARK.dark: of(DARK) - of(LIGHT)}
    for key in window.panels.kinds:
        window.docking.show_panel(key)
        qtbot.wait(20)
    change(window, qtbot, "Dark")
    drawn = {key: colours(panel.figure.scene()) for key, panel in window.panels.items()}
    assert sum(bool(found & only[True]) for found in drawn.values()) > 15
    assert {key: found & only[False] for key, found in drawn.items() if found & only[False]} == {}
