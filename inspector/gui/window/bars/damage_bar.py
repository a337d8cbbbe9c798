"""The bar that reports damage of a capture: visible as long as the capture is shown, with all details at a click."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from inspector.capture import Capture, Damage, listed, summary
from inspector.gui.widgets.hatching import paint_gaps
from inspector.gui.widgets.plain_text import clean, clean_block, plain_label
from inspector.gui.widgets.theme import LIGHT, Theme

MOST_LISTED = 2_000
EXPLAINED = (
    "What is listed here could not be read: its bytes are not those that were written, or are missing. Cells of a "
    "map that are lost are hatched, and so are steps of a curve; everything else is intact."
)


class DamageBar(QFrame):
    """Hidden while nothing is damaged; it cannot be dismissed."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("damage")
        self.theme = LIGHT
        self.found: tuple[Damage, ...] = ()
        self.swatch, self.line = Swatch(), OneLine()
        self.more = QPushButton("Details…")
        self.more.setAccessibleName("All that is damaged in this capture")
        self.more.clicked.connect(self.show_details)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 2)
        row.addWidget(self.swatch)
        row.addWidget(self.line, 1)
        row.addWidget(self.more)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = self.swatch.theme = theme
        self.setStyleSheet(f"#damage {{ background: {theme.raised}; border-bottom: 2px solid {theme.error}; }}")
        self.swatch.update()

    def show_capture(self, capture: Capture | None) -> None:
        """Show what is damaged in a capture, as far as it was checked; hidden where nothing is."""
        found = capture.damage if capture is not None else ()
        if found == self.found:
            return
        self.found = found
        self.line.say(summary(found))
        self.setAccessibleName(f"Damaged: {clean(summary(found))}")
        self.setVisible(bool(found))

    def details(self) -> str:
        """Everything that is damaged, one line each."""
        return clean_block("\n".join(listed(self.found, MOST_LISTED)))

    def show_details(self) -> None:
        """A window with all of it, to be read and copied."""
        dialog = QDialog(self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle("Damaged parts of this capture")
        dialog.resize(QSize(760, 420))
        why, text = plain_label(EXPLAINED), QPlainTextEdit(self.details())
        why.setWordWrap(True)
        text.setReadOnly(True)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(dialog.reject)
        layout = QVBoxLayout(dialog)
        for widget in (why, text, buttons):
            layout.addWidget(widget)
        dialog.open()


class Swatch(QWidget):
    """A sample of the hatching of damaged cells."""

    def __init__(self) -> None:
        super().__init__()
        self.theme = LIGHT
        self.setFixedSize(16, 16)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Hatched."""
        paint_gaps(QPainter(self), self.theme, (), (self.rect().toRectF(),))


class OneLine(QLabel):
    """Plain text in one line, with … in its middle where there is no space: it never makes the window wider.

    How much is damaged is said at both ends.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.whole = ""

    def say(self, text: str) -> None:
        """Show another text."""
        self.whole = clean(text)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """The width has changed."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        self.setText(self.fontMetrics().elidedText(self.whole, Qt.TextElideMode.ElideMiddle, max(20, self.width() - 4)))
