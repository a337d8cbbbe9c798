"""The keys: a table of all of them, searched by words."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHeaderView,
    QLineEdit,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.dialogs.dialogs import name_of
from inspector.gui.widgets.plain_text import clean

OTHER_KEYS = (
    ("← →", "one step back or on (Shift: ten)"),
    ("↑ ↓", "the unit or head before or after"),
    ("Ctrl+← →", "in Attention: the key before or after (Shift: ten)"),
    ("Home, End", "first and last step"),
    ("Space", "play the steps, stop"),
    ("mouse over a plot", "the cursor goes there; a lag, a rank or a token is marked and its values are shown"),
    ("wheel over a plot", "zoom around the mouse; with Shift up and down, with Ctrl both ways, over an axis along it"),
    ("drag in a plot", "move what is in view; with Shift draw a box to zoom into"),
    ("Double-click", "on a plot: show all of it again; on a token: replace it"),
    ("click on a name in a legend", "hide or show its curve; with Alt or Ctrl show it alone"),
    ("1 … 9", "hide or show the first to the ninth curve; with Alt show it alone"),
    ("W S, A D", "zoom the steps around the cursor, and move along them"),
    ("drag at a colour bar", "its ends, or both: the range of the colours; double click: as usual"),
    ("C", "the colour bar by keys: ↑ ↓ its upper end, with Shift the lower one, Home as usual; C the next, Esc done"),
    ("right button, Menu, Shift+F10", "copy, save, pin, edit, curves, colours, and what is shown"),
    ("Enter in the text", "run it"),
)
"""Keys that belong to no action."""


def keys_of(actions: Sequence[QAction]) -> list[tuple[str, str]]:
    """(key, what it does) of every action that has one, after those that belong to none."""
    own = [(action.shortcut().toString(), action.statusTip() or name_of(action)) for action in actions]
    return [*OTHER_KEYS, *(one for one in own if one[0])]


class KeysDialog(QDialog):
    """A row for each (key, what it does), none cut; words in the line leave those that have all of them."""

    def __init__(self, keys: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Keys")
        self.field, self.table = QLineEdit(), QTableWidget(len(keys), 2)
        self.field.setPlaceholderText("Filter keys")
        self.field.setAccessibleName("Filter keys")
        self.field.textChanged.connect(self.narrow)
        self._fill(keys)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        for widget in (self.field, self.table, buttons):
            layout.addWidget(widget)
        self.resize(self.sizeHint())

    def _fill(self, keys: Sequence[tuple[str, str]]) -> None:
        self.table.setHorizontalHeaderLabels(["key", "does"])
        for i, row in enumerate(keys):
            for j, text in enumerate(row):
                self.table.setItem(i, j, QTableWidgetItem(clean(text)))
        self.table.verticalHeader().hide()
        self.table.setShowGrid(False)
        self.table.setTabKeyNavigation(False)
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        self.table.setTextElideMode(Qt.TextElideMode.ElideNone)
        self.table.setAccessibleName("Keys")
        self.table.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        self.table.horizontalHeader().setStretchLastSection(True)
        self.table.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)

    def sizeHint(self) -> QSize:
        """As high as the screen is, at most."""
        screen = self.screen()
        room = screen.availableGeometry().size() if screen is not None else QSize(900, 700)
        return QSize(min(760, int(0.9 * room.width())), min(720, int(0.85 * room.height())))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Rows are as high as their words need at this width."""
        super().resizeEvent(event)
        self.table.resizeRowsToContents()

    def narrow(self, words: str) -> None:
        """Only the rows that have every word."""
        wanted = words.casefold().split()
        for i in range(self.table.rowCount()):
            cells = (self.table.item(i, j) for j in range(2))
            text = " ".join(cell.text() for cell in cells if cell is not None).casefold()
            self.table.setRowHidden(i, not all(word in text for word in wanted))


def show_keys(parent: QWidget, actions: Sequence[QAction]) -> None:
    """The keys, in a dialog."""
    KeysDialog(keys_of(actions), parent).exec()
