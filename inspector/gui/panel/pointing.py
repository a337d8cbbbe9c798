"""Where the mouse is over a figure: on which plot, in a nested layout or not, and where in its data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QObject, QPointF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QMouseEvent

from inspector.gui.panel.figure import Figure


def plot_at(figure: Figure, position: QPointF) -> Any:
    """The plot under a position of the scene, or an item with `data_at` of its own, or None."""
    for item in figure.scene().items(position):
        if isinstance(item, pg.ViewBox):
            return item.parentItem()
        if hasattr(item, "data_at"):
            return item
    return None


def data_at(plot: Any, position: QPointF) -> tuple[float, float]:
    """(x, y) of a position of the scene in the data of what is there; NaN for an axis that has no position there."""
    if hasattr(plot, "data_at"):
        x, y = plot.data_at(plot.mapFromScene(position))
        return float(x), float(y)
    point = plot.vb.mapSceneToView(position)
    return float(point.x()), float(point.y())


class Pointing(QObject):
    """`hovered(plot, x, y)` for the newest position of the mouse, `clicked(plot, x, y)` for a click of the left button,
    `shifted(plot, x, y)` for one with Shift; `doubled(plot)` when a click turns out to be the first of two.

    The scene's own signal of moves drops those that follow each other within 10 ms, the last one too: the cursor would
    lag behind the mouse. Here only moves that are already outdated are dropped.
    """

    hovered = Signal(object, float, float)
    clicked = Signal(object, float, float)
    shifted = Signal(object, float, float)
    doubled = Signal(object)

    def __init__(self, figure: Figure) -> None:
        super().__init__(figure)
        self.figure = figure
        self._newest = QPointF()
        self._waiting = QTimer(self, interval=0, singleShot=True)
        self._waiting.timeout.connect(self._emit_newest)
        figure.viewport().installEventFilter(self)
        figure.scene().sigMouseClicked.connect(self._click)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Note where the mouse is; the figure still gets every event."""
        if event.type() == QEvent.Type.MouseMove and isinstance(event, QMouseEvent):
            self._newest = self.figure.mapToScene(event.position().toPoint())
            if not self._waiting.isActive():
                self._waiting.start()
        return False

    @Slot()
    def _emit_newest(self) -> None:
        self._emit(self.hovered, self._newest)

    @Slot(object)
    def _click(self, event: Any) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        if event.double():
            self.doubled.emit(plot_at(self.figure, event.scenePos()))
        else:
            shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._emit(self.shifted if shift else self.clicked, event.scenePos())

    def _emit(self, signal: Any, position: QPointF) -> None:
        plot = plot_at(self.figure, position)
        if plot is None:
            return
        x, y = data_at(plot, position)
        if not (math.isnan(x) and math.isnan(y)):
            signal.emit(plot, x, y)


class Marks(QObject):
    """Marked positions on axes that the shared cursor does not have (a lag, a rank, K), by plot; `changed()`."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._at: dict[Any, int] = {}

    def at(self, plot: Any, count: int) -> int | None:
        """The number that is marked in a plot of `count` of them, or None."""
        at = self._at.get(plot)
        return at if at is not None and 0 <= at < count else None

    def set(self, plot: Any, at: int | None, x: float | None = None) -> None:
        """Mark a number, drawn as a line at `x` (by default at the number itself), or nothing."""
        if self._at.get(plot) == at:
            return
        self._at.pop(plot, None)
        if at is not None:
            self._at[plot] = at
        if hasattr(plot, "show_cursor"):
            plot.show_cursor(at if x is None else x)
        self.changed.emit()

    def taken(self) -> dict[Any, int]:
        """The marks as they are."""
        return dict(self._at)

    @contextmanager
    def as_they_were(self, taken: Mapping[Any, int]) -> Iterator[None]:
        """Read with marks that were taken before; nothing is drawn."""
        now, self._at = self._at, dict(taken)
        try:
            yield
        finally:
            self._at = now

    def clear(self) -> None:
        """Remove all marks."""
        for plot in list(self._at):
            self.set(plot, None)
