"""One or two lines of plain text below a figure: its summary."""

from __future__ import annotations

from bisect import bisect_left

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter
from PySide6.QtWidgets import QSizePolicy, QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.gui.widgets.theme import LIGHT, Theme

LINES = 2
FLAGS = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop) | int(Qt.TextFlag.TextWordWrap)


class SummaryText(pg.GraphicsWidget):  # type: ignore[misc]
    """Text that is wrapped to the figure's width and never read as HTML; as high as two lines; the tooltip has all
    of a longer one."""

    def __init__(self, theme: Theme = LIGHT) -> None:
        super().__init__()
        self.theme = theme
        self.text = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        height = LINES * QFontMetricsF(self.font()).lineSpacing() + 6
        for fix in (self.setMinimumHeight, self.setPreferredHeight, self.setMaximumHeight):
            fix(height)

    def set_text(self, text: str) -> None:
        """Show other text."""
        self.text = clean(text)
        self.setToolTip(tooltip(self.text))
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.update()

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """The text, wrapped."""
        area: QRectF = self.boundingRect().adjusted(8, 2, -8, -2)
        painter.setPen(QColor(self.theme.text))
        painter.setFont(self.font())
        painter.drawText(area, FLAGS, cut_to(self.text, QFontMetricsF(self.font()), area.width()))


def cut_to(text: str, metrics: QFontMetricsF, width: float) -> str:
    """The words that fit into the lines of a summary of a width, with "…" where not all do."""
    words = text.split(" ")

    def fits(count: int) -> bool:
        shown = " ".join(words[:count]) + ("" if count == len(words) else " …")
        height = metrics.boundingRect(QRectF(0, 0, width, 1e6), FLAGS, shown).height()
        return height <= LINES * metrics.lineSpacing() + 1

    if fits(len(words)):
        return text
    return " ".join(words[: bisect_left(range(1, len(words)), True, key=lambda count: not fits(count))]) + " …"
