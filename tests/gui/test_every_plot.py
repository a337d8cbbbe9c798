"""Every plot of every panel, by the mouse: wheel, drag, box, double click and Ctrl+0 do in each what they do in any."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from every_channel import make_capture
from mouse import SHIFT, double_click, drag, point, wheel
from PySide6.QtWidgets import QApplication

from inspector.capture import Capture, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.base import Panel
from inspector.gui.panel.registry import ordered
from inspector.gui.widgets.plots.view import View, views_in

LEAST = 24
"""Pixels across that a plot has at least: bars beside a map are narrower, and no plots to move in."""
Ranges = tuple[tuple[float, float], tuple[float, float]]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Capture]:
    with open_capture(make_capture(tmp_path_factory.mktemp("every") / "a.inspect", 60, 6)) as opened:
        yield opened


def ranges(view: View) -> Ranges:
    (left, right), (low, high) = view.viewRange()
    return (left, right), (low, high)


def widths(view: View) -> tuple[float, float]:
    (left, right), (low, high) = ranges(view)
    return right - left, high - low


def same(first: Ranges, second: Ranges) -> bool:
    """To a tenth of a pixel: a margin for the width of lines is found step by step."""
    return all(np.allclose(a, b, rtol=0, atol=1e-4 * abs(a[1] - a[0])) for a, b in zip(first, second, strict=True))


def plots_of(panel: Panel) -> list[View]:
    """The plots that are seen, from the top."""
    port = panel.figure.viewport().rect()
    found = []
    for view in views_in(panel.figure.scene()):
        box = view.sceneBoundingRect()
        seen = port.contains(point(panel, view, 0.2, 0.2)) and port.contains(point(panel, view, 0.8, 0.8))
        if view.isVisible() and min(box.width(), box.height()) >= LEAST and seen:
            found.append(view)
    return sorted(found, key=lambda one: (one.sceneBoundingRect().top(), one.sceneBoundingRect().left()))


def faults_of(panel: Panel, number: int, put_back: Callable[[], object]) -> list[str]:
    """What a plot does otherwise than all others. Views are asked for anew: a panel may make them again. `put_back`
    undoes what clicks choose, so that the same numbers are drawn again."""
    found: list[str] = []
    put_back()
    start = ranges(plots_of(panel)[number])

    def view() -> View:
        QApplication.processEvents()
        return plots_of(panel)[number]

    def check(what: str, holds: bool) -> None:
        if not holds:
            found.append(f"{what}: {start} → {ranges(view())}")

    def whole_again(what: str) -> None:
        put_back()
        check(f"{what} shows everything again", same(ranges(view()), start) and view().held == [False, False])

    wheel(panel, point(panel, view(), 0.5, 0.5))
    x, y = widths(view())
    check("the wheel zooms x", x < start[0][1] - start[0][0])
    check("the wheel zooms y in planes only", (y < start[1][1] - start[1][0]) or not view().both)
    before = ranges(view())
    drag(panel, point(panel, view(), 0.6, 0.5), point(panel, view(), 0.4, 0.5))
    check("a drag to the left shows what was at the right", ranges(view())[0][0] > before[0][0])
    double_click(panel, point(panel, view(), 0.5, 0.5))
    whole_again("a double click")
    before = ranges(view())
    wheel(panel, point(panel, view(), 0.5, 0.5), SHIFT)
    check("with Shift the wheel zooms y", widths(view())[1] < before[1][1] - before[1][0])
    panel.reset_view()
    whole_again("Ctrl+0")
    drag(panel, point(panel, view(), 0.3, 0.3), point(panel, view(), 0.7, 0.7), SHIFT)
    x, y = widths(view())
    check("a box zooms both", x < start[0][1] - start[0][0] and y < start[1][1] - start[1][0])
    double_click(panel, point(panel, view(), 0.5, 0.5))
    whole_again("a double click after a box")
    return found


@pytest.mark.parametrize("key", [key for key, _ in ordered()])
def test_every_plot_is_moved_in_alike(capture: Capture, key: str) -> None:
    stage = Stage(capture, (1100, 760))
    try:
        panel: Any = stage.panel(key)
        if key == "units":
            panel._set_range(2, 5)  # a drag that begins in the range moves that
        stage.cursor.move(step=20, unit=2)
        before = stage.cursor.position

        def put_back() -> None:
            stage.cursor.fix(False)
            stage.cursor.move(step=before.step, unit=before.unit, head=before.head, key=before.key, place=before.place)
            QApplication.processEvents()

        put_back()
        if panel.state != "figure":
            pytest.skip(f"nothing of it is in this capture: {key}")
        faults = [
            f"plot {number} ({view.parentItem().titleLabel.text!r}): {fault}"
            for number, view in enumerate(plots_of(panel))
            for fault in faults_of(panel, number, put_back)
        ]
        assert not faults, "\n".join(faults)
    finally:
        stage.close()
