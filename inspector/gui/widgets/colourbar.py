"""The colour bar of a map: gradient, limits with unit, and a note when limits clip or NaN is drawn."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.colour_choice import chosen
from inspector.gui.widgets.gaps import NONE, Gaps
from inspector.gui.widgets.hatching import paint_gaps
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.quantise import Levels
from inspector.gui.widgets.theme import BEYOND, INFINITE, LAST, LIGHT, NOT_A_NUMBER, Theme, colour_table

WIDTH, BAR, TIP = 98.0, 12.0, 7.0
MISSING, DAMAGED = "not there", "damaged"

MOST_PLAIN = 99_950
"""Below this, numbers are written with all digits before the point."""


class ColourBar(pg.GraphicsWidget):  # type: ignore[misc]
    """Drawn to the right of a map, as high as the map."""

    def __init__(self, theme: Theme = LIGHT) -> None:
        super().__init__()
        self.theme = theme
        self._levels = Levels(0.0, 1.0)
        self._unit = ""
        self._special = (False, False)
        self._gaps = NONE
        self.setFixedWidth(WIDTH)
        self.setMinimumHeight(40)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)

    def set_levels(
        self, levels: Levels, unit: str, *, nan: bool = False, infinite: bool = False, gaps: Gaps = NONE
    ) -> None:
        """Show other limits; `nan`, `infinite` and the kinds of `gaps` add their colours to the legend."""
        shown = levels, clean(unit), (nan, infinite), gaps
        if shown != (self._levels, self._unit, self._special, self._gaps):
            self._levels, self._unit, self._special, self._gaps = shown
            self.update()

    def says_as(self, other: ColourBar) -> bool:
        """Whether another bar shows the same colours for the same numbers, and the same below them."""
        return (self.levels, self._unit, self._special, bool(self._gaps.missing), bool(self._gaps.damaged)) == (
            other.levels, other._unit, other._special, bool(other._gaps.missing), bool(other._gaps.damaged)
        )  # fmt: skip

    @property
    def given(self) -> Levels:
        """The colours that the panel draws where nothing is chosen."""
        return self._levels

    @property
    def levels(self) -> Levels:
        """The colours that are drawn: the given ones with what the user has chosen."""
        return chosen(self, self._levels)

    def sizeHint(self, which: Qt.SizeHint, constraint: QSizeF = QSizeF()) -> QSizeF:  # noqa: B008 - Qt's signature
        """Narrow, as high as there is room."""
        return QSizeF(WIDTH, 16_000.0 if which == Qt.SizeHint.MaximumSize else 120.0)

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """Gradient from the bottom (low) to the top (high), then the texts."""
        area: QRectF = self.boundingRect().adjusted(6, 8, -2, -8)
        notes = self._notes()
        bar = QRectF(area.left(), area.top(), BAR, max(20.0, area.height() - 15 * len(notes) - (6 if notes else 0)))
        levels = self.levels
        below, above = levels.beyond
        painter.drawImage(bar, _gradient(levels.colours or levels.scale))
        painter.setPen(QColor(self.theme.grid))
        painter.drawRect(bar)
        for there, end, tip in ((above, bar.top(), -TIP), (below, bar.bottom(), TIP)):
            if there:
                self._paint_tip(painter, QPointF(bar.center().x(), end), tip, LAST if tip < 0 else 0)
        painter.setPen(QColor(self.theme.muted))
        painter.setFont(self.font())
        for share, text in self._ticks():
            y = bar.bottom() - share * bar.height()
            painter.drawText(QRectF(bar.right() + 5, y - 8, WIDTH, 16), Qt.AlignmentFlag.AlignVCenter, text)
        for number, (colour, text) in enumerate(notes):
            y = bar.bottom() + 8 + 15 * number
            if colour is not None:
                box = QRectF(bar.left(), y + 2, BAR, 9)
                if text == DAMAGED:
                    paint_gaps(painter, self.theme, (), (box,))
                else:
                    painter.fillRect(box, colour)
                painter.drawRect(box)
            painter.drawText(QRectF(area.left() + (BAR + 5 if colour is not None else 0), y, WIDTH, 14), 0, text)

    def _paint_tip(self, painter: QPainter, at: QPointF, tip: float, index: int) -> None:
        """An arrow at an end beyond which there are numbers, in the colour that they have."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(QColor.fromRgb(int(self.levels.table[index if not self.levels.marked else BEYOND])))
        half = QPointF(BAR / 2, 0)
        painter.drawPolygon(QPolygonF([at - half, at + half, at + QPointF(0, tip)]))
        painter.restore()

    def _ticks(self) -> list[tuple[float, str]]:
        levels = self.levels
        low, high = levels.low, levels.high
        middle = low + (high - low) * (0.25 if levels.root else 0.5)
        values = [(0.0, low), (0.5, middle), (1.0, high)]
        unit = "" if self._unit in ("", "1") else f" {self._unit}"
        return [(share, _plain(10**v if levels.log else v) + (unit if share == 1.0 else "")) for share, v in values]

    def _notes(self) -> list[tuple[QColor | None, str]]:
        notes: list[tuple[QColor | None, str]] = []
        levels = self.levels
        table = levels.table
        share = f"{100 * levels.clipped:.2g} % " if levels.clipped > 0 else ""
        known = levels.full is not None  # limits may have been widened since what is beyond was counted
        if any(levels.beyond) or (share and not known):
            notes.append((QColor.fromRgb(int(table[BEYOND])) if levels.marked else None, f"{share}beyond"))
        if self._levels.masked:
            notes.append((QColor(self.theme.masked), "masked"))
        if self._special[0]:
            notes.append((QColor.fromRgb(int(table[NOT_A_NUMBER])), "NaN"))
        if self._special[1]:
            notes.append((QColor.fromRgb(int(table[INFINITE])), "±∞"))
        if self._gaps.missing:
            notes.append((QColor(self.theme.grid), MISSING))
        if self._gaps.damaged:
            notes.append((QColor(self.theme.error), DAMAGED))
        return notes


@cache
def _gradient(scale: str) -> QImage:
    """The colours of a scale, a pixel each, the highest first."""
    column = np.ascontiguousarray(colour_table(scale)[LAST::-1, None])
    return QImage(column.data, 1, LAST + 1, 4, QImage.Format.Format_ARGB32_Premultiplied).copy()


def _plain(value: float) -> str:
    """Three digits, and a power of ten only where the number would not fit: "2000", not "2e+03"."""
    shown = short(value)
    return f"{float(shown):.0f}" if 1000 <= abs(value) < MOST_PLAIN else shown
