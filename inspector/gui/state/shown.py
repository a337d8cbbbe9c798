"""Which capture is shown and which run of this window made it; which run was requested last and may be shown next."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from inspector.capture import Capture, CaptureError, open_capture
from inspector.capture.kept import KeptRuns
from inspector.gui.state.capture_opening import takes_long
from inspector.gui.state.exchange import Changes
from inspector.gui.state.followed_log import FollowedLog
from inspector.records import Edit, Run

KEPT_RUNS = 20
CHECK_SECONDS = 0.003
"""Seconds for which a tick checks pages that are not drawn yet."""
STATUS_SECONDS = 1.0
"""Seconds after which it is looked whether the writer of a capture still lives."""


@dataclass(frozen=True, slots=True)
class Made:
    """A run that this window requested, and the name of its model as it was given."""

    request: Run
    subject: str


BROKEN_OFF = "The run broke off: the program that wrote it has ended without saying so, and no more comes."


@dataclass(frozen=True, slots=True)
class RefusedEdits:
    """Changes that the worker rejected, and its message about them."""

    edits: tuple[Edit, ...] = ()
    sentence: str = ""


class Shown:
    """The capture on screen. A run that was rejected, or ended before it captured anything, does not change it."""

    def __init__(self, folder: Path) -> None:
        self.capture: Capture | None = None
        self.made: Made | None = None
        """The run that made what is shown; None for a capture that was opened from disk."""
        self.asked: Made | None = None
        """The run that was requested last; it is shown as soon as it has written anything."""
        self.refused = RefusedEdits()
        """Changes to the shown run that were not possible; to be corrected rather than typed again."""
        self.later: tuple[str, ...] = ()
        """Quantities that were computed for the shown run after it had ended."""
        self._kept = KeptRuns(folder)
        self._status, self._looked = "", 0.0
        self._ended = "", ""

    def next_path(self) -> Path:
        """The folder of the next run; old runs that no window shows are removed."""
        path = self._kept.next_path()
        self._kept.prune(KEPT_RUNS)
        return path

    def kept(self) -> list[tuple[Path, int]]:
        """The runs that windows keep, newest first, with their bytes."""
        return self._kept.listed()

    def clear_kept(self) -> None:
        """Remove the runs that are kept, except those that a window shows or writes."""
        self._kept.prune(0)

    def ask(self, made: Made) -> None:
        """A run was requested: no window removes what it writes."""
        self.asked = made
        self._hold()

    def open(self, path: Path) -> None:
        """Show a capture from disk. Raises CaptureError, and then still shows the capture before."""
        self.expect(path)
        try:
            capture = open_capture(path)
        except CaptureError:
            self._hold()
            raise
        self.take(capture)

    def expect(self, path: Path) -> None:
        """A capture is about to be opened: from now on no window removes it."""
        self._hold(path)

    def take(self, capture: Capture) -> None:
        """Show a capture that was opened."""
        self.asked = None
        self._show(capture, None)

    def show_log(self, log: FollowedLog) -> None:
        """Show a log of another tool, or another run of it."""
        self.asked = None
        self._show(cast(Capture, log), None)

    def close(self) -> None:
        """Close the capture; other windows may remove it."""
        if self.capture is not None:
            self.capture.close()
            self.capture = None
        self._kept.release()

    @property
    def current(self) -> Made | None:
        """The run that can be repeated: the one that is shown, or where nothing is shown the last one."""
        return self.made if self.capture is not None else self.asked

    def end(self, why: str) -> None:
        """The worker has ended, or is being ended, in the run that was requested last: no more of it comes."""
        if self.asked is not None:
            self._ended = self.asked.request.path, why
            self._tell_ended()

    def _tell_ended(self) -> None:
        if self.capture is not None and str(self.capture.path) == self._ended[0] and isinstance(self.capture, Capture):
            self.capture.writer_ended = True

    @property
    def broken_off(self) -> str:
        """Why no more comes of what is shown, although nothing in it says that it has ended; "" where more may come."""
        capture = self.capture
        if capture is None or getattr(capture, "stop", True) is not None:
            return ""
        path, why = self._ended
        if path == str(capture.path):
            return why
        elsewhere = getattr(capture, "written_elsewhere", False)  # whether that still writes is not known
        return BROKEN_OFF if self._status == "unfinished" and not elsewhere else ""

    def watch(self, changes: Changes) -> None:
        """Take what was written since: the first pages of a run, or more of what is shown."""
        path = self.asked.request.path if self.asked is not None else ""
        if path and (self.capture is None or str(self.capture.path) != path):
            try:
                if Path(path).is_dir():
                    self._show(open_capture(path), self.asked)
                    changes.another_capture = changes.state = True
            except CaptureError:
                pass  # it is being made: the next tick tries again
        if self.capture is not None and not changes.another_capture:
            self._grow(self.capture, changes)

    def _grow(self, capture: Capture, changes: Changes) -> None:
        if capture.changed():
            run = capture.start.run
            changes.channels, changes.state = capture.refresh(), True
            changes.another_capture = changes.replaced = capture.start.run != run  # another one is at its path
        found = capture.check(CHECK_SECONDS)
        if found:
            changes.channels, changes.state = changes.channels | found, True
        if time.monotonic() - self._looked > STATUS_SECONDS:
            self._looked = time.monotonic()
            if self._reopened(capture, changes):
                return
            waits = getattr(capture, "awaited", None) is not None  # for a training whose connection broke
            before, self._status = self._status, f"{capture.status}{' awaited' * waits}"
            changes.state |= before != self._status

    def _reopened(self, capture: Capture, changes: Changes) -> bool:
        """Whether another run has taken the place of what is shown, and is shown now. A large one is left to be opened
        by the user: the capture says what has happened."""
        if not isinstance(capture, Capture) or not capture.was_replaced or takes_long(Path(capture.path)):
            return False
        try:
            another = open_capture(capture.path)
        except CaptureError:
            return False
        self._show(another, None)
        changes.another_capture = changes.state = changes.replaced = True
        return True

    def _show(self, capture: Capture, made: Made | None) -> None:
        if self.capture is not None:
            self.capture.close()
        self.capture, self.made, self.refused, self.later = capture, made, RefusedEdits(), ()
        self._status, self._looked = "", 0.0
        self._tell_ended()
        self._hold()

    def _hold(self, *also: Path) -> None:
        """Tell other windows not to remove what is shown, what runs and what is about to be opened."""
        shown = [self.capture.path] if self.capture is not None else []
        asked = [Path(self.asked.request.path)] if self.asked is not None else []
        self._kept.hold((*shown, *asked, *also))
