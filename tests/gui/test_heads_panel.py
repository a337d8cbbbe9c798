"""The tables of heads and of what attention costs, and the table of massive activations: sorted, and a click goes there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from cases_residual import HEAD_PARTS, PARTS
from panel_captures import channel, shown, write_frames
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.capture import open_capture
from inspector.gui.panel.attention.places_in_short import in_short
from inspector.gui.panel.plot_menu import PlotMenu
from inspector.gui.widgets.maps.map_plot import LOWER
from inspector.gui.widgets.tables.sorted_table import Rows, written

LEFT = Qt.MouseButton.LeftButton
OTHER = channel("b:attention/entropy", "attention_statistic", ("head", "query"),
                np.array([[9.0, 9.0], [0.0, 1.0], [5.0, 5.0]], np.float32), title="entropy", unit="nat")  # fmt: skip


def cells(table: Any) -> list[list[str]]:
    """What the rows say, from the top."""
    model = table.model()
    return [[model.data(model.index(i, j)) or "" for j in range(model.columnCount())] for i in range(model.rowCount())]


def click_heading(table: Any, title: str) -> None:
    """A click on the heading of a column."""
    header = table.horizontalHeader()
    titles = [table.model().headerData(n, Qt.Orientation.Horizontal) for n in range(table.model().columnCount())]
    header.sectionClicked.emit([one.replace("\n", " ") for one in titles].index(title))


def click_row(table: Any, row: int) -> None:
    """A click on a row, where the mouse reaches it."""
    QTest.mouseClick(table.viewport(), LEFT, pos=table.visualRect(table.model().index(row, 1)).center())


def test_heads_are_sorted_by_a_column_and_a_click_goes_to_the_head(tmp_path: Path) -> None:
    with shown(tmp_path, "heads", *HEAD_PARTS, OTHER) as (stage, panel):
        assert cells(panel.table)[:2] == [
            ["a, head 0", "local", "head 1", "0.25", "0.75", "1"],
            ["a, head 1", "induction", "head 0", "0.25", "0.5", "3"],
        ]
        assert cells(panel.table)[2] == ["b, head 0", "", "", "", "", "9"]
        click_heading(panel.table, "mean entropy")
        assert [row[0] for row in cells(panel.table)] == [
            "b, head 0", "b, head 2", "a, head 1", "a, head 0", "b, head 1",
        ]  # fmt: skip
        click_row(panel.table, 2)
        position = stage.cursor.position
        assert (position.place, position.head) == ("a", 1)
        click_heading(panel.table, "mean entropy")
        assert cells(panel.table)[0][0] == "b, head 1"
        stage.cursor.move(place="b", head=2)
        assert panel.table.numbers.order[panel.table.currentIndex().row()] == 4, (
            "the row of the cursor's head is marked"
        )
        click_heading(panel.table, "score")
        assert [row[4] for row in cells(panel.table)] == ["0.75", "0.5", "", "", ""]


def test_a_head_whose_numbers_are_nan_says_so(tmp_path: Path) -> None:
    """An empty cell is one that nothing computes: of a head with NaN in its weights every number is NaN."""
    numbers = np.array([[1.0, 3.0], [np.nan, np.nan]], np.float32)
    entropy = channel("b:attention/entropy", "attention_statistic", ("head", "query"), numbers, title="entropy")
    with shown(tmp_path, "heads", *HEAD_PARTS, entropy) as (_, panel):
        rows = {row[0]: row[1:] for row in cells(panel.table)}
        assert rows["b, head 0"][-1] == "2" and rows["b, head 1"][-1] == "NaN"
        assert set(rows["b, head 1"][:-1]) == {""}


def test_what_one_token_leaves_undefined_is_empty(tmp_path: Path) -> None:
    parts = [
        channel(f"b:attention/{name}", "attention_statistic", ("head", "query"), np.array([[value]], np.float32), title=name)
        for name, value in {"entropy": 0.0, "entropy_normalised": np.nan, "mask_margin": np.nan}.items()
    ]  # fmt: skip
    with shown(tmp_path, "heads", *parts) as (_, panel):
        assert cells(panel.table) == [["b, head 0", "0", "", ""]]


def test_a_head_of_no_type_has_no_score_of_it_and_one_with_nan_has_nan(tmp_path: Path) -> None:
    types = np.array([[0.9, 0.1], [0.2, 0.3], [np.nan, np.nan]], np.float32)
    parts = [
        channel("b:attention/head_types", "attention_statistic", ("head", "statistic"), types,
                title="types", labels={"statistic": ("local", "uniform")}),
        channel("b:attention/head_type_score", "attention_statistic", ("head",),
                np.array([0.9, np.nan, np.nan], np.float32), title="score of the head type"),
    ]  # fmt: skip
    with shown(tmp_path, "heads", *parts) as (stage, panel):
        column = panel.shown.headings.index("score of the head type")
        assert [row[column + 1] for row in cells(panel.table)] == ["0.9", "", "NaN"]
        stage.cursor.move(place="b", head=1)
        assert not any("NaN" in value for _, value in panel.readout(stage.cursor.position))


def test_the_heads_of_a_matrix_of_pairs_are_counted_upright(tmp_path: Path) -> None:
    """Numbers of two digits that had no room beside each other were written downwards."""
    many = 16
    apart = np.abs(np.subtract.outer(np.arange(many), np.arange(many))).astype(np.float32) / many
    pairs = channel("b:attention/redundancy", "attention_statistic", ("head", "other"), apart, unit="nat")
    with shown(tmp_path, "heads", pairs, place="b") as (_, panel):
        for width in (90.0, 160.0, 400.0):
            panel.pairs.map.setGeometry(0, 0, width, width)
            axis = panel.pairs.map.plot.step_axis
            assert axis.written(0, many - 1, axis.width()) != "turned" and axis.height() <= LOWER
            said = [text for spacing in axis.tickValues(-0.5, many - 0.5, axis.width())[:1]
                    for text in axis.tickStrings(spacing[1], 1.0, spacing[0])]  # fmt: skip
            assert said and all(text.isdigit() for text in said), "a head is its own number, said once"


def test_what_attention_costs_is_a_table_by_length(tmp_path: Path) -> None:
    with shown(tmp_path, "heads", *HEAD_PARTS) as (stage, panel):
        panel.which.setCurrentText("multiplications, flop")
        assert panel.table.model().headerData(0, Qt.Orientation.Horizontal) == "attention"
        assert cells(panel.table) == [["a, scores", "10", "20"], ["a, Q", "400", "5,000,000,000"]]
        click_heading(panel.table, "256")
        click_row(panel.table, 0)
        assert stage.cursor.position.place == "a"
        rows = panel.readout(stage.cursor.position)
        assert rows == [("this run  a, Q", "400 flop"), ("256  a, Q", "5000000000 flop")]


def test_what_attention_costs_is_shown_once_it_was_asked_for_and_is_there(tmp_path: Path) -> None:
    with shown(tmp_path / "a", "heads", OTHER) as (_, panel):
        asked: list[Any] = []
        panel.wanted.connect(asked.append)
        panel.more.choices["attention/flops"].trigger()
        assert asked == [("attention/cost",)] and panel.which.currentText() != "multiplications, flop"
        with open_capture(write_frames(tmp_path / "b", *HEAD_PARTS)) as later:
            panel.set_capture(later)
            QApplication.processEvents()
            assert panel.which.currentText() == "multiplications, flop"
            assert cells(panel.table) == [["a, scores", "10", "20"], ["a, Q", "400", "5,000,000,000"]]
            panel.which.setCurrentIndex(0)  # what was chosen since stays
            panel.update_contents()
            assert panel.which.currentText() != "multiplications, flop"
            panel.set_capture(None)


def test_a_head_is_ablated_from_its_menu_and_what_is_not_there_is_offered(tmp_path: Path) -> None:
    maps = channel("b:attention", "attention", ("head", "query", "key"), np.full((3, 2, 2), 0.5, np.float32))
    with shown(tmp_path, "heads", *HEAD_PARTS, OTHER, maps) as (stage, panel):
        asked: list[Any] = []
        panel.editing.connect(asked.append)
        panel.wanted.connect(asked.append)
        stage.cursor.move(place="b", head=2)
        next(one for one in PlotMenu(panel).actions() if one.text() == "Ablate head 2 of b…").trigger()
        stage.cursor.move(place="a", head=0)  # its maps were not stored
        assert not any("Ablate" in one.text() for one in PlotMenu(panel).actions())
        offered = {signal: one for signal, one in panel.more.choices.items() if one.isVisible()}
        assert not {"attention/head_type", "attention/redundancy", "attention/flops"} & set(offered)
        offered["attention/importance"].trigger()
        assert asked == ["b:head", ("attention/gradient",)]


def test_a_massive_activation_is_gone_to(tmp_path: Path) -> None:
    with shown(tmp_path, "residual", *PARTS) as (stage, panel):
        panel.which.setCurrentText("massive activations")
        assert panel.table.isVisibleTo(panel) and not panel.figure.isVisibleTo(panel)
        assert cells(panel.table)[1] == ["blocks.0", "0", "400", "0"]
        click_heading(panel.table, "largest")
        assert [row[0] for row in cells(panel.table)] == ["blocks.0", "into blocks.0", "blocks.1"]
        click_row(panel.table, 2)
        assert (stage.cursor.position.place, stage.cursor.position.step) == ("blocks.1", 5)
        assert panel.readout(stage.cursor.position)[0] == ("massive activations: position  blocks.1", "5")


def test_words_stand_in_the_cells_of_the_lens_where_there_is_room(tmp_path: Path) -> None:
    def grabbed(panel: Any) -> Any:
        panel.looking.move(step=None)
        return panel.figure.grab().toImage()

    with shown(tmp_path, "residual", *PARTS) as (_, panel):
        panel.which.setCurrentText("class in the lens")
        panel.words.show()
        with_words = grabbed(panel)
        panel.words.hide()
        assert grabbed(panel) != with_words, "the words are painted"
        panel.words.show()
        row, column = 2, 6  # where the probability is 1: the brightest colour
        assert panel.words.ink(row, column) == "#000000" and panel.words.ink(0, 0) == "#ffffff"
    many = channel("blocks:residual/lens_token", "residual", ("layer", "step"), np.ones((2, 300), np.int32), title="class",
                   labels={"layer": ("a", "b")}, value_domain="class")  # fmt: skip
    with shown(tmp_path / "many", "residual", many) as (_, panel):
        few = grabbed(panel)
        panel.words.hide()
        assert grabbed(panel) == few, "no words in cells that are too narrow"


def test_numbers_come_before_words_and_unknown_ones_last() -> None:
    rows = Rows(("a", "b", "c", "d"), ("x",), ((2.0,), ("damaged",), (np.nan,), (-np.inf,)))
    assert rows.order(0, descending=True) == [0, 3, 1, 2] and rows.order(0, descending=False) == [3, 0, 1, 2]
    assert rows.order(-1, descending=True) == [3, 2, 1, 0]
    assert [written(v) for v in (1234567.0, 0.123456, 2e12, -np.inf, "w")] == [
        "1,234,567", "0.1235", "2e+12", "−∞", "w",
    ]  # fmt: skip


def test_statistics_of_heads_are_columns_importance_first(tmp_path: Path) -> None:
    scores = channel("a:attention/importance", "attention_statistic", ("head", "statistic"),
                     np.array([[1.0, 2.0], [3.0, 40.0]]), title="importance", labels={"statistic": ("whole", "by query")})  # fmt: skip
    with shown(tmp_path, "heads", *HEAD_PARTS, scores) as (_, panel):
        assert panel.shown.headings == (
            "type", "most alike", "divergence from it", "score", "importance: whole", "importance: by query", "mean entropy",
        )  # fmt: skip
        assert cells(panel.table)[1] == ["a, head 1", "induction", "head 0", "0.25", "0.5", "3", "40", "3"]


APART = np.array([[0.0, 0.25, 0.5], [0.25, 0.0, 0.125], [0.5, 0.125, 0.0]])
OF_B = channel("b:attention/redundancy", "attention_statistic", ("head", "other"), APART, title="divergence", unit="nat",
               limits=(0.0, float(np.log(2))))  # fmt: skip


def matrix_of(panel: Any) -> Any:
    """The cells as they are drawn, (row, column), and their colours."""
    cells_, _ = panel.pairs.map.plot.map._look((0, 0, 3, 3), (100, 100))
    return cells_, panel.pairs.map.plot.map._levels


def test_the_divergence_of_heads_is_a_matrix_of_the_attention_at_the_cursor(tmp_path: Path) -> None:
    with shown(tmp_path, "heads", *HEAD_PARTS, OTHER, OF_B, place="b") as (stage, panel):
        stage.cursor.move(place="b", head=2)
        drawn, levels = matrix_of(panel)
        np.testing.assert_array_equal(drawn, APART)
        assert (levels.low, levels.high) == (0.0, float(np.log(2))) and panel.figure.isVisibleTo(panel)
        assert panel.pairs.map.heading == "heads 2 and 1: 0.125 nat   divergence, b", "the one that is most like it"
        panel.pointed(panel.pairs.map.plot, 0.2, 1.4)
        assert panel.pairs.map.heading == "heads 1 and 0: 0.25 nat   divergence, b"
        assert stage.cursor.position.head == 2, "only a click goes there"
        panel.clicked(panel.pairs.map.plot, 2.0, 0.0)
        assert (stage.cursor.position.place, stage.cursor.position.head) == ("b", 0)
        assert panel.pairs.map.heading == "heads 0 and 2: 0.5 nat   divergence, b"
        stage.cursor.move(place="a", head=0)
        assert matrix_of(panel)[0].shape == (2, 2) and panel.pairs.map.heading.endswith("   divergence, a")


def test_without_divergences_the_table_has_the_whole_width(tmp_path: Path) -> None:
    with shown(tmp_path, "heads", OTHER) as (_, panel):
        assert not panel.figure.isVisibleTo(panel) and panel.table.isVisibleTo(panel)
    with shown(tmp_path / "cost", "heads", *HEAD_PARTS) as (_, panel):
        assert panel.figure.isVisibleTo(panel)
        panel.which.setCurrentText("multiplications, flop")
        assert not panel.figure.isVisibleTo(panel)


def test_divergences_of_two_runs_are_to_both_sides_of_zero(tmp_path: Path) -> None:
    later = (OF_B[0], APART * np.array([[1, 0.5, 2], [0.5, 1, 1], [2, 1, 1]]))
    twice = [OTHER, OTHER, OF_B, later]
    with shown(tmp_path, "heads", *twice, difference=True, place="b") as (_, panel):
        drawn, levels = matrix_of(panel)
        np.testing.assert_allclose(drawn, later[1] - APART)
        assert levels.scale == "diverging" and levels.low == -levels.high == -0.5


def test_a_pair_that_is_not_known_is_said_to_be_so(tmp_path: Path) -> None:
    lost = np.where(APART == 0.125, np.nan, APART)
    with shown(tmp_path, "heads", OTHER, (OF_B[0], lost), place="b") as (_, panel):
        panel.pointed(panel.pairs.map.plot, 1.0, 2.0)
        assert panel.pairs.map.heading == "heads 2 and 1: NaN nat   divergence, b"
        metrics = QFontMetricsF(panel.font())
        cut = panel.pairs.map.shortened(metrics, metrics.horizontalAdvance("heads 2 and 1: NaN nat   dive"))
        assert cut.startswith("heads 2 and 1: NaN nat"), "of a line that is too long the number is whole"


def test_names_of_heads_leave_room_for_numbers_and_are_whole_in_tooltips(tmp_path: Path) -> None:
    """As wide as the panel is in a window of 960 pixels: beside a matrix of pairs a name of the whole place took two
    thirds of the table."""
    places = [f"encoder.layers.{n}.self_attn" for n in (0, 1)]
    numbers = np.array([[1.0, 3.0], [2.0, 4.0]], np.float32)
    parts = [
        channel(f"{place}:attention/{signal}", "attention_statistic", ("head", "query"), numbers, title=signal)
        for place in places for signal in ("entropy", "distance", "sink")
    ]  # fmt: skip
    pairs = [channel(f"{place}:attention/redundancy", "attention_head", ("head", "other"),
                     np.zeros((2, 2), np.float32), title="divergence", unit="nat") for place in places]  # fmt: skip
    with shown(tmp_path, "heads", *parts, *pairs) as (stage, panel):
        panel.resize(580, 230)
        stage.fit(panel)
        QApplication.processEvents()
        assert [row[0] for row in cells(panel.table)] == [f"layers.{n}, head {head}" for n in (0, 1) for head in (0, 1)]
        model = panel.table.model()
        tips = [model.data(model.index(row, 0), Qt.ItemDataRole.ToolTipRole) for row in range(4)]
        assert all(f"{places[row // 2]}, head {row % 2}" in tips[row] for row in range(4))
        name = QFontMetricsF(panel.table.font()).horizontalAdvance("layers.0, head 0")
        assert panel.table.columnWidth(0) < name + 50
        axis = panel.pairs.map.plot.query_axis
        assert panel.pairs.channel is not None and axis.width() <= 45
        stage.cursor.move(place=places[1], head=1)
        assert any(places[1] in what for what, _ in panel.readout(stage.cursor.position)), "the place is told in full"


def test_what_all_places_share_is_left_out() -> None:
    assert in_short(["a.0.attn", "a.1.attn", "a.10.attn"]) == {
        "a.0.attn": "a.0",
        "a.1.attn": "a.1",
        "a.10.attn": "a.10",
    }
    assert in_short(["enc.self_attn", "dec.self_attn", "dec.cross_attn"]) == {
        "enc.self_attn": "enc.self_attn", "dec.self_attn": "dec.self_attn", "dec.cross_attn": "dec.cross_attn",
    }  # fmt: skip
    assert in_short(["m.enc.attn", "m.dec.attn"]) == {"m.enc.attn": "enc", "m.dec.attn": "dec"}
    for whole in (["attn"], ["m.attn"], [], ["a", "a.b"], ["", "x"], ["a.a", "a.a.a"]):
        assert in_short(whole) == {one: one for one in whole}
