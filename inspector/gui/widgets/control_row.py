"""The controls of a panel in one row, or in more where they do not fit: none is cut."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QTimer
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

SPACING, MARGIN = 6, 8
MOST_ROWS = 3


class ControlRow(QWidget):
    """Controls are added to `first`; once all were, `settle` is called with those that stay at the right of it.

    Rows are layouts of this one widget, and a caption stays with its control. They are arranged when the width changes
    and when `wrap` is called: a layout of its own would be asked for its height many times while a window opens.
    """

    def __init__(self) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, 2, MARGIN, 2)
        column.setSpacing(2)
        self.rows = [self._row(column) for _ in range(MOST_ROWS)]
        self.first = self.rows[0]
        self._groups: list[list[QWidget]] = []
        self._right: list[QWidget] = []
        self._shown: object = None
        self._again = QTimer(self, interval=0, singleShot=True)
        self._again.timeout.connect(self.wrap)

    @staticmethod
    def _row(column: QVBoxLayout) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(SPACING)
        column.addLayout(row)
        return row

    def settle(self, right: Sequence[QWidget]) -> None:
        """All controls were added."""
        items = [self.first.itemAt(n) for n in range(self.first.count())]
        self._group([widget for item in items if item is not None and (widget := item.widget()) is not None])
        self._right = list(right)
        self.first.addStretch(1)
        for widget in right:
            self.first.addWidget(widget)

    def join(self, later: Sequence[QWidget]) -> None:
        """Controls that were added after `settle` come after the others, before those at the right."""
        for widget in later:
            self.first.removeWidget(widget)
        for widget in later:
            self.first.insertWidget(self.first.count() - 1 - len(self._right), widget)
        self._group(later)
        self._shown = None
        self.wrap()

    def _group(self, widgets: Sequence[QWidget]) -> None:
        """A caption and its control stay together."""
        for widget in widgets:
            if self._groups and isinstance(self._groups[-1][-1], QLabel):
                self._groups[-1].append(widget)
            else:
                self._groups.append([widget])

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width."""
        super().resizeEvent(event)
        self.wrap()

    def event(self, event: QEvent) -> bool:
        """A control that says something longer than before needs more room: rows are arranged a turn of the loop later,
        after all that is chosen anew at the same time."""
        if event.type() == QEvent.Type.LayoutRequest:
            self._again.start()
        return super().event(event)

    def wrap(self) -> None:
        """Put every control into the first row that has room for it, in their order."""
        widths = [_width(group) for group in self._groups]
        asked = (self.width(), tuple(widths), _width(self._right))
        if asked == self._shown or not self._groups or not self.isVisible():
            return
        self._shown = asked
        numbers = self._numbers(widths)
        if numbers == [self._row_of(group[0]) for group in self._groups]:
            return
        for row in self.rows:
            _empty(row)
        for group, number in zip(self._groups, numbers, strict=True):
            for widget in group:
                self.rows[number].addWidget(widget)
        for row in self.rows[: max(numbers) + 1]:
            row.addStretch(1)
        for widget in self._right:
            self.first.addWidget(widget)

    def _numbers(self, widths: Sequence[int]) -> list[int]:
        """The row of each group."""
        found, row, at = [], 0, 0
        for width in widths:
            room = self.width() - 2 * MARGIN - (_width(self._right) + SPACING if row == 0 else 0)
            if width and at and at + width > room and row < MOST_ROWS - 1:
                row, at = row + 1, 0
            found.append(row)
            at += width + SPACING if width else 0
        return found

    def _row_of(self, widget: QWidget) -> int:
        return next((n for n, row in enumerate(self.rows) if row.indexOf(widget) >= 0), 0)


def _width(widgets: Sequence[QWidget]) -> int:
    """Pixels that widgets want beside each other; those that are hidden want none."""
    shown = [
        min(max(one.sizeHint().width(), one.minimumSizeHint().width()), one.maximumWidth())
        for one in widgets
        if not one.isHidden()
    ]
    return sum(shown) + SPACING * max(0, len(shown) - 1)


def _empty(row: QHBoxLayout) -> None:
    while row.count():
        row.takeAt(0)
