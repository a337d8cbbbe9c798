"""A small table in a figure: headings, and a row for each of some states."""

from __future__ import annotations

from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import QSizePolicy, QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.tables.text_table import EDGE, LINE, paint_lines
from inspector.gui.widgets.theme import LIGHT, Theme

SMALLEST = 0.85
"""Of the size of the text, to which a few rows are made smaller rather than left out."""
LONGEST = 24
"""Letters that make a column wider."""


class StateRows(pg.GraphicsWidget):  # type: ignore[misc]
    """Plain text in columns; of more rows than there is room for the first ones, and how many more there are."""

    def __init__(self, theme: Theme = LIGHT, longest: int = LONGEST) -> None:
        super().__init__()
        self.theme, self.longest = theme, longest
        self.headings: Sequence[str] = ()
        self.rows: list[list[str]] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def set_rows(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show another table."""
        self.headings = [clean(one) for one in headings]
        self.rows = [[clean(cell) for cell in row] for row in rows]
        self.setVisible(bool(self.rows))
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.update()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Headings and rows."""
        if not self.rows:
            return
        painter.setFont(self.font())
        area = self.boundingRect()
        line = QFontMetricsF(self.font()).height() * LINE * SMALLEST
        room = max(1, int((area.height() - 2 * EDGE) / line) - 1)
        rows = self.rows
        if len(rows) > room:
            rows = [*rows[: room - 1], [f"{len(rows) - room + 1} more", *[""] * (len(self.headings) - 1)]]
        paint_lines(painter, area, [self.headings, *rows], self.theme, longest=self.longest)
