"""The controls of a panel go on in a second row where they do not fit into one; none is cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import opened
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from several_runs import watched

from inspector.gui.widgets.control_row import MARGIN, SPACING, ControlRow
from inspector.gui.widgets.controls import caption, chooser
from inspector.gui.window.main_window import Window


@pytest.fixture
def row(qapp: QApplication) -> Iterator[ControlRow]:
    made = ControlRow()
    for n in range(4):
        made.first.addWidget(caption(f"{n}"))
        made.first.addWidget(chooser(["a choice of some length"], f"choice {n}"))
    made.settle([QPushButton("right")])
    made.show()
    yield made
    made.close()


def places(row: ControlRow) -> list[int]:
    return [row._row_of(group[0]) for group in row._groups]


def test_captions_stay_with_their_controls_and_rows_come_and_go(row: ControlRow, qapp: QApplication) -> None:
    widths = [sum(widget.sizeHint().width() for widget in group) + SPACING for group in row._groups]
    right = row._right[0].sizeHint().width()
    row.resize(sum(widths) + 3 * SPACING + SPACING + right + 2 * MARGIN, 60)
    qapp.processEvents()
    assert [len(group) for group in row._groups] == [2, 2, 2, 2] and places(row) == [0, 0, 0, 0]
    one = row.sizeHint().height()
    row.resize(row.width() - 1, 60)
    qapp.processEvents()
    assert places(row) == [0, 0, 0, 1] and row.sizeHint().height() > one
    assert row.rows[1].indexOf(row._groups[3][1]) >= 0 and row.first.indexOf(row._right[0]) >= 0
    row._groups[0][0].hide()
    row._groups[0][1].hide()
    row.wrap()
    assert places(row) == [0, 0, 0, 0] and row.sizeHint().height() == one


@pytest.fixture
def window(qtbot: Any, qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setattr("inspector.gui.state.session.Session.start_worker", lambda _session: None)
    with opened(qtbot, background=False) as made:
        made.resize(1280, 800)
        yield made


def test_no_choice_of_training_is_cut_in_a_window_of_1280_pixels(window: Window, tmp_path: Path, qtbot: Any) -> None:
    where = {name: f"/data/{'corpora/' * 6}tokens-{name}" for name in ("first", "second")}
    paths = [
        str(watched(tmp_path / f"a-run-with-a-long-name-{name}.inspect", np.ones(9), settings={"path": where[name]}))
        for name in where
    ]
    window.open_together(paths)
    qtbot.waitUntil(lambda: window.session.capture is not None)
    window.docking.restore()
    window.docks["training"].raise_()
    panel: Any = window.panels.get("training")
    qtbot.waitUntil(panel.isVisible)
    qtbot.wait(50)
    shown = [
        one
        for one in panel.control_row.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly)
        if one.isVisible()
    ]
    assert len(shown) >= 10
    for one in shown:
        assert one.width() >= one.sizeHint().width() and one.geometry().right() <= panel.control_row.width(), one
    assert max(places(panel.control_row)) > 0
    table = panel.settings
    ends = [table.item(n, 2).text()[-6:] for n in range(2)]
    assert ends == ["-first", "second"] and table.textElideMode() == Qt.TextElideMode.ElideMiddle
    assert table.item(0, 2).toolTip().endswith(f"{where['first']}</qt>")


def test_controls_that_come_later_stand_in_their_order_before_those_at_the_right(row: ControlRow) -> None:
    later = [caption("later"), chooser(["x"], "a"), caption("last"), chooser(["y"], "b")]
    for widget in later:
        row.first.addWidget(widget)
    row.join(later)
    row.resize(3000, 60)
    QApplication.processEvents()
    widgets = [item.widget() for n in range(row.first.count()) if (item := row.first.itemAt(n)).widget() is not None]
    assert widgets[8:] == [*later, *row._right] and [len(group) for group in row._groups[4:]] == [2, 2]
    assert later[-1].geometry().right() < row._right[0].x()
