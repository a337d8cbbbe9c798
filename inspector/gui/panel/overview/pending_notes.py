"""Notes that wait: for the end of the run that writes their capture, or for room on its disk."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from inspector.capture import Capture, CaptureError, add_note, open_capture
from inspector.capture.noted import add_once, checked, is_being_written, is_of_run, run_of, why_read_only, would_wait
from inspector.gui.state.remembered_notes import Pending, Remembered
from inspector.records import Note, Noted, counted

AGAIN_SECONDS = 10.0
"""A capture whose disk took no note is tried again after so long."""
MOST = 200
"""So many wait at most."""
UNSURE = "A note of an earlier version, which did not say of which run, is in {} now; look whether it belongs there:"


class PendingNotes:
    """Of one window, in the order in which they were written. `on_written(path)` for each that a capture has taken;
    `elsewhere`: whether they are in a file of the user's too, so that none is lost; `remembered`: those of all windows;
    `lost`: what no capture can take any more, as its own is gone."""

    def __init__(self, on_written: Callable[[Path], None]) -> None:
        self.all: list[Pending] = []
        self.elsewhere = False
        self.remembered: Remembered | None = None
        self.lost: list[Pending] = []
        self._on_written = on_written
        self._lost = self._late = self._unsure = ""
        self._again = 0.0

    def add(self, notes: Sequence[Pending]) -> None:
        """Let them wait too."""
        self.all += notes
        self.elsewhere = self.elsewhere and not notes

    def keep(self, view: Any, where: Noted, text: str) -> bool:
        """Write a note into an open capture, or let it wait for the end of the run that writes it; whether it is there
        now. Raises CaptureError where neither can be."""
        if not isinstance(view, Capture) or not would_wait(view.path):
            add_note(view, where, text)
            self._on_written(view.path)
            return True
        if why := why_read_only(view):
            raise CaptureError(why)
        if len(self.all) >= MOST:
            raise CaptureError(f"{MOST} notes wait already, and no more can: write it when one of them was kept.")
        self.add([Pending(view.path, where, checked(text), time.time(), run_of(view))])
        if self.remembered is not None:  # now: the window may be killed
            self.remembered.add(self.all[-1:])
        return False

    def forget_lost(self) -> None:
        """What could not be kept has been read: another note was written since."""
        self._forget(self.lost)
        self._lost, self.lost, self._unsure = "", [], ""

    @property
    def said(self) -> str:
        """How many wait, and what of them could not be kept, with its words."""
        waiting = ""
        if self.all:
            waiting = f"{counted(len(self.all), 'note')} will be kept when the run has ended."
        if self.all and self._late:
            waiting = f"{counted(len(self.all), 'note')} could not be kept yet; it is tried again: {self._late}"
        return " ".join(one for one in (self._lost, self._unsure, waiting) if one)

    def write_first(self) -> bool:
        """Write the one that waits longest, if that can be done now; whether anything has changed."""
        if not self.all or time.monotonic() < self._again:
            return False
        before = self._late
        if self._settled(self.all[0]):
            del self.all[0]
            return True
        if self._late:  # another capture may be on another disk
            self._again = time.monotonic() + AGAIN_SECONDS
            self.all.append(self.all.pop(0))
        return before != self._late

    def write_all(self) -> None:
        """Write now what can be: the window closes, and the runs of its worker have ended."""
        self.all = [one for one in self.all if not self._settled(one)]

    def _settled(self, one: Pending) -> bool:
        """Whether a note does not wait any more: it was written, or its capture is gone."""
        try:
            if would_wait(one.path):  # asked many times: opening the capture for that would hold the window
                return False
            with open_capture(one.path) as view:
                if is_being_written(view):
                    return False
                if one.run and not is_of_run(view, one.run):
                    return self._is_lost(one, f"{one.path.name} is of another run now, and its own is gone")
                add_once(view, Note(one.where, one.text, one.written))
        except CaptureError as problem:
            if not (one.path.is_dir() and os.access(one.path, os.W_OK)):
                return self._is_lost(one, str(problem))
            if not would_wait(one.path):  # its disk is full
                self._late = str(problem)
            return False
        self._late = ""
        self._forget([one])
        self._on_written(one.path)
        if not one.run:
            self._unsure = f"{self._unsure} {UNSURE.format(one.path.name)} {one.text}".strip()
        return True

    def _is_lost(self, one: Pending, why: str) -> bool:
        """It is said with its words, and remembered until that was read."""
        if self.remembered is None or self.remembered.has(one):  # else another window has written it
            self.lost.append(one)
            self._lost = f"{self._lost} A note could not be kept ({why}): {one.text}".strip()
        return True

    def _forget(self, notes: Sequence[Pending]) -> None:
        if self.remembered is not None:
            self.remembered.drop(notes)
