"""Notes that wait: for the end of the run that writes their capture, or for room on its disk."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from inspector.capture import Capture, CaptureError, add_note, open_capture
from inspector.capture.noted import checked, is_being_written, why_read_only, would_wait
from inspector.records import Noted, counted

Pending = tuple[Path, Noted, str]
"""The folder of the capture, what the note is about, its text."""
AGAIN_SECONDS = 10.0
"""A capture whose disk took no note is tried again after so long."""


class PendingNotes:
    """Of one window, in the order in which they were written. `on_written(path)` for each that a capture has taken;
    `elsewhere`: whether they are in a file of the user's too, so that none is lost."""

    def __init__(self, on_written: Callable[[Path], None]) -> None:
        self.all: list[Pending] = []
        self.elsewhere = False
        self._on_written = on_written
        self._lost = self._late = ""
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
        self.add([(view.path, where, checked(text))])
        return False

    def forget_lost(self) -> None:
        """What could not be kept has been read: another note was written since."""
        self._lost = ""

    @property
    def said(self) -> str:
        """How many wait, and what of them could not be kept, with its words."""
        waiting = ""
        if self.all:
            waiting = f"{counted(len(self.all), 'note')} will be kept when the run has ended."
        if self.all and self._late:
            waiting = f"{counted(len(self.all), 'note')} could not be kept yet; it is tried again: {self._late}"
        return f"{self._lost} {waiting}".strip()

    def write_first(self) -> bool:
        """Write the one that waits longest, if that can be done now; whether anything has changed."""
        if not self.all or time.monotonic() < self._again:
            return False
        before = self._late
        if self._settled(*self.all[0]):
            del self.all[0]
            return True
        if self._late:  # another capture may be on another disk
            self._again = time.monotonic() + AGAIN_SECONDS
            self.all.append(self.all.pop(0))
        return before != self._late

    def write_all(self) -> None:
        """Write now what can be: the window closes, and the runs of its worker have ended."""
        self.all = [one for one in self.all if not self._settled(*one)]

    def _settled(self, path: Path, where: Noted, text: str) -> bool:
        """Whether a note does not wait any more: it was written, or its capture is gone."""
        try:
            if would_wait(path):  # asked many times: opening the capture for that would hold the window
                return False
            with open_capture(path) as view:
                if is_being_written(view):
                    return False
                add_note(view, where, text)
            self._late = ""
            self._on_written(path)
        except CaptureError as problem:
            if path.is_dir() and os.access(path, os.W_OK):  # its disk is full
                self._late = str(problem)
                return False
            self._lost = f"A note could not be kept ({problem}): {text}"
        return True
