"""An axis that lays out its label only when it says something else, and cuts it where the axis is shorter.

In a low plot a label below the numbers would take as much room as a fifth of the curves: it stands at the left of them.
"""

from __future__ import annotations

import html
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetricsF

from inspector.gui.widgets.type_scale import dots_share, share_of_pixels, title_points

BEYOND = 24.0
"""Pixels that a label may be longer than its axis, half of them at each end: nothing else stands there."""
LOW = 200.0
"""Pixels of height of a plot, its title and axes among them, below which its texts stand beside each other: the label
at the left of the numbers, the legend at the right of the title."""
APART, LOWER = 2.0, 3.0
"""Pixels between such a label and the axis, beside the margin of the text itself, and by which it is lower than the
numbers: the lowest number of the vertical axis reaches as far down."""


def is_low(plot: Any) -> bool:
    """Whether a plot is so low that its texts stand beside each other."""
    return 0.0 < float(plot.size().height()) < LOW * share_of_pixels()


class QuietAxis(pg.AxisItem):  # type: ignore[misc]
    """pyqtgraph sets the label anew at each change of the range, and nine times while an axis is made."""

    _said = ""
    _low = False
    """Whether its plot is low; told by the plot, which in Qt may be gone before its axes."""
    _beside = False
    """Whether the label stands at the left of the numbers, below the vertical axis."""

    def _updateLabel(self) -> None:
        said = self.labelString() if self._said or self.labelText or self.labelUnits else ""
        if said == self._said:
            self._adjustSize()  # its font may be another one
        else:
            self._said = said
            super()._updateLabel()
            super().resizeEvent(None)  # its place goes by its size, and the axis may keep its own
            self._fit()

    def labelString(self) -> str:
        """The label as HTML, cut with an ellipsis where the axis has no room for it."""
        whole: str = super().labelString()
        size = self.size()
        room = (size.height() if self.orientation in ("left", "right") else size.width()) + BEYOND
        if not self.labelText or room <= BEYOND:
            return whole
        font = QFont()
        font.setPointSizeF(title_points())
        plain = html.unescape(self.labelText)
        cut = QFontMetricsF(font).elidedText(plain, Qt.TextElideMode.ElideRight, room)
        return whole if cut == plain else whole.replace(self.labelText, html.escape(cut, quote=False), 1)

    def resizeEvent(self, ev: Any = None) -> None:
        """More or less room for the label, which stands in the middle."""
        if self.label is not None and self._said:
            self._updateLabel()
        super().resizeEvent(ev)
        self._fit()

    def setWidth(self, w: float | None = None) -> None:
        """As pyqtgraph has it; pixels are those of texts of the usual height."""
        super().setWidth(None if w is None else w * dots_share())

    def fit_into(self, plot: Any) -> None:
        """The height of its plot may be another one."""
        self._low = is_low(plot)
        self._fit()

    def _fit(self) -> None:
        """The height of the plot, or the room at the left of the axis, may be another one."""
        if self.label is None or self.orientation != "bottom":
            return
        if self._beside != self._fits_beside():
            self._updateHeight()
        self._place_beside()

    def _fits_beside(self) -> bool:
        """Whether the label has room below the vertical axis of a low plot."""
        if not self._low or not self.label.isVisible() or not self.style["showValues"]:
            return False
        return bool(self.label.boundingRect().width() + APART <= self.geometry().left())

    def _place_beside(self) -> None:
        if self._beside:
            size = self.label.boundingRect()
            self.label.setPos(-size.width() - APART, (self.size().height() + LOWER - size.height()) / 2)

    def _updateHeight(self) -> None:
        """As pyqtgraph has it, without the height of a label that stands at the left."""
        self._beside = self.fixedHeight is None and self.orientation == "bottom" and self._fits_beside()
        if not self._beside or not self.isVisible():
            super()._updateHeight()
            return
        numbers = self.textHeight if self.style["autoExpandTextSpace"] else self.style["tickTextHeight"]
        height = numbers + self.style["tickTextOffset"][1] + max(0, self.style["tickLength"]) + LOWER
        self.setMaximumHeight(height)
        self.setMinimumHeight(height)
        self.picture = None
