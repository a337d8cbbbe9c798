"""Every control of the panel of attention: views, order and filter of heads, the large map under the mouse, lines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import channel, write_frames
from panel_captures import shown as shown_panel
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QImage, QKeyEvent, QPainter, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QStyleOptionGraphicsItem

from inspector.capture import Capture, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.map_levels import MapLevels
from inspector.gui.widgets.atlas import fitting
from inspector.gui.widgets.quantise import Levels
from inspector.gui.widgets.theme import MASKED
from inspector.records import Labels

T, HEADS, LAYERS = 40, 4, 3
LEFT, CTRL = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier
TYPES = ("previous", "induction")
PLACES = tuple(f"layers.{n}" for n in range(LAYERS))


def causal(scores: np.ndarray) -> np.ndarray:
    weights = np.where(np.tril(np.ones((T, T), dtype=bool)), np.exp(scores), 0.0)
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


WEIGHTS = causal(np.random.default_rng(0).normal(size=(LAYERS, HEADS, T, T)))
ENTROPY = np.arange(LAYERS * HEADS, dtype=np.float32).reshape(LAYERS, HEADS)[:, ::-1]
"""A number of each head: the larger, the later its layer and the earlier it is in it."""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Capture]:
    parts: list[Any] = [Labels("step", tuple(f"w{n}" for n in range(T)), -1)]
    for layer, place in enumerate(PLACES):
        parts += [
            channel(f"{place}:attention", "attention", ("head", "query", "key"), WEIGHTS[layer], limits=(0, 1),
                    domains={"query": "step", "key": "step"}),
            channel(f"{place}:attention/allowed", "attention", ("statistic", "query"),
                    np.array([[0] * T, range(T)], np.int32)),
            channel(f"{place}:attention/entropy", "attention_statistic", ("head", "query"),
                    np.repeat(ENTROPY[layer][:, None], T, 1), title="attention entropy"),
            channel(f"{place}:attention/type", "attention_statistic", ("head", "type"), title="head type",
                    values=np.array([[1.0, 0], [0, 1], [1, 0], [1, 0]]), labels={"type": TYPES}),
        ]  # fmt: skip
    with open_capture(write_frames(tmp_path_factory.mktemp("views"), *parts)) as opened:
        yield opened


@pytest.fixture
def stage(capture: Capture, qtbot: Any) -> Iterator[Stage]:
    made = Stage(capture, (1280, 760))
    yield made
    made.close()


@pytest.fixture
def panel(stage: Stage) -> Any:
    made = stage.panel("attention")
    made.hide()  # so that the mouse reaches it
    made.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen, False)
    made.show()
    made.redraw()
    QTest.qWait(20)
    assert made.state == "figure", made._error.toPlainText()
    return made


def spot(panel: Any, item: Any, at: QPointF) -> QPoint:
    return panel.figure.mapFromScene(item.mapToScene(at))  # type: ignore[no-any-return]


def cell(panel: Any, layer: int, head: int) -> QPoint:
    return spot(panel, panel.atlas, panel.atlas.cell_at(layer, head).center())


def on_map(panel: Any, query: int, key: int, number: int = 0) -> QPoint:
    return panel.figure.mapFromScene(panel.page.maps[number].plot.vb.mapViewToScene(QPointF(key, query)))  # type: ignore[no-any-return]


def hover(panel: Any, at: QPoint) -> None:
    for place in (at + QPoint(1, 0), at):  # the first move after a pause only enters
        QTest.mouseMove(panel.figure.viewport(), place)
        QTest.qWait(12)


def click(panel: Any, at: QPoint, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
    QTest.mouseClick(panel.figure.viewport(), LEFT, modifiers, at)
    QApplication.processEvents()


def wheel(panel: Any, at: QPoint, notches: int) -> None:
    view = panel.figure.viewport()
    event = QWheelEvent(
        QPointF(at), QPointF(view.mapToGlobal(at)), QPoint(), QPoint(0, 120 * notches), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view, event)
    QApplication.processEvents()


def shown(panel: Any) -> list[tuple[str, list[tuple[int, int]]]]:
    return [(title, [one.key for one in heads]) for title, heads in panel.atlas._groups]


def seen(panel: Any, number: int = 0) -> tuple[list[float], list[float]]:
    across, down = panel.page.maps[number].plot.vb.viewRange()
    return across, down


WHOLE = ([-0.5, T - 0.5],) * 2

# -- heads


def test_numbers_of_heads_are_offered_by_themselves(panel: Any) -> None:
    menu = panel.overview.menu
    for key, there in (("sort", {"", "attention/entropy"}), ("group", {"layer", "", "attention/type"})):
        assert there <= {action.data() for action in menu._choices[key][1].actions()}
    assert {"attention/type/induction"} <= {action.data() for action in menu._choices["sort"][1].actions()}


def test_heads_are_sorted_and_grouped_by_the_menu(panel: Any) -> None:
    menu = panel.overview.menu
    assert shown(panel) == [(place, [(n, h) for h in range(HEADS)]) for n, place in enumerate(PLACES)]
    menu.option("sort", "attention/entropy").trigger()
    menu.option("group", "").trigger()
    descending = [(layer, head) for layer in (2, 1, 0) for head in range(HEADS)]
    assert shown(panel) == [("", descending)]
    assert panel.atlas._groups[0][1][0].caption == "2.0  11" and "sorted by mean attention entropy" in panel.atlas.note
    menu._on["rising"].trigger()
    assert shown(panel) == [("", descending[::-1])]
    menu.option("group", "attention/type").trigger()
    assert [title for title, _ in shown(panel)] == ["induction", "previous"]
    assert {key[1] for key in shown(panel)[0][1]} == {1}


def test_a_head_of_no_type_has_that_word_for_a_score_and_lost_weights_are_nan(tmp_path: Path) -> None:
    lost = float("nan")
    scores = np.array([[0.9, 0.1], [0.1, 0.2], [lost, lost]])
    parts = [
        channel("a:attention", "attention", ("head", "query", "key"), WEIGHTS[0, :3], limits=(0, 1)),
        channel("a:attention/head_types", "attention_statistic", ("head", "statistic"), scores, title="types",
                labels={"statistic": TYPES}),
        channel("a:attention/head_type_score", "attention_statistic", ("head",), np.array([0.9, lost, lost]),
                title="score of that type"),
    ]  # fmt: skip
    with shown_panel(tmp_path, "attention", *parts) as (_, panel):
        panel.overview.menu.option("sort", "attention/head_type_score").trigger()
        captions = {one.key[1]: one.caption for _, heads in panel.atlas._groups for one in heads}
        assert captions == {0: "0  0.9", 1: "1  none", 2: "2  NaN"}


def test_a_caption_without_room_keeps_the_number_by_which_heads_are_sorted(qapp: QApplication) -> None:
    metrics = QFontMetricsF(QFont())
    for said in ("10.11  0.82", "10.11 0.82", "0.82"):
        assert fitting("10.11  0.82", metrics, metrics.horizontalAdvance(said)) == said
    assert fitting("10.11  0.82", metrics, metrics.horizontalAdvance("0.8")) not in ("", "0.82")


def test_heads_are_filtered_as_a_person_types(panel: Any, qtbot: Any) -> None:
    qtbot.keyClicks(panel.overview.filter, "entropy > 9, head < 2")
    assert shown(panel) == [("layers.2", [(2, 0), (2, 1)])] and "2 of 12 heads" in panel.atlas.note
    captions = [one.caption for _, heads in panel.atlas._groups for one in heads]
    assert captions == ["2.0", "2.1"], "which heads are left is no longer told by their places"
    panel.overview.filter.clear()
    assert not any(one.caption for _, heads in panel.atlas._groups for one in heads)
    qtbot.keyClicks(panel.overview.filter, "curl > 3")
    assert sum(len(heads) for _, heads in shown(panel)) == 12
    assert "There is no number 'curl'" in panel.atlas.note and "curl" in panel.overview.filter.toolTip()
    panel.overview.filter.setText("layer = 7")
    assert shown(panel) == [] and panel.state == "figure" and "0 of 12 heads" in panel.atlas.note
    image = QImage(300, 40, QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    panel.atlas.paint(painter, QStyleOptionGraphicsItem())
    painter.end()
    assert any(image.constBits()), "and the line above says so"


def test_all_heads_are_seen_at_once_and_a_double_click_opens_one(panel: Any, stage: Stage) -> None:
    panel.view.setCurrentText("All heads")
    QApplication.processEvents()
    assert not panel.page.isVisible() and panel.atlas.rect().width() > 1200
    at = cell(panel, 1, 2)
    QTest.mouseDClick(panel.figure.viewport(), LEFT, pos=at)
    QTest.mouseRelease(panel.figure.viewport(), LEFT, pos=at)
    QApplication.processEvents()
    assert panel.view.currentText() == "Map" and panel.page.isVisible()
    assert (stage.cursor.position.place, stage.cursor.position.head) == ("layers.1", 2)


def test_the_headline_names_the_head_under_the_mouse_and_the_rule_of_colours(panel: Any) -> None:
    hover(panel, cell(panel, 2, 3))
    assert panel.atlas.headline[0].startswith("layers.2, head 3") and "√weight 0 … 1" in panel.atlas.headline[1]


def test_more_thumbnails_than_fit_are_scrolled(capture: Capture, qtbot: Any) -> None:
    stage = Stage(capture, (500, 240))
    panel = stage.panel("attention")
    first = panel.atlas.cell_at(0, 0)
    assert first.width() == 48 and panel.atlas._most_scrolled > 0
    wheel(panel, cell(panel, 0, 0), -1)
    assert panel.atlas.cell_at(0, 0).top() == first.top() - 48
    stage.cursor.move(place="layers.2", head=3)
    assert panel.atlas.cell_at(2, 3).bottom() <= panel.atlas.rect().bottom()
    stage.cursor.move(place="layers.1", head=0)
    panel.resize(300, 220)
    QApplication.processEvents()
    assert 0 <= panel.atlas.cell_at(1, 0).top() < panel.atlas.rect().bottom(), "the chosen head stays in view"
    stage.close()


# -- several heads


def test_heads_side_by_side_have_one_range_and_one_cursor(panel: Any, stage: Stage) -> None:
    for layer, head in ((1, 1), (2, 0)):
        click(panel, cell(panel, layer, head), CTRL)
    QApplication.processEvents()
    assert panel.picked == [("layers.0", 0), ("layers.1", 1), ("layers.2", 0)] and panel.page.count == 3
    assert panel.atlas._also == {(0, 0), (1, 1), (2, 0)}
    wheel(panel, on_map(panel, 10, 5, 1), 3)
    assert seen(panel) == seen(panel, 1) == seen(panel, 2) != WHOLE
    hover(panel, on_map(panel, 12, 6, 1))
    assert (stage.cursor.position.place, stage.cursor.position.head) == ("layers.1", 1)
    for one in panel.page.shown:
        assert (one.plot._line.value(), one.plot.level_line.value()) == (6, 12)
        assert one.plot.isVisible()
    assert f"{WEIGHTS[1, 1, 12, 6]:.3g}" in panel.page.maps[1].heading
    click(panel, cell(panel, 1, 1), CTRL)
    assert panel.page.count == 2 and not panel.page.maps[2].plot.isVisible()
    click(panel, cell(panel, 0, 3))
    assert panel.picked == [("layers.0", 3)] and panel.page.count == 1


@pytest.mark.parametrize(("how", "reduce"), [("mean", np.mean), ("maximum", np.max)])
def test_several_heads_as_one_map(panel: Any, how: str, reduce: Any) -> None:
    panel._added(2, 3)
    panel.options.option("several", how).trigger()
    assert panel.page.count == 1 and f"{how} of 2 heads" in panel.row.heading
    ((_, choice),) = panel.choices()
    rows = panel.levels.source(panel.capture, choice).rows(0, T)
    np.testing.assert_allclose(rows[T - 1], reduce([WEIGHTS[0, 0], WEIGHTS[2, 3]], axis=0)[T - 1], rtol=1e-6)


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


# -- how the map is drawn


def indices(panel: Any) -> np.ndarray:
    """The colour numbers of the large map, all of it."""
    item = panel.row.map
    cells, _ = item._look((0.0, 0.0, float(T), float(T)), (T, T))
    found: np.ndarray = item._levels.index(cells)
    return found


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


@pytest.mark.parametrize("count", [2, 3, 6])
def test_heads_side_by_side_in_a_low_panel_share_names_and_colours(panel: Any, count: int) -> None:
    """What stands left and right of each map would leave no room for the maps."""
    panel.resize(822, 290)
    for number in range(1, count):
        panel._added(number // HEADS, number % HEADS)
    QApplication.processEvents()
    maps = panel.page.shown
    assert len(maps) == count and all(one.plot.vb.width() >= (45, 90)[count < 4] for one in maps)
    assert [one.with_names for one in maps] == [True] + [False] * (count - 1)
    for before, after in itertools.pairwise(maps):
        assert after.geometry().left() >= before.geometry().right() and after.geometry().top() == 0
        assert before.with_bar != before.bar.says_as(after.bar)
    assert maps[-1].with_bar and maps[-1].geometry().right() <= panel.page.rect().right() + 1
    metrics = QFontMetricsF(panel.font())
    panel.looking.move(step=20, key=3)
    for number, one in enumerate(maps):
        said = one.shortened(metrics, metrics.horizontalAdvance("layers.0, … head 1"))
        assert f"head {number % HEADS}" in said
    maps[1].bar.set_levels(Levels(0.0, 7.0), "nat")
    panel.page.place()
    assert maps[0].with_bar and maps[0].plot.vb.width() >= 40


# -- other numbers over the same queries and keys


def test_other_maps_are_drawn_beside_that_of_the_head(tmp_path: Path, qtbot: Any) -> None:
    signed = np.random.default_rng(3).normal(size=(2, 6, 6)).astype(np.float32)
    flow = np.random.default_rng(4).random((1, 6, 6)).astype(np.float32)
    zeroed = np.random.default_rng(5).random((6, 6)).astype(np.float32)
    zeroed[5, 1] = np.nan
    weights = WEIGHTS[0, :2, :6, :6]
    every = ("head", "query", "key")
    parts = (
        channel("a:attention", "attention", every, weights, limits=(0, 1)),
        channel("a:attention/allowed", "attention", ("statistic", "query"), np.array([[0] * 6, range(6)], np.int32)),
        channel("a:attention/times_gradient", "attention_map", every, signed, scale="diverging", unit="nat", title="A × ∂L/∂A"),
        channel("a:attention/value_zeroing", "attention_map", ("query", "key"), zeroed, title="value zeroing"),
        channel("layers:attention/rollout", "attention_map", ("layer", "query", "key"), flow, title="rollout"),
        channel("a:attention/importance", "attention_head", ("statistic", "head"), np.array([[3.0, 1.0]]), title="importance",
                labels={"statistic": ("whole",)}),
        channel("a:attention/head_type", "attention_head", ("head",), np.array([1, 0], np.int32), title="head type",
                value_domain="head type"),
        Labels("head type", ("induction", "local"), -1),
    )  # fmt: skip
    with shown_panel(tmp_path, "attention", *parts, place="a") as (stage, panel):
        menu = panel.overview.menu
        menu.option("sort", "attention/importance/whole").trigger()
        menu.option("group", "attention/head_type").trigger()
        assert shown(panel) == [("induction", [(0, 1)]), ("local", [(0, 0)])]
        stage.cursor.move(head=1, step=4, key=2)
        for signal, expected, title in (
            ("attention/times_gradient", signed[1], "A × ∂L/∂A, head 1"),
            ("attention/value_zeroing", zeroed, "value zeroing, a"),
            ("attention/rollout", flow[0], "rollout, layer 0"),
        ):
            panel.options.option("beside", signal).trigger()
            assert panel.page.count == 2, signal
            other = panel.page.maps[1]
            cells, _ = other.map._look((0.0, 0.0, 6.0, 6.0), (6, 6))
            np.testing.assert_array_equal(np.isneginf(cells), np.triu(np.ones((6, 6), dtype=bool), 1))
            np.testing.assert_array_equal(cells[np.tril_indices(6)], expected[np.tril_indices(6)])
            assert other.heading.startswith(title) and f"{expected[4, 2]:.3g}" in other.heading
            (read,) = [value for what, value in panel.readout(panel.looking.position) if f" {4} → {2}  " in what]
            assert float(read.split()[0]) == pytest.approx(float(expected[4, 2]), rel=1e-6)
            assert other.plot._line.value() == 2 and other.plot.level_line.value() == 4
        assert panel.page.maps[0].bar._levels.scale == "attention"
        panel.options.option("beside", "attention/value_zeroing").trigger()
        stage.cursor.move(step=5, key=1)
        assert panel.state == "figure" and "[5] → [1]: NaN" in panel.page.maps[1].heading
        assert dict(panel.readout(panel.looking.position))["value zeroing 5 → 1  a"] == "NaN"
        stage.cursor.move(step=1, key=5)
        assert dict(panel.readout(panel.looking.position))["value zeroing 1 → 5  a"] == "masked"
        panel.options.option("beside", "attention/times_gradient").trigger()
        assert panel.page.maps[1].bar._levels.scale == "diverging" and panel.page.maps[1].bar._unit == "nat"
        panel.options.option("beside", "").trigger()
        assert panel.page.count == 1


# -- lines


def test_lines_are_the_strongest_weights_and_those_of_a_token_alone(panel: Any) -> None:
    panel.view.setCurrentText("Lines")
    QApplication.processEvents()
    lines = panel.lines
    assert lines.sentence.startswith("the 5 strongest of each query, 190 of 820 weights")
    panel.options.option("lines", "each 3").trigger()
    assert len(lines.links) == 3 * T - 3 and lines.sentence.startswith(
        "the 3 strongest of each query, 117 of 820 weights ≠ 0: "
    )
    assert {(2, 0), (2, 1), (2, 2)} <= set(zip(lines.links.queries.tolist(), lines.links.keys.tolist(), strict=True))
    panel.options.option("lines", "200").trigger()
    assert len(lines.links) == 200 and lines.sentence.startswith("the strongest 200 of 820 weights ≠ 0:")
    panel.options.option("lines", "50").trigger()
    largest = np.sort(WEIGHTS[0, 0].ravel())[-50:]
    np.testing.assert_allclose(np.sort(lines.links.weights), largest)
    hover(panel, spot(panel, lines, lines.place_of(0, 30)))
    assert lines.alone == (0, 30) and set(lines.links.queries) == {30} and len(lines.links) == 31
    hover(panel, spot(panel, lines, lines.place_of(1, 8)))
    assert lines.alone == (1, 8) and set(lines.links.keys) == {8} and "key 8 alone" in lines.sentence
    hover(panel, QPoint(2, 2))
    assert lines.alone is None


def test_profiles_say_where_they_have_no_place(panel: Any) -> None:
    def said() -> str:
        panel.options.menu().aboutToShow.emit()
        action = next(one for one in panel.options.menu().actions() if one.text().startswith("Profiles"))
        assert action.isEnabled() == (action.text() == "Profiles")
        return str(action.text())

    assert said() == "Profiles"
    panel._added(2, 3)
    assert said() == "Profiles: beside one map, not beside several"
    panel.view.setCurrentText("Lines")
    assert said() == "Profiles: beside a map, not beside lines"
    panel.view.setCurrentText("Map")
    panel.options.option("several", "mean").trigger()
    panel.resize(900, 300)
    QApplication.processEvents()
    assert said().startswith("Profiles: needs a map of 400 pixels, here are ")


def test_short_names_leave_the_room_to_lines(panel: Any) -> None:
    panel.view.setCurrentText("Lines")
    QApplication.processEvents()
    lines, names = panel.lines, [f"w{n}" for n in range(T)]
    lines.set_weights(WEIGHTS[0, 0], names, names)
    narrow = lines.names_wide(0)
    lines.set_weights(WEIGHTS[0, 0], ["a long name of a token"] * T, names)
    assert narrow == lines.names_wide(1) < 60 < lines.names_wide(0) == 84
    assert lines.place_of(0, 0).x() == lines.area().left() + 90
    assert lines.place_of(1, 0).x() == lines.area().right() - narrow - 6


def test_lines_are_zoomed_dragged_and_named_without_overlap(panel: Any) -> None:
    panel.view.setCurrentText("Lines")
    QApplication.processEvents()
    lines = panel.lines
    at = spot(panel, lines, lines.place_of(0, 20))
    wheel(panel, at, 5)
    low, high = lines.view
    assert high - low < 0.5 and low < 20.5 / T < high
    view = panel.figure.viewport()
    QTest.mousePress(view, LEFT, pos=at)
    QTest.mouseMove(view, at + QPoint(0, 40))
    QTest.mouseRelease(view, LEFT, pos=at + QPoint(0, 40))
    assert lines.view[0] < low
    QTest.keyClick(panel, Qt.Key.Key_0, CTRL)
    assert lines.view == (0.0, 1.0)
    for height, room in ((3.0, 14.0), (6.0, 14.0), (20.0, 14.0)):
        named = lines.named(0, height, room)
        gaps = np.diff(sorted(named)) * height
        assert len(named) == len(set(named)) and (gaps >= room - 1e-9).all() and len(named) >= T * height / room / 3


def test_many_parallel_lines_are_lines_and_no_block(panel: Any) -> None:
    """300 steps that each look at the one before, in some 170 pixels: between any two lines there is ground."""
    many = 300
    diagonal = np.eye(many, k=-1) * 0.9 + np.tril(np.full((many, many), 1e-4))
    names = [f"w{n}" for n in range(many)]
    panel.resize(820, 300)
    panel.view.setCurrentText("Lines")
    QApplication.processEvents()
    lines = panel.lines
    lines.set_count(1, of_each=True)
    lines.set_weights(diagonal, names, names)
    height = lines.area().height()
    assert len(lines.links) == many and height / 6 < lines.drawn.sum() < height / 3 + 1 < many
    picture = panel.grab().toImage()
    middle = lines.mapToScene(lines.area().center())
    at = panel.figure.mapTo(panel, panel.figure.mapFromScene(middle))
    column = [picture.pixelColor(at.x(), at.y() + n).lightnessF() for n in range(-60, 60)]
    light = np.array(column) > max(column) - 0.08
    assert light.mean() > 0.3 and (np.diff(light.astype(int)) == 1).sum() > 15
    assert f": {lines.drawn.sum()} lines for {many}; " in lines.sentence
    lines.zoom(0.02, 0.5)
    assert lines.drawn.sum() == lines._in_view().sum() >= 6 and " lines for " not in lines.sentence
    strong = np.where(np.eye(many, k=-1) > 0, np.linspace(0.1, 0.9, many)[:, None], 0)
    lines.set_weights(strong, names, names)
    lines.show_whole()
    lines.set_cursor(151, None)
    drawn = set(lines.links.queries[lines.drawn].tolist())
    assert {299, 151} <= drawn and 150 not in drawn and 152 not in drawn


# -- alignments


def test_an_alignment_has_a_path_and_its_numbers(panel: Any) -> None:
    panel.view.setCurrentText("Alignment")
    keys, queries = panel.row.plot.path.getData()
    assert keys.tolist() == WEIGHTS[0, 0].argmax(-1).tolist() and queries.tolist() == list(range(T))
    np.testing.assert_allclose(panel.row.of_query.getData()[1], WEIGHTS[0, 0].sum(0), rtol=1e-5)
    np.testing.assert_allclose(panel.row.of_key.getData()[0], WEIGHTS[0, 0].max(-1), rtol=1e-6)
    assert f"focus {WEIGHTS[0, 0].max(-1).mean():.2f}, diagonality" in panel.row.heading
    panel.options.option("focus", "entropy").trigger()
    with np.errstate(all="ignore"):
        entropy = -np.nansum(WEIGHTS[0, 0] * np.log(WEIGHTS[0, 0]), -1)
    np.testing.assert_allclose(panel.row.of_key.getData()[0], entropy, rtol=1e-5, atol=1e-7)
    assert {name.rpartition(" ")[2] for name in panel.data()} >= {"coverage", "largest", "entropy", "path"}
    panel.view.setCurrentText("Map")
    assert panel.row.plot.path.getData()[0] is None or not len(panel.row.plot.path.getData()[0])


def test_maps_of_a_chain_of_layers_are_offered_at_these_layers_alone(tmp_path: Path) -> None:
    dims, chain = ("layer", "query", "key"), np.stack([np.full((4, 4), 0.25, np.float32), np.eye(4, dtype=np.float32)])
    maps = [
        channel(f"{place}:attention", "attention", ("head", "query", "key"), np.full((1, 4, 4), 0.25, np.float32),
                domains={"query": "step", "key": "step"})
        for place in "abc"
    ]  # fmt: skip
    flow = channel("cross:attention/rollout", "attention_map", dims, chain, labels={"layer": ("b", "c")})
    with shown_panel(tmp_path, "attention", *maps, flow, place="a") as (stage, panel):
        assert panel.beside() == []
        for number, place in enumerate("bc"):
            stage.cursor.move(place=place)
            QApplication.processEvents()
            panel.redraw()
            QTest.qWait(20)
            assert [one.name for one in panel.beside()] == ["cross:attention/rollout"]
            panel.options.option("beside", "attention/rollout").trigger()
            cells, _ = panel.page.maps[1].map._look((0.0, 0.0, 4.0, 4.0), (4, 4))
            np.testing.assert_array_equal(cells, chain[number])


# -- what is read beside the window


def test_large_maps_are_read_in_a_thread_and_look_the_same(
    capture: Capture, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(capture, (1280, 760))
    at_once = stage.panel("attention")
    wanted, thumbnails = indices(at_once), dict(at_once.atlas._pictures)
    monkeypatch.setattr("inspector.gui.panel.map_levels.SMALL", 10)
    monkeypatch.setattr("inspector.gui.panels.attention.SMALL", 10)
    beside = stage.panel("attention")
    qtbot.waitUntil(lambda: not beside.levels.reader.busy and not beside._timer.isActive())
    assert beside.row.heading == at_once.row.heading and not beside.row.map._gaps
    np.testing.assert_array_equal(indices(beside), wanted)
    assert all((beside.atlas._pictures[key] == picture).all() for key, picture in thumbnails.items())
    stage.close()


def test_every_weight_of_what_is_zoomed_is_read_where_it_is_not_stored(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.gui.panel.map_levels.SMALL", 10)
    monkeypatch.setattr("inspector.analysis.attention.map_pyramid.MOST_CELLS", 200)
    from inspector.analysis.attention.map_source import MapChoice

    levels, choice = MapLevels(), MapChoice((("layers.1:attention", 2),))
    pyramid = levels.pyramid(capture, choice)
    levels.reader.wait()
    assert pyramid.complete and pyramid.base == 4
    look, part = levels.look(capture, choice, "maximum"), (3.0, 21.0, 8.0, 9.0)
    cells, rect = look(part, (80, 90))
    assert cells.shape == (3, 3) and rect == (0, 20, 12, 12), "at first as it is stored"
    levels.reader.wait()
    cells, (left, top, across, down) = look(part, (80, 90))
    rows, columns = slice(int(top), int(top + down)), slice(int(left), int(left + across))
    assert cells.shape == (down, across) and left <= 3 and top <= 21
    np.testing.assert_array_equal(cells[np.isfinite(cells)], WEIGHTS[1, 2, rows, columns][np.isfinite(cells)])
    levels.forget()


def test_a_figure_in_a_file_waits_for_what_is_read(
    capture: Capture, monkeypatch: pytest.MonkeyPatch, qtbot: Any
) -> None:
    monkeypatch.setattr("inspector.gui.panel.map_levels.SMALL", 10)
    monkeypatch.setattr("inspector.gui.panels.attention.SMALL", 10)
    from inspector.gui.export.figure_files import png_bytes

    stage = Stage(capture, (900, 500))
    panel = stage.panel("attention")
    panel.complete()
    assert len(panel.atlas._pictures) == LAYERS * HEADS and not panel.row.map._gaps and png_bytes(panel)
    stage.close()
    assert not panel.levels.reader.busy


@pytest.mark.parametrize("heads", [1, 2])
def test_few_thumbnails_leave_the_width_to_the_map(tmp_path: Path, qtbot: Any, heads: int) -> None:
    weights = np.full((heads, 6, 6), 1 / 6, np.float32)
    parts = channel("a:attention", "attention", ("head", "query", "key"), weights, limits=(0, 1))
    with open_capture(write_frames(tmp_path, parts)) as capture:
        stage = Stage(capture, (1500, 700))
        panel = stage.panel("attention", place="a")
        panel.grab()
        cells = [panel.atlas.cell_at(0, head) for head in range(heads)]
        assert all(one.width() == 96.0 for one in cells), "as large as a thumbnail gets"
        assert max(one.right() for one in cells) <= panel.atlas.rect().width() < 1500 / 5
        assert panel.page.rect().width() > 1500 * 3 / 4
        stage.close()
