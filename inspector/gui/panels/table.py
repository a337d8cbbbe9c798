"""Table: what each curve, unit, gate and layer does in a range of steps, exact, of what the panels in sight draw."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF, QTimer, Slot
from PySide6.QtGui import QColor, QKeyEvent, QKeySequence, QPainter
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget

from inspector.analysis.step_statistics import COLUMNS, Ranges, Statistics, curves_of, merged, read, step_axis
from inspector.analysis.text_matches import steps_of
from inspector.capture import Capture
from inspector.gui.panel.axes_of_data import DataAxes
from inspector.gui.panel.base import Panel, caption, measured
from inspector.gui.panel.plot_menu import copy_text
from inspector.gui.panel.range_rows import (
    Job,
    Line,
    as_typed,
    columns_of,
    lines_of,
    range_in_words,
    rows_of,
    steps_in,
    text_of,
)
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.asked import asked_of
from inspector.gui.state.chosen_steps import chosen_of
from inspector.gui.state.cursor import Position
from inspector.gui.state.in_sight import in_sight_of
from inspector.gui.state.side_reader import SideReader, Task
from inspector.gui.widgets.line_field import LineField
from inspector.gui.widgets.plain_text import clean, plain_label
from inspector.gui.widgets.tables.sorted_table import SortedTable
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
WAIT_MS, POLL_MS, AGAIN_SECONDS = 200, 60, 1.0
"""Milliseconds after the last letter or move before it is read, between looks for results, and seconds after which what
a run has added since is read."""
AT_ONCE = 1 << 18
"""Numbers that are read at once, in some milliseconds."""
TURN_SECONDS = 0.015
"""CPU time for which a comparison, which no thread can read, is read between two events."""
LINE = 1.5
"""Lines of text above the table in a picture."""
ASKED = "those in view; or 12-57, 80"
HELP = (
    "Which steps: typed here (12-57, 80), or drawn on the strip with Ctrl and a drag; without them those that Ask has "
    "found, and where it has found none those in view"
)


@PANELS.register("table")
class Table(Panel):
    """Numbers of curves over steps."""

    tab_order, tab_row = 85, "lower"
    menu_group = "sequence"
    key, title = "table", "Table"
    hint = (
        "First, last, least, largest, mean and change of every curve in a range of steps. Needs numbers step by step."
    )
    asks_first = of_everything = True
    """What it has to show are the quantities of other panels."""

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Curves over steps."""
        return step_axis(channel) is not None

    def picture(self) -> QWidget:
        """A line that says which steps, above the table."""
        self.line = plain_label()
        self.line.setAccessibleName("Which steps the table is of")
        self.line.setContentsMargins(8, 0, 8, 0)
        self.line.setWordWrap(True)
        self.table = SortedTable("curve", "What each curve does in a range of steps")
        self.table.chosen.connect(self._chosen)
        page = QWidget()
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self.line)
        layout.addWidget(self.table, 1)
        return page

    def build(self) -> None:
        """Which steps, and copying."""
        self.field, self.copying = LineField(), QToolButton()
        self.field.setAccessibleName("Steps of the table")
        self.field.setPlaceholderText(ASKED)
        self.field.setToolTip(HELP)
        self.field.setClearButtonEnabled(True)
        self.field.setMinimumWidth(210)
        self.copying.setText("Copy table")
        self.copying.setToolTip("All rows, in their order and with all digits, separated by tabs (Ctrl+C in the table)")
        self.copying.clicked.connect(self.copy)
        for widget in (caption("Steps"), self.field, self.copying):
            self.controls.addWidget(widget)
        self.reader = SideReader()
        self._wait = QTimer(self, interval=WAIT_MS, singleShot=True)
        self._wait.timeout.connect(self.draw_if_seen)
        self._poll = QTimer(self, interval=POLL_MS)
        self._poll.timeout.connect(self._take)
        self.field.textChanged.connect(lambda _text: self._wait.start())
        self.field.returnPressed.connect(self.draw_if_seen)
        self.steps.changed.connect(lambda _low, _high: self._wait.start())
        for told in (asked_of(self.looking), in_sight_of(self.looking)):
            told.changed.connect(self._wait.start)
        chosen_of(self.looking).changed.connect(self._take_chosen)
        self._telling = False
        self._forget()
        self._take_chosen()

    def _forget(self) -> None:
        self.job, self.problem = Job(), ""
        self._next = self.job
        self.lines: list[Line] = []
        self.picked: Line | None = None
        self._task: Task | None = None
        self._compared: Any = None
        """A comparison, while it is read here, between two events."""
        self._key: Any = None
        self._begun = 0.0

    def reset(self) -> None:
        """Another capture."""
        self._poll.stop()
        if self.capture is None:
            self.reader.close()
        elif self._task is not None:
            self.reader.forget(self._task.key)
        self._forget()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.table.set_theme(theme)
        super().set_theme(theme)

    # -- which steps, of what

    def ranges(self) -> tuple[Ranges, str]:
        """(the steps, who chose them). Raises ValueError where what is typed is no range."""
        length = self.looking.length
        if typed := self.field.text().strip():
            return merged(steps_of(typed, length)), ""
        if found := asked_of(self.looking).along(self.looking.axis):
            return merged((first, min(last, length - 1)) for first, last in found if first < length), "found by Ask"
        low, high = self.steps.bounds
        first, last = max(0, int(np.ceil(low))), min(length - 1, int(np.floor(high)))
        return (((first, last),) if first <= last else ()), "in view"

    @Slot()
    def _take_chosen(self) -> None:
        """What was drawn on a strip stands here as if it was typed."""
        chosen = chosen_of(self.looking)
        if self._telling:
            return
        if chosen.ranges:
            self.axes.use(chosen.axis)
        self.field.setText(as_typed(chosen.ranges))

    def _tell_chosen(self, ranges: Ranges) -> None:
        """What is typed is marked on the strip."""
        self._telling = True
        chosen_of(self.looking).show(ranges, self.looking.axis)
        self._telling = False

    def listed(self) -> list[Channel]:
        """What the panels in sight draw step by step; of everything where none is beside this one."""
        names = in_sight_of(self.looking).names
        return [one for one in self.channels() if not names or one.name in names]

    # -- reading

    def _request(self) -> None:
        """Begin to read, unless the same is read or was."""
        capture = self.capture
        assert capture is not None
        ranges, whose = self.ranges()
        self._tell_chosen(() if whose else ranges)
        own = self.listed()
        asked = (ranges, whose, self.frame, tuple(one.name for one in own))
        key = (asked, tuple(capture.revision(one.name, self.frame) for one in own))
        if key == self._key:
            return
        if self._key is not None and asked == self._key[0] and self.growing:  # no more than once a second
            busy = self._task is not None and not self._task.done
            wait = AGAIN_SECONDS - (time.monotonic() - self._begun)
            if busy or wait > 0:
                self._wait.start(max(WAIT_MS, int(1000 * wait)))
                return
        if self._task is not None:
            self.reader.forget(self._task.key)
        self._key, self._begun = key, time.monotonic()
        job, frame = Job(ranges, whose, tuple(own)), self.frame
        self._next = job

        def steps(view: Any) -> Iterator[None]:
            for channel in job.channels:
                found = Statistics(curves_of(view, channel, frame))
                yield from read(view, channel, frame, ranges, found)
                job.found.append((channel, found))
                yield

        self._task = Task(("table", key), steps, 1)
        few = sum(steps_in(ranges) * curves_of(capture, one, frame) for one in own) <= AT_ONCE
        self._compared = None if few or type(capture) is Capture else capture
        if self._compared is None:
            for one in () if few else own:  # a thread reads it that opens the file once more: damage is told here
                capture.block(one.name, frame, (slice(0, 1),) * len(one.dims))
            self.reader.do(capture, self._task, at_once=few)
        self._poll.start()

    @Slot()
    def _take(self) -> None:
        """Show what was read since."""
        self._read_compared(TURN_SECONDS)
        if self._task is None or self._task.done:
            self._poll.stop()
            self.draw_if_seen()

    def _read_compared(self, seconds: float) -> None:
        end = time.thread_time() + seconds
        while self._compared is not None and self._task is not None and not self._task.done:
            self._task.step(self._compared)
            if time.thread_time() > end:
                return

    def complete(self) -> None:
        """Wait for all of it."""
        self._wait.stop()
        self.draw_if_seen()
        self.reader.wait()
        self._read_compared(np.inf)
        self._take()

    # -- drawing

    def update_contents(self) -> None:
        """What was read last; until there is more of it, what was there before."""
        self.problem = ""
        try:
            self._request()
        except ValueError as problem:
            self.problem = str(problem)
        if self._task is not None and self._task.done and self.job is not self._next:
            self.job = self._next
            self.lines = lines_of(self.job.found)
            self.table.show_table(rows_of(self.lines))
        self.line.setText(clean(self.said()))

    def said(self) -> str:
        """Which steps, of how many curves, or what is wrong with what was typed."""
        if self.problem or (self._task is not None and self._task.error):
            return self.problem or str(self._task and self._task.error)
        reading = self._task is not None and not self._task.done
        if not self.job.channels:
            return "reading …" if reading else "No panel in sight draws numbers step by step."
        job, steps, rows = self.job, steps_in(self.job.ranges), len(self.lines)
        word = clean(self.axes.title(self.capture, self.frame)) or "step"
        said = f"{word} {range_in_words(job.ranges)} ({steps:,} {'step' if steps == 1 else 'steps'}"
        said += f", {job.whose})" if job.whose else ")"
        every = sum(found.curves for _, found in job.found)
        said += f": {rows:,} {'curve' if rows == 1 else 'curves'}"
        said += f" of {every:,}, the first ones" if every > rows else ""
        said += "" if in_sight_of(self.looking).names else " of all quantities"
        return f"{said}; reading …" if reading else said

    def follow(self, new: Position, old: Position) -> None:
        """A table has no cursor line."""

    def _chosen(self, row: int) -> None:
        """The cursor goes to the unit or head of a row."""
        if not 0 <= row < len(self.lines):
            return
        self.picked = line = self.lines[row]
        which = {line.dim: line.curve} if line.dim in ("unit", "head") else {}
        self.looking.move(place=line.channel.place, **which)

    # -- numbers

    @Slot()
    def copy(self) -> None:
        """All rows as text."""
        copy_text(text_of(self.lines, self.table.numbers.order))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Ctrl+C copies the table."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
            return
        super().keyPressEvent(event)

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The numbers of the row that was chosen."""
        line = self.picked
        if line is None or line not in self.lines:
            return []
        told = [(name, line.cell(name)) for name in columns_of([line])]
        unit = line.channel.unit
        return [
            (f"{name} of {line.name}", measured(value if isinstance(value, str) else np.float64(value), unit))
            for name, value in told
        ]

    def data(self) -> dict[str, Array]:
        """Of each quantity (curve, number)."""
        return {f"{channel.name}/range": found.table() for channel, found in self.job.found}

    def data_axes(self) -> DataAxes:
        """Rows are curves, columns what is told of each."""
        lines = {line.channel.name: line.dim or "curve" for line in self.lines}
        return {
            f"{channel.name}/range": ((lines.get(channel.name, "curve"), "what"), COLUMNS)
            for channel, _ in self.job.found
        }

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        """Which steps, and the first rows, as text."""
        painter.fillRect(rect, QColor(self.theme.window))
        if self.state != "figure":
            return
        line = self.line.fontMetrics().lineSpacing() * LINE
        painter.setPen(QColor(self.theme.text))
        painter.drawText(QRectF(rect.left() + 8, rect.top(), rect.width() - 16, line), 0, self.line.text())
        self.table.paint_text(painter, rect.adjusted(0, line, 0, 0), self.theme)
