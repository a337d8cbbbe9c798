"""What is cut is marked or said shorter, and what all rows of a read-out have is said once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from PySide6.QtGui import QFont, QFontMetricsF
from pytestqt.qtbot import QtBot

from inspector.capture import Pair
from inspector.gui.panels.heads import heading
from inspector.gui.state.compared_with import in_short
from inspector.gui.widgets.controls import chooser
from inspector.gui.widgets.cut_box import CutBox
from inspector.gui.widgets.cut_label import CutLabel
from inspector.gui.widgets.sketch import names_that_fit
from inspector.gui.widgets.tables.breaking import in_short_lines
from inspector.gui.widgets.tables.sorted_table import Rows, SortedTable
from inspector.gui.window.cursor_readout import Row, headed, said_once

LONG = "rnn.l0:jacobian/frobenius_over_root"
PLACE = "encoder.layers.0.self_attn, head 3"


def test_a_list_of_choices_ends_in_a_mark_where_its_choice_is_cut(qtbot: QtBot) -> None:
    box = chooser([LONG, "x"], "what")
    qtbot.addWidget(box)
    assert isinstance(box, CutBox)
    box.resize(600, 26)
    assert box.shown_text() == LONG
    box.resize(120, 26)
    shown = box.shown_text()
    assert shown.endswith("…") and LONG.startswith(shown[:-1]) and len(shown) > 3
    assert box.fontMetrics().horizontalAdvance(shown) < 120 - box.height() // 2
    cut = box.grab().toImage()
    box.setItemText(0, shown)
    assert box.grab().toImage() == cut, "what is painted is the text with its mark"
    assert box.currentText() == shown


@pytest.mark.parametrize("seen", [0, 1, 2])
def test_a_line_that_does_not_fit_says_less(qtbot: QtBot, seen: int) -> None:
    label = CutLabel()
    qtbot.addWidget(label)
    label.show()
    texts = ["70 channels compared, 1 cannot be compared; steps 0 to 44 of both", "70 compared, 1 not", "70 compared"]
    label.resize(label.fontMetrics().horizontalAdvance(texts[seen]) + 6, 20)
    label.show_text(texts[0], texts[1:])
    assert label.text() == texts[seen] and label.toolTip().count("cannot be compared") == 1
    label.resize(20, 20)
    assert label.text().endswith("…")


def test_what_is_compared_in_short() -> None:
    def pair(refused: dict[str, str], alignments: dict[str, Any]) -> Pair:
        return cast(Pair, SimpleNamespace(channels=range(70), refused=refused, separate=(), alignments=alignments))

    assert in_short(pair({"x": "why"}, {})) == ["70 compared, 1 not", "70 compared"]
    assert in_short(pair({}, {})) == ["70 compared"]
    aligned = in_short(pair({"x": "why"}, {"step": SimpleNamespace(sentence="aligned by tokens")}))
    assert aligned[0] == "70 channels compared, 1 cannot be compared"


def test_a_place_that_all_rows_have_stands_in_the_heading_without_pins_too() -> None:
    rows: list[Row] = [(f"mean attention distance  {PLACE}", "10.2"), (f"mean attention entropy  {PLACE}", "2.1")]
    assert said_once(rows) == ([("mean attention distance", "10.2"), ("mean attention entropy", "2.1")], PLACE)
    assert said_once(rows[:1]) == (rows[:1], ""), "one row says where it is itself"
    other: list[Row] = [rows[0], ("mean attention entropy  elsewhere", "2.1")]
    assert said_once(other) == (other, "")
    iteration: list[Row] = [("loss [iteration 350]", "3.4"), ("gradient norm: before clipping [iteration 350]", "11")]
    assert said_once(iteration) == ([("loss", "3.4"), ("gradient norm: before clipping", "11")], "iteration 350")
    steps: list[Row] = [("h[3, 1]  rnn.l0", "1"), ("c[3, 1]  rnn.l0", "2")]
    assert said_once(steps) == ([("h[3, 1]", "1"), ("c[3, 1]", "2")], "rnn.l0"), "step and unit stay"
    assert (
        headed("Heads", PLACE, "a against b") == f"Heads, {PLACE}: a against b" and headed("Heads", "", "") == "Heads"
    )


TITLES = (
    "mean attention distance", "mean attention entropy", "mean attention entropy, normalised",
    "mean largest attention weight", "mean weight on the first key", "mean weight on the first 4 keys",
    "largest score before the softmax",
)  # fmt: skip


def test_headings_get_higher_before_a_table_scrolls_sideways(qtbot: QtBot) -> None:
    table = SortedTable("head", "heads")
    qtbot.addWidget(table)
    cells = [[15.99, 3.089, 0.6679, 0.1919, 0.026, 0.04777, 10.87]] * 8
    table.resize(900, 160)
    table.show()
    table.show_table(
        Rows([f"layers.0, head {n}" for n in range(8)], [heading(one) for one in TITLES], cells, [""] * len(TITLES))
    )
    assert not table.numbers.high
    seen = set()
    for width in range(900, 500, -7):
        table.resize(width, 160)
        qtbot.wait(1)
        least = sum(table._high) + table.verticalScrollBar().sizeHint().width() + 2 * table.frameWidth()
        fits = sum(table._widths()) <= table.viewport().width()
        assert fits or width < least, width
        seen.add((bool(table.numbers.high), fits))
    assert {(False, True), (True, True)} <= seen
    table.resize(900, 160)
    assert not table.numbers.high and sum(table._widths()) <= table.viewport().width()
    assert in_short_lines("mean weight\non the first 4 keys") == "mean\nweight\non the\nfirst\n4 keys"


def test_every_line_of_a_small_picture_has_a_name(qtbot: QtBot) -> None:
    metrics = QFontMetricsF(QFont())
    names, wide = ["before clipping", "after clipping"], metrics.horizontalAdvance("before clipping")
    assert names_that_fit(names, 2 * wide + 20, metrics) == names
    cut = names_that_fit(names, 1.5 * wide, metrics)
    assert len(cut) == 2 and cut[0].startswith("before") and cut[1].startswith("after") and cut[0].endswith("…")
    assert sum(metrics.horizontalAdvance(one) for one in cut) + 8 <= 1.5 * wide, "they cover nothing beside them"
    many = [f"encoder.layers.{n}.self_attn" for n in range(8)]
    few = names_that_fit(many, 2 * wide, metrics)
    assert (
        1 < len(few) < 9
        and few[-1] == "…"
        and names_that_fit(many, 20, metrics) == [] == names_that_fit([], 9, metrics)
    )
