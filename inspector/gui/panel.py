"""What every panel is: a figure over a capture, an empty page that says what is missing, an error page of its own."""

from __future__ import annotations

import traceback
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QColor, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from inspector.capture import Capture, CaptureError
from inspector.gui.cursor import Cursor, Looking, Position
from inspector.gui.emptypage import EmptyPage
from inspector.gui.figure import Figure, guard_painting
from inspector.gui.steprange import EitherRange, StepRange
from inspector.gui.text import clean, clean_block, plain_label
from inspector.gui.theme import Theme
from inspector.gui.widgets.stepplot import StepPlot
from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN, Channel

Array = npt.NDArray[Any]
WHOSE = {"input": STEP_DOMAIN, "answer": ANSWER_DOMAIN}
"""Whose steps a panel shows, where the answer has its own: never both on one axis."""
KEYS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}


class Panel(QWidget):
    """Base of all panels. A subclass says what it accepts and implements `update_contents`, which may raise."""

    key: ClassVar[str] = ""
    title: ClassVar[str] = ""
    hint: ClassVar[str] = ""
    by_steps: ClassVar[bool] = True
    """Whether what is over the input's steps and what is over the answer's is kept apart."""
    extra: ClassVar[tuple[str, ...]] = ()
    """Keys of quantities, not computed by default, that fill this panel; its empty page offers to compute them."""
    needs_height: ClassVar[int] = 180
    """Pixels of height below which the picture scrolls instead of being squeezed."""
    wanted = Signal(tuple)
    """The user asks for `extra`."""

    def __init__(self, cursor: Cursor, steps: StepRange, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.looking, self.steps, self.theme = Looking(cursor, parent=self), EitherRange(steps, self), theme
        self.capture: Capture | None = None
        self.plots: list[StepPlot] = []
        self.computed = False
        """Whether the run that is shown was asked for `extra`."""
        self.setObjectName(f"panel-{self.key}")
        self.setAccessibleName(self.title)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.control_row = QWidget()
        self.controls = QHBoxLayout(self.control_row)
        self.controls.setContentsMargins(8, 2, 8, 2)
        policy = self.control_row.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.control_row.setSizePolicy(policy)
        self.whose = chooser(list(WHOSE), "Steps of the input or of the answer")
        self.whose.activated.connect(self._choose_steps)
        self.controls.addWidget(self.whose)
        self.whose.hide()
        guard_painting()
        self.figure = Figure(self._broken)
        self.figure.setFocusProxy(self)
        self.figure.ci.layout.setContentsMargins(4, 4, 4, 4)
        self.figure.ci.layout.setSpacing(4)
        self._empty = EmptyPage(self.hint)
        self._empty.asked.connect(lambda: self.wanted.emit(self.extra))
        self._error = QPlainTextEdit()
        self._error.setReadOnly(True)
        self.stack = QStackedWidget()
        for page in (self._empty, self._scrolled(self.picture()), self._error):
            self.stack.addWidget(page)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.control_row)
        layout.addWidget(self.stack, 1)
        self.build()
        self.controls.addStretch(1)
        self.figure.scene().sigMouseMoved.connect(self._hover)
        self.looking.moved.connect(self._cursor_moved)
        self.set_theme(theme)

    # -- what subclasses provide

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Whether this panel shows a channel, judged by its kind and dims."""
        raise NotImplementedError

    def picture(self) -> QWidget:
        """The widget that holds the picture: the figure, unless a subclass has something else (a table)."""
        return self.figure

    def _scrolled(self, picture: QWidget) -> QWidget:
        """The figure in an area that scrolls where there is less height than it can be read at."""
        if picture is not self.figure:
            return picture
        self.figure.setMinimumHeight(self.needs_height)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setMinimumHeight(60)
        area.setWidget(self.figure)
        return area

    def picture_size(self) -> QSize:
        """The size at which the picture is laid out, seen whole or scrolled."""
        return self.figure.size() if isinstance(self.stack.widget(1), QScrollArea) else self.stack.size()

    def build(self) -> None:
        """Make controls and plots, once."""

    def update_contents(self) -> None:
        """Draw the capture as it is now. May raise: then the error page is shown."""
        raise NotImplementedError

    def follow(self, new: Position, old: Position) -> None:
        """The cursor moved; vertical lines have already followed."""

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The mouse is over a plot, at data coordinates."""

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Exact numbers under the cursor, as (what, value)."""
        return []

    def data(self) -> dict[str, Array]:
        """What is shown, by channel name, for CSV and NPZ."""
        return {}

    # -- capture and refreshing

    def add_choice(self, text: str, name: str) -> QComboBox:
        """One more choice among the controls, under a short label; another choice draws the panel again."""
        box = chooser([], name)
        self.controls.addWidget(caption(text))
        self.controls.addWidget(box)
        box.currentTextChanged.connect(self.redraw)
        return box

    def set_capture(self, capture: Capture | None) -> None:
        """Show another capture, or none."""
        self.capture = capture
        self.reset()
        self._turned(self.looking.position.place)
        self.redraw()

    def reset(self) -> None:
        """Forget choices that belong to the capture before."""

    @property
    def frame(self) -> int:
        """The frame that is shown; -1 for the newest."""
        frame: int = self.looking.position.frame
        return frame

    def channels(self) -> list[Channel]:
        """The channels of the capture that this panel shows and that have data, over the steps that are shown."""
        found = self._filled()
        if not self.by_steps:
            return found
        answers = self._answering()
        return [channel for channel in found if (channel.place in answers) is self.looking.answers]

    def _filled(self) -> list[Channel]:
        if self.capture is None:
            return []
        return [
            c for c in self.capture.channels.values() if self.accepts(c) and self.capture.revision(c.name, self.frame)
        ]

    def _answering(self) -> frozenset[str]:
        """Places that run over the answer's steps."""
        return answering(self.capture) if self.capture is not None else frozenset()

    # -- the input's steps or the answer's

    def _settle_steps(self) -> None:
        """Offer the choice where there is one, and show the answer where there is nothing else."""
        answers = self._answering()
        found = {channel.place in answers for channel in self._filled()} if self.by_steps else set()
        self.whose.setVisible(len(found) == 2)
        if found and self.looking.answers not in found:
            self._use(ANSWER_DOMAIN if True in found else STEP_DOMAIN)

    def _use(self, domain: str) -> None:
        self.looking.domain = domain
        self.whose.setCurrentText(next(word for word, known in WHOSE.items() if known == domain))
        self.steps.use(domain)

    @Slot(int)
    def _choose_steps(self, _index: int) -> None:
        self._use(WHOSE[self.whose.currentText()])
        self.redraw()

    def _turned(self, place: str) -> bool:
        """Turn to the steps of a place that is shown here; whether that changed anything."""
        if not self.by_steps or not any(channel.place == place for channel in self._filled()):
            return False
        domain = ANSWER_DOMAIN if place in self._answering() else STEP_DOMAIN
        if domain == self.looking.domain:
            return False
        self._use(domain)
        return True

    def refresh(self, changed: frozenset[str]) -> None:
        """Called from the session's tick when the capture has grown; draws only if a channel of ours has."""
        if self.capture is None or not self.isVisibleTo(self.window()):
            return
        if any(name in self.capture.channels and self.accepts(self.capture.channels[name]) for name in changed):
            self.redraw()

    def redraw(self) -> None:
        """Draw, or show the empty page, or the error page if drawing raises; the other panels go on."""
        try:
            self._settle_steps()
            if not self.channels():
                self._show_empty()
                return
            for plot in self.plots:
                plot.name_steps(self.looking.domain)
            self.control_row.setVisible(True)
            self.update_contents()
            self.stack.setCurrentIndex(1)
            position = self.looking.position
            self.follow(position, position)
            self._show_cursor(position.step)
        except Exception as fault:  # noqa: BLE001 - one panel may not take the window along
            self._show_error(str(fault), traceback.format_exc())

    def _show_error(self, fault: str, details: str) -> None:
        self._error.setPlainText(
            clean_block(f"This panel could not be drawn; the others go on.\n\n{fault}\n\n{details}")
        )
        self.stack.setCurrentIndex(2)

    def _broken(self, fault: str, details: str) -> None:
        """An item of the figure could not be painted: the error page comes once the painting is over."""
        QTimer.singleShot(0, self, lambda: self._show_error(fault, details))

    def _show_empty(self) -> None:
        refused: dict[str, list[str]] = {}
        for refusal in self.capture.refusals if self.capture is not None else ():
            if self.concerns(refusal.channel):
                refused.setdefault(refusal.reason, []).append(refusal.channel)
        reasons = [f"{', '.join(channels[:4])}: {reason}" for reason, channels in refused.items()][:4]
        self.control_row.setVisible(False)
        if self.capture is not None and self.extra and self.computed and not reasons:
            reasons = ["It was computed in this run, and nothing in this model is of that kind."]
        self._empty.show_reasons(
            self.hint, reasons, offer=self.capture is not None and bool(self.extra) and not reasons
        )
        self.stack.setCurrentIndex(0)

    def concerns(self, name: str) -> bool:
        """Whether a refused channel would have been shown here."""
        return False

    @property
    def state(self) -> str:
        """Which page is shown: "empty", "figure" or "error"."""
        return ("empty", "figure", "error")[self.stack.currentIndex()]

    # -- cursor and keyboard

    @Slot(object, object)
    def _cursor_moved(self, new: Position, old: Position) -> None:
        if (new.place != old.place and self._turned(new.place)) or new.frame != old.frame:
            self.redraw()
            new = self.looking.position
        self._show_cursor(new.step)
        if self.state == "figure":
            try:
                self.follow(new, old)
            except Exception as fault:  # noqa: BLE001 - a stale position may not end the event loop
                self._show_error(str(fault), traceback.format_exc())

    def _show_cursor(self, step: int | None) -> None:
        for plot in self.plots:
            if plot.steps is not None:
                plot.show_cursor(step)

    @Slot(object)
    def _hover(self, position: QPointF) -> None:
        for item in self.figure.ci.items:
            box = getattr(item, "vb", None)
            if box is not None and item.isVisible() and box.sceneBoundingRect().contains(position):
                point = box.mapSceneToView(position)
                self.pointed(item, point.x(), point.y())
                return

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right walk the steps (with Shift by ten), Home and End jump, up and down change the unit."""
        key, many = Qt.Key(event.key()), 10 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
        if key in KEYS:
            self.looking.advance(KEYS[key] * many)
        elif key == Qt.Key.Key_Home:
            self.looking.move(step=0)
        elif key == Qt.Key.Key_End:
            self.looking.move(step=max(0, self.looking.length - 1))
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self.walk(-many if key == Qt.Key.Key_Up else many)
        else:
            super().keyPressEvent(event)

    def walk(self, rows: int) -> None:
        """Up and down: the next unit, unless a subclass means something else by it."""
        unit = self.looking.position.unit
        self.looking.move(unit=max(0, (unit if unit is not None else 0) + rows))

    # -- looks and export

    def set_theme(self, theme: Theme) -> None:
        """Other colours for everything."""
        self.theme = theme
        self.figure.setBackground(theme.window)
        for plot in self.plots:
            plot.set_theme(theme)
        self.redraw()

    def step_names(self) -> tuple[str, ...]:
        """The labels of the steps of the frame shown."""
        return self.capture.labels(self.looking.domain, self.frame) if self.capture is not None else ()

    def told(self) -> list[tuple[str, str]]:
        """The readout under the shared cursor; what is over the answer's steps says so."""
        word = "answer: " if self.looking.answers else ""
        rows = self.readout(self.looking.position)
        return [(f"{word}{what}" if "[" in what else what, value) for what, value in rows]

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        """Draw the figure into any paint device, vectors as vectors; the background is painted too."""
        painter.fillRect(rect, QColor(self.theme.window))
        source = self.figure.sceneRect()
        self.figure.scene().prepareForPaint()
        self.figure.fault = ""
        self.figure.scene().render(painter, rect, source, Qt.AspectRatioMode.KeepAspectRatio)
        if self.figure.fault:
            raise CaptureError(f"{self.title} could not be drawn: {self.figure.fault}.")


def answering(capture: Capture) -> frozenset[str]:
    """Places whose channels are over the steps of an answer that has its own."""
    return frozenset(c.place for c in capture.channels.values() if c.step_domain == ANSWER_DOMAIN)


def chooser(options: list[str], name: str) -> QComboBox:
    """A combo box with an accessible name whose entries are plain text."""
    box = QComboBox()
    box.addItems([clean(option) for option in options])
    box.setAccessibleName(name)
    box.setToolTip(name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    box.setMinimumWidth(56)  # in a narrow window it is cut before it widens the window
    return box


def set_options(box: QComboBox, options: list[str]) -> None:
    """Other entries, the present choice kept where it still exists; no signal if nothing changed."""
    if [box.itemText(i) for i in range(box.count())] == options:
        return
    present = box.currentText()
    box.blockSignals(True)
    box.clear()
    box.addItems(options)
    box.setCurrentIndex(options.index(present) if present in options else 0)
    box.blockSignals(False)


def caption(text: str) -> QLabel:
    """A short label beside a control."""
    return plain_label(text)


def number(value: Any) -> str:
    """A number with all digits that its type holds."""
    if isinstance(value, (np.floating, float)):
        if np.isnan(value):
            return "NaN"
        digits = {2: 4, 4: 7, 8: 10}.get(getattr(np.asarray(value).dtype, "itemsize", 8), 7)
        return f"{float(value):.{digits}g}"
    return str(value)
