"""A writer of a training loop that waits for room on a full disk, and goes on in the same capture once there is some.

What comes meanwhile: pages are dropped and counted; descriptions, frames, events and lines of the log are kept until
then. The loop never waits: every ten seconds one write looks whether there is space, and takes the capture up again.
"""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from inspector.capture.layout import CaptureError
from inspector.capture.reserve import Reserve
from inspector.capture.writer import Writer
from inspector.records import Log, Page, RunStart, RunStop, counted

RETRY_SECONDS = 10.0
NEEDED_BYTES = 16 << 20
"""Of free space, before a capture is taken up again: less would be full at once."""
MOST_WORDS = 20_000
"""Records that are no pages and are kept meanwhile; those after them are dropped and counted."""

MOST_LINES = 2
"""That are said: when it fills first, and when there is room."""


class ResumingWriter:
    """Has the interface of a `Writer` with `block=False`.

    Attributes:
        path: of the capture. block: False. dropped: records that could not be kept so far.
    """

    def __init__(self, path: Path | str, start: RunStart, *, overwrite: bool, say: Callable[[str], None]) -> None:
        """`say` takes one sentence whenever the disk is full, and when there is room again. Raises CaptureError."""
        self._writer = Writer(path, start, overwrite=overwrite, block=False)
        self.path, self.block = self._writer.path, False
        self._place, self._start, self._say = self.path.absolute(), start, say
        self._lost = 0
        self._words: list[Any] = []
        self._full: CaptureError | None = None
        """Why nothing is written now; None while all goes well."""
        self._since = self._next = 0.0
        self._lines = 0
        self._reserve = Reserve(self._place)

    @property
    def begun(self) -> bool:
        """Whether the folder has this run's capture."""
        return self._writer.begun

    @property
    def dropped(self) -> int:
        """Records that could not be kept."""
        return self._lost + self._writer.dropped

    def write(self, record: Any) -> None:
        """Queue one record, or keep it, or drop and count it. Raises CaptureError where more than space is missing."""
        if self._full is None and self._done(lambda: self._writer.write(record)):
            return
        if not self._resumed() or not self._done(lambda: self._writer.write(record)):
            self._keep([record])

    def flush(self) -> None:
        """Return when everything is committed, or nothing can be for want of space. Raises CaptureError."""
        if self._full is None or self._resumed():
            self._done(self._writer.flush)

    def close(self) -> None:
        """Commit what is left, where there is room now. Idempotent; raises CaptureError where something was lost."""
        try:
            if self._full is None and self._done(self._writer.close):
                return
            self._next = 0.0
            if self._resumed():
                self._writer.close()
                return
            assert self._full is not None
            self._say_how(self._full)
            raise self._full
        finally:
            self._reserve.give()

    def _say_how(self, problem: CaptureError) -> None:
        """That the disk ended the capture is written where nothing else fits: space was kept free for it."""
        self._reserve.give()
        with suppress(CaptureError), Writer(self._place, self._start, block=False, again=True) as writer:
            writer.write(RunStop("failed", str(problem)))

    def _done(self, action: Callable[[], None]) -> bool:
        """Whether it worked; a disk that is full is noted. Raises any other CaptureError."""
        try:
            action()
        except CaptureError as problem:
            if not problem.full or not self._writer.begun:
                raise
            self._wait(problem)
            return False
        return True

    def _wait(self, problem: CaptureError) -> None:
        """From now on nothing is written."""
        with suppress(CaptureError):
            self._writer.close()
        self._lost += self._writer.dropped + self._writer.lost_pages
        self._keep(self._writer.unwritten)
        first, self._full = not self._since, problem
        now = time.monotonic()
        self._since, self._next = self._since or now, now + RETRY_SECONDS
        if first:
            self._tell(f"{str(problem).partition(';')[0]}; numbers are dropped until there is room again.")

    def _keep(self, records: list[Any]) -> None:
        words = [record for record in records if not isinstance(record, Page)]
        fits = words[: MOST_WORDS - len(self._words)]
        self._words += fits
        self._lost += len(records) - len(fits)

    def _resumed(self) -> bool:
        """Whether the capture is written again, what was kept included. Raises CaptureError where it cannot be."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + RETRY_SECONDS
        try:
            if shutil.disk_usage(self._place).free < NEEDED_BYTES:
                return False
            writer = Writer(self._place, self._start, block=False, again=True)
        except (OSError, CaptureError) as problem:
            if isinstance(problem, CaptureError) and not problem.full:
                raise
            return False
        return self._taken_up(writer, now)

    def _taken_up(self, writer: Writer, now: float) -> bool:
        """Write what was kept; whether it is committed, after which one line says how much is not there."""
        self._writer, self._full, words, self._words = writer, None, deque(self._words), []

        def write() -> None:
            while words:
                writer.write(words[0])
                words.popleft()
            writer.flush()

        if not self._done(write):
            self._keep(list(words))
            return False
        seconds, self._since = now - self._since, 0.0
        lost = f"The disk was full for {seconds:.0f} s, so {counted(self._lost, 'record')} could not be kept."
        self._writer.write(Log(lost, "warning", "watch"))
        self._tell(f"There is room on the disk again, and {self.path.name} is written; {lost[0].lower()}{lost[1:]}")
        return True

    def _tell(self, sentence: str) -> None:
        """A disk that is full again and again is told once; the log has each time."""
        if self._lines < MOST_LINES:
            self._lines += 1
            self._say(sentence)
