"""The pages of a panel: what is missing, the figure, an error, the summaries over training."""

from __future__ import annotations

from PySide6.QtWidgets import QPlainTextEdit, QStackedWidget, QWidget

from inspector.gui.widgets.plain_text import clean_block

EMPTY, FIGURE, ERROR, OVER, BLANK = range(5)
STATES = ("empty", "figure", "error", "figure", "blank")


class Pages(QStackedWidget):
    """One of them is visible."""

    def __init__(self, empty: QWidget, figure: QWidget, over: QWidget) -> None:
        super().__init__()
        self.error = QPlainTextEdit()
        self.error.setReadOnly(True)
        self.error.setAccessibleName("What could not be drawn")
        for page in (empty, figure, self.error, over, QWidget()):
            self.addWidget(page)

    @property
    def state(self) -> str:
        """Which page is shown: "empty", "figure" or "error"; "blank" where the panel is drawn in a moment."""
        return STATES[self.currentIndex()]

    def blank(self) -> None:
        """Show nothing yet: what is to be seen is drawn in a moment."""
        self.setCurrentIndex(BLANK)

    def show_error(self, fault: str, details: str) -> None:
        """Say what could not be drawn."""
        text = f"This panel could not be drawn; the others still work.\n\n{fault}\n\n{details}"
        self.error.setPlainText(clean_block(text))
        self.setCurrentIndex(ERROR)
