"""About: the versions of everything that runs, where things are kept, and what to send when something went wrong."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPlainTextEdit, QVBoxLayout, QWidget

from inspector.gui.runtime.crash_file import folder
from inspector.gui.runtime.versions import as_text
from inspector.gui.widgets.plain_text import clean_block, plain_label

SAID = "Looks into sequence models that do not learn. Nothing that it reads leaves this machine."
SENT = "After an error, a file with these versions and where it happened is in the folder of error files: send that."


class About(QDialog):
    """`facts` are (what, value); they can be copied."""

    def __init__(self, facts: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("About inspector")
        self.text = QPlainTextEdit(clean_block(as_text(list(facts))))
        self.text.setReadOnly(True)
        self.text.setAccessibleName("Versions and folders")
        layout = QVBoxLayout(self)
        for words, widget in ((SAID, self.text), (SENT, None)):
            label = plain_label(words)
            label.setWordWrap(True)
            layout.addWidget(label)
            if widget is not None:
                layout.addWidget(widget, 1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        copy = buttons.addButton("Copy", QDialogButtonBox.ButtonRole.ActionRole)
        show = buttons.addButton("Show error files", QDialogButtonBox.ButtonRole.ActionRole)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.text.toPlainText()))
        show.clicked.connect(show_error_files)
        buttons.rejected.connect(self.reject)
        layout.addWidget(buttons)
        self.resize(620, 360)


def show_error_files() -> None:
    """The folder, in the system's file manager."""
    folder().mkdir(parents=True, exist_ok=True)
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder())))
