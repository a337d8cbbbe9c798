"""Editing where one looks: a double-click on a token, the menu of a row of a map, and what the dialog then has in its fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from inspector.capture import open_capture
from inspector.gui.dialogs.edit_dialog import INPUT, EditDialog
from inspector.gui.export.offscreen import Stage
from inspector.gui.state.cursor import Cursor, Position
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.widgets.token_strip import TokenStrip
from inspector.records import Edit

LEFT = Qt.MouseButton.LeftButton


def test_a_double_click_on_a_token_asks_for_another_one_there(qtbot: Any) -> None:
    cursor = Cursor()
    cursor.set_length(40)
    strip = TokenStrip(cursor, LIGHT)
    qtbot.addWidget(strip)
    strip.resize(300, 30)
    strip.set_sequence(tuple("abcdefghij" * 4), 40)
    point = QPoint(120, 15)
    step = strip.step_at(point.x())
    with qtbot.waitSignal(strip.editing, timeout=1000):
        QTest.mouseClick(strip, LEFT, pos=point)
        QTest.mouseDClick(strip, LEFT, pos=point)
    assert cursor.position.step == step == strip.step_at(point.x()), "what was clicked stays under the mouse"


def test_the_strip_shows_what_comes_next(qtbot: Any) -> None:
    cursor = Cursor()
    cursor.set_length(400)
    strip = TokenStrip(cursor, LIGHT)
    qtbot.addWidget(strip)
    strip.resize(300, 30)
    strip.set_sequence(tuple("ab" * 200), 400)
    cursor.move(step=100)
    assert strip.step_at(strip.width() - 1) > 103
    cursor.move(step=90)
    assert strip.step_at(0) < 87
    cursor.move(step=399)
    assert strip.step_at(strip.width() - 1) in (399, None)


def test_the_dialog_is_ready_for_a_token(a_capture: Path, qtbot: Any) -> None:
    with open_capture(a_capture) as capture:
        dialog = EditDialog(capture, Position(place="rnn.l0", unit=1, step=4), (), None, INPUT)
        qtbot.addWidget(dialog)
        dialog.show()
        assert dialog.place.currentText() == INPUT and dialog.start.value() == 4
        assert "instead of e" in dialog.token.placeholderText()
        assert dialog.focusWidget() is dialog.token and not dialog.form.isRowVisible(dialog.unit)
        dialog.start.setValue(6)
        assert "instead of g" in dialog.token.placeholderText()
        QTest.keyClicks(dialog.token, "x")
        QTest.keyClick(dialog.token, Qt.Key.Key_Return)
        assert dialog.result() == 1 and dialog.edits() == (Edit(place=INPUT, text="x", start=6),)


def test_what_was_filled_in_last_is_not_lost(a_capture: Path, qtbot: Any) -> None:
    known = (Edit(place=INPUT, text="q", start=2),)
    with open_capture(a_capture) as capture:
        position = Position(place="rnn.l0", unit=3, step=9)
        dialog = EditDialog(capture, position, known, None, "rnn.l0:gate/forget")
        qtbot.addWidget(dialog)
        assert dialog.signal.currentText() == "gate/forget"
        dialog.value.setValue(0.25)
        dialog.go.click()
        held = Edit(place="rnn.l0", signal="gate/forget", unit=3, value=0.25, start=9)
        assert dialog.edits() == (*known, held)
        untouched = EditDialog(capture, position, known, None)
        qtbot.addWidget(untouched)
        untouched.go.click()
        assert untouched.edits() == known, "fields that nobody asked for or touched are no edit"


@pytest.mark.parametrize(("key", "name"), [("states", "rnn.l0:h"), ("gates", "rnn.l0:gate/forget")])
def test_a_row_of_a_map_is_edited_where_it_is(
    a_capture: Path, qtbot: Any, monkeypatch: pytest.MonkeyPatch, key: str, name: str
) -> None:
    shown: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, *_: shown.append(menu))  # it would take the keyboard
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (900, 500))
        panel = stage.panel(key)
        channel = capture.channels[name]
        plot = next(
            plot for plot in panel.plots if panel.clampable(plot) is not None and panel.clampable(plot).name == name
        )
        view = panel.figure.viewport()
        outside = panel.figure.mapFromScene(panel.figure.sceneRect().bottomLeft())
        for place in (
            panel.figure.mapFromScene(plot.vb.mapViewToScene(QPointF(120.0, 7.0))), QPoint(2, outside.y() - 2),
        ):  # fmt: skip
            event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, view.mapToGlobal(place))
            QApplication.sendEvent(view, event)
        menu, beside = shown
        assert stage.cursor.position.unit == 7 and abs(stage.cursor.position.step - 120) <= 1
        (action,) = (one for one in menu.actions() if one.text().startswith("Edit"))
        assert channel.title in action.text()
        with qtbot.waitSignal(panel.editing, timeout=1000) as told:
            action.trigger()
        assert told.args == [name]
        assert not any(one.text().startswith("Edit") for one in beside.actions()), "nothing is under the mouse there"
        for one in shown:
            one.close()
        stage.close()


def test_the_units_panel_says_what_is_under_the_cursor(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (900, 500))
        panel = stage.panel("units")
        panel._set_range(140, 144)
        values = capture.array("rnn.l0:h")
        for step, unit in ((140, panel.matches[0].unit), (3, 5)):
            stage.cursor.move(step=step, unit=unit, place="rnn.l0")
            rows = dict(panel.readout(stage.cursor.position))
            value, word = rows[f"h[{step}, {unit}]  rnn.l0"].split(", ", 1)
            assert np.float32(value) == pytest.approx(values[step, unit], rel=1e-6)
            far = abs(values[step, unit]) > panel.threshold.value()
            assert word == (("on" if values[step, unit] > 0 else "on, negative") if far else "off")
            signs = np.array([match.sign for match in panel.searched])
            units = [match.unit for match in panel.searched]
            on = int((values[step, units] * signs > panel.threshold.value()).sum())
            assert rows[f"searched units that are on [{step}]"] == f"{on} of {len(units)}"
        stage.close()
