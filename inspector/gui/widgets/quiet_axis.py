"""An axis that lays out its label only when it says something else, and cuts it where the axis is shorter."""

from __future__ import annotations

import html
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QFontMetricsF

from inspector.gui.widgets.type_scale import title_points

BEYOND = 24.0
"""Pixels that a label may be longer than its axis, half of them at each end: nothing else stands there."""


class QuietAxis(pg.AxisItem):  # type: ignore[misc]
    """pyqtgraph sets the label anew at each change of the range, and nine times while an axis is made."""

    _said = ""

    def _updateLabel(self) -> None:
        said = self.labelString() if self._said or self.labelText or self.labelUnits else ""
        if said == self._said:
            self._adjustSize()  # its font may be another one
        else:
            self._said = said
            super()._updateLabel()

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
