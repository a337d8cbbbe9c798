"""Questions to the user: a checkpoint that does not fit; what actions are called."""

from __future__ import annotations

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
    return (
        str(own)
        if own
        else action.text().partition("\t")[0].replace("&&", "\0").replace("&", "").replace("\0", "&").rstrip("…")
    )
