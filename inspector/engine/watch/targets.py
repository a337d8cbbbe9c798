"""Where the records of a watched training go: a capture that begins late, or a listener on another machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inspector.capture.control import Command
from inspector.engine.pipeline import Recording
from inspector.records import Page, RunStart
from inspector.transport.network.address import Address
from inspector.transport.network.sender import Sender


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A listener on another machine, and the secret that it shares with this one."""

    address: Address
    secret: bytes

    def sender(self, start: RunStart, obey: Callable[[Command], None]) -> Sender:
        """The connection, which is made in a thread of its own; `obey` gets what windows want there."""
        return Sender(self.address, self.secret, start, obey)


class LateSink:
    """Records of a run whose capture begins once it is known which optimizer it is trained with."""

    def __init__(self, start: Callable[[], Recording]) -> None:
        self._start = start
        self._early: list[Any] = []
        self.recording: Recording | None = None

    def begin(self) -> Recording:
        """The capture, begun now if it was not. Raises CaptureError."""
        if self.recording is None:
            self.recording = self._start()
            for record in self._early:
                self.recording.write(record)
            self._early.clear()
        return self.recording

    def write(self, record: Any) -> None:
        """Take a record; a page begins the capture. Raises CaptureError."""
        if self.recording is None and not isinstance(record, Page):
            self._early.append(record)
        else:
            self.begin().write(record)
