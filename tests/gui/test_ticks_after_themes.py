"""Axes keep their ticks and numbers when the theme changes, as often as it does: what is painted is counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyqtgraph as pg
import pytest
from opened import opened
from PySide6.QtWidgets import QApplication

from inspector.gui.window.main_window import Window

PANELS = ("states", "lags")
CONTRAST = 90
"""By how much a pixel differs from the ground to be ink, summed over red, green and blue."""


@pytest.fixture
def window(qtbot: Any, qapp: QApplication, a_capture: Path) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        made.resize(1280, 800)
        made.open_capture(str(a_capture))
        for key in PANELS:
            made.docking.show_panel(key)
        qtbot.wait(300)
        yield made


def ink(view: pg.GraphicsView, axis: pg.AxisItem) -> int:
    """Pixels of an axis that are not of its ground."""
    place = view.mapFromScene(axis.mapRectToScene(axis.boundingRect())).boundingRect()
    image = view.grab(place).toImage().convertToFormat(view.grab().toImage().Format.Format_RGB32)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine() // 4, 4)
    pixels = rows[:, : image.width(), :3].astype(int)
    ground = np.median(pixels.reshape(-1, 3), axis=0)
    return int((np.abs(pixels - ground).sum(-1) > CONTRAST).sum())


def axes(window: Window) -> dict[tuple[str, int, str], int]:
    found = {}
    for key in PANELS:
        panel: Any = window.panels.get(key)
        for view in panel.findChildren(pg.GraphicsView):
            shown = [item for item in view.scene().items() if isinstance(item, pg.AxisItem) and item.isVisible()]
            for number, axis in enumerate(shown):
                found[key, number, axis.orientation] = ink(view, axis)
    return found


def test_every_axis_has_as_much_ink_after_every_switch(window: Window, qtbot: Any) -> None:
    themes = {name: window.findChild(object, f"action-{name}") for name in ("light", "dark")}
    before: dict[str, dict[tuple[str, int, str], int]] = {}
    for number in range(6):
        name = ("dark", "light")[number % 2]
        themes[name].trigger()
        qtbot.wait(60)
        now = axes(window)
        assert len(now) >= 6 and min(now.values()) >= 0
        first = before.setdefault(name, now)
        assert sum(count > 40 for count in first.values()) >= 6
        assert {axis: count >= 0.8 * first[axis] for axis, count in now.items()} == dict.fromkeys(now, True)
