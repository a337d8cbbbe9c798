"""The cursor fixed and places pinned, as seen by the window: its keys, what it says, notes on what is under it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QAction, QKeySequence

from inspector.capture import CaptureError, add_note, notes
from inspector.gui.dialogs.text_dialog import ask_for_text
from inspector.gui.state.pins import pins_of
from inspector.gui.widgets.plain_text import clean
from inspector.gui.window.parts import Parts
from inspector.records import STEP_DOMAIN, Note, Noted

BOOKMARK = "Bookmark"
"""The text of a note that only marks a place."""
NO_CAPTURE = "There is nothing to note yet: run a model or open a capture first."
NO_STEP = "There is no step under the cursor: move it over a plot or the sequence first."
NO_STEP_YET = "The run that has begun has no steps yet: note it again when its first numbers are here."
LATER = "it will be kept when the run has ended."
ESCAPE = "Esc"


class Holding(QObject):
    """Of one window. `noted()` when a note was written, `read()` when other numbers are to be told."""

    def __init__(self, window: Parts, noted: Callable[[], None], read: Callable[[], None]) -> None:
        super().__init__(window)
        self.window, self.noted, self.read = window, noted, read
        self.pins = pins_of(window.looking)
        self._escapes: tuple[QAction, QAction] | None = None
        window.looking.fixing.connect(self._fixed)
        self.pins.changed.connect(read)

    def share_escape(self, cancel: QAction, free: QAction) -> None:
        """Escape frees the cursor where it is fixed, else it cancels."""
        self._escapes = (cancel, free)

    @Slot(bool)
    def _fixed(self, fixed: bool) -> None:
        window = self.window
        if self._escapes is not None:
            cancel, free = self._escapes
            cancel.setShortcut(QKeySequence() if fixed else QKeySequence(ESCAPE))
            free.setShortcut(QKeySequence(ESCAPE) if fixed else QKeySequence())
        if not window.session.busy:
            window.session.sentence = "The cursor is fixed; Escape, or a second click, frees it." if fixed else ""
            window.show_state()
        self.read()

    def free(self) -> None:
        """Let the mouse move the cursor again."""
        self.window.looking.fix(False)

    def fix(self) -> None:
        """Fix the cursor where it is, or free it."""
        self.window.looking.fix(not self.window.looking.fixed)

    def pin(self) -> None:
        """Pin what is under the cursor; the status row says why not."""
        if problem := self.pins.add(self.window.looking.position):
            self.window.session.sentence = problem
            self.window.show_state()

    def release(self) -> None:
        """Another model is shown: nothing of the one before is kept."""
        self.free()
        self.pins.clear()

    # -- notes and bookmarks on what is under the cursor

    def about(self) -> Noted | None:
        """The step under the cursor, and the unit where there is one; None where there is no step."""
        cursor = self.window.looking
        position = cursor.position.along(cursor.focused)
        step = position.step if position.step is not None else self._awaited(position.axis)
        if step is None:
            return None
        frames = self.window.session.capture.frames if self.window.session.capture is not None else ()
        frame = position.frame if position.frame >= 0 else frames[-1].index if frames else -1
        unit = -1 if position.unit is None else position.unit
        return Noted(frame=frame, step=step, axis=position.axis, unit=unit, place=position.place if unit >= 0 else "")

    def _awaited(self, axis: str) -> int | None:
        """The step at which the cursor is again as soon as a run that has just begun has numbers; None where it is not
        known that its sequence has that step."""
        capture, step = self.window.session.capture, self.window.looking.awaited(axis)
        if capture is None or step is None or not self._has_just_begun:
            return None
        return step if step < len(capture.labels(axis)) else None

    @property
    def _has_just_begun(self) -> bool:
        """Whether what is shown is a run that has no numbers yet, and will have some."""
        capture = self.window.session.capture
        return capture is not None and capture.stop is None and not capture.channels

    def bookmark(self) -> None:
        """Mark the place under the cursor in the capture, once."""
        about = self.about()
        if about is not None and self._is_marked(about):
            self._say(f"There is a bookmark already: {about.words}.")
            return
        self._write(about, BOOKMARK)

    def _is_marked(self, about: Noted) -> bool:
        """Whether a place has a bookmark, in the capture or among the notes that wait for the end of its run."""
        capture: Any = self.window.session.capture
        overview: Any = self.window.panels.made.get("overview")
        waiting = overview.pending.all if overview is not None else ()
        if capture is None:
            return False
        return any(one.where == about and one.text == BOOKMARK for one in notes(capture)) or (
            (capture.path, about, BOOKMARK) in ((one.path, one.where, one.text) for one in waiting)
        )

    def _say(self, sentence: str) -> None:
        """Say it in the status row."""
        self.window.session.sentence = sentence
        self.window.show_state()

    def say_kept(self) -> None:
        """A note that waited was written: that it will be is not said any longer."""
        capture, overview = self.window.session.capture, self.window.panels.made.get("overview")
        sentence = self.window.session.sentence
        pending: Any = getattr(overview, "pending", None)
        if not sentence.endswith(LATER) or capture is None or pending is None or pending.all:
            return
        about = sentence.removeprefix("Noted: ").removesuffix(f"; {LATER}")
        kept = any(one.where.words == about for one in notes(capture))
        self._say(f"Noted in the capture: {about}." if kept else pending.said)

    def note(self) -> None:
        """Ask for a note on the place under the cursor, and keep it in the capture."""
        about, text = self.about(), ""
        if about is None or self.window.session.capture is None:
            self._write(about, "")
            return
        while text := ask_for_text(self.window, "Note", f"About {about.words}:", text).strip():
            if self._write(about, text):  # what could not be kept is not lost: it can be copied, or kept later
                return

    def _write(self, about: Noted | None, text: str) -> bool:
        """Whether it is kept, now or when the run that writes the capture has ended."""
        capture = self.window.session.capture
        if capture is None or about is None:
            self.window.fail(NO_CAPTURE if capture is None else NO_STEP_YET if self._has_just_begun else NO_STEP)
            return False
        try:
            there = self._kept(capture, about, text)
        except CaptureError as problem:
            self.window.fail(str(problem))
            return False
        capture.refresh()
        self.noted()
        overview = self.window.panels.made.get("overview")
        if overview is not None:
            overview.draw_if_seen()
        self._say(f"Noted in the capture: {about.words}." if there else f"Noted: {about.words}; {LATER}")
        return True

    def _kept(self, capture: Any, about: Noted, text: str) -> bool:
        """Whether it is in the capture now. The overview has the notes that wait. Raises CaptureError."""
        if not self.window.panels.make("overview"):
            add_note(capture, about, text)
            return True
        overview: Any = self.window.panels.made["overview"]
        return bool(overview.keep_note(capture, about, text))

    def next_note(self, direction: int) -> None:
        """Go to the next note or bookmark on a step, or the one before; from the last to the first."""
        capture = self.window.session.capture
        cursor = self.window.looking
        placed = in_order(notes(capture)) if capture is not None else []
        if not placed:
            self.window.session.sentence = "No step of this capture has a note or a bookmark yet."
            self.window.show_state()
            return
        at = cursor.position
        here = (at.at(placed[0].axis) if at.at(placed[0].axis) is not None else -1, -1 if at.unit is None else at.unit)
        keys = [(one.step, one.unit) for one in placed]
        later = [n for n, key in enumerate(keys) if (key > here if direction > 0 else key < here)]
        chosen = placed[(later[0] if direction > 0 else later[-1]) if later else (0 if direction > 0 else -1)]
        self.go_to(chosen)
        assert capture is not None
        said = "; ".join(one.text for one in notes(capture) if one.where == chosen)
        self.window.session.sentence = clean(f"{chosen.words[:1].upper()}{chosen.words[1:]}: {said}")
        self.window.show_state()

    def go_to(self, where: Noted) -> None:
        """Move the cursor to what a note is about."""
        unit = {"unit": where.unit} if where.unit >= 0 else {}
        place = {"place": where.place} if where.place and where.unit >= 0 else {}
        self.window.looking.move(**unit, **place, steps={where.axis: where.step})


def in_order(written: list[Note]) -> list[Noted]:
    """The steps that have notes, in order, those of the axis that has most notes; each place once."""
    placed = [note.where for note in written if note.where.step >= 0]
    axes = [one.axis for one in placed]
    axis = max(dict.fromkeys(axes), key=axes.count, default=STEP_DOMAIN)
    once = {(one.step, one.unit): one for one in placed if one.axis == axis}
    return [once[key] for key in sorted(once)]
