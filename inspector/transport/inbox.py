"""Queues between the threads that read a worker and the window: the end of a run never waits behind its printed lines.

Records (what is open, how a run ended) and lines of output wait in separate queues. Of the output the newest lines are
stored, and dropped ones are counted: a model that prints without end neither fills memory nor hides the end of its run.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

from inspector.records import Log, Progress
from inspector.transport.lines import Lines
from inspector.transport.process import Exit

MOST_LINES = 2_000
MOST_CHARACTERS = 1 << 20
"""The most that waits of each stream, in lines and in characters: enough for some reads by a window, of 500 lines
each."""
MOST_RECORDS = 10_000
"""Most records that wait before the worker has to wait: it sends a few a second."""
SOURCES = {"stdout": "model"}
OWN = "log"
"""The stream of lines that come as records, and of those that report what was dropped."""


class RecentLines:
    """The newest lines of one stream, in the pieces in which they came, and how many older ones were dropped."""

    def __init__(self) -> None:
        self.pieces: deque[tuple[int, Log, deque[str]]] = deque()
        """The number of a piece, a line with its level and source, and their text."""
        self.dropped = self.dropped_ever = 0
        self._lines = self._characters = 0

    def add(self, number: int, like: Log, lines: Sequence[str]) -> None:
        """More lines, the `number`-th piece of all streams; the oldest are dropped.

        A flood brings thousands of lines at a time, most of which are dropped at once, so no object is made for a line
        before that.
        """
        if len(lines) > MOST_LINES:
            self.drop(self._lines + len(lines) - MOST_LINES)
            self.pieces.clear()
            self._lines = self._characters = 0
            lines = lines[-MOST_LINES:]
        if lines:
            self.pieces.append((number, like, deque(lines)))
            self._lines += len(lines)
            self._characters += sum(map(len, lines))
        while self._lines > MOST_LINES or self._characters > MOST_CHARACTERS:
            self.take()
            self.drop(1)

    def drop(self, count: int) -> None:
        """Count lines that are dropped."""
        self.dropped += count
        self.dropped_ever += count

    def take(self) -> Log:
        """The oldest line that is stored."""
        _, like, lines = self.pieces[0]
        line = lines.popleft()
        if not lines:
            self.pieces.popleft()
        self._lines -= 1
        self._characters -= len(line)
        return Log(line, like.level, like.source)

    def dropped_lines(self, stream: str) -> list[Log]:
        """A line in place of those that were dropped since, with the number of all so far where there were more."""
        count, self.dropped = self.dropped, 0
        if not count:
            return []
        words = f"… {_spaced(count)} line{'' if count == 1 else 's'} of {stream} dropped"
        words += f", {_spaced(self.dropped_ever)} so far" if self.dropped_ever > count else ""
        return [Log(f"{words} …", "warning", OWN)]


class Inbox:
    """The three callbacks of a WorkerProcess on one side, `record()` and `lines()` on the other."""

    def __init__(self) -> None:
        self._room = threading.Condition()
        self._records: deque[Any] = deque()
        self._progress: Progress | None = None
        self._kept: dict[str, RecentLines] = {}
        self._count = 0
        self._parts: dict[str, Lines] = {}
        self._closed = False

    # -- called by the threads that read the worker

    def on_record(self, record: Any) -> None:
        """Store a record; of several reports of progress the newest; a line for the log goes to the output."""
        with self._room:
            if isinstance(record, Log):
                self._keep(OWN, record, [record.text])
                return
            if isinstance(record, Progress):
                self._progress = record
                return
            self._room.wait_for(lambda: self._closed or len(self._records) < MOST_RECORDS)
            if not self._closed:
                self._records.append(record)

    def on_output(self, stream: str, text: str) -> None:
        """Store the lines that end in a piece of the worker's output; the end of a stream is an empty piece."""
        with self._room:
            parts = self._parts.setdefault(stream, Lines())
        lines = parts.feed(text) if text else parts.close()
        with self._room:
            self._keep(stream, Log("", "info", SOURCES.get(stream, stream)), lines)

    def on_exit(self, ended: Exit) -> None:
        """Store how the worker ended; this never waits."""
        with self._room:
            self._records.append(ended)

    def _keep(self, stream: str, like: Log, lines: Sequence[str]) -> None:
        self._count += 1
        self._kept.setdefault(stream, RecentLines()).add(self._count, like, lines)

    # -- called by the window

    def record(self) -> Any:
        """The next record, or None: other records come before the progress of a run, and that before printed lines."""
        with self._room:
            if self._records:
                self._room.notify_all()
                return self._records.popleft()
            told, self._progress = self._progress, None
            return told

    def lines(self, most: int) -> list[Log]:
        """The oldest stored lines, at most so many, in their order; first the number of those dropped before them."""
        with self._room:
            taken = [line for stream, kept in self._kept.items() for line in kept.dropped_lines(stream)]
            for _ in range(most):
                waiting = [(kept.pieces[0][0], stream) for stream, kept in self._kept.items() if kept.pieces]
                if not waiting:
                    break
                taken.append(self._kept[min(waiting)[1]].take())
        return taken

    def begun(self) -> list[Log]:
        """The lines in progress, one for each stream, once all lines before them were taken."""
        with self._room:
            if any(kept.pieces for kept in self._kept.values()):
                return []
            found = [(stream, parts.begun) for stream, parts in self._parts.items()]
        return [Log(text, "info", SOURCES.get(stream, stream)) for stream, text in found if text]

    def close(self) -> None:
        """Release a waiting reader: records are no longer taken."""
        with self._room:
            self._closed = True
            self._room.notify_all()


def _spaced(count: int) -> str:
    """A count with thin gaps between thousands."""
    return f"{count:,}".replace(",", "\u202f")
