"""Notes on what is damaged in a figure: below it in a file, above it in the window."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter

from inspector.capture import Damage, listed
from inspector.gui.panel.base import Panel
from inspector.gui.widgets.cut_label import CutLabel
from inspector.gui.widgets.plain_text import clean, tooltip

MOST_LINES = 3
"""Lines of a note below a figure; what is left out is counted."""
MOST_TOLD = 20
MARGIN = 8.0


def damage_in(panel: Panel) -> tuple[Damage, ...]:
    """What is lost, or may be, of the data that a panel has drawn."""
    if panel.capture is None or panel.state == "empty":
        return ()
    found = panel.capture.damage
    return tuple(one for one in found if any(one.concerns(name, frame) for name, frame in panel.read))


def note_of(panel: Panel) -> list[str]:
    """The lines below a figure; none where nothing that it shows is damaged."""
    return [clean(f"Damaged: {sentence}") for sentence in listed(damage_in(panel), MOST_LINES)]


def note_height(panel: Panel) -> float:
    """Pixels that the note needs."""
    lines = note_of(panel)
    return len(lines) * QFontMetricsF(panel.font()).lineSpacing() + MARGIN if lines else 0.0


def paint_note(panel: Panel, painter: QPainter, rect: QRectF) -> None:
    """Draw the note, one line for each damage, cut at the edge."""
    metrics = QFontMetricsF(panel.font())
    painter.fillRect(rect, QColor(panel.theme.window))
    painter.setFont(panel.font())
    painter.setPen(QColor(panel.theme.error))
    for number, line in enumerate(note_of(panel)):
        shown = metrics.elidedText(line, Qt.TextElideMode.ElideRight, rect.width() - 2 * MARGIN)
        at = QRectF(rect.left() + MARGIN, rect.top() + number * metrics.lineSpacing(), rect.width(), metrics.height())
        painter.drawText(at, int(Qt.AlignmentFlag.AlignLeft), shown)


class PanelNote(QObject):
    """A line above a panel's figure, visible while something drawn is damaged, also where nothing is hatched."""

    def __init__(self, panel: Panel) -> None:
        super().__init__(panel)
        self.panel = panel
        self.label = CutLabel()
        self.label.setContentsMargins(8, 2, 8, 2)
        self.label.hide()
        layout: Any = panel.layout()
        layout.insertWidget(layout.indexOf(panel.stack), self.label)
        panel.drawn.connect(self.show)
        panel.stack.currentChanged.connect(self.show)

    def show(self, *_: object) -> None:
        """Show what is damaged now."""
        found = damage_in(self.panel)
        self.label.setVisible(bool(found))
        if found:
            more = f" … and {len(found) - 1} more" if len(found) > 1 else ""
            self.label.show_text(f"Damaged: {found[0].sentence}{more}")
            self.label.setToolTip(tooltip(" ".join(listed(found, MOST_TOLD))))
            self.label.setStyleSheet(f"color: {self.panel.theme.error};")
