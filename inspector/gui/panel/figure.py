"""The figure of a panel, and the guard of its painting.

An exception in the `paint` of a graphics item passes through Qt's C++ code and leaves painters open: the process ends
with a segmentation fault. Here no such exception leaves Python; it is reported to the panel that owns the item.
"""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pyqtgraph as pg
from pyqtgraph.graphicsItems.GraphicsItem import GraphicsItem
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QScrollArea

from inspector.gui.widgets.described import InWords, Role
from inspector.gui.widgets.images.growing_image import into_svg
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.plots.legend import legends_in

Report = Callable[[str, str], None]
GUARDED = "_guarded"


class Figure(InWords, pg.GraphicsLayoutWidget):  # type: ignore[misc]
    """A layout of plots that leaves the keyboard to its panel, and reports what could not be painted."""

    accessible_role = Role.Chart

    def __init__(self, report: Report) -> None:
        self._report = report
        self.fault = ""
        """What could not be painted, as one line; only text, since a traceback would keep painters alive."""
        self.fixed = False
        """Whether it has the size that was asked for a file: nothing scrolls there."""
        self.shrinks = False
        """Whether its panel leaves out what has no room in such a size; the figure of another one stays as high as it
        needs."""
        self.left_out: tuple[str, ...] = ()
        """What has no room in a figure of that size and is not drawn, in words."""
        super().__init__()
        self.ci.layout.setContentsMargins(4, 4, 4, 4)
        self.ci.layout.setSpacing(4)

    def setMinimumHeight(self, height: int) -> None:
        """What a panel needs to be read without scrolling."""
        super().setMinimumHeight(1 if self.fixed and self.shrinks else height)

    def fill(self) -> None:
        """Give the plots the whole figure again: where a line of text was alone for a moment (pyqtgraph lays out anew
        as each item is added, Qt after some were hidden), the whole has become as low as that."""
        if self.ci.geometry() != self.range:
            self.ci.setGeometry(self.range)

    def about_in_words(self) -> str:
        """The plots: their titles, their axes and the ranges in view."""
        return "; ".join(plot_in_words(item) for item in self.scene().items() if isinstance(item, pg.PlotItem))

    def paint_into(self, painter: QPainter, rect: QRectF, ground: str) -> str:
        """Draw the scene, on a background colour, into any paint device, vectors as vectors; returns what failed, or
        ""."""
        self.fill()
        painter.fillRect(rect, QColor(ground))
        self.scene().prepareForPaint()
        self.fault = ""
        self.scene().render(painter, rect, self.sceneRect(), Qt.AspectRatioMode.KeepAspectRatio)
        return self.fault

    def failed(self, fault: BaseException) -> None:
        """Something in this figure raised while it was painted."""
        self.fault = str(fault) or type(fault).__name__
        self._report(self.fault, "".join(traceback.format_exception(fault)))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the scene; errors outside the items are reported too."""
        try:
            self.fill()
            super().paintEvent(event)
        except Exception as fault:  # noqa: BLE001 - it may not reach Qt
            self.failed(fault)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrow keys move the shared cursor, not the scene."""
        event.ignore()


def plot_in_words(plot: Any) -> str:
    """Title, for each axis with a label what is in view of it, and the curves."""
    lines = getattr(plot.titleLabel, "lines", ())
    (left, right), (low, high) = plot.vb.viewRange()
    ranges = (("bottom", left, right), ("left", low, high))
    curves = [
        name + (": hidden" if legend.is_hidden(n) else "")
        for legend in legends_in(plot.scene())
        if legend.plot is plot
        for n, (_, name) in enumerate(legend.entries)
    ]
    names = [(plot.getAxis(side), first, last) for side, first, last in ranges]
    axes = [
        f"{axis.labelText} {_shown(first, axis)} to {_shown(last, axis)}"
        for axis, first, last in names
        if axis.isVisible() and axis.labelText
    ]
    told = [f"curves: {', '.join(curves)}"] if curves else []
    return clean(", ".join([" ".join(lines) or "plot", *axes, *told]))


def _shown(value: float, axis: Any) -> str:
    """A position on an axis: on a logarithmic one it is an exponent of ten."""
    return short(10.0**value) if axis.logMode and abs(value) < 300 else short(value)


def scrolled(figure: Figure, height: int) -> QScrollArea:
    """A figure in an area that scrolls where there is not enough height to read it."""
    figure.setMinimumHeight(height)
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setMinimumHeight(60)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the panel is the stop; its keys move the cursor
    area.setWidget(figure)
    return area


def guard_painting() -> None:
    """Guard `paint` of every existing class of graphics items, pyqtgraph's and those of panels; idempotent."""
    for kind in _below(GraphicsItem):
        paint = kind.__dict__.get("paint")
        if paint is not None and not hasattr(paint, GUARDED):
            kind.paint = _guarded(paint)


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def _guarded(paint: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(paint)
    def safely(item: Any, painter: Any, *rest: Any) -> None:
        try:
            _clip_again(painter)
            paint(item, painter, *rest)
        except Exception as fault:  # noqa: BLE001 - it may not reach Qt
            _report(item, fault)

    setattr(safely, GUARDED, True)
    return safely


def _clip_again(painter: Any) -> None:
    """Set the clip that holds already, in SVG: Qt writes each clip there, but not that an earlier one holds again."""
    if painter.hasClipping() and into_svg(painter):
        placed = painter.worldTransform()
        painter.resetTransform()  # the clip is told in whole numbers: of pixels here, else of steps
        painter.setClipPath(painter.clipPath())
        painter.setWorldTransform(placed)


def _report(item: Any, fault: BaseException) -> None:
    """Report to the figure that shows the item; the error of an item that is in none goes where errors of slots go."""
    scene = item.scene()
    figures = [view for view in scene.views() if isinstance(view, Figure)] if scene is not None else []
    if not figures:
        sys.excepthook(type(fault), fault, fault.__traceback__)
    for figure in figures:
        figure.failed(fault)
