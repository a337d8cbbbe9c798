"""Boxes of one width are where numpy would put them, and a sequence without names that grows costs nothing for each
of its steps."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent

from inspector.gui.state.cursor import Cursor
from inspector.gui.widgets.even_edges import EvenEdges
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.widgets.token_strip import TokenStrip

UNPRESSED = (Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False)
"""Of a turn of the wheel."""


@pytest.mark.parametrize(("boxes", "width"), [(0, 1), (0, 9), (1, 1), (1, 20), (7, 1), (13, 8)])
def test_even_edges_are_those_of_a_list(boxes: int, width: int) -> None:
    edges, listed = EvenEdges(boxes, width), np.arange(boxes + 1) * width
    assert list(edges) == listed.tolist() and len(edges) == len(listed)
    assert [edges[-n] for n in range(1, boxes + 2)] == listed[::-1].tolist()
    for x in range(-3, boxes * width + 4):
        for side in ("left", "right"):
            assert edges.searchsorted(x, side=side) == np.searchsorted(listed, x, side=side), (x, side)
    for wrong in (boxes + 1, -boxes - 2):
        with pytest.raises(IndexError, match="edge"):
            edges[wrong]


def test_a_strip_without_names_takes_no_memory_for_its_steps(qtbot: object) -> None:
    strip = TokenStrip(Cursor(), LIGHT)
    qtbot.addWidget(strip)
    strip.resize(400, 30)
    strip.set_sequence((), 10)
    tracemalloc.start()
    for steps in (5_000_000, 5_000_128):
        strip.set_sequence((), steps)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1_000_000, f"{most} bytes for two steps of growth"
    strip.cursor_.set_length(5_000_128)
    strip.cursor_.move(step=4_000_000)
    assert strip.step_at(0) <= 4_000_000 <= strip.step_at(399), "what the cursor is at is in view"
    strip.grab()


def test_the_cursor_stays_in_view_in_a_strip_that_gets_narrower(qtbot: object) -> None:
    """A session was opened with a wider bar at the left than it was saved with: the strip ended before its cursor."""
    strip = TokenStrip(Cursor(), LIGHT)
    qtbot.addWidget(strip)
    strip.resize(400, 30)
    strip.show()
    strip.set_sequence(tuple("abcdefghij" * 20), 200)
    strip.cursor_.set_length(200)
    strip.cursor_.move(step=139)
    for width in (330, 150, 40):
        strip.resize(width, 30)
        assert strip.step_at(0) < 139 < strip.step_at(width - 1)
    strip.resize(200, 30)
    turn = QWheelEvent(QPointF(9, 9), QPointF(9, 9), QPoint(), QPoint(0, 9999), *UNPRESSED)
    strip.wheelEvent(turn)
    strip.resize(150, 30)
    assert strip.step_at(0) == 0, "the user looks at another place"
