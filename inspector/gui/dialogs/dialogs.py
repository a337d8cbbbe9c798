"""Questions to the user: a checkpoint that does not fit; what actions are called, and the keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.dialogs.keys_dialog import KeysDialog
from inspector.gui.widgets.plain_text import clean, plain_label
from inspector.records import CheckpointReport, counted

NAME = "name"
"""The property of an action that says what it is called outside of its menu."""


class ReportDialog(QDialog):
    """What a checkpoint would do to the model: loading what fits is the user's decision."""

    def __init__(self, report: CheckpointReport, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Checkpoint")
        layout = QVBoxLayout(self)
        removed = f" Prefix removed: {report.removed_prefix}" if report.removed_prefix else ""
        layout.addWidget(
            plain_label(
                f"{Path(report.path).name} ({report.layout}) fits {report.matched} of "
                f"{counted(report.total, 'tensor')}.{removed}"
            )
        )
        table = QTableWidget(len(report.mismatches), 3)
        table.setHorizontalHeaderLabels(["tensor", "problem", "detail"])
        table.verticalHeader().hide()
        table.horizontalHeader().setStretchLastSection(True)
        for i, mismatch in enumerate(report.mismatches):
            for j, text in enumerate((mismatch.name, mismatch.problem, mismatch.detail)):
                table.setItem(i, j, QTableWidgetItem(clean(text)))
        table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        table.setTextElideMode(Qt.TextElideMode.ElideNone)
        table.setHorizontalScrollMode(QTableWidget.ScrollMode.ScrollPerPixel)
        table.setAccessibleName("What does not fit")
        table.resizeColumnsToContents()
        layout.addWidget(table)
        buttons = QDialogButtonBox()
        load = buttons.addButton("Load what fits", QDialogButtonBox.ButtonRole.AcceptRole)
        cancel = buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        load.setAutoDefault(False)
        cancel.setDefault(True)
        cancel.setFocus()
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        layout.addWidget(buttons)
        self.resize(self._width(table), 360)

    def _width(self, table: QTableWidget) -> int:
        """Wide enough for names and shapes, as far as the screen is."""
        wanted = sum(table.columnWidth(i) for i in range(3)) + table.verticalScrollBar().sizeHint().width() + 48
        screen = self.screen()
        most = 0.9 * screen.availableGeometry().width() if screen is not None else wanted
        return int(max(640, min(wanted, most)))


def name_of(action: QAction) -> str:
    """What an action is called outside of its menu: a word like "Light" says there what it is about."""
    own = action.property(NAME)
    return str(own) if own else action.text().replace("&&", "\0").replace("&", "").replace("\0", "&").rstrip("…")


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


def show_keys(parent: QWidget, actions: Sequence[QAction]) -> None:
    """The keys, in a table."""
    dialog = KeysDialog(keys_of(actions), parent)
    dialog.exec()
    dialog.deleteLater()
