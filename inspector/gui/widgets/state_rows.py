"""A small table in a figure: headings, and a row for each of some states."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QSizePolicy, QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.text_table import paint_lines
from inspector.gui.widgets.theme import LIGHT, Theme

MOST_ROWS, LONGEST = 40, 24
"""Rows that can be read at all, and letters that make a column wider."""


class StateRows(pg.GraphicsWidget):  # type: ignore[misc]
    """Plain text in columns, made smaller where it does not fit."""

    def __init__(self, theme: Theme = LIGHT) -> None:
        super().__init__()
        self.theme = theme
        self.headings: Sequence[str] = ()
        self.rows: list[list[str]] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def set_rows(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show another table; of very many rows the first ones, and how many more there are."""
        self.headings = [clean(one) for one in headings]
        self.rows = [[clean(cell) for cell in row] for row in rows[:MOST_ROWS]]
        if len(rows) > MOST_ROWS:
            self.rows.append([f"{len(rows) - MOST_ROWS} more", *[""] * (len(self.headings) - 1)])
        self.setVisible(bool(self.rows))
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.update()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Headings and rows."""
        if self.rows:
            painter.setFont(self.font())
            paint_lines(painter, self.boundingRect(), [self.headings, *self.rows], self.theme, longest=LONGEST)
