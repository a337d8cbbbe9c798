"""Panels that are drawn into files: laid out at a size, never shown."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtWidgets import QApplication, QLayout

from inspector.capture import Capture, CaptureError
from inspector.gui.panel.base import Panel
from inspector.gui.panel.colours import colours_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.step_axes import lengths_of
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.theme import LIGHT, Theme
from inspector.records import STEP_DOMAIN, ViewAt

MOST_TRIES = 6
"""Times that a panel is resized until its picture has the size that was asked for: what stands around it changes."""


class Stage:
    """Makes panels over one capture, with a cursor and a range of their own."""

    def __init__(self, capture: Capture, size: tuple[int, int], theme: Theme = LIGHT) -> None:
        self.capture, self.size, self.theme = capture, size, theme
        self.cursor, self.steps = Cursor(), StepRange()
        self._panels: list[Panel] = []

    def panel(self, key: str, *, frame: int = -1, place: str = "", at: ViewAt | None = None) -> Panel:
        """A panel of the capture, laid out and drawn at a position.

        Raises CaptureError for a step that does not exist.
        """
        at = at or ViewAt(frame=frame, place=place)
        lengths = lengths_of(self.capture, at.frame)
        self.steps.set_lengths(lengths)
        self.cursor.set_lengths(lengths)
        _check(at, lengths.get(STEP_DOMAIN, 0))
        colours_of(self.cursor).take_text(at.colours)
        panel = PANELS[key](self.cursor, self.steps, self.theme)
        panel.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
        panel.setPalette(self.theme.palette())
        panel.resize(*self.size)
        self._panels.append(panel)
        panel.show()
        panel.set_capture(self.capture)
        self.cursor.move(frame=at.frame, place=at.place, step=at.step, unit=at.unit, head=at.head)
        if at.steps is not None:
            self.steps.set(at.steps[0] - 0.5, at.steps[1] + 0.5)
        QApplication.processEvents()
        panel.redraw()
        if at.curves and hasattr(panel, "prefer"):
            panel.prefer(at.curves)
        if at.iterations is not None and hasattr(panel, "show_range"):
            panel.show_range(*at.iterations)
        QApplication.processEvents()
        return panel

    def fit(self, panel: Panel) -> None:
        """Lay out a panel so that its picture has the size of the stage, whatever stands around it."""
        panel.figure.fixed = True
        panel.figure.setMinimumHeight(1)  # it would scroll rather than be smaller
        panel.control_row.setMaximumHeight(0)  # it is not drawn, and would ask for its width
        layout = panel.layout()
        if layout is not None:
            layout.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        panel.setMinimumSize(0, 0)
        panel.redraw()  # it may leave out what has no room
        for _ in range(MOST_TRIES):
            lacking = QSize(*self.size) - panel.picture_size()
            if lacking.isNull():
                break
            panel.resize(panel.size() + lacking)
            QApplication.processEvents()
        for item in panel.scene.items():
            if (in_view := getattr(item, "in_view", None)) is not None:
                in_view.told(item.given, at_once=True)  # before what is written into cells has its colours
        panel.redraw()
        QApplication.processEvents()

    def turn(self, panel: Panel, frame: int) -> None:
        """Show another frame."""
        lengths = lengths_of(self.capture, frame)
        self.steps.set_lengths(lengths)
        self.cursor.set_lengths(lengths)
        self.cursor.move(frame=frame)
        panel.redraw()
        QApplication.processEvents()

    def close(self) -> None:
        """Delete the panels."""
        for panel in self._panels:
            panel.set_capture(None)
            panel.close()
            panel.deleteLater()
        self._panels.clear()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def _check(at: ViewAt, length: int) -> None:
    """Raises CaptureError."""
    asked = [step for step in (at.step, *(at.steps or ())) if step is not None]
    if outside := [step for step in asked if not 0 <= step < length]:
        there = f"they are numbered 0 to {length - 1}" if length else "this capture has no steps"
        raise CaptureError(f"There is no step {outside[0]} of the input: {there}.")
