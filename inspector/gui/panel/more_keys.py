"""Keys for what the mouse does in a plot: zooming and moving along the steps, and the range of the colours."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent

from inspector.gui.panel.holding import Holding
from inspector.gui.state.step_range import AxisRange
from inspector.gui.widgets.described import value_changed
from inspector.gui.widgets.maps.colour_span import HIGH, LOW
from inspector.gui.widgets.maps.colourbar import ColourBar

IN, MOVE = 0.8, 0.15
"""Part of the view that is left by zooming in once, and by which it is moved."""
SHIFT = Qt.KeyboardModifier.ShiftModifier
UP_AND_DOWN = {Qt.Key.Key_Up: 1, Qt.Key.Key_Down: -1}


class MoreKeys(Holding):
    """W and S zoom the steps around the cursor, A and D move along them. C takes the colour bar in hand: up and down
    move its upper end, with Shift the lower one, Home chooses the usual range, End that of what is in view; C again
    takes the next one, or none."""

    steps: AxisRange
    scene: Any
    state: Any
    held_bar: ColourBar | None = None

    def colour_bars(self) -> list[ColourBar]:
        """The colour bars that can be seen, from the top."""
        if self.state != "figure":
            return []
        found = [item for item in self.scene.items() if isinstance(item, ColourBar) and item.isVisible()]
        return sorted(found, key=lambda bar: (bar.scenePos().y(), bar.scenePos().x()))

    def take_bar(self, bar: ColourBar | None) -> None:
        """Take a colour bar in hand, or none."""
        if self.held_bar is not None and self.held_bar.scene() is not None:
            self.held_bar.hold(False)
        self.held_bar = bar if bar is not None and bar.can_choose else None
        if self.held_bar is not None:
            self.held_bar.hold(True)
        value_changed(self)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """The keys above; others as they are."""
        key, held = Qt.Key(event.key()), event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        plain = held in (Qt.KeyboardModifier.NoModifier, SHIFT)
        if plain and (self._of_bar(key, held == SHIFT) or self._of_steps(key)):
            event.accept()
        else:
            super().keyPressEvent(event)

    def _of_bar(self, key: Qt.Key, shift: bool) -> bool:
        bar = self.held_bar
        if key == Qt.Key.Key_C:
            bars = self.colour_bars()
            at = bars.index(bar) + 1 if bar in bars else 0
            self.take_bar(bars[at] if at < len(bars) else None)
        elif bar is None or bar not in self.colour_bars():
            return False
        elif key in UP_AND_DOWN:
            bar.move_end(LOW if shift else HIGH, UP_AND_DOWN[key])
            value_changed(self)
        elif key == Qt.Key.Key_Home:
            bar.as_usual()
            value_changed(self)
        elif key == Qt.Key.Key_End:
            bar.follow_view()
            value_changed(self)
        elif key == Qt.Key.Key_Escape:
            self.take_bar(None)
        else:
            return False
        return True

    def _of_steps(self, key: Qt.Key) -> bool:
        low, high = self.steps.bounds
        step = self.looking.position.step
        centre = step if step is not None and low <= step <= high else (low + high) / 2
        if key in (Qt.Key.Key_W, Qt.Key.Key_S):
            self.steps.zoom(IN if key == Qt.Key.Key_W else 1 / IN, centre)
        elif key in (Qt.Key.Key_A, Qt.Key.Key_D):
            by = (high - low) * (MOVE if key == Qt.Key.Key_D else -MOVE)
            self.steps.set(low + by, high + by)
        else:
            return False
        return True

    def event(self, event: QEvent) -> bool:
        """Escape lets go of the bar before it does anything else."""
        override = event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent)
        if override and self.held_bar is not None and event.key() == Qt.Key.Key_Escape:  # type: ignore[attr-defined]
            event.accept()
            return True
        return super().event(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """A bar is in hand only as long as keys come here."""
        if self.held_bar is not None:
            self.take_bar(None)
        super().focusOutEvent(event)
