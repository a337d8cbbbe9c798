"""The title of a plot: plain text from the plot's left edge, wrapped where the plot is high, cut where it ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QFont, QFontMetricsF

from inspector.gui.widgets.plain_text import clean, escaped, tooltip
from inspector.gui.widgets.type_scale import share_of_pixels, title_points

MOST_LINES, PER_LINE = 4, 65.0
"""Lines of a title at most, and the height of a plot, in pixels, for each line that wrapping may add up to."""
HEIGHTS = (22, 36, 50, 64)
"""Pixels of a title of one, two, three and four lines."""


def told(item: Any, text: str) -> str:
    """What the quantities are that are named in a text of a figure, as its panel knows them; "" for none."""
    tell = getattr(item.scene(), "told", None)
    return str(tell(text)) if tell is not None else ""


class Title(pg.LabelItem):  # type: ignore[misc]
    """A title from the left edge of its plot: it never makes the plot wider, nor is it drawn beyond it."""

    def __init__(self, parent: Any) -> None:
        self.lines: tuple[str, ...] = ()
        self.height_of_plot = 0.0
        self.shown = 1
        """How many lines they are when wrapped."""
        super().__init__("", size=f"{title_points():g}pt", justify="left", parent=parent)
        self.setAcceptHoverEvents(True)

    def elided(self) -> str:
        """The lines as HTML, wrapped and cut where the plot ends; before the plot has a size they are whole."""
        font = QFont(self.font())
        font.setPointSizeF(title_points())
        metrics = QFontMetricsF(font)
        room = self.size().width() - 2 * self.item.document().documentMargin()
        plain = [" ".join(clean(line).split("\n")) for line in self.lines]
        if room > 0:
            most = min(MOST_LINES, int(self.height_of_plot / PER_LINE))
            plain = wrapped(plain, room, most, metrics.horizontalAdvance)
            plain = [metrics.elidedText(line, Qt.TextElideMode.ElideRight, room) for line in plain]
        self.shown = max(1, len(plain))
        return "<br>".join(map(escaped, plain))

    def alone(self) -> float:
        """Pixels of width of the title where it is one line that is not cut; 0 for none, infinite for others."""
        if not self.lines:
            return 0.0
        font = QFont(self.font())
        font.setPointSizeF(title_points())
        width = QFontMetricsF(font).horizontalAdvance(" ".join(clean(self.lines[0]).split("\n")))
        return width + 2 * self.item.document().documentMargin() if len(self.lines) == 1 else math.inf

    def needs(self) -> int:
        """Pixels of height of the lines as they were last wrapped."""
        return round(HEIGHTS[min(self.shown, MOST_LINES) - 1] * share_of_pixels())

    def refit(self) -> None:
        """More or less room."""
        if self.lines and self.isVisible() and (told_now := self.elided()) != self.text:
            self.setText(told_now)

    def resizeEvent(self, event: Any) -> None:
        """More or less room. Its height is given or taken a turn of the loop later: not within a layout that is being
        made, and never where it is deleted meanwhile."""
        self.refit()
        super().resizeEvent(event)
        if self.lines and self.isVisible() and self.needs() != self.maximumHeight():
            QTimer.singleShot(0, self, self._fit)

    def _fit(self) -> None:
        plot = self.parentItem()
        if isinstance(plot, pg.PlotItem) and plot.titleLabel is self:
            fit_title(plot)

    def hoverEnterEvent(self, event: Any) -> None:
        """The whole title, and what the quantities in it are; of one that names none, those of the legend."""
        whole = " ".join(self.lines)
        known = told(self, whole) or told(self, "; ".join(self._in_legend()))
        self.setToolTip(tooltip("\n".join(filter(None, ("" if known.startswith(f"{whole}:") else whole, known)))))
        super().hoverEnterEvent(event)

    def _in_legend(self) -> list[str]:
        """The names of the curves of its plot."""
        legend = getattr(self.parentItem(), "legend_above", None)
        return [name for _, name in getattr(legend, "entries", ())]

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


def fit_title(plot: pg.PlotItem) -> None:
    """Wrap the title of a plot again, which has another title or size, and give it as much height as it needs."""
    title = plot.titleLabel
    title.height_of_plot = plot.size().height()
    title.refit()
    height = title.needs()
    if plot.layout.rowMaximumHeight(0) != height or title.maximumHeight() != height:
        title.setMaximumHeight(height)
        plot.layout.setRowFixedHeight(0, height)
    legend = getattr(plot, "legend_above", None)
    if legend is not None:  # which stands beside a short title in a low plot
        legend.fit()


def wrapped(lines: list[str], room: float, most: int, width: Callable[[str], float]) -> list[str]:
    """Lines of text, those that are wider than `room` broken at words, as far as there are no more than `most` then.

    `width` measures a text. What stands in the last part of a line may still be wider.
    """
    spare, found = most - len(lines), list[str]()
    for line in lines:
        words = line.split(" ")
        while spare > 0 and len(words) > 1 and width(" ".join(words)) > room:
            fits = next((n for n in range(len(words) - 1, 0, -1) if width(" ".join(words[:n])) <= room), 0)
            if not fits:
                break  # one word that is wider by itself
            found.append(" ".join(words[:fits]))
            words, spare = words[fits:], spare - 1
        found.append(" ".join(words))
    return found


def title_from_left(plot: pg.PlotItem) -> None:
    """Give a plot the kind of title that all plots here have."""
    given: pg.LabelItem = plot.layout.itemAt(0, 1)
    plot.layout.removeItem(given)
    given.setParentItem(None)
    plot.titleLabel = Title(plot)
    plot.layout.addItem(plot.titleLabel, 0, 1)
    plot.setTitle(None)
