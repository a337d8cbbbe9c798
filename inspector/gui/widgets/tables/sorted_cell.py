"""A cell of a table that is sorted by its number, not by how that is written."""

from __future__ import annotations

import math

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTableWidgetItem

from inspector.gui.widgets.plain_text import clean, tooltip

KEY = Qt.ItemDataRole.UserRole
"""The text as it was given, before anything was made harmless for display."""


class SortedCell(QTableWidgetItem):
    """A text with the number by which its column is sorted; what has none comes after all numbers, largest first."""

    def __init__(self, text: str, number: float | None = None, tip: str = "") -> None:
        super().__init__(clean(text))
        self.number = -math.inf if number is None or math.isnan(number) else number
        self.setData(KEY, text)
        self.setToolTip(tooltip(tip or text))
        self.setFlags(Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEnabled)
        if number is not None:
            self.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)

    def __lt__(self, other: QTableWidgetItem) -> bool:
        if isinstance(other, SortedCell) and (self.number, other.number) != (-math.inf, -math.inf):
            return self.number < other.number
        return self.text() < other.text()
