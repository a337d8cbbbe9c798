"""The notes of a capture: what was written, where it leads, and a line to write another."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.widgets.cards import TextCard
from inspector.gui.widgets.cut_box import CutBox
from inspector.gui.widgets.plain_text import breakable, clean, plain_label, tooltip
from inspector.gui.widgets.theme import LIGHT, Theme
from inspector.records import Note, Noted
from inspector.records.dates import at_local

NOTE_IT = "Note it"
MOST_SHOWN = 200
"""Characters of the name of what a note is about, in the choice."""


class NotesList(QWidget):
    """`written(where, text)` when a note is entered; `chosen(where)` when one is clicked; `changed(note, text)` when it
    gets other words, none where it is to be removed."""

    written = Signal(object, str)
    changed = Signal(object, str)
    chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.theme = LIGHT
        self.cards: list[TextCard] = []
        self._notes: list[Note] = []
        self._fixed = False
        self._offered: list[tuple[str, Noted]] = []
        self._editing: Note | None = None
        self.about, self.field, self.button = CutBox(), QLineEdit(), QPushButton(NOTE_IT)
        self.leave = QPushButton("Cancel")
        self.leave.clicked.connect(lambda: self.edit(None))
        self.leave.hide()
        self.about.setAccessibleName("What the note is about")
        self.about.setToolTip("What the note is about: the whole capture, what is shown, or the place under the cursor")
        self.about.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.about.setMinimumContentsLength(22)
        self.field.setAccessibleName("Note")
        self.field.setToolTip("A note, kept in the capture; Enter writes it")
        self.button.setToolTip("Write the note into the capture")
        self.field.setPlaceholderText("Write a note; it is kept in the capture")
        self.field.returnPressed.connect(self._enter)
        self.button.clicked.connect(self._enter)
        self.told = plain_label()
        self.told.setWordWrap(True)
        self.told.hide()
        row = QHBoxLayout()
        row.addWidget(self.about)
        row.addWidget(self.field, 1)
        row.addWidget(self.button)
        row.addWidget(self.leave)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(6)
        self._layout.addLayout(row)
        self._layout.addWidget(self.told)

    def forget(self) -> None:
        """Another capture: what a note was to be about is not in it."""
        self._offered = []
        self.about.clear()
        if self._editing is not None:
            self.edit(None)

    def offer(self, offered: Sequence[tuple[str, Noted]]) -> None:
        """What a note can be about, by name.

        What was chosen stays while something is written, also where it is not offered any more (the cursor was moved,
        a frame came): else the note would be about something else. Before that the choice follows the cursor.
        """
        number, known = self.about.currentIndex(), list(offered)
        chosen = self._offered[number] if 0 <= number < len(self._offered) else None
        if chosen is not None and self.field.text().strip() and all(where != chosen[1] for _, where in known):
            known.append(chosen)
        if known == self._offered:
            return
        self._offered = known
        self.about.blockSignals(True)
        self.about.clear()
        self.about.addItems([clean(name)[:MOST_SHOWN] for name, _ in known])
        self.about.setCurrentIndex(_number_of(known, chosen[1]) if chosen is not None else 0)
        self.about.blockSignals(False)

    def show_notes(self, notes: Sequence[Note], why_not: str) -> None:
        """These notes; `why_not` says why no other can be written, "" where one can."""
        for widget in (self.about, self.field, self.button):
            widget.setEnabled(not why_not)
        self._fixed = bool(why_not)
        self.about.setEnabled(not why_not and self._editing is None)
        self.say(why_not)
        if list(notes) == self._notes:
            return
        self._notes = list(notes)
        while len(self.cards) < len(notes):
            self._add()
        for number, card in enumerate(self.cards):
            card.setVisible(number < len(notes))
            if number < len(notes):
                note = notes[number]
                when = at_local(note.written, "%d %b %Y, %H:%M") if note.written > 0 else ""
                heading = "  ·  ".join(part for part in (note.where.words, when) if part)
                card.show_text(heading, " ".join(note.text.split()), "", "accent", note.text)

    def say(self, text: str) -> None:
        """A line below the field; "" for none."""
        self.told.setText(breakable(text))
        self.told.setVisible(bool(text))
        self.field.setToolTip(tooltip(text))

    @property
    def any_shown(self) -> bool:
        """Whether there is a note."""
        return bool(self._notes)

    def only_read(self) -> None:
        """Nothing is written here: this is drawn into a file."""
        for widget in (self.about, self.field, self.button, self.leave, self.told):
            widget.hide()

    def begin(self, where: Noted) -> None:
        """Write a note about something that is offered."""
        number = next((n for n, (_, one) in enumerate(self._offered) if one == where), 0)
        self.about.setCurrentIndex(number)
        self.field.setFocus()

    def edit(self, note: Note | None) -> None:
        """Put a note's words into the field, to be changed; None ends that."""
        self._editing = note
        self.button.setText(NOTE_IT if note is None else "Change it")
        self.leave.setVisible(note is not None)
        self.about.setEnabled(note is None and not self._fixed)
        self.field.setText("" if note is None else note.text)
        if note is not None:
            self.field.setFocus()

    def remove(self, note: Note) -> None:
        """Have a note removed; its words are put into an empty field, from where they can be noted again."""
        if not self.field.text():
            self.field.setText(note.text)
        self.changed.emit(note, "")

    def written_down(self) -> None:
        """The note was kept."""
        self.edit(None)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        for card in self.cards:
            card.set_theme(theme)

    def _enter(self) -> None:
        if self._editing is not None and self.field.text().strip():
            self.changed.emit(self._editing, self.field.text())
            return
        number = self.about.currentIndex()
        if self.field.text().strip() and 0 <= number < len(self._offered):
            self.written.emit(self._offered[number][1], self.field.text())

    def _add(self) -> None:
        card, number = TextCard(), len(self.cards)
        card.set_theme(self.theme)
        card.clicked.connect(lambda _checked=False: self.chosen.emit(self._notes[number].where))
        card.asked.connect(lambda position: self._menu(number).popup(position))
        card.put_in_corner(self._more(number))
        self.cards.append(card)
        self._layout.insertWidget(number, card)

    def _more(self, number: int) -> QToolButton:
        """A small button that opens the menu of a note."""
        button = QToolButton()
        button.setText("⋯")
        button.setAutoRaise(True)
        button.setAccessibleName("Edit or remove this note")
        button.setToolTip(tooltip("Edit or remove this note"))
        button.clicked.connect(lambda: self._menu(number).popup(button.mapToGlobal(QPoint(0, button.height()))))
        return button

    def _menu(self, number: int) -> QMenu:
        """What can be done with a note."""
        note, menu = self._notes[number], QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for text, act in (("Edit", self.edit), ("Remove", self.remove)):
            action = menu.addAction(text)
            action.setEnabled(not self._fixed and note.written > 0)
            action.triggered.connect(lambda _checked=False, act=act: act(note))
        return menu


def _number_of(offered: Sequence[tuple[str, Noted]], chosen: Noted) -> int:
    """Which of these is the chosen one, else the first of its kind (another step, another frame), else 0."""
    equal = [n for n, (_, one) in enumerate(offered) if one == chosen]
    alike = [n for n, (_, one) in enumerate(offered) if _kind(one) == _kind(chosen)]
    return [*equal, *alike, 0][0]


def _kind(where: Noted) -> tuple[object, ...]:
    return where.finding, where.place, where.axis, where.step >= 0, where.frame >= 0
