"""A short list of what was found, below the field that it fills; hidden where nothing was."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QListWidget, QListWidgetItem

from inspector.gui.widgets.plain_text import clean, tooltip

SEEN = 5
"""Rows without scrolling."""
VALUE = Qt.ItemDataRole.UserRole


class FoundList(QListWidget):
    """`chosen(value)` by a click or by moving along it with the keyboard: what is highlighted is what the field has."""

    chosen = Signal(str)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.itemClicked.connect(self._choose)
        self.itemActivated.connect(self._choose)
        self.itemSelectionChanged.connect(self._choose_selected)
        self._marking = False
        self.hide()

    def show_found(self, found: Sequence[tuple[str, str]]) -> None:
        """(value, how it is listed) of each."""
        self._marking = True  # Qt selects what comes after each that it takes away
        self.clear()
        self._marking = False
        for value, words in found:
            item = QListWidgetItem(clean(words), self)
            item.setData(VALUE, value)
            item.setToolTip(tooltip(words))
        rows = min(SEEN, len(found))
        self.setFixedHeight(rows * max(1, self.sizeHintForRow(0)) + 2 * self.frameWidth() + 2)
        self.setVisible(bool(found))

    def mark(self, value: str) -> None:
        """Show which one the field has, if any."""
        same = [i for i in range(self.count()) if self.item(i).data(VALUE) == value]
        self._marking = True
        self.setCurrentRow(same[0] if same else -1)
        self._marking = False

    def _choose_selected(self) -> None:
        for item in [] if self._marking else self.selectedItems():
            self._choose(item)

    def _choose(self, item: QListWidgetItem) -> None:
        self.chosen.emit(item.data(VALUE))
