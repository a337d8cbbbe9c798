"""In the training: a writer whose records go to a listener on another machine, and are kept until it has them.

Nothing here waits for the network but the end of the training, and that not long. Where the listener is gone, records
stay in a ring of bounded size and are sent when it is back; pages for which there is no room are dropped and counted.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inspector.capture import CaptureError
from inspector.capture.control import Command
from inspector.records import Axis, Channel, Frame, Labels, Log, Page, Refusal, RunStart, counted
from inspector.records.json_text import read_json
from inspector.records.plain_text import shortened
from inspector.transport.network.address import Address
from inspector.transport.network.content import Hello, packed
from inspector.transport.network.files import MOST_BYTES, KeptFile, packed_file
from inspector.transport.network.wire import Kind, RefusedError, Wire, WireError, as_sender

RING_BYTES = 64 << 20
RING_RECORDS = 100_000
"""Records other than pages that wait: events, logs."""
LASTING = (Axis, Channel, Frame, Labels, Refusal)
"""Records that a listener which does not know the run must have before anything else."""
CONNECT_SECONDS = 5.0
AGAIN_SECONDS = (0.2, 10.0)
ALIVE_SECONDS = 10.0
NO_FILES = "A kept iteration was not taken: the listener is of an earlier version of inspector."
CLOSE_SECONDS = 10.0
"""How long the end of a training waits for what has not been delivered."""


class Sender:
    """Has the interface of `inspector.capture.Writer`, with `block=False`: pages may be dropped, and are counted.

    Attributes:
        path: the address, as a path that exists nowhere. dropped: pages for which there was no room.
        error: why sending has ended for good: another secret, or what the listener said.
    """

    def __init__(
        self, address: Address, secret: bytes, start: RunStart, obey: Callable[[Command], None] = lambda command: None
    ) -> None:  # fmt: skip
        """`obey`: called in a thread of this object's with each command that windows give where the listener is."""
        self._obey = obey
        self.address, self._secret, self._start = address, secret, start
        self.path = Path(str(address))
        self.dropped = 0
        self.error: CaptureError | None = None
        self._ring: deque[tuple[int, Any, int]] = deque()
        self._lasting: list[Any] = []
        self._bytes = self._number = self._sent = 0
        self._promised = 0
        self._takes_files = True
        self._changed = threading.Condition()
        self._closed = self._connected = False
        self._patient = True
        self._thread = threading.Thread(target=self._work, name="watch-sender", daemon=True)
        self._thread.start()

    begun = True

    # -- in the training's thread

    def write(self, record: Any) -> None:
        """Take a record. Raises CaptureError once sending has ended for good."""
        if self.error is not None:
            raise self.error
        if self._closed:
            raise CaptureError(f"The connection to {self.address} is closed.")
        size = record.array.nbytes if isinstance(record, Page) else 1000
        if isinstance(record, KeptFile):
            size = 0  # it has room of its own
        with self._changed:
            full = self._bytes + size > RING_BYTES if isinstance(record, Page) else len(self._ring) > RING_RECORDS
            if full and self._ring:
                self.dropped += 1
                return
            self._number += 1
            self._ring.append((self._number, record, size))
            self._bytes += size
            self._changed.notify_all()

    def promise(self, nbytes: int) -> bool:
        """Whether there is room for a file of so many bytes, which is taken until the listener has it."""
        with self._changed:
            fits = self._takes_files and self.error is None and self._promised + nbytes <= MOST_BYTES
            self._promised += nbytes if fits else 0
            return fits

    def send_file(self, file: KeptFile, promised: int) -> None:
        """Send a file for which there was room; an empty one takes the promise back. Raises CaptureError as `write`."""
        with self._changed:
            self._promised += len(file.content) - promised
        if file.content:
            self.write(file)

    def flush(self) -> None:
        """Wait, not long, until the listener has everything. Raises CaptureError where sending ended for good."""
        self._wait_until_kept()
        if self.error is not None:
            raise self.error

    def _wait_until_kept(self) -> None:
        with self._changed:
            if not self._patient and not self._connected:
                return  # it has been waited for in vain before
            self._patient = self._changed.wait_for(lambda: self._connected or self._settled(), CONNECT_SECONDS)
            if self._patient:
                self._changed.wait_for(self._settled, CLOSE_SECONDS)

    def _settled(self) -> bool:
        return not self._ring or self.error is not None

    def close(self) -> None:
        """Send what is left, as far as there is time. Raises CaptureError if something was lost. Idempotent."""
        if self._closed:
            return
        if self.dropped and self.error is None:
            told = f"The connection was slower than the run, so {counted(self.dropped, 'page')} could not be kept."
            self.write(Log(told, "warning", "watch"))
        self._wait_until_kept()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(CLOSE_SECONDS)
        if self.error is not None:
            raise self.error
        if self._ring:
            raise CaptureError(f"{counted(len(self._ring), 'record')} could not be delivered to {self.address}.")

    # -- in its own thread

    def _work(self) -> None:
        wait, most = AGAIN_SECONDS
        while not self._over():
            try:
                with socket.create_connection((self.address.host, self.address.port), CONNECT_SECONDS) as connection:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._serve(as_sender(connection, self._secret))
                    wait = AGAIN_SECONDS[0]
            except RefusedError as problem:
                self._fail(f"{self.address} took no connection: {problem}.")
            except (WireError, OSError):
                self._connected = False
            except Exception as problem:  # noqa: BLE001 - without this thread the training would fill its ring in vain
                self._fail(f"Sending to {self.address} failed ({type(problem).__name__}: {problem}).")
            with self._changed:
                self._changed.wait_for(self._over, wait * random.Random().uniform(0.8, 1.2))
            wait = min(2 * wait, most)

    def _over(self) -> bool:
        return self.error is not None or self._closed

    def _fail(self, sentence: str) -> None:
        with self._changed:
            self.error = CaptureError(" ".join(sentence.split())[:400])
            self._ring.clear()
            self._bytes = self._promised = 0
            self._changed.notify_all()

    def _serve(self, wire: Wire) -> None:
        """One connection to its end. Raises WireError."""
        first = self._ring[0][0] if self._ring else self._number + 1
        wire.send(Kind.HELLO, Hello(self._start.run, self.address.name, first).encoded())
        self._send(wire, 0, self._start)
        fresh = self._welcomed(wire)
        for record in self._lasting if fresh else ():
            self._send(wire, 0, record)
        with self._changed:
            self._connected = True
            self._changed.notify_all()
        alive = time.monotonic()
        while True:
            following = self._following()
            if following is not None:
                self._send(wire, *following)
            elif time.monotonic() - alive > ALIVE_SECONDS:
                alive = time.monotonic()
                wire.send(Kind.ALIVE)
            self._hear(wire, 0.0 if following is not None else 0.05)
            if self._closed:
                if not self._ring:
                    wire.send(Kind.END)
                return

    def _welcomed(self, wire: Wire) -> bool:
        """Continue where the listener's capture ends; whether it has none of the run yet."""
        message = wire.receive(CONNECT_SECONDS)
        if message is None or message.kind is not Kind.WELCOME:
            self._heard_fault(message)
            raise WireError("the listener did not answer")
        try:
            told = read_json(message.body)
            following, fresh = int(told["next"]), bool(told["fresh"])
        except (ValueError, KeyError, TypeError, OverflowError):
            raise WireError("the listener answered something else than where it is") from None
        self._takes_files = told.get("files") is True
        self._kept(following - 1)
        with self._changed:
            self._sent = self._ring[0][0] - 1 if self._ring else self._number
        return fresh

    def _following(self) -> tuple[int, Any] | None:
        """The next record to be sent; waits a moment for one."""
        with self._changed:
            self._changed.wait_for(lambda: self._sent < self._number or self._closed, 0.05)
            if not self._ring or self._sent >= self._ring[-1][0]:
                return None
            number, record, _ = self._ring[max(0, self._sent + 1 - self._ring[0][0])]
            return number, record

    def _send(self, wire: Wire, number: int, record: Any) -> None:
        if isinstance(record, KeptFile) and self._takes_files:
            for part in packed_file(number, record):
                wire.send(Kind.FILE, part)
        else:
            told = Log(NO_FILES, "warning", "watch") if isinstance(record, KeptFile) else record
            for kind, body in packed(number, told):
                wire.send(kind, body)
        if number:
            self._sent = number
            if isinstance(record, LASTING):
                self._lasting.append(record)

    def _hear(self, wire: Wire, patience: float) -> None:
        message = wire.receive(patience)
        if message is not None and message.kind is Kind.KEPT:
            self._kept(struct.unpack("!Q", message.body)[0])
        elif message is not None and message.kind is Kind.CONTROL:
            try:
                self._obey(Command.decoded(message.body))
            except ValueError as problem:
                raise WireError(str(problem)) from None
        elif message is not None:
            self._heard_fault(message)

    def _heard_fault(self, message: Any) -> None:
        if message is not None and message.kind is Kind.FAULT:
            self._fail(
                f"The listener {self.address} ended it: {shortened(message.body.decode('utf-8', 'replace'), 300)}"
            )
            raise WireError("the listener ended it")

    def _kept(self, number: int) -> None:
        """The listener has everything up to a number."""
        with self._changed:
            while self._ring and self._ring[0][0] <= number:
                _, record, size = self._ring.popleft()
                self._bytes -= size
                self._promised -= len(record.content) if isinstance(record, KeptFile) else 0
            self._changed.notify_all()
