"""The title of a plot: plain text from the plot's left edge, cut where the plot ends."""

from __future__ import annotations

from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetricsF

from inspector.gui.widgets.plain_text import clean, escaped, tooltip
from inspector.gui.widgets.type_scale import title_points


def told(item: Any, text: str) -> str:
    """What the quantities are that are named in a text of a figure, as its panel knows them; "" for none."""
    tell = getattr(item.scene(), "told", None)
    return str(tell(text)) if tell is not None else ""


class Title(pg.LabelItem):  # type: ignore[misc]
    """A title from the left edge of its plot: it never makes the plot wider, nor is it drawn beyond it."""

    def __init__(self, parent: Any) -> None:
        self.lines: tuple[str, ...] = ()
        super().__init__("", size=f"{title_points():g}pt", justify="left", parent=parent)
        self.setAcceptHoverEvents(True)

    def elided(self) -> str:
        """The lines as HTML, each cut where the plot ends; before the plot has a size they are whole."""
        font = QFont(self.font())
        font.setPointSizeF(title_points())
        metrics = QFontMetricsF(font)
        room = self.size().width() - 2 * self.item.document().documentMargin()
        plain = [" ".join(clean(line).split("\n")) for line in self.lines]
        cut = [metrics.elidedText(line, Qt.TextElideMode.ElideRight, room) if room > 0 else line for line in plain]
        return "<br>".join(map(escaped, cut))

    def resizeEvent(self, event: Any) -> None:
        """More or less room."""
        if self.lines and self.isVisible() and self.elided() != self.text:
            self.setText(self.elided())
        super().resizeEvent(event)

    def hoverEnterEvent(self, event: Any) -> None:
        """The whole title, and what the quantities in it are."""
        whole = " ".join(self.lines)
        known = told(self, whole)
        self.setToolTip(tooltip("\n".join(filter(None, ("" if known.startswith(f"{whole}:") else whole, known)))))
        super().hoverEnterEvent(event)

    def updateMin(self) -> None:
        """The text's height, and no width of its own."""
        height = self.itemRect().height()
        self.setMinimumSize(0, height)
        hints = Qt.SizeHint
        self._sizeHint = {
            hints.MinimumSize: (0, height), hints.PreferredSize: (0, height), hints.MaximumSize: (-1, -1),
            hints.MinimumDescent: (0, 0),
        }  # fmt: skip
        self.updateGeometry()


def title_from_left(plot: pg.PlotItem) -> None:
    """Give a plot the kind of title that all plots here have."""
    given: pg.LabelItem = plot.layout.itemAt(0, 1)
    plot.layout.removeItem(given)
    given.setParentItem(None)
    plot.titleLabel = Title(plot)
    plot.layout.addItem(plot.titleLabel, 0, 1)
    plot.setTitle(None)
