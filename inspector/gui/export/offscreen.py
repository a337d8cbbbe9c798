"""Panels that are drawn into files: laid out at a size, never shown."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication

from inspector.capture import Capture
from inspector.gui.panel.base import Panel
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.step_axes import lengths_of
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.theme import LIGHT, Theme


class Stage:
    """Makes panels over one capture, with a cursor and a range of their own."""

    def __init__(self, capture: Capture, size: tuple[int, int], theme: Theme = LIGHT) -> None:
        self.capture, self.size, self.theme = capture, size, theme
        self.cursor, self.steps = Cursor(), StepRange()
        self._panels: list[Panel] = []

    def panel(self, key: str, *, frame: int = -1, place: str = "") -> Panel:
        """A panel of the capture, laid out and drawn."""
        lengths = lengths_of(self.capture, frame)
        self.steps.set_lengths(lengths)
        self.cursor.set_lengths(lengths)
        panel = PANELS[key](self.cursor, self.steps, self.theme)
        panel.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        panel.setPalette(self.theme.palette())
        panel.resize(*self.size)
        self._panels.append(panel)
        panel.show()
        panel.set_capture(self.capture)
        self.cursor.move(frame=frame, place=place)
        QApplication.processEvents()
        panel.redraw()
        QApplication.processEvents()
        return panel

    def close(self) -> None:
        """Delete the panels."""
        for panel in self._panels:
            panel.set_capture(None)
            panel.close()
            panel.deleteLater()
        self._panels.clear()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
