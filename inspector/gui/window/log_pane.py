"""The log at the bottom: messages of the worker, the model and the window."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QFont, QTextCursor
from PySide6.QtWidgets import QPlainTextEdit

from inspector.gui.widgets.plain_text import clean_block
from inspector.records import Log


class LogPane(QPlainTextEdit):
    """Plain text, bounded; lines that are still being printed are at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)  # removed lines would be stored
        self.setMaximumBlockCount(5_000)
        self._begun: tuple[Log, ...] = ()
        """The lines at the end that are still being printed."""
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setAccessibleName("Log")
        font = QFont("monospace")
        font.setStyleHint(QFont.StyleHint.Monospace)
        self.setFont(font)

    def add(self, lines: Sequence[Log], begun: Sequence[Log] = ()) -> None:
        """Append lines, each cleaned and cut, and at the end those that have begun and not ended, as they are now."""
        if not lines and tuple(begun) == self._begun:
            return
        self._take_back()
        self._append(lines)
        self._append(begun)
        self._begun = tuple(begun)

    def _take_back(self) -> None:
        """Remove lines that had only begun; the user's selection and scroll position stay."""
        if not self._begun:
            return
        document = self.document()
        first = document.findBlockByNumber(document.blockCount() - len(self._begun))
        cursor = QTextCursor(document)
        cursor.setPosition(max(0, first.position() - 1))
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()

    def _append(self, lines: Sequence[Log]) -> None:
        if lines:
            self.appendPlainText("\n".join(f"{line.source}: {clean_block(line.text, 20_000)}" for line in lines))
