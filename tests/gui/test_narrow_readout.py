"""Exact numbers in a narrow dock: texts wrap, also where a word is longer than its column, and are copied as they are."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QTextDocument, QTextOption
from PySide6.QtWidgets import QStyleOptionViewItem
from pytestqt.qtbot import QtBot

from inspector.gui.widgets.plain_text import MAY_BREAK
from inspector.gui.widgets.tables.breaking import broken_to_fit
from inspector.gui.window.docking.side_docks import Readout

LONG = "gradient/arriving[150]  encoder.layers.0.self_attn.out_projection_of_everything"
ROWS = [
    ("Gradients", ""),
    ("Frobenius norm [150]", "1.5"),
    (LONG, "-0.01234567"),
    ("step", "150  'a_very_long_word_piece_without_any_space'"),
]


def needed(table: Readout, row: int, column: int) -> float:
    """Pixels of height of a cell's text, laid out by Qt's own engine for documents in the width of its column."""
    option = QStyleOptionViewItem()
    option.rect = QRect(0, 0, table.columnWidth(column), 1000)
    table.itemDelegate().initStyleOption(option, table.model().index(row, column))
    document = QTextDocument(option.text)
    document.setDefaultFont(table.font())
    document.setDocumentMargin(0)
    document.setDefaultTextOption(QTextOption(Qt.AlignmentFlag.AlignLeft))
    document.setTextWidth(table.columnWidth(column) - 6)
    assert document.idealWidth() <= table.columnWidth(column), "no word is wider than its column"
    return document.size().height()


def test_no_text_is_cut_however_narrow_it_becomes(qtbot: QtBot) -> None:
    table = Readout()
    qtbot.addWidget(table)
    table.resize(420, 500)
    table.show()
    table.show_rows(ROWS)
    heights = [table.rowHeight(row) for row in range(4)]
    table.resize(150, 500)  # no other numbers come
    qtbot.waitUntil(lambda: table.rowHeight(2) > heights[2], timeout=2000)
    for row in (1, 2, 3):
        for column in (0, 1):
            assert table.rowHeight(row) + 2 >= needed(table, row, column), (row, column)


def test_what_is_copied_has_no_places_to_break(qtbot: QtBot) -> None:
    table = Readout()
    qtbot.addWidget(table)
    table.show_rows(ROWS)
    table.selectAll()
    assert MAY_BREAK not in table.selected_text() and LONG in table.selected_text()
    item = table.item(2, 0)
    assert item is not None and item.text() == LONG


def test_numbers_are_not_broken() -> None:
    for number in ("-0.012345678901", "1.2345678e-12", "12,345,678,901"):
        assert broken_to_fit(number) == number
    assert broken_to_fit("[190]  rnn.l0", lambda word: len(word) < 9) == "[190]  rnn.l0", "words that fit stay whole"
    assert broken_to_fit("grad/arriv") == f"grad/{MAY_BREAK}arriv"
    assert broken_to_fit(LONG).replace(MAY_BREAK, "") == LONG
