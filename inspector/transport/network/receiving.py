"""One training on the listener's side: the capture that it is written to, and how far it has come."""

from __future__ import annotations

import threading
from pathlib import Path

from inspector.capture import SUFFIX, CaptureError, Writer
from inspector.capture.awaited import Awaiting
from inspector.records import RunStart, RunStop
from inspector.transport.network.content import Arrived, Hello
from inspector.transport.network.files import Arriving, FilePiece
from inspector.transport.network.wire import WireError


class Receiving:
    """A run that is received, over one connection after the other.

    Attributes:
        path: its capture, named after the run so that a listener which is started again continues it.
        next: the number of the next record; committed: up to which one everything is on the disk.
    """

    def __init__(self, folder: Path, hello: Hello) -> None:
        self.path = folder / f"{hello.name}-{hello.run[:12]}{SUFFIX}"
        self.run, self.next = hello.run, hello.first
        self.fresh = True
        self.lock = threading.Lock()
        self.ended = False
        self._writer: Writer | None = None
        self._files = Arriving(self.path)
        self._awaiting = Awaiting(self.path)

    @property
    def open(self) -> bool:
        """Whether its capture is being written: a connection has begun it and not ended."""
        return self._writer is not None

    def begin(self, start: RunStart) -> None:
        """Open the capture, or the one that was written before. Raises CaptureError or WireError."""
        if start.run != self.run:
            raise WireError("a sender described another run than it named")
        if self._writer is not None:
            return
        again = self.path.exists()
        self._writer = Writer(self.path, start, again=again)
        self._awaiting.end()
        self.fresh = not again

    def take(self, arrived: Arrived) -> None:
        """Write a record, unless it is here already. Raises CaptureError or WireError."""
        if self._writer is None or isinstance(arrived.record, RunStart):
            raise WireError("a run is described once, and before anything else")
        if arrived.number and arrived.number < self.next:
            return
        if isinstance(arrived.record, FilePiece):
            self._files.take(arrived.record)
        else:
            self._writer.write(arrived.record)
        if isinstance(arrived.record, RunStop):
            self.ended = True
        if arrived.number and not arrived.more:
            self.next = arrived.number + 1

    def flush(self) -> int:
        """Commit; the number of the last record that is on the disk. Raises CaptureError."""
        last = self.next - 1
        if self._writer is not None:
            self._writer.flush()
        return last

    def close(self, *, waits: bool = False) -> None:
        """Close the capture's files; the run may go on later, and is said to be waited for. What went wrong is in what
        `take` raised before."""
        self._files.close()
        writer, self._writer = self._writer, None
        if not waits or self.ended:
            self._awaiting.end()
        elif writer is not None:  # before the writer says that it is gone
            self._awaiting.begin()
        if writer is not None:
            try:
                writer.close()
            except CaptureError:
                return
