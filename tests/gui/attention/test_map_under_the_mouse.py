"""The large map under the mouse: zoom, what is read and fixed, profiles, colours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from head_views import CTRL, LEFT, PLACES, WEIGHTS, WHOLE, T, click, hover, indices, on_map, seen, wheel
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.gui.export.offscreen import Stage
from inspector.gui.widgets.theme import MASKED

# -- the large map under the mouse


def test_the_wheel_zooms_both_axes_and_a_double_click_shows_the_whole(panel: Any) -> None:
    assert seen(panel) == WHOLE
    plot = panel.row.plot
    assert plot.vb.rect().width() == pytest.approx(plot.vb.rect().height(), abs=3), "a square"
    wheel(panel, on_map(panel, 30, 10), 4)
    (left, right), (top, bottom) = seen(panel)
    assert right - left < T / 2 and right - left == pytest.approx(bottom - top)
    assert left < 10 < right and top < 30 < bottom
    assert panel.row.below.vb.viewRange()[0] == [left, right] and panel.row.beside.vb.viewRange()[1] == [top, bottom]
    panel.redraw()
    assert seen(panel) == ([left, right], [top, bottom]), "what is drawn again stays zoomed"
    at = on_map(panel, 30, 10)
    click(panel, at)
    QTest.mouseDClick(panel.figure.viewport(), LEFT, pos=at)
    QTest.mouseRelease(panel.figure.viewport(), LEFT, pos=at)
    assert seen(panel) == WHOLE


def test_dragging_moves_the_map_and_ctrl_0_shows_the_whole(panel: Any, stage: Stage) -> None:
    wheel(panel, on_map(panel, 20, 20), 4)
    (left, _), (top, _) = seen(panel)
    view, at = panel.figure.viewport(), on_map(panel, 20, 20)
    QTest.mousePress(view, LEFT, pos=at)
    for by in (10, 30, 60):
        QTest.mouseMove(view, at + QPoint(by, by))
        QTest.qWait(5)
    QTest.mouseRelease(view, LEFT, pos=at + QPoint(60, 60))
    assert seen(panel)[0][0] < left and seen(panel)[1][0] < top
    QTest.keyClick(panel, Qt.Key.Key_0, CTRL)
    assert seen(panel) == WHOLE
    assert not stage.cursor.fixed, "to drag is no click"


def test_query_key_weight_and_rank_are_read(panel: Any, stage: Stage) -> None:
    hover(panel, on_map(panel, 20, 7))
    row = WEIGHTS[0, 0, 20]
    rank = 1 + int((row[:21] > row[7]).sum())
    assert panel.row.heading.endswith(f"w20 [20] → w7 [7]: {row[7]:.3g}, rank {rank} of 21")
    assert ("rank of that weight in its row", f"{rank} of 21") in panel.readout(stage.cursor.position)
    hover(panel, on_map(panel, 7, 20))
    assert panel.row.heading.endswith("masked")
    (value,) = [value for what, value in panel.readout(stage.cursor.position) if what.startswith("attention 7 ")]
    assert value == "masked"


def test_a_click_fixes_query_and_key_until_escape_or_a_second_click(panel: Any, stage: Stage) -> None:
    def here() -> tuple[int | None, int | None]:
        return stage.cursor.position.step, stage.cursor.position.key

    for release in ("escape", "click"):
        click(panel, on_map(panel, 20, 7))
        assert "(fixed)" in panel.row.heading
        hover(panel, on_map(panel, 30, 9))
        assert here() == (20, 7)
        if release == "escape":
            QTest.keyClick(panel, Qt.Key.Key_Escape)
        else:
            stage.cursor.move(step=22)
            assert "(fixed)" in panel.row.heading and here() == (22, 7), "keys still move it"
            click(panel, on_map(panel, 20, 7))
            click(panel, on_map(panel, 20, 7))
        assert not stage.cursor.fixed and "(fixed)" not in panel.row.heading
        hover(panel, on_map(panel, 31, 9))
        assert here() == (31, 9)


def test_escape_is_a_shortcut_of_the_window_unless_something_is_fixed(panel: Any) -> None:
    def taken() -> bool:
        event = QKeyEvent(QEvent.Type.ShortcutOverride, Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
        event.ignore()
        QApplication.sendEvent(panel, event)
        return event.isAccepted()

    assert not taken()
    click(panel, on_map(panel, 20, 7))
    assert taken()


def test_profiles_are_the_row_and_the_column_of_the_cursor(panel: Any, stage: Stage) -> None:
    stage.cursor.move(step=25, key=4)
    np.testing.assert_allclose(panel.row.of_query.getData()[1][:26], WEIGHTS[0, 0, 25, :26], rtol=1e-6)
    assert np.isnan(panel.row.of_query.getData()[1][26:]).all(), "masked keys have no weight"
    np.testing.assert_allclose(panel.row.of_key.getData()[0][4:], WEIGHTS[0, 0, 4:, 4], rtol=1e-6)
    assert panel.row.below.isVisible() and panel.row.beside.isVisible()
    panel.options._on["profiles"].trigger()
    assert not panel.row.below.isVisible() and not panel.row.beside.isVisible()


def test_without_a_cursor_profiles_are_the_mean_by_key_and_the_largest_by_query(panel: Any, stage: Stage) -> None:
    stage.cursor.move(place=PLACES[1], head=2, step=None, key=None)
    weights, may = WEIGHTS[1, 2].astype(np.float64), np.tril(np.ones((T, T), dtype=bool))
    np.testing.assert_allclose(panel.row.of_query.getData()[1], weights.sum(0) / may.sum(0), rtol=1e-5)
    np.testing.assert_allclose(panel.row.of_key.getData()[0], weights.max(1), rtol=1e-5)
    words = (panel.row.below.getAxis("left").labelText, panel.row.beside.getAxis("bottom").labelText)
    assert words == ("mean", "largest")
    stage.cursor.move(step=25)
    np.testing.assert_allclose(panel.row.of_query.getData()[1][:26], WEIGHTS[1, 2, 25, :26], rtol=1e-6)
    assert panel.row.below.getAxis("left").labelText == "of the query"
    assert panel.row.beside.getAxis("bottom").labelText == "largest"


def test_logarithmic_colours_keep_masked_apart_from_zero(panel: Any) -> None:
    plain = indices(panel)
    panel.options._on["log"].trigger()
    drawn = indices(panel)
    above = np.triu_indices(T, 1)
    assert (plain[above] == MASKED).all() and (drawn[above] == MASKED).all()
    assert not (drawn[np.tril_indices(T)] == MASKED).any() and drawn[39].max() < 253
    assert panel.row.bar._levels.log and panel.row.bar._levels.masked


def test_without_the_first_key_it_is_masked_and_rows_sum_to_one(panel: Any, stage: Stage) -> None:
    stage.cursor.move(step=20, key=7)
    panel.options._on["without_first"].trigger()
    assert (indices(panel)[:, 0] == MASKED).all() and "without the first key" in panel.row.heading
    values = panel.row.of_query.getData()[1]
    assert np.isnan(values[0]) and np.nansum(values) == pytest.approx(1.0, abs=1e-5)
    assert f"{WEIGHTS[0, 0, 20, 7] / WEIGHTS[0, 0, 20, 1:].sum():.3g}" in panel.row.heading
    stored = [value for what, value in panel.readout(stage.cursor.position) if what.startswith("attention 20")]
    assert stored == [f"{WEIGHTS[0, 0, 20, 7]:.7g}"], "the readout has the stored number"


def test_several_weights_in_a_pixel_are_the_largest_or_their_mean(panel: Any) -> None:
    look = panel.row.map._look
    cells, rect = look((0.0, 0.0, float(T), float(T)), (T // 2, T // 2))
    assert rect == (0, 0, T, T) and cells[15, 3] == WEIGHTS[0, 0, 30:32, 6:8].max()
    panel.options.option("cells", "mean").trigger()
    cells, _ = panel.row.map._look((0.0, 0.0, float(T), float(T)), (T // 2, T // 2))
    assert cells[15, 3] == pytest.approx(WEIGHTS[0, 0, 30:32, 6:8].mean())
