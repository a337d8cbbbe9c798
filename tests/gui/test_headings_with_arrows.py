"""The arrow of the order stands beside the words of a heading, never on them, in an empty table too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QTableView
from pytestqt.qtbot import QtBot

from inspector.gui.widgets.tables.number_table import NumberTable
from inspector.gui.widgets.tables.sorted_table import Rows, SortedTable
from inspector.gui.widgets.theme import LIGHT, STYLE

HEADINGS = ("in", "by\nchance", "correlation")


def columns_of(table: QTableView, section: int) -> npt.NDArray[np.int64]:
    """Pixels (column, row) of one heading, as it is painted."""
    header = table.horizontalHeader()
    image = header.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), -1)[:, : image.width()].astype(int)
    at = header.sectionViewportPosition(section)
    return pixels[:, at + 2 : at + header.sectionSize(section) - 2].T


def sorted_table(names: Sequence[str]) -> SortedTable:
    table = SortedTable("unit or head", "a table")
    table.show_table(Rows(names, HEADINGS, [(float(n), 0.5, -1.0) for n in range(len(names))], HEADINGS))
    return table


def number_table() -> NumberTable:
    table = NumberTable()
    table.show_rows((), (), (), ("‖∂L/∂parameters‖₂", *HEADINGS), ("", *HEADINGS), lambda _row, _column: "", set())
    return table


@pytest.mark.parametrize("kind", ["empty", "filled", "sequences"])
def test_no_arrow_is_drawn_on_the_words_of_a_heading(qtbot: QtBot, kind: str) -> None:
    table = number_table() if kind == "sequences" else sorted_table(("h 1", "h 2") if kind == "filled" else ())
    qtbot.addWidget(table)
    table.setPalette(LIGHT.palette())
    table.setStyleSheet(STYLE)
    table.resize(900, 200)
    table.show()
    header = table.horizontalHeader()
    for section in range(table.model().columnCount()):
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        plain = columns_of(table, section)
        header.setSortIndicator(section, Qt.SortOrder.DescendingOrder)
        with_arrow = columns_of(table, section)
        words = {x for x, column in enumerate(plain) if len(set(column.tolist())) > 1}
        arrow = {x for x in range(len(plain)) if (plain[x] != with_arrow[x]).any()}
        assert words and arrow
        assert min(arrow) > max(words) + 1 or max(arrow) < min(words) - 1, (section, max(words), min(arrow))


def test_a_narrow_table_gives_up_the_room_of_arrows_and_then_cuts_words_before_it_scrolls(qtbot: QtBot) -> None:
    table = SortedTable("unit or head", "a ranking")
    qtbot.addWidget(table)
    table.show_table(
        Rows(["a unit with a long name " * 2] * 3, ["in", "r", "delay"], [("decoder.layers.rnn.l1", 0.25, 3.0)] * 3)
    )
    table.show()

    def at(width: int) -> list[int]:
        table.resize(width, 200)
        return [table.columnWidth(column) for column in range(4)]

    wide = at(1200)
    narrow = at(sum(wide) - 60)
    assert narrow[0] + narrow[1] > 250 and sum(narrow) <= table.viewport().width()
    assert all(ours <= before for ours, before in zip(narrow, wide, strict=True)) and narrow != wide
    lowest = at(100)
    cells = [table.fontMetrics().horizontalAdvance(text) for text in ("0.25", "delay")]
    assert all(width > cell for width, cell in zip(lowest[2:], cells, strict=True)), "numbers are never cut"
    assert lowest[:2] == wide[:2], "where it scrolls anyway words are whole"
    squeezed = at(72 + 72 + sum(lowest[2:]) + 60)
    assert sum(squeezed) <= table.viewport().width() and squeezed[0] < wide[0] and squeezed[2:] == lowest[2:]
    assert at(1200) == wide
    table.setColumnWidth(0, 200)
    assert at(400)[0] == 200, "a width that somebody gave it stays"
