"""Which heads are shown: their numbers, order, filter and thumbnails, several side by side or as one map."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from head_views import (
    CTRL,
    HEADS,
    LEFT,
    PLACES,
    TYPES,
    WEIGHTS,
    WHOLE,
    T,
    cell,
    click,
    hover,
    on_map,
    seen,
    shown,
    wheel,
)
from panel_captures import channel, write_frames
from panel_captures import shown as shown_panel
from PySide6.QtGui import QContextMenuEvent, QFont, QFontMetricsF, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QStyleOptionGraphicsItem

from inspector.capture import Capture, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.plot_menu import PlotMenu
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.maps.atlas import fitting

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


@pytest.mark.parametrize(("count", "size"), [(3, (760, 760)), (5, (1000, 760))])
def test_heads_in_several_rows_are_of_one_size(panel: Any, count: int, size: tuple[int, int]) -> None:
    """The last row has names and colours of its own, which took from its map alone."""
    panel.resize(*size)
    for number in range(1, count):
        panel._added(number // HEADS, number % HEADS)
    QApplication.processEvents()
    maps = panel.page.shown
    assert len({one.geometry().top() for one in maps}) == 2, "two rows"
    sides = [(one.plot.vb.width(), one.plot.vb.height()) for one in maps]
    np.testing.assert_allclose(sides, [sides[0]] * count, atol=1.0)
    assert all(one.geometry().right() <= panel.page.rect().right() + 1 for one in maps)


def test_further_entries_of_the_strip_do_not_move_the_controls(panel: Any) -> None:
    before = panel.options.geometry()
    panel.which.addItem("a statistic with an exceedingly long title that was computed later on", "later")
    panel.layout().activate()
    QApplication.processEvents()
    assert panel.options.geometry() == before


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


def test_the_menu_over_a_thumbnail_is_of_its_head(panel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A right click on a head offers to ablate that one, not the one that is shown large; several stay chosen."""
    opened: list[list[str]] = []
    monkeypatch.setattr(PlotMenu, "popup", lambda menu, _where: opened.append([a.text() for a in menu.actions()]))
    click(panel, cell(panel, 0, 1))

    def offered(layer: int, head: int) -> list[str]:
        at = panel.figure.viewport().mapToGlobal(cell(panel, layer, head))
        panel.contextMenuEvent(QContextMenuEvent(QContextMenuEvent.Reason.Mouse, panel.mapFromGlobal(at), at))
        return [text for text in opened[-1] if "Ablate" in text]

    for layer, head in ((2, 3), (1, 0)):
        assert offered(layer, head) == [f"Ablate head {head} of {PLACES[layer]}…"]
        assert panel.here == (PLACES[layer], head) and panel.picked == [(PLACES[layer], head)]
    click(panel, cell(panel, 0, 2), CTRL)
    both = list(panel.picked)
    assert offered(0, 2) == [f"Ablate head 2 of {PLACES[0]}…"] and panel.picked == both
