"""File ▸ Save session and its opening: what is open, how it is arranged, and where one looks, in one text file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog, QMessageBox

from inspector.capture import Capture, CaptureError, add_note, notes
from inspector.capture.noted import is_being_written, why_no_notes
from inspector.gui.panel.colours import colours_of
from inspector.gui.state.cursor import Position
from inspector.gui.state.followed_log import as_log
from inspector.gui.state.pins import MOST, Pin, pins_of
from inspector.gui.widgets.plain_text import plain_box
from inspector.gui.window.choices import choose_in, chosen_in
from inspector.gui.window.frame_bar import NEWEST
from inspector.gui.window.layouts import arrange, check, describe
from inspector.records import Note, ViewAt
from inspector.records.saved_session import Pinned, SavedSession
from inspector.workspace.session_files import SUFFIX, SessionError, agree_to, read_session, what_runs, write_session

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel
    from inspector.gui.window.open_at import OpenAt
    from inspector.gui.window.showing import Showing

KIND = f"Session (*{SUFFIX})"
OPEN = "Open it"
NOTHING = "There is no session to save yet: open a model, a capture or a log first."


class Sessions(QObject):
    """Saves and opens sessions. What can be chosen only once a panel is drawn, or noted only once a run has ended,
    waits here; another session that is opened takes its place."""

    def __init__(self, window: Showing, at: OpenAt, open_path: Callable[[str], None]) -> None:
        """`open_path(path)` opens a capture or a log."""
        super().__init__(window)
        self._window, self._open_at, self._open_path = window, at, open_path
        self._choices: dict[str, dict[str, Any]] = {}
        """Of panels that are not drawn yet, by key."""
        self._notes: tuple[Note, ...] = ()
        self._pins: tuple[Pinned, ...] = ()
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
        if path:
            self.save(Path(path if path.endswith(SUFFIX) else path + SUFFIX))

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
            pins=tuple(map(_pinned, pins_of(window.looking).all)),
            notes=tuple(notes(capture)) if capture is not None else (),
            layout=describe(window.docking),
            choices={key: chosen for key, panel in window.panels.made.items() if (chosen := chosen_in(panel))},
        )

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
        self._before, self._notes, self._pins = window.session.capture, session.notes, session.pins
        self._choices = {key: dict(one) for key, one in session.choices.items() if isinstance(one, dict)}
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
        for key, panel in window.panels.made.items():
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

    def tick(self) -> None:
        """Set the pins, and write the notes into the capture that the session has made, as soon as they can be."""
        capture = self._window.session.capture
        if not (self._notes or self._pins) or capture is None or capture is self._before or is_being_written(capture):
            return
        if self._window.session.busy:
            return
        lengths = self._window.looking.length_of
        for pin in self._pins[:MOST]:
            if not all(0 <= step < lengths(axis) for axis, step in pin.steps.items()):
                continue  # of another input than the one that is shown
            at = Position(place=pin.place, unit=pin.unit, head=pin.head, key=pin.key)
            for axis, step in pin.steps.items():
                at = at.moved(axis, step)
            pins_of(self._window.looking).add(at)
        self._pins = ()
        if self._notes and not why_no_notes(capture):
            self._write_notes(capture)

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


def _pinned(pin: Pin) -> Pinned:
    at = pin.position
    return Pinned(steps=dict(at.steps), place=at.place, unit=at.unit, head=at.head, key=at.key)
