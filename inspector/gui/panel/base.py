"""The base of every panel: a figure over a capture, an empty page that says what is missing, an error page."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy.typing as npt
from PySide6.QtCore import QRectF, QSize, Qt, QTimer, Slot
from PySide6.QtGui import QFocusEvent, QPainter
from PySide6.QtWidgets import QComboBox, QScrollArea, QVBoxLayout, QWidget

from inspector.capture import Capture, CaptureError, Pair
from inspector.gui.panel.axis_choice import AxisChoice
from inspector.gui.panel.empty_page import EmptyPage
from inspector.gui.panel.figure import Figure, guard_painting, scrolled
from inspector.gui.panel.in_words import PanelInWords
from inspector.gui.panel.missing import MissingLine, hint_for, why_empty
from inspector.gui.panel.over_iterations.over_training import OverTraining
from inspector.gui.panel.pages import EMPTY, FIGURE, OVER, Pages
from inspector.gui.panel.pointing import Marks, Pointing
from inspector.gui.panel.run_toggle import RunChoice, filled, filled_in_any, readable
from inspector.gui.panel.same_in_all import SameInAll
from inspector.gui.state.background import NOTHING, Rest
from inspector.gui.state.cursor import Cursor, Looking, Position
from inspector.gui.state.step_range import AxisRange, StepRange
from inspector.gui.widgets.control_row import ControlRow
from inspector.gui.widgets.controls import caption, chooser, measured, number, reserve_space, set_options
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel, Entry

Array = npt.NDArray[Any]


class Panel(PanelInWords, SameInAll):
    """Base of all panels. A subclass declares what it accepts and implements `update_contents`, which may raise."""

    key: ClassVar[str] = ""
    title: ClassVar[str] = ""
    hint: ClassVar[str] = ""
    tab_order: ClassVar[int] = 500
    """Position among the panels: from left to right, smaller ones first."""
    tab_row: ClassVar[Literal["upper", "lower"]] = "lower"
    """The upper row shows what the model computes, the lower one gradients and training."""
    by_steps: ClassVar[bool] = True
    """Whether channels over different step axes are separated: never two of them on one axis of a plot."""
    extra: ClassVar[tuple[str, ...]] = ()
    """Keys of quantities, not computed by default, that fill this panel; its empty page offers to compute them."""
    of_recurrences: ClassVar[bool] = False
    """Whether a recurrence that was seen and is not shown would have been shown here."""
    shows: ClassVar[tuple[str, ...]] = ()
    """Keys of default quantities whose channels are shown here; they come first while the panel is visible."""
    asks_first: ClassVar[bool] = False
    """Whether it shows nothing before a person has asked for something: it is no figure of a capture."""
    forward_last: ClassVar[bool] = False
    """Whether it comes to the front by itself only where no other beside it draws something: every run has an input."""
    needs_height: ClassVar[int] = 180
    """Pixels of height below which the figure scrolls instead of shrinking."""

    def __init__(self, cursor: Cursor, steps: StepRange, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.looking, self.steps, self.theme = Looking(cursor, parent=self), AxisRange(steps, self), theme
        self.capture: Capture | None = None
        self.source: Any = None
        """The view to be shown: the capture, or the difference of two of its frames."""
        self._second: int | None = None
        self._followed = ""  # the cursor's place when it was followed last
        self.side, self._drawn = 1, 0  # of two runs that do not subtract the one that is shown: 1 is the second
        self.plots: list[StepPlot] = []
        self.read: set[tuple[str, int]] = set()  # (channel, frame) of all from which the figure was drawn
        self.marked = Marks(self)
        self.needs: tuple[tuple[str, ...], ...] = ()
        """What each of `extra` needs of a model (keys of records.NEEDS), as soon as the worker has reported it."""
        self.computed = False  # whether `extra` was requested for the run that is shown
        self.chosen_signal = ""  # what was chosen to be shown: why it is not comes before other reasons
        self.remaining = NOTHING
        """What of `shows` and `extra` the run that is shown has not computed."""
        self.setObjectName(f"panel-{self.key}")
        self.setAccessibleName(self.title)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._make_controls()
        self._make_figure()
        self._make_pages()
        self.build()
        self.control_row.settle([self.over.switch, self.one_run])
        self._begin_same()
        self.looking.moved.connect(self._cursor_moved)
        self.marked.changed.connect(self.drawn)
        self.set_theme(theme)

    def _make_controls(self) -> None:
        """The row above the figure, with the choice of the step axis; `build` adds to it."""
        self.control_row = ControlRow()
        self.controls = self.control_row.first
        reserve_space(self.control_row)
        self.axes = AxisChoice(self.looking, self.steps, self)
        self.axes.chosen.connect(self._chosen_axis)
        self.whose = self.axes.box
        self.controls.addWidget(self.whose)
        self.one_run = RunChoice()
        self.one_run.turned.connect(self._turn_to)

    def _make_figure(self) -> None:
        guard_painting()
        self.figure = Figure(self._broken)
        self.figure.setFocusProxy(self)
        self.figure.setAccessibleName(f"Figure of {self.title}")
        self._begin_holding(Pointing(self.figure))

    def _make_pages(self) -> None:
        """The empty page, the figure, the error page and the summaries over training, below the controls."""
        self._empty = EmptyPage(self.hint)
        self._empty.asked.connect(lambda: self.wanted.emit(self.remaining.offered or self.extra or self.shows))
        self.over = OverTraining(self, self._broken)
        self.over.changed.connect(self.redraw)
        self.over.framed.connect(lambda frame: self.looking.move(frame=frame))
        self.stack = Pages(self._empty, self._page(), self.over.page)
        self._error = self.stack.error
        self._missing = MissingLine()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.control_row)
        layout.addWidget(self.stack, 1)
        layout.addWidget(self._missing)

    # -- what subclasses provide

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Whether this panel shows a channel, judged by its kind and dims."""
        raise NotImplementedError

    @classmethod
    def only(cls, capture: Any, found: list[Channel], frame: int) -> list[Channel]:
        """Those of the accepted channels with data that can be shown beside what else the capture has."""
        return found

    @classmethod
    def choose(cls, found: list[Channel]) -> list[Channel]:
        """Those that are shown of the accepted channels that have data: all, unless some are shown only with others."""
        return found

    @classmethod
    def found_in(cls, capture: Any, frame: int) -> list[Channel]:
        """What it would show of a frame."""
        return cls.choose(cls.only(capture, filled(capture, cls.accepts, frame), frame))

    def picture(self) -> QWidget:
        """The widget with the contents: the figure, unless it is another one."""
        return self.figure

    def _page(self) -> QWidget:
        """The contents; a figure scrolls where there is not enough height to read it."""
        picture = self.picture()
        return picture if picture is not self.figure else scrolled(self.figure, self.needs_height)

    def picture_size(self) -> QSize:
        """The size at which the contents are laid out, visible as a whole or scrolled."""
        if self.over.on:
            return QSize(self.over.figure.size())
        return self.figure.size() if isinstance(self.stack.widget(FIGURE), QScrollArea) else self.stack.size()

    def build(self) -> None:
        """Make controls and plots, once."""

    def update_contents(self) -> None:
        """Draw the capture as it is now. May raise: then the error page is shown."""
        raise NotImplementedError

    def follow(self, new: Position, old: Position) -> None:
        """The cursor moved; vertical lines have been moved already."""

    def clampable(self, plot: Any) -> Channel | None:
        """The channel whose map of units a plot is, where a unit can be clamped; else None."""
        return None

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Exact numbers under the cursor, as (what, value)."""
        return []

    def data(self) -> dict[str, Array]:
        """The values that are shown, by channel name, for CSV and NPZ."""
        return {}

    def add_choice(self, text: str, name: str) -> QComboBox:
        """One more choice among the controls, under a short label; a new choice draws the panel again."""
        box = chooser([], name)
        for widget in (caption(text), box):
            self.controls.addWidget(widget)
        box.currentTextChanged.connect(self.redraw)
        return box

    # -- capture and refreshing

    def set_capture(self, capture: Capture | None) -> None:
        """Show another capture, or none; of a difference of two the second where nothing can be subtracted."""
        self._note_model(capture)
        self.source, self.side, self._of_another = capture, 1, True
        self.capture, self._second = readable(capture, self.accepts)
        self.one_run.offer(capture, self._second)
        self.marked.clear()
        self.over.forget()
        self.reset()
        self._turned(self.looking.position.place)
        self.draw_if_seen()

    @Slot(int)
    def _turn_to(self, side: int) -> None:
        self.side, self.capture = side, self.source.sides[side].view
        self._second = self.source.sides[side].frame
        self.redraw()

    def reset(self) -> None:
        """Reset choices that belong to the capture before."""

    @property
    def frame(self) -> int:
        """The frame that is shown; -1 for the newest."""
        return int(self.looking.position.frame) if self._second is None else self._second

    @property
    def differs(self) -> bool:
        """Whether the difference of two runs is drawn."""
        return isinstance(self.source, Pair) and self._second is None

    def channels(self) -> list[Channel]:
        """The channels of the capture that this panel shows and that have data, over the steps that are shown."""
        found = self._filled()
        return self.choose(self.axes.own(self.capture, found) if self.by_steps else found)

    def _filled(self) -> list[Channel]:
        return (filled_in_any if self.over.on else filled)(self.capture, self.accepts, self.frame)

    # -- the step axis that is shown

    @Slot()
    def _chosen_axis(self) -> None:
        self.looking.focus()
        self.redraw()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Keys and the player move along the axis that is shown here."""
        self.looking.focus()
        super().focusInEvent(event)

    def _turned(self, place: str) -> bool:
        """Switch to the step axis of a place that is shown here, along another one alone; returns whether it did."""
        own = [channel for channel in self._filled() if channel.place == place] if self.by_steps else []
        if not own or self.axes.own(self.capture, own):
            return False
        turned = self.axes.turn_to(place, self.capture)
        if self.hasFocus():
            self.looking.focus()
        return turned

    def refresh(self, changed: frozenset[str]) -> None:
        """Called from the session's tick when the capture has grown; draws only if one of the panel's channels has."""
        if self.capture is None:
            return
        self.drop_another_sequence()
        ended = (self.old.shown or self._drew_growing) and not self.growing
        there = self.capture.channels
        if ended or any(name in there and self.accepts(there[name]) for name in changed):
            self.draw_if_seen()

    def redraw(self) -> None:
        """Draw, or show the empty page, or the error page if drawing raises; other panels are not affected."""
        self._drawn, self.stale, self._drew_growing, self._of_another = self._drawn + 1, False, self.growing, False
        try:
            if self.by_steps and self.capture is not None:
                self.axes.settle(self.capture, self.frame, self._filled())
            if not self.channels():
                self._show_empty()
                return
            for plot in self.plots:
                plot.name_steps(self.axes.title(self.capture, self.frame))
            self.control_row.setVisible(True)
            self.over.offer(self.source, self.channels())
            with self.capture.noting() as self.read:  # type: ignore[union-attr]
                (self.over.draw if self.over.on else self.update_contents)()
            self.stack.setCurrentIndex(OVER if self.over.on else FIGURE)
            self.old.drop()
            self._names_drawn = self.step_names()
            self._missing.tell(self)
            self.control_row.wrap()
            position, before = self.looking.position, self._followed
            if not self.over.on:
                self._followed = position.place
                self.follow(position, replace(position, place=before))  # where it went before this was made or seen
            self._show_cursor(position.step)
            self._show_matches()
            self.drawn.emit()
        except Exception as fault:  # noqa: BLE001 - a failure of one panel must not affect the window
            self._show_error(str(fault), traceback.format_exc())

    def _show_error(self, fault: str, details: str) -> None:
        self.old.drop()
        self.stack.show_error(fault, details)

    def _broken(self, fault: str, details: str) -> None:
        """An item could not be painted: the error page comes after the painting, if it is not drawn again before."""
        drawn = self._drawn
        QTimer.singleShot(0, self, lambda: self._show_error(fault, details) if drawn == self._drawn else None)

    def say_computed(self, computed: bool) -> None:
        """Note whether `extra` was requested for the run that is shown, then or later."""
        if computed is not self.computed:
            self.computed = computed
            if self.state == "empty":
                self._show_empty()

    def say_remaining(self, rest: Rest) -> None:
        """Note what the run that is shown has not computed of what belongs here."""
        if rest != self.remaining:
            self.remaining = rest
            self.remaining_changed.emit()
            if self.state == "empty":
                self._show_empty()
            elif rest.broken_off and self._drew_growing:
                self.draw_if_seen()

    def _show_empty(self) -> None:
        if not self.growing:
            self.old.drop()
        self.control_row.setVisible(self.old.shown)
        reasons, offer = why_empty(self)
        self._empty.show_reasons(hint_for(self), reasons, offer=offer and not self.growing)
        self._empty.show_rest(self.remaining)
        self._missing.tell(None)
        self.stack.setCurrentIndex(EMPTY)
        self.old.raise_()  # a stack puts its page in front

    def know(self, entries: Sequence[Entry], cures: Sequence[Entry] = ()) -> None:
        """Take the worker's entries of the quantities in `extra`: what they need and what they cost; and its cures."""
        self.entries = entries
        own = [entry for entry in entries if entry.key in self.extra]
        self.needs = tuple(entry.needs for entry in own)
        self._empty.show_cost("; ".join(entry.cost for entry in own if entry.cost))

    def concerns(self, name: str) -> bool:
        """Whether a channel that could not be computed would have been shown here."""
        return False

    @property
    def state(self) -> str:
        """Which page is shown: "empty", "figure" or "error"."""
        return self.stack.state

    # -- cursor and keyboard

    @Slot(object, object)
    def _cursor_moved(self, new: Position, old: Position) -> None:
        turned = new.place != old.place and self._turned(new.place)
        if not self.on_screen:
            self.stale = True
            return
        if turned or new.frame != old.frame:
            self.redraw()
            new = self.looking.position
        self._show_cursor(new.step)
        if self.state == "figure" and not self.over.on:
            self._followed = new.place
            try:
                self.follow(new, old)
            except Exception as fault:  # noqa: BLE001 - a stale position may not end the event loop
                self._show_error(str(fault), traceback.format_exc())

    def _show_cursor(self, step: int | None) -> None:
        for plot in self.plots:
            if plot.steps is not None:
                plot.show_cursor(step)
        self._show_pins()

    # -- appearance and export

    def set_theme(self, theme: Theme) -> None:
        """Other colours for everything."""
        self.theme = theme
        self.figure.setBackground(theme.window)
        self.over.set_theme(theme)
        for plot in self.plots:
            plot.set_theme(theme)
        self.draw_if_seen()

    def changed(self, channel: Channel) -> str:
        """The prefix of a name that is not the channel's title, where its numbers are differences of two runs."""
        return "Δ " if self.differs and channel.compare == "difference" else ""

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        """Draw the figure into any paint device, vectors as vectors; the background is painted too."""
        figure = self.over.figure if self.over.on else self.figure
        if fault := figure.paint_into(painter, rect, self.theme.window):
            raise CaptureError(f"{self.title} could not be drawn: {fault}.")


__all__ = ["Panel", "caption", "chooser", "measured", "number", "set_options"]
