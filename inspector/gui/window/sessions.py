"""File ▸ Save session and its opening: what is open, how it is arranged, and where one looks, in one text file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog, QMessageBox

from inspector.capture import Capture, CaptureError, add_note, notes
from inspector.capture.noted import is_being_written, why_no_notes
from inspector.gui.panel.colours import colours_of
from inspector.gui.state.cursor import Position
from inspector.gui.state.followed_log import as_log
from inspector.gui.state.pins import MOST, pins_of
from inspector.gui.widgets.plain_text import plain_box
from inspector.gui.window.bars.frame_bar import NEWEST
from inspector.gui.window.choices import choose_in, chosen_in
from inspector.gui.window.docking.layouts import arrange, check, describe
from inspector.gui.window.zooms import zoom_again, zoomed_in
from inspector.records import Note, ViewAt
from inspector.records.saved_session import Pinned, SavedSession
from inspector.workspace.session_files import (
    SUFFIX,
    SessionError,
    agree_to,
    read_session,
    what_runs,
    with_suffix,
    write_session,
)

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel
    from inspector.gui.window.open_at import OpenAt
    from inspector.gui.window.showing import Showing

KIND = f"Session (*{SUFFIX})"
OPEN = "Open it"
NOTHING = "There is no session to save yet: open a model, a capture or a log first."


class Kept(Protocol):
    """What `Sessions.kept` has, as a session or the settings of the window keep it."""

    @property
    def pins(self) -> Sequence[Pinned]:
        """Places that were pinned."""

    @property
    def cursor(self) -> Pinned | None:
        """Where the cursor was."""

    @property
    def choices(self) -> Mapping[str, Any]:
        """Of panels, by key."""

    @property
    def zooms(self) -> Mapping[str, Any]:
        """Of panels, by key."""


class Sessions(QObject):
    """Saves and opens sessions. What can be chosen only once a panel is drawn, or noted only once a run has ended,
    waits here; another session that is opened takes its place."""

    def __init__(self, window: Showing, at: OpenAt, open_path: Callable[[str], None]) -> None:
        """`open_path(path)` opens a capture or a log."""
        super().__init__(window)
        self._window, self._open_at, self._open_path = window, at, open_path
        self._choices: dict[str, dict[str, Any]] = {}
        """Of panels that are not drawn yet, by key."""
        self._zooms: dict[str, dict[str, Any]] = {}
        """Of panels that are not drawn yet, or of a run that is not whole yet, by key."""
        self._notes: tuple[Note, ...] = ()
        self._pins: tuple[Pinned, ...] = ()
        self._cursor: Pinned | None = None
        self._zoomed = ""
        """The path of the capture that `_zooms` are of, once it is shown."""
        self._before: Any = None
        """The capture that was shown when the session was opened: the notes belong to the next one."""

    # -- saving

    def ask(self) -> None:
        """Ask for the file, and write it."""
        session = self.present()
        if session is None:
            self._window.fail(NOTHING)
            return
        name = Path(session.opened or (session.load.subject if session.load else "run")).name.partition(".")[0]
        path, _ = QFileDialog.getSaveFileName(self._window, "Save session", f"{name or 'run'}{SUFFIX}", KIND)
        target = Path(with_suffix(path))
        if path and str(target) != path and os.path.lexists(target):  # the dialog has asked about what was typed
            self._window.fail(f"{target} exists; choose another name.")
        elif path:
            self.save(target)

    def save(self, path: Path) -> None:
        """Write what is open to a file."""
        session = self.present()
        assert session is not None
        try:
            write_session(session, path)
        except SessionError as problem:
            self._window.fail(str(problem))
            return
        self._window.settings.add_recent(str(path.absolute()))
        self._window.say_saved(f"Saved the session to {path}.", path)

    def present(self) -> SavedSession | None:
        """What is open now; None for nothing."""
        window, session = self._window, self._window.session
        made, capture, log = session.shown.current, session.capture, as_log(session.capture)
        own = made is not None and made.subject == session.subject
        if capture is None and session.models.load is None:
            return None
        run = made.request if own and made is not None else None
        return SavedSession(
            load=session.models.load if own or capture is None else None,
            input=run.input if run is not None else None,
            edits=run.edits if run is not None else (),
            decode=run.decode if run is not None else None,
            also=session.also,
            opened="" if own or capture is None else str(Path(capture.path).absolute()),
            at=self._at(str(log.view.run) if log is not None and log.view.run is not None else ""),
            notes=tuple(notes(capture)) if capture is not None else (),
            layout=describe(window.docking), **self.kept(),
        )  # fmt: skip

    def kept(self) -> dict[str, Any]:
        """What is kept of what is shown, apart from what it is: pins, the cursor, choices and zoom of panels; with what
        was asked for and still waits, of panels that were not looked at, or as a window is closed while it opens."""
        window = self._window
        panels = window.panels.made.items()
        choices = {key: chosen for key, panel in panels if (chosen := chosen_in(panel))}
        zooms = {key: zoomed for key, panel in panels if (zoomed := zoomed_in(panel))}
        pins = tuple(_pinned(pin.position) for pin in pins_of(window.looking).all)
        cursor = _pinned(window.looking.position)
        if window.session.capture is not self._before:
            choices |= {key: {**choices.get(key, {}), **waiting} for key, waiting in self._choices.items()}
            zooms |= {key: {**zooms.get(key, {}), **waiting} for key, waiting in self._zooms.items()}
            pins, cursor = (*pins, *self._pins), self._cursor or cursor
        return {"pins": pins, "cursor": cursor, "choices": choices, "zooms": zooms}

    def _at(self, run: str) -> ViewAt:
        window = self._window
        position, (low, high) = window.looking.position, window.steps.bounds
        whole = high - low >= window.steps.length
        return ViewAt(
            panel=next((key for key in window.docking.bars if key in window.docking.seen), ""),
            frame=window.frames.current if not window.frames.following else NEWEST, place=position.place,
            step=position.step, unit=position.unit, head=position.head, run=run,
            colours=colours_of(window.looking).text,
            steps=None if whole else (max(0, round(low + 0.5)), round(high - 0.5)),
        )  # fmt: skip

    # -- opening

    def open(self, path: str) -> None:
        """Open a session; where it runs code that this user did not agree to, that is asked first."""
        try:
            session, content = read_session(Path(path))
            layout = check(session.layout) if session.layout else None
        except SessionError as problem:
            self._window.fail(str(problem))
            return
        except ValueError as problem:
            self._window.fail(f"{Path(path).name} is no session: {problem}.")
            return
        asked = what_runs(session, Path(path), content)
        if asked and not self._agreed(asked):
            self._window.say(f"{Path(path).name} was not opened.")
            return
        if asked:
            agree_to(Path(path), content)
        self._window.settings.add_recent(str(Path(path).absolute()))
        self._go(session, layout)

    def _agreed(self, what: str) -> bool:
        box = plain_box(self._window, "Open this session?", f"{what} Open it only if you know where it comes from.")
        box.setIcon(QMessageBox.Icon.Warning)
        box.setStandardButtons(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(QMessageBox.StandardButton.Cancel)
        go_on = box.addButton(OPEN, QMessageBox.ButtonRole.AcceptRole)
        box.exec()
        return box.clickedButton() is go_on

    def _go(self, session: SavedSession, layout: Any) -> None:
        window = self._window
        self.bring_back(session, session.notes)
        window.session.also = session.also
        if layout is not None:
            arrange(window.docking, layout)
        if session.load is not None:
            window.input.forget_refused()
            window.session.open_subject(session.load, session.input, session.edits, session.decode)
            self._open_at.ask_run(session.at, after=self._before)
            window.show_state()
        elif session.opened:
            self._open_path(session.opened)
            self._open_at.ask(session.at, after=self._before)

    def bring_back(self, kept: Kept, notes: tuple[Note, ...] = ()) -> None:
        """Pins, cursor, choices and zoom for the next capture that is shown, and its notes, as soon as they can be."""
        self._before, self._notes, self._pins = self._window.session.capture, notes, tuple(kept.pins)
        self._cursor = kept.cursor
        self._choices = {key: dict(one) for key, one in kept.choices.items() if isinstance(one, Mapping)}
        self._zooms = {key: dict(one) for key, one in kept.zooms.items() if isinstance(one, Mapping)}
        self._zoomed = ""
        for key, panel in self._window.panels.made.items():
            self.choose(key, panel)

    # -- what has to wait

    def choose(self, key: str, panel: Panel) -> None:
        """Choose in a panel what the session says, now and each time that it is drawn until all of it is chosen."""
        if key in self._choices:
            panel.drawn.connect(lambda: self._choose(key, panel))

    def _choose(self, key: str, panel: Panel) -> None:
        wanted = self._choices.pop(key, None)
        if wanted:  # it is drawn again while this chooses
            left = choose_in(panel, wanted)
            if left and left != wanted:
                self._choices[key] = left

    def _zoom_again(self) -> None:
        """Zoom as it was in every panel that is drawn; a run is whole by then, a log may go on for days."""
        capture, made = self._window.session.capture, self._window.panels.made
        if capture is None or capture is self._before or not self._open_at.done:
            return
        path = self._zoomed = self._zoomed or str(capture.path)
        if path != str(capture.path):  # ranges of one are not those of another
            self._zooms = {}
        for key in [key for key in self._zooms if key in made]:
            panel = made[key]
            if panel.state == "figure" and (as_log(capture) is not None or not panel.growing):
                left = zoom_again(panel, self._zooms.pop(key))
                if left:  # of summaries over training, until they are shown
                    self._zooms[key] = left

    def tick(self) -> None:
        """Set pins, cursor and zoom, and write the notes into the capture that was made, as soon as they can be."""
        if self._zooms:
            self._zoom_again()
        capture = self._window.session.capture
        waits = self._notes or self._pins or self._cursor is not None
        if not waits or capture is None or capture is self._before or is_being_written(capture):
            return
        if self._window.session.busy:
            return
        for pin in self._pins[:MOST]:
            if self._there(pin):
                at = Position(place=pin.place, unit=pin.unit, head=pin.head, key=pin.key)
                for axis, step in pin.steps.items():
                    at = at.moved(axis, step)
                pins_of(self._window.looking).add(at)
        at_last, self._pins, self._cursor = self._cursor, (), None
        if at_last is not None and at_last.steps and self._there(at_last):
            named = {"place": at_last.place} if at_last.place else {}
            parts = {name: getattr(at_last, name) for name in ("unit", "head", "key")}
            self._window.looking.move(**named, **parts, steps=dict(at_last.steps))
        if self._notes and not why_no_notes(capture):
            self._write_notes(capture)

    def _there(self, pin: Pinned) -> bool:
        """Whether the input that is shown has these steps: it may be another one."""
        lengths = self._window.looking.length_of
        return all(0 <= step < lengths(axis) for axis, step in pin.steps.items())

    def _write_notes(self, capture: Capture) -> None:
        there = {(note.where, note.text) for note in notes(capture)}
        rest, self._notes = self._notes, ()
        try:
            for note in rest:
                if (note.where, note.text) not in there:
                    add_note(capture, note.where, note.text)
        except CaptureError as problem:
            self._window.session.sentence = f"The notes of the session were not written: {problem}"
        self._window.show_notes()


def _pinned(at: Position) -> Pinned:
    return Pinned(steps=dict(at.steps), place=at.place, unit=at.unit, head=at.head, key=at.key)
