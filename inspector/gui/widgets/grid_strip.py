"""A strip whose steps are not one line: patches of a picture in rows and columns, or hypotheses below each other."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QWheelEvent

from inspector.gui.state.cursor import Cursor, Looking, Position
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.theme import Theme
from inspector.gui.widgets.token_strip import TokenStrip

MARGIN = 4
CELL, LEAST, TALLEST = 20, 6, 132
"""Pixels: of a patch, of the smallest patch, and the height limit of the strip, beyond which it scrolls."""


class GridStrip(TokenStrip):
    """Position i lies in row i // columns and column i % columns; the cursor's cell is framed.

    With `texts` every cell is a line of text as wide as the strip (hypotheses: one column).
    """

    def __init__(self, cursor: Cursor | Looking, theme: Theme, columns: int, *, texts: bool = False) -> None:
        super().__init__(cursor, theme)
        self.columns, self.texts = max(1, columns), texts
        if texts:
            self.aligned = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        self._top = 0

    @property
    def rows(self) -> int:
        """The number of rows."""
        return -(-self._steps // self.columns)

    def cell(self) -> tuple[int, int]:
        """(width, height) of a cell in pixels."""
        if self.texts:
            return max(1, self.width() - 2 * MARGIN), QFontMetrics(self.font()).height() + 4
        room = min(TALLEST - 2 * MARGIN, CELL * max(1, self.rows)) // max(1, self.rows)
        across = max(1, self.width() - 2 * MARGIN) // self.columns
        size = max(LEAST, min(CELL, room, across))
        return size, size

    def sizeHint(self) -> QSize:
        """As tall as its rows, up to a limit."""
        return QSize(400, min(TALLEST, self.rows * self.cell()[1] + 2 * MARGIN))

    def minimumSizeHint(self) -> QSize:
        """All of the height, and as little width as one line."""
        return self.sizeHint()

    def set_sequence(self, names: Sequence[str], steps: int) -> None:
        """Other positions, or more of them."""
        super().set_sequence(names, steps)
        self._scroll_to(self.cursor_.position.step)
        self.updateGeometry()

    def box(self, step: int) -> QRect:
        """Where a position is painted."""
        width, height = self.cell()
        row, column = divmod(step, self.columns)
        return QRect(MARGIN + column * width, MARGIN + (row - self._top) * height, width, height)

    def at(self, point: QPoint) -> int | None:
        """The position under a point, or None."""
        width, height = self.cell()
        column, row = (point.x() - MARGIN) // width, (point.y() - MARGIN) // height + self._top
        step = row * self.columns + column
        return step if 0 <= column < self.columns and self._top <= row and 0 <= step < self._steps else None

    def named(self, step: int) -> str:
        """The name of a position; for a patch with its row and column."""
        where = self.where(step)
        return f"{super().named(step)} ({where})" if where else super().named(step)

    def where(self, step: int) -> str:
        """The row and column of a patch."""
        return "" if self.texts else f"row {step // self.columns}, column {step % self.columns}"

    def paintEvent(self, event: QPaintEvent) -> None:
        """The cells in view; the cursor's comes last, so that no neighbour covers its frame."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self.theme.base))
        first, last = self._top * self.columns, min(self._steps, (self._top + self._seen() + 1) * self.columns)
        now = self.cursor_.position.step
        for step in (*range(first, last), *((now,) if now is not None and first <= now < last else ())):
            box = self.box(step).adjusted(0, 0, -1, -1)
            painter.setPen(QColor(self.theme.grid))  # a cell of the lowest number has the colour of the background
            painter.drawRect(box)
            self.paint_step(painter, step, box, 0, self.name_of(step))

    def name_of(self, step: int) -> str:
        """A patch is too small for a text; a hypothesis is cut at the end of its row."""
        if not self.texts:
            return ""
        name = clean(self._names[step]) if step < len(self._names) else str(step)
        return QFontMetrics(self.font()).elidedText(f" {name}", Qt.TextElideMode.ElideRight, self.cell()[0] - MARGIN)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and down go from row to row; left and right are the window's."""
        rows = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        step = self.cursor_.position.step
        if rows is None:
            super().keyPressEvent(event)
        elif step is None or 0 <= step + rows * self.columns < self._steps:
            self.cursor_.move(step=0 if step is None else step + rows * self.columns)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll through the rows."""
        self._top = min(max(0, self._top - (1 if event.angleDelta().y() > 0 else -1)), max(0, self.rows - self._seen()))
        self.update()

    def _seen(self) -> int:
        return max(1, (self.height() - 2 * MARGIN) // self.cell()[1])

    def _follow(self, new: Position, old: Position) -> None:
        self._scroll_to(new.step)
        self.update()

    def _scroll_to(self, step: int | None) -> None:
        if step is not None and not self._pointed:
            row = step // self.columns
            self._top = min(max(self._top, row - self._seen() + 1), row)
