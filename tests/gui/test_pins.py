"""Places that are held: the cursor fixed by a click, pins with their numbers beside each other, notes on units."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyqtgraph as pg
import pytest
from opened import opened
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.capture import notes, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.base import Panel, number
from inspector.gui.state.cursor import Cursor, Position
from inspector.gui.state.pins import MOST, Pin, pins_of
from inspector.gui.widgets.maps.pin_cells import PinCells
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.window.cursor_readout import briefly, side_by_side
from inspector.gui.window.docking.side_docks import Readout
from inspector.gui.window.main_window import Window
from inspector.records import Noted

LEFT, SHIFT = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def stage(a_capture: Path) -> Iterator[Stage]:
    with open_capture(a_capture) as capture:
        made = Stage(capture, (1200, 700))
        yield made
        made.close()


def on_screen(stage: Stage, key: str) -> Panel:
    panel = stage.panel(key)
    panel.hide()
    panel.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen, False)
    panel.show()
    QTest.qWait(20)
    return panel


def at(panel: Any, step: float, unit: float) -> QPoint:
    return panel.figure.mapFromScene(panel.row.plot.vb.mapViewToScene(QPointF(step, unit)))


def click(panel: Any, step: float, unit: float, keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.mouseClick(panel.figure.viewport(), LEFT, keys, at(panel, step, unit))
    QApplication.processEvents()


def here(stage: Stage) -> tuple[int | None, int | None]:
    return stage.cursor.position.step, stage.cursor.position.unit


def test_a_click_fixes_the_cursor_in_all_panels_and_escape_frees_it(stage: Stage) -> None:
    panel = on_screen(stage, "states")
    click(panel, 50, 3)
    assert stage.cursor.fixed and here(stage) == (50, 3)
    QTest.mouseMove(panel.figure.viewport(), at(panel, 120, 6))
    QTest.qWait(5)
    assert here(stage) == (50, 3)
    QTest.keyClick(panel, Qt.Key.Key_Right)
    assert here(stage) == (51, 3) and stage.cursor.fixed
    QTest.keyClick(panel, Qt.Key.Key_Escape)
    QTest.mouseMove(panel.figure.viewport(), at(panel, 121, 6))
    QTest.qWait(5)
    assert not stage.cursor.fixed and here(stage) == (121, 6)
    for _ in range(2):
        click(panel, 70, 2)
    assert not stage.cursor.fixed, "a second click frees it"


def test_shift_and_a_click_pin_a_place_whose_own_numbers_are_told(stage: Stage) -> None:
    panel, pins = on_screen(stage, "states"), pins_of(stage.cursor)
    for step, unit in ((20, 1), (90, 5)):
        click(panel, step, unit, SHIFT)
    click(panel, 150, 4)
    told = [dict(panel.readout_at(pin))[f"h[{s}, {u}]  rnn.l0"]
            for pin, (s, u) in zip(pins.all, ((20, 1), (90, 5)), strict=True)]  # fmt: skip
    state = stage.capture.array("rnn.l0:h")
    assert told == [number(state[20, 1]), number(state[90, 5])]
    assert panel.row.plot._pins.shown == ((20, 1), (90, 2)) == panel.trace._pins.shown
    pins.remove(1)
    assert panel.row.plot._pins.shown == ((90, 2),)


def test_numbers_of_pins_do_not_cover_each_other(stage: Stage) -> None:
    """In a narrow plot the boxes of two pins lay over each other: the number of the first could not be read."""
    panel = on_screen(stage, "states")
    for step in (96, 98, 100, 280):
        pins_of(stage.cursor).add(Position(frame=0, place="rnn.l0", step=step, unit=1))
    for width in (900, 420):
        panel.resize(width, 700)
        QTest.qWait(20)
        labels = [line.label for line in panel.trace._pins._lines]
        places = [label.mapRectToScene(label.boundingRect()).adjusted(1, 1, -1, -1) for label in labels]
        assert not [one for one, other in combinations(places, 2) if one.intersects(other)]
        assert labels[0].row == labels[3].row == 0 and labels[1].row > 0
        assert panel.trace.vb.sceneBoundingRect().bottom() >= max(place.bottom() for place in places)


def test_numbers_of_pins_are_whole_in_low_plots_and_stand_once_in_a_map(stage: Stage) -> None:
    panel = on_screen(stage, "states")
    panel.resize(900, 240)
    for step, unit in ((20, 1), (298, 30)):
        click(panel, step, unit, SHIFT)
    QTest.qWait(20)
    for plot in (panel.row.plot, panel.trace):
        box = plot.vb.sceneBoundingRect()
        labels = [line.label for line in plot._pins._lines]
        seen = [label for label in labels if label.isVisible()]
        assert len(labels) == 2 and len(seen) == (0 if plot is panel.row.plot else 2)
        for label in labels:
            place = label.mapRectToScene(label.boundingRect())
            assert box.top() - 1 <= place.top() < box.center().y(), "it hangs from the upper edge"
            assert box.left() <= place.left() + 1 and place.right() - 1 <= box.right()
    pins_of(stage.cursor).remove(1)
    stage.cursor.move(step=5, unit=None)
    pins_of(stage.cursor).add(stage.cursor.position)  # a step without a unit has its number at the line
    QTest.qWait(5)
    lines = panel.row.plot._pins
    told = {number: line.label.isVisible() for line, (_, number) in zip(lines._lines, lines.shown, strict=False)}
    assert sorted(told.values()) == [False, True]


def test_a_place_is_pinned_once_and_only_as_many_as_fit(qapp: QApplication) -> None:
    cursor = Cursor()
    pins = pins_of(cursor)
    assert "no step" in pins.add(cursor.position)
    for step in range(MOST):
        cursor.move(step=step)
        assert pins.add(cursor.position) == ""
        assert "already" in pins.add(Position(step=step, frame=3)), "its frame is the one that is shown"
    cursor.move(step=MOST)
    assert f"{MOST} places" in pins.add(cursor.position)
    pins.remove(2)
    assert pins.add(cursor.position) == "" and pins.along("step")[1] == (MOST, 2), "a free number is taken again"


def test_rows_of_readouts_stand_beside_each_other_by_what_they_are() -> None:
    cursor = [("h[3, 1]  l.0", "a"), ("c[3, 1]  l.0", "b"), ("h[3, 1]  l.1", "c")]
    pin = [("h[40, 2]  l.0", "d"), ("h[40, 2]  l.1", "e"), ("loss [40]", "f")]
    assert side_by_side(cursor, [pin]) == [
        ("h[…, …]  l.0", "a", "d"), ("c[3, 1]  l.0", "b", "–"), ("h[…, …]  l.1", "c", "e"), ("loss [40]", "–", "f"),
    ]  # fmt: skip
    assert side_by_side(cursor, []) == cursor


def test_names_beside_pins_are_without_what_differs_everywhere_and_the_place_of_all() -> None:
    rows = [("h[…, …]  l.0", "a", "d"), ("c[3, …]  l.0", "b", "e"), ("norm […]  l.0", "1", "2")]
    assert briefly(rows) == ([("h", "a", "d"), ("c[3, …]", "b", "e"), ("norm", "1", "2")], "l.0")
    assert briefly([*rows, ("h[…, …]  l.1", "x", "y")])[0][0][0] == "h  l.0", "places differ, so each has its own"
    alike = [("x […]  l", "1", "2"), ("x […, …]  l", "3", "4")]
    assert briefly(alike)[0] == [("x […]", "1", "2"), ("x […, …]", "3", "4")], "which would be the same name"
    assert briefly([("[…] to it: most", "1", "2")]) == ([("to it: most", "1", "2")], "")


@pytest.mark.parametrize("at", [(0.0, 0.0), (99.0, 31.0), (99.0, 0.0), (50.0, 16.0)])
def test_the_number_of_a_pinned_cell_is_whole_at_every_edge_of_its_map(qtbot: Any, at: tuple[float, float]) -> None:
    view = pg.GraphicsLayoutWidget()
    qtbot.addWidget(view)
    plot = StepPlot(None, LIGHT)
    view.addItem(plot)
    plot.vb.setRange(xRange=(-0.5, 99.5), yRange=(-0.5, 31.5), padding=0)
    view.resize(400, 110)
    view.show()
    qtbot.wait(20)
    cells = PinCells(plot)
    cells.show([(*at, 2)], LIGHT)
    qtbot.wait(20)
    number = cells._numbers[0]
    inside = plot.vb.mapRectToScene(plot.vb.boundingRect()).adjusted(-1, -1, 1, 1)
    assert inside.contains(number.mapRectToScene(number.boundingRect()))


def test_two_pins_leave_names_a_line_or_two_and_numbers_whole(qtbot: Any) -> None:
    table = Readout()
    qtbot.addWidget(table)
    pins = [Pin(number, Position(step=number)) for number in (1, 2)]
    share = "input gate i: left / right / graded saturation"
    rows = [("Frobenius norm / √S", "1.149", "0.9291", "1.037"), ("‖∂L/∂h‖", "1.718 nat", "9.37 nat", "9.627 nat"),
            (share, "0.04 / 0.9 / 0.04", "0.08 / 0.58 / 0.3", "0.03 / 0.75 / 0.21")]  # fmt: skip
    table.resize(384, 300)
    table.show()
    table.show_pins(pins, fixed=False)
    table.show_rows(rows)
    qtbot.wait(20)
    line = table.fontMetrics().lineSpacing()
    assert table.needs <= 384 and table.horizontalScrollBar().maximum() == 0, "as wide as the bar is at 1280 pixels"
    assert [round(table.rowHeight(row) / line) <= most for row, most in enumerate((2, 2, 3))] == [True] * 3
    assert all(table.fontMetrics().horizontalAdvance(row[1]) < table.columnWidth(1) for row in rows[:2])


# -- in the window


@pytest.fixture
def window(qtbot: Any) -> Iterator[Window]:
    with opened(qtbot, process=False, background=False) as made:
        yield made


def test_the_window_tells_pins_in_columns_and_keeps_notes_on_units(
    window: Window, qtbot: Any, a_capture: Path, tmp_path: Path
) -> None:
    path = tmp_path / "b.inspect"
    shutil.copytree(a_capture, path)
    window.open_path(str(path))
    qtbot.waitUntil(lambda: window.session.capture is not None and window.looking.length == 300)
    capture = window.session.capture
    assert capture is not None
    window.docking.show_panel("states")
    qtbot.waitUntil(lambda: window.panels.made["states"].state == "figure")
    window.looking.move(step=7, unit=2, place="rnn.l0")
    window.holding.pin()
    window.looking.move(step=11, unit=3)
    window.holding.bookmark()
    window.looking.move(step=30)
    window._read_out()
    table = window.readout
    rows = {table.item(i, 0).text(): [table.item(i, j).text() for j in (1, 2)] for i in range(table.rowCount())
            if table.item(i, 1).text()}  # fmt: skip
    state = capture.array("rnn.l0:h")
    told = [float(text) for text in rows["h"]]
    np.testing.assert_allclose(told, [state[30, 3], state[7, 2]], rtol=1e-3)
    assert table.horizontalHeaderItem(2).text() == "pin 1"
    assert notes(capture)[-1].where == Noted(frame=0, step=11, unit=3, place="rnn.l0")
    assert notes(capture)[-1].where.words.startswith("unit 3 of rnn.l0, step 11")
    with open_capture(path) as again:
        assert notes(again)[-1].where.unit == 3
    window.looking.move(unit=0)
    window.holding.next_note(1)
    assert (window.looking.position.step, window.looking.position.unit) == (11, 3)
    assert window.session.sentence == "Unit 3 of rnn.l0, step 11, frame 0: Bookmark"
    window.looking.fix(True)
    cancel = next(a for a in window.menu_actions if a.objectName() == "action-cancel")
    free = next(a for a in window.menu_actions if a.objectName() == "action-freethecursor")
    assert (cancel.shortcut().toString(), free.shortcut().toString()) == ("", "Esc")
    free.trigger()
    assert not window.looking.fixed and cancel.shortcut().toString() == "Esc"
