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

from inspector.gui.widgets.number_table import NumberTable
from inspector.gui.widgets.sorted_table import Rows, SortedTable
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
