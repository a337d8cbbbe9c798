"""The question whether code may run: every file of it, and which of them changed since the user agreed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.widgets.plain_text import clean, plain_label, tooltip
from inspector.records import CodeFile, NeedsTrust

STATES = {"new": "new", "changed": "changed since you agreed"}
ROWS_SEEN = 12


class TrustDialog(QDialog):
    """Lists the files that would run. Enter and Escape cancel: running takes a deliberate click."""

    def __init__(self, asked: NeedsTrust, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Run this code?")
        many = len(asked.files) > 1
        words = plain_label(
            f"{'These files are' if many else 'This file is'} code that is about to run. Code can do whatever you can "
            "do on this machine: agree only if you know where it comes from. You are asked again when it changes."
        )
        words.setWordWrap(True)
        self.table = _table(sorted(asked.files, key=lambda file: (file.what == "new", file.path)))
        buttons = QDialogButtonBox()
        self.run_button = buttons.addButton("Run it", QDialogButtonBox.ButtonRole.AcceptRole)
        cancel = buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        self.run_button.setAutoDefault(False)
        cancel.setDefault(True)
        cancel.setFocus()
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addWidget(words)
        layout.addWidget(self.table)
        layout.addWidget(buttons)
        self.resize(640, 150 + 30 * min(len(asked.files), ROWS_SEEN))


def _table(files: list[CodeFile]) -> QTableWidget:
    table = QTableWidget(len(files), 3)
    table.setHorizontalHeaderLabels(["file", "", "folder"])
    table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
    table.setSelectionMode(QTableWidget.SelectionMode.NoSelection)
    table.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    table.setAccessibleName("Files of code that would run")
    table.verticalHeader().hide()
    table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
    table.horizontalHeader().setStretchLastSection(True)
    for row, file in enumerate(files):
        path = Path(file.path)
        for column, text in enumerate((path.name, STATES[file.what], str(path.parent))):
            item = QTableWidgetItem(clean(text))
            item.setToolTip(tooltip(file.path))
            table.setItem(row, column, item)
    return table


def ask_trust(
    parent: QWidget, asked: NeedsTrust, agreed: Callable[[NeedsTrust], None], refused: Callable[[], None]
) -> None:
    """Ask; `agreed` is called with the same files when the user wants them to run, `refused` when not."""
    dialog = TrustDialog(asked, parent)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.accepted.connect(lambda: agreed(asked))
    dialog.rejected.connect(refused)
    dialog.open()
