"""Unknown values behind the curves of a plot: hatched where data is damaged, grey where it has not been written yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

from inspector.gui.widgets.gaps import NONE, Gaps, Rect
from inspector.gui.widgets.hatching import paint_gaps
from inspector.gui.widgets.theme import LIGHT, Theme


class GapBands(pg.GraphicsObject):  # type: ignore[misc]
    """Spans of steps behind the lines of a plot, as high as the plot."""

    def __init__(self, theme: Theme = LIGHT) -> None:
        super().__init__()
        self.theme = theme
        self.gaps = NONE
        self.setZValue(-20)

    def set_gaps(self, gaps: Gaps) -> None:
        """Show other spans."""
        if gaps != self.gaps:
            self.gaps = gaps
            self.update()

    def boundingRect(self) -> QRectF:
        """What is in view."""
        return QRectF(self.viewRect()) if self.getViewBox() is not None else QRectF()

    def viewRangeChanged(self) -> None:
        """Another part is in view."""
        self.prepareGeometryChange()
        self.update()

    def dataBounds(self, axis: int, frac: float = 1.0, orthoRange: Any = None) -> None:
        """Automatic zooming uses the data alone."""

    def paint(self, painter: QPainter, option: QStyleOptionGraphicsItem, widget: QWidget | None = None) -> None:
        """The spans in view."""
        seen = self.boundingRect()

        def bands(rects: Sequence[Rect]) -> list[QRectF]:
            spans = ((max(first - 0.5, seen.left()), min(stop - 0.5, seen.right())) for (first, stop), _ in rects)
            return [QRectF(low, seen.top(), high - low, seen.height()) for low, high in spans if high > low]

        paint_gaps(painter, self.theme, bands(self.gaps.missing), bands(self.gaps.damaged))
