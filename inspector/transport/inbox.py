"""What a worker says, between the threads that read it and the window: the end of a run is never behind its prints.

Records (what is open, how a run ended) and lines of output wait apart. Of the output the newest lines are kept, and
those that had to be dropped are counted: a model that prints without end takes neither memory nor the end of its run.
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
"""What waits at most of each stream, in lines and in characters: some looks of a window, which takes 500 lines each."""
MOST_RECORDS = 10_000
"""Records that wait at most before the worker has to wait: it says a few a second."""
SOURCES = {"stdout": "model"}
OWN = "log"
"""The stream of lines that come as records, and of those that say what was dropped."""


class Kept:
    """The newest lines of one stream, in the pieces in which they came, and how many older ones were dropped."""

    def __init__(self) -> None:
        self.pieces: deque[tuple[int, Log, deque[str]]] = deque()
        """The number of a piece, a line that is like its own in level and source, and their text."""
        self.dropped = self.dropped_ever = 0
        self._lines = self._characters = 0

    def add(self, number: int, like: Log, lines: Sequence[str]) -> None:
        """More lines, the `number`-th piece of all streams; the oldest make room.

        A flood brings thousands of lines at a time, of which most go at once: nothing is made of a line before that.
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
        """Count lines that are not kept."""
        self.dropped += count
        self.dropped_ever += count

    def take(self) -> Log:
        """The oldest line that is kept."""
        _, like, lines = self.pieces[0]
        line = lines.popleft()
        if not lines:
            self.pieces.popleft()
        self._lines -= 1
        self._characters -= len(line)
        return Log(line, like.level, like.source)

    def said(self, stream: str) -> list[Log]:
        """A line in the place of those that were dropped since, with the number of all so far where there were more."""
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
        self._kept: dict[str, Kept] = {}
        self._count = 0
        self._parts: dict[str, Lines] = {}
        self._closed = False

    # -- called by the threads that read the worker

    def on_record(self, record: Any) -> None:
        """Keep a record; of several reports of progress the newest; a line for the log goes among the output."""
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
        """Keep the lines that end in a piece of the worker's output; the end of a stream is an empty piece."""
        with self._room:
            parts = self._parts.setdefault(stream, Lines())
        lines = parts.feed(text) if text else parts.close()
        with self._room:
            self._keep(stream, Log("", "info", SOURCES.get(stream, stream)), lines)

    def on_exit(self, ended: Exit) -> None:
        """Keep how the worker ended; this never waits."""
        with self._room:
            self._records.append(ended)

    def _keep(self, stream: str, like: Log, lines: Sequence[str]) -> None:
        self._count += 1
        self._kept.setdefault(stream, Kept()).add(self._count, like, lines)

    # -- called by the window

    def record(self) -> Any:
        """The next record, or None: all that is told before how far a run is, and that before anything printed."""
        with self._room:
            if self._records:
                self._room.notify_all()
                return self._records.popleft()
            told, self._progress = self._progress, None
            return told

    def lines(self, most: int) -> list[Log]:
        """The oldest lines that are kept, at most so many, in their order; first how many before them were dropped."""
        with self._room:
            taken = [line for stream, kept in self._kept.items() for line in kept.said(stream)]
            for _ in range(most):
                waiting = [(kept.pieces[0][0], stream) for stream, kept in self._kept.items() if kept.pieces]
                if not waiting:
                    break
                taken.append(self._kept[min(waiting)[1]].take())
        return taken

    def begun(self) -> list[Log]:
        """The lines in progress, a stream each, once all that came before them was taken."""
        with self._room:
            if any(kept.pieces for kept in self._kept.values()):
                return []
            found = [(stream, parts.begun) for stream, parts in self._parts.items()]
        return [Log(text, "info", SOURCES.get(stream, stream)) for stream, text in found if text]

    def close(self) -> None:
        """Let go of a reader that waits: nobody takes records any more."""
        with self._room:
            self._closed = True
            self._room.notify_all()


def _spaced(count: int) -> str:
    """A count with thin gaps between thousands."""
    return f"{count:,}".replace(",", "\u202f")
