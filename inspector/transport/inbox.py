"""What a worker says, between the threads that read it and the window: the end of a run is never behind its prints.

Records (what is open, how a run ended) and lines of output wait apart. Of the output the newest lines are kept, and
those that had to be dropped are counted: a model that prints without end takes neither memory nor the end of its run.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

from inspector.records import Log, Progress
from inspector.transport.lines import Lines
from inspector.transport.process import Exit

MOST_LINES = 2_000
MOST_CHARACTERS = 1 << 20
"""What waits at most, in lines and in characters: some ticks of a window, which takes 500 lines at a time."""
MOST_RECORDS = 10_000
"""Records that wait at most before the worker has to wait: it says a few a second."""
SOURCES = {"stdout": "model"}


class Inbox:
    """The three callbacks of a WorkerProcess on one side, `records()` and `lines()` on the other."""

    def __init__(self) -> None:
        self._room = threading.Condition()
        self._records: deque[Any] = deque()
        self._progress: Progress | None = None
        self._output: deque[Log] = deque()
        self._characters = 0
        self._dropped = self._dropped_ever = 0
        self._parts: dict[str, Lines] = {}
        self._closed = False

    # -- called by the threads that read the worker

    def on_record(self, record: Any) -> None:
        """Keep a record; of several reports of progress the newest; a line for the log goes among the output."""
        if isinstance(record, Log):
            with self._room:
                self._keep(record)
            return
        with self._room:
            if isinstance(record, Progress):
                self._progress = record
                return
            self._room.wait_for(lambda: self._closed or len(self._records) < MOST_RECORDS)
            if not self._closed:
                self._records.append(record)

    def on_output(self, stream: str, text: str) -> None:
        """Keep the lines that end in a piece of the worker's output; the end of a stream is an empty piece."""
        parts = self._parts.setdefault(stream, Lines())
        lines = parts.feed(text) if text else parts.close()
        source = SOURCES.get(stream, stream)
        with self._room:
            self._drop(max(0, len(lines) - MOST_LINES))
            for line in lines[-MOST_LINES:]:
                self._keep(Log(line, "info", source))

    def on_exit(self, ended: Exit) -> None:
        """Keep how the worker ended; this never waits."""
        with self._room:
            self._records.append(ended)

    def _keep(self, line: Log) -> None:
        self._output.append(line)
        self._characters += len(line.text)
        while len(self._output) > MOST_LINES or self._characters > MOST_CHARACTERS:
            self._characters -= len(self._output.popleft().text)
            self._drop(1)

    def _drop(self, count: int) -> None:
        self._dropped += count
        self._dropped_ever += count

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
        """The oldest lines that are kept, at most so many, after a line that says how many before them were dropped."""
        with self._room:
            said = [_dropped(self._dropped, self._dropped_ever)] if self._dropped else []
            self._dropped = 0
            taken = [self._output.popleft() for _ in range(min(most, len(self._output)))]
            self._characters -= sum(len(line.text) for line in taken)
        return said + taken

    def close(self) -> None:
        """Let go of a reader that waits: nobody takes records any more."""
        with self._room:
            self._closed = True
            self._room.notify_all()


def _dropped(count: int, ever: int) -> Log:
    """A line in the place of those that were dropped, with the number of all so far where there were some before."""
    words = f"… {_spaced(count)} line{'' if count == 1 else 's'} dropped"
    return Log(f"{words}, {_spaced(ever)} so far …" if ever > count else f"{words} …", "warning", "log")


def _spaced(count: int) -> str:
    """A count with thin gaps between thousands."""
    return f"{count:,}".replace(",", "\u202f")
