"""What could not be done, in one box: what comes while the box is open joins it, so that many files that are dropped
at once, and cannot be opened, are answered by one list."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget
from shiboken6 import isValid

from inspector.gui.widgets.plain_text import clean, clean_block, plain_box

MOST = 8
"""Reasons that stand in the box; all are in its details."""


class Told:
    """The open box of a window, and what it says."""

    def __init__(self, window: QWidget) -> None:
        self._window = window
        self._box: QMessageBox | None = None
        self._said: list[tuple[str, str]] = []
        """(sentence, details) of each."""

    def tell(self, sentence: str, details: str = "") -> None:
        """Say it, in the box that is open where there is one."""
        box = self._box
        if box is None or not isValid(box) or not box.isVisible():
            self._said = [(sentence, details)]
            self._box = box = plain_box(self._window, "inspector", sentence, details)
            box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            box.open()
        elif (sentence, details) not in self._said:
            self._said.append((sentence, details))
            box.setText(clean_block(self._list()))
            box.setDetailedText(clean_block(self._details()))

    def _list(self) -> str:
        """A heading, and a line for each."""
        lines = [f"• {clean(sentence)}" for sentence, _ in self._said[:MOST]]
        more = [f"and {len(self._said) - MOST} more, below"] if len(self._said) > MOST else []
        return "\n".join([f"{len(self._said)} things could not be done:", "", *lines, *more])

    def _details(self) -> str:
        """All of what was not said above."""
        if len(self._said) <= MOST and not any(details for _, details in self._said):
            return ""
        return "\n\n".join(f"{sentence}\n{details}".strip() for sentence, details in self._said)
