"""A window of 1024 × 600: what gives way, and what stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from inspector.gui.window.main_window import Window
from inspector.workspace.trainings import list_trainings
from tests.support.opened import opened


@pytest.fixture
def window(qtbot: Any) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        yield made


def test_a_training_with_its_timeline_fits_a_low_window(window: Window, qtbot: Any) -> None:
    training = next(one for one in list_trainings() if one.name.endswith("healthy"))
    window.resize(1280, 800)
    window.open_capture(str(training.capture))
    view = window.timeline.view
    qtbot.waitUntil(lambda: window.timeline_row.isVisible() and len(view.lanes) == 3, timeout=10_000)
    assert len(view.data.frames) > 2 and window.frames.isVisible()
    high = view.sizeHint().height()
    window.resize(1024, 600)
    qtbot.waitUntil(lambda: len(view.lanes) < 3, timeout=3000)
    window.resize(1024, 600)  # what gave way made the least height smaller
    qtbot.waitUntil(lambda: (window.width(), window.height()) == (1024, 600), timeout=3000)
    qtbot.wait(50)
    assert len(view.lanes) == 1 and view.sizeHint().height() < high
    assert not window.frames.isVisible() and view.isVisible(), "frames are chosen on the timeline"
    parts = [window.input, window.timeline_row, window.statusBar(), window.docks["states"], window.docks["jacobians"]]
    places = [part.rect().translated(part.mapTo(window, part.rect().topLeft())) for part in parts]
    for at, one in enumerate(places):
        assert window.rect().contains(one) and not any(one.intersects(other) for other in places[at + 1 :])
    window.resize(1280, 800)
    qtbot.waitUntil(lambda: len(view.lanes) == 3 and window.frames.isVisible(), timeout=3000)
