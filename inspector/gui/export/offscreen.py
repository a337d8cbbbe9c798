"""A place for panels that are drawn into files: laid out at a size, never shown."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QApplication

from inspector.capture import Capture
from inspector.gui.panel.base import Panel
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.theme import LIGHT, Theme
from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN


def sequence_length(capture: Capture, frame: int = -1, domain: str = STEP_DOMAIN) -> int:
    """The longest (step, …) channel of a frame: how many steps the cursor can walk over, in the input or the answer."""
    axes = ("step", "query")
    domains = (domain,) if domain == ANSWER_DOMAIN else (domain, "position")  # not those of further inputs
    lengths = [
        capture.extent(channel.name, frame)[channel.dims.index(axis)]
        for channel in capture.channels.values()
        for axis in axes
        if axis in channel.dims and channel.domain(axis) in domains
    ]
    return max(lengths, default=0)


class Stage:
    """Makes panels over one capture, with a cursor and a range of their own."""

    def __init__(self, capture: Capture, size: tuple[int, int], theme: Theme = LIGHT) -> None:
        self.capture, self.size, self.theme = capture, size, theme
        self.cursor, self.steps, self.answer_steps = Cursor(), StepRange(), StepRange()
        self.steps.answer = self.answer_steps
        self._panels: list[Panel] = []

    def panel(self, key: str, *, frame: int = -1, place: str = "") -> Panel:
        """A panel of the capture, laid out and drawn."""
        length, answer = (sequence_length(self.capture, frame, domain) for domain in (STEP_DOMAIN, ANSWER_DOMAIN))
        self.steps.set_length(length)
        self.answer_steps.set_length(answer)
        self.cursor.set_length(length, answer)
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
