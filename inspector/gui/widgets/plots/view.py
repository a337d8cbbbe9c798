"""The area of a plot: the wheel, dragging and a double click do the same in every one, and what was zoomed stays so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt, Signal

Range = tuple[float, float]
STEP = 1.02
"""Zoom of one unit of a wheel, as pyqtgraph's."""
BOX = 4.0
"""Pixels across that a box has at least: less was not meant as one."""
SHIFT, CONTROL = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.ControlModifier


class View(pg.ViewBox):  # type: ignore[misc]
    """Wheel: zoom around the mouse, along x or along both axes (`both`); with Shift along y, with Ctrl along both, over
    an axis along that one. Drag: along x, and along y where it is zoomed. Shift and drag: a box to zoom into.

    An axis that the user has zoomed is held: ranges that a panel sets are what `reset` goes back to. An axis that is
    `led` by something that several plots share (steps, iterations, a map) is never held here: that keeps it.
    """

    resetting = Signal()
    """The user wants what is shared to be whole again as well."""

    def __init__(self, *, both: bool = False) -> None:
        super().__init__(enableMenu=False)
        self.both = both
        self.led = [False, False]
        self.held = [False, False]
        self._home: list[tuple[Range, float | None] | None] = [None, None]
        self._auto: list[Any] = [False, False]
        self._by_user = self._announcing = self._boxing = False

    @property
    def by_user(self) -> bool:
        """Whether the range that is being set, or told to others, is the user's."""
        return self._by_user

    # -- what the user does

    def _axes(self, modifiers: Any, axis: int | None) -> tuple[bool, bool]:
        """Which axes the wheel zooms."""
        if axis is not None:
            return axis == 0, axis == 1
        if self.both or modifiers & CONTROL or self.state["aspectLocked"]:
            return True, True
        return (False, True) if modifiers & SHIFT else (True, False)

    def wheelEvent(self, event: Any, axis: int | None = None) -> None:
        """Zoom around the mouse."""
        axes = self._axes(event.modifiers(), axis)
        factor = STEP ** (event.delta() * self.state["wheelScaleFactor"])
        centre = pg.Point(pg.functions.invertQTransform(self.childGroup.transform()).map(event.pos()))
        with self.moved_by_user(axes):
            self.scaleBy([factor if on else None for on in axes], centre)
        event.accept()

    def mouseDragEvent(self, event: Any, axis: int | None = None) -> None:
        """Pan with the left or middle button; with Shift and the left one draw a box. Other buttons do nothing."""
        if event.button() not in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            event.ignore()
            return
        event.accept()
        if event.isStart():
            self._boxing = bool(event.modifiers() & SHIFT) and axis is None
        if self._boxing:
            self._draw_box(event)
            return
        axes = (axis != 1, axis == 1 or (axis is None and (self.both or self.held[1] or self.led[1])))
        back = pg.functions.invertQTransform(self.childGroup.transform())
        moved = back.map(event.lastPos()) - back.map(event.pos())
        with self.moved_by_user(axes):
            self.translateBy(x=moved.x() if axes[0] else None, y=moved.y() if axes[1] else None)

    def _draw_box(self, event: Any) -> None:
        box = QRectF(pg.Point(event.buttonDownPos(event.button())), pg.Point(event.pos())).normalized()
        if not event.isFinish():
            self.updateScaleBox(event.buttonDownPos(), event.pos())
            return
        self.rbScaleBox.hide()
        if box.width() >= BOX and box.height() >= BOX:
            with self.moved_by_user((True, True)):
                self.setRange(self.childGroup.mapRectFromParent(box).normalized(), padding=0)

    @contextmanager
    def moved_by_user(self, axes: tuple[bool, bool]) -> Iterator[None]:
        """Ranges that are set meanwhile are the user's."""
        for axis, on in enumerate(axes):
            if on and not self.held[axis] and not self.led[axis]:
                low, high = self.state["targetRange"][axis]
                self._home[axis], self._auto[axis] = ((low, high), 0.0), self.state["autoRange"][axis]
                self.held[axis] = True
        with self._users_own():
            yield
        self.sigRangeChangedManually.emit(list(axes))

    @contextmanager
    def _users_own(self) -> Iterator[None]:
        before, (self._by_user, self._announcing) = (self._by_user, self._announcing), (True, False)
        try:
            yield
        finally:
            self._by_user, self._announcing = before

    def reset(self) -> None:
        """Everything that there is, here and where what is shared with other plots was zoomed."""
        self.release()
        self.resetting.emit()

    def release(self, axes: tuple[int, ...] = (0, 1)) -> None:
        """The ranges that the panel has set, and those that it sets from now on."""
        freed = [axis for axis in axes if self.held[axis]]
        if not freed:
            return
        for axis in freed:
            self.held[axis] = False
        homes: dict[float | None, list[Range | None]] = {}
        bounds = self.childrenBounds()
        for axis in freed:
            home = self._home[axis]
            fits = self._auto[axis] is not False and bounds[axis] is not None  # without numbers nothing would be fitted
            if home is not None and not fits:
                homes.setdefault(home[1], [None, None])[axis] = home[0]
        for padding, (x, y) in homes.items():  # both at once: with equal sides one after the other would cut the first
            self.setRange(None, x, y, padding)
        for axis in freed:
            if self._auto[axis] is not False:
                self.enableAutoRange(axis=axis, enable=self._auto[axis])

    # -- what panels set

    def setRange(
        self, rect: Any = None, xRange: Any = None, yRange: Any = None, padding: float | None = None,
        update: bool = True, disableAutoRange: bool = True,
    ) -> None:  # fmt: skip
        """As ViewBox.setRange; an axis that is held keeps its range, and `reset` goes to this one."""
        if rect is not None:
            xRange, yRange = (rect.left(), rect.right()), (rect.top(), rect.bottom())
        given = [xRange, yRange]
        for axis, wanted in enumerate(given):
            if wanted is not None and self.held[axis] and not self._set_by_user:
                low, high = float(min(wanted)), float(max(wanted))
                seen = self.state["viewRange"][axis]
                if high < seen[0] or low > seen[1]:  # nothing of it would be in view: other numbers are drawn
                    self.held[axis] = False
                    continue
                self._home[axis], given[axis] = ((low, high), padding), None
                if disableAutoRange:
                    self._auto[axis] = False
        if given != [None, None]:
            super().setRange(None, *given, padding, update, disableAutoRange)

    def updateViewRange(self, forceX: bool = False, forceY: bool = False) -> None:
        """As ViewBox.updateViewRange. What panels set because of the new range is theirs, and not the user's."""
        before, self._announcing = self._announcing, True
        try:
            super().updateViewRange(forceX, forceY)
        finally:
            self._announcing = before

    @property
    def _set_by_user(self) -> bool:
        """Whether a range that is set now is the user's, and not what a panel makes of the user's."""
        return self._by_user and not self._announcing

    def enableAutoRange(self, axis: Any = None, enable: Any = True, x: Any = None, y: Any = None) -> None:
        """As ViewBox.enableAutoRange; of an axis that is held it begins with `reset`."""
        if x is not None or y is not None or self._set_by_user or not any(self.held):
            super().enableAutoRange(axis, enable, x, y)
            return
        axes = {None: (0, 1), pg.ViewBox.XYAxes: (0, 1), "xy": (0, 1), "x": (0,), "y": (1,)}.get(axis, (axis,))
        for one in axes:
            if self.held[one]:
                self._auto[one] = enable
            else:
                super().enableAutoRange(one, enable)

    def linkedViewChanged(self, view: Any, axis: int) -> None:
        """A plot with the same axis was zoomed, dragged or reset: so is this one."""
        if view is None or self.linksBlocked:
            return
        held = view.held[axis]
        if held and not self.held[axis]:
            low, high = self.state["targetRange"][axis]
            self._home[axis], self._auto[axis] = ((low, high), 0.0), self.state["autoRange"][axis]
        self.held[axis] = held
        with self._users_own():
            super().linkedViewChanged(view, axis)


def views_in(scene: Any) -> list[View]:
    """The areas of all plots of a scene."""
    return [item for item in scene.items() if isinstance(item, View)]
