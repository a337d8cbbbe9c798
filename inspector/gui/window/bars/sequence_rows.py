"""The sequences of a run above the panels, one row for each step axis: the input, the output, and others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from inspector.capture import Capture, Pair
from inspector.gui.state.asked import asked_of
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.pins import pins_of
from inspector.gui.state.settings import Settings
from inspector.gui.state.step_axes import axis_names, own_axis
from inspector.gui.widgets.theme import Theme
from inspector.gui.window.bars.sequence_row import SequenceRow
from inspector.records import ANSWER_DOMAIN, STEP_DOMAIN, Note

WIDEST = 120
"""Pixels that the name of a row takes at most; a longer one is cut."""


class SequenceRows(QWidget):
    """A row for every axis that a capture describes or labels; the input's always has one.

    `editing()` where another token is to be put into the input.
    """

    editing = Signal()

    def __init__(self, cursor: Cursor, theme: Theme, settings: Settings) -> None:
        super().__init__()
        self.cursor_, self.theme, self.settings = cursor, theme, settings
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(0)
        self.rows: dict[str, SequenceRow] = {}
        self._make(STEP_DOMAIN)
        pins_of(cursor).changed.connect(self.show_pins)
        asked_of(cursor).changed.connect(self.show_matches)

    def __iter__(self) -> Iterator[SequenceRow]:
        return iter(self.rows.values())

    @property
    def input(self) -> SequenceRow:
        """The row of the input."""
        return self.rows[STEP_DOMAIN]

    def grown(self, capture: Capture, lengths: Mapping[str, int], changed: frozenset[str]) -> None:
        """Show the sequences of a capture, or their growth."""
        own = {own_axis(channel) for channel in capture.channels.values()}
        wanted = [axis for axis in lengths if axis in own and self._has_row(capture, axis)]
        self._arrange(wanted)
        frame = self.cursor_.position.frame
        words, several = axis_names(capture, frame), len(wanted) > 1
        for axis, row in self.rows.items():
            if several:
                row.call(words.get(axis, axis))
            row.grown(capture, lengths.get(axis, 0), changed, several=several)
            row.setVisible(axis in wanted or not wanted)
        self.show_pins()
        self._align()

    def _has_row(self, capture: Capture, axis: str) -> bool:
        return axis in (STEP_DOMAIN, ANSWER_DOMAIN) or axis in capture.axes or bool(capture.labels(axis))

    def _arrange(self, wanted: list[str]) -> None:
        """One row for each axis, in this order; those of another capture are removed."""
        for axis in [axis for axis in self.rows if axis not in wanted and axis != STEP_DOMAIN]:
            row = self.rows.pop(axis)
            self.column.removeWidget(row)
            row.hide()
            row.deleteLater()
        for axis in wanted:
            if axis not in self.rows:
                self._make(axis)
        order = [axis for axis in wanted if axis != STEP_DOMAIN]
        self.rows = {axis: self.rows[axis] for axis in (STEP_DOMAIN, *order)}
        for place, row in enumerate(self.rows.values()):
            if self.column.indexOf(row) != place:
                self.column.insertWidget(place, row)

    def _make(self, axis: str) -> None:
        row = SequenceRow(self.cursor_, self.theme, self.settings, axis)
        row.editing.connect(self.editing)
        self.rows[axis] = row
        self.column.addWidget(row)

    def _align(self) -> None:
        """Names of equal width, so that the strips begin below each other."""
        seen = [row.name for row in self if not row.isHidden()]
        width = max(name.fontMetrics().horizontalAdvance(f"{name.text()} ") + 4 for name in seen)
        for name in seen:
            name.setFixedWidth(min(width, WIDEST))

    def mark(self, written: Sequence[Note]) -> None:
        """Mark the steps of the frame that is shown on which notes were written, and those of every frame."""
        frame = self.cursor_.position.frame
        for axis, row in self.rows.items():
            here = (one.where for one in written if one.where.axis == axis and one.where.step >= 0)
            row.strip.mark([where.step for where in here if frame < 0 or where.frame in (-1, frame)])

    @Slot()
    def show_pins(self) -> None:
        """Frame the steps that are pinned."""
        pins = pins_of(self.cursor_)
        for axis, row in self.rows.items():
            row.strip.show_pins(pins.along(axis))

    @Slot()
    def show_matches(self) -> None:
        """Underline what was looked for."""
        asked = asked_of(self.cursor_)
        for axis, row in self.rows.items():
            row.strip.show_matches(asked.along(axis), row.looking.length)

    def show_difference(self, difference: Pair | None) -> None:
        """Colour every row by a difference of two runs, or by one run."""
        for row in self:
            row.show_difference(difference)

    def forget(self) -> None:
        """The capture is closed, or there is another one."""
        for row in self:
            row.forget()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        for row in self:
            row.set_theme(theme)
