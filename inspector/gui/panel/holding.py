"""What a panel does where the cursor is to stay: a click fixes it, Shift and a click pin the place, pins are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QEvent, Qt, Slot
from PySide6.QtGui import QKeyEvent

from inspector.gui.panel.pointing import Marks, Pointing
from inspector.gui.panel.signals import PanelSignals
from inspector.gui.state.asked import asked_of
from inspector.gui.state.cursor import Position
from inspector.gui.state.pins import Pin, pins_of
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.plots.view import View


class Holding(PanelSignals):
    """A panel whose cursor can be fixed, and that draws pins."""

    plots: list[StepPlot]
    marked: Marks

    def _begin_holding(self, pointing: Pointing) -> None:
        """Follow the mouse over a figure."""
        self._was: tuple[bool, Position] | None = None
        """Before the last click: whether the cursor was fixed, and where."""
        self._pinned: dict[int, Mapping[Any, int]] = {}
        """The marks of this panel when a pin was set, by the pin's number."""
        pointing.hovered.connect(self._hovered)
        pointing.clicked.connect(self._pressed)
        pointing.shifted.connect(self._shifted)
        pointing.doubled.connect(self._doubled)
        pins = pins_of(self.looking)
        pins.added.connect(self._keep_marks)
        pins.changed.connect(self._show_pins)
        self.looking.cursor.fixing.connect(self._show_fixed)
        asked_of(self.looking).changed.connect(self._show_matches)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The mouse is over a plot, at data coordinates: the cursor goes there, or the place is marked in the plot."""

    def clicked(self, plot: Any, x: float, y: float) -> None:
        """A plot was clicked, at data coordinates: the same, unless a subclass does more."""
        self.pointed(plot, x, y)

    def labelled_readout(self, position: Position | None = None) -> list[tuple[str, str]]:
        """The exact numbers at a position, by default under the cursor."""
        raise NotImplementedError

    @Slot(object, float, float)
    def _hovered(self, plot: Any, x: float, y: float) -> None:
        if not self.looking.cursor.fixed:
            self.pointed(plot, x, y)

    @Slot(object, float, float)
    def _pressed(self, plot: Any, x: float, y: float) -> None:
        """A click fixes the cursor; a second one at the same place frees it."""
        cursor = self.looking.cursor
        before, marks = (cursor.fixed, cursor.position), self.marked.taken()
        self._was = before
        self.clicked(plot, x, y)
        if isinstance(plot, pg.PlotItem) and (cursor.position.steps or self.marked.taken()):
            same = (cursor.position, self.marked.taken()) == (before[1], marks)
            cursor.fix(not (before[0] and same))

    @Slot(object, float, float)
    def _shifted(self, plot: Any, x: float, y: float) -> None:
        """Pin the place under the mouse."""
        self.clicked(plot, x, y)
        pins_of(self.looking).add(self.looking.cursor.position)

    @Slot(object)
    def _doubled(self, plot: Any) -> None:
        """The click before was the first of two, which was not meant to fix the cursor: the plot is shown whole."""
        if self._was is not None:
            self.looking.cursor.fix(self._was[0])
        view = getattr(plot, "vb", None)
        if isinstance(view, View):
            view.reset()

    @Slot(object)
    def _keep_marks(self, pin: Pin) -> None:
        self._pinned[pin.number] = self.marked.taken()

    def readout_at(self, pin: Pin) -> list[tuple[str, str]]:
        """The exact numbers at a pin, of what the panel shows now."""
        with self.marked.as_they_were(self._pinned.get(pin.number, {})):
            return self.labelled_readout(pin.position.along(self.looking.axis))

    @Slot()
    def _show_pins(self) -> None:
        found = pins_of(self.looking).along(self.looking.axis)
        for plot in self.plots:
            if plot.steps is not None:
                plot.show_pins(found)
        self.show_pin_cells()

    def show_pin_cells(self) -> None:
        """Mark the pinned cells of the panel's maps; a panel without maps has none."""

    @Slot()
    def _show_matches(self) -> None:
        """Mark what was looked for in the sequence."""
        ranges = asked_of(self.looking).along(self.looking.axis)
        for plot in self.plots:
            if plot.steps is not None:
                plot.show_matches(ranges)

    @Slot(bool)
    def _show_fixed(self, fixed: bool) -> None:
        for plot in self.plots:
            plot.show_fixed(fixed)

    # -- Escape, wherever in the panel it is pressed

    def event(self, event: QEvent) -> bool:
        """Escape, which cancels runs in the window, frees the cursor first where it is fixed."""
        shortcut = event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent)
        if shortcut and self.looking.cursor.fixed and event.key() == Qt.Key.Key_Escape:  # type: ignore[attr-defined]
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape frees the cursor."""
        if event.key() == Qt.Key.Key_Escape and self.looking.cursor.fixed:
            self.looking.cursor.fix(False)
        else:
            super().keyPressEvent(event)
