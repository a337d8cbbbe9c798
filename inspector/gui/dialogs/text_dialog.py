"""A box that asks for a few lines of text."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QInputDialog, QLabel, QPlainTextEdit, QWidget

from inspector.gui.widgets.plain_text import clean

AGREE = ("Ctrl+Return", "Ctrl+Enter")


def ask_for_text(parent: QWidget, title: str, question: str, text: str = "") -> str:
    """The text that was written; "" where the box was cancelled.

    Tab leaves the text for the buttons, Ctrl+Enter agrees, and the question is never read as HTML.
    """
    box = QInputDialog(parent)
    box.setWindowTitle(title)
    box.setOption(QInputDialog.InputDialogOption.UsePlainTextEditForTextInput)
    box.setLabelText(" ")
    box.setTextValue(text)
    for label in box.findChildren(QLabel):
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setText(clean(question))
    for field in box.findChildren(QPlainTextEdit):
        field.setTabChangesFocus(True)
        field.setAccessibleName(clean(question))
    for keys in AGREE:
        QShortcut(QKeySequence(keys), box).activated.connect(box.accept)
    agreed = box.exec() == QInputDialog.DialogCode.Accepted
    box.deleteLater()
    return box.textValue() if agreed else ""
