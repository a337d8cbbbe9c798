"""Accepts trainings from other machines and writes their captures, with a bound on everything that a peer can cost.

Before a peer has proved that it knows the secret it can send 64 bytes within five seconds, and hold one of a few
places. After that a message has a bounded length and time, and all that is written together has a bounded size.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from inspector.capture import CaptureError
from inspector.capture.control import Commands
from inspector.records import RunStart
from inspector.transport.network.content import Hello, unpacked
from inspector.transport.network.receiving import Receiving
from inspector.transport.network.wire import Kind, Message, Wire, WireError, as_listener

COMMIT_SECONDS = 0.5
LOOK_SECONDS = 0.2
"""What windows want of a training (capture/control.py) is looked for so often, and sent to it."""
COMMIT_BYTES = 8 << 20
SILENT_SECONDS = 60.0
"""A sender says at least every ten seconds that it is there."""
MOST_RUNS = 1000


@dataclass(frozen=True, slots=True)
class Limits:
    """What a listener takes: bytes of all that is written, connections, and connections that have not proved anything
    yet."""

    total: int = 50 << 30
    connections: int = 16
    strangers: int = 16


@dataclass(frozen=True, slots=True)
class Training:
    """A training that has sent something: its capture, whether it has ended, whether it is connected now."""

    path: Path
    ended: bool
    connected: bool


class Listener:
    """Listens until it is closed; a context manager. `say` gets one line for everything that a user should know."""

    def __init__(
        self, folder: Path, secret: bytes, host: str = "127.0.0.1", port: int = 0, *, limits: Limits = Limits(),
        say: Callable[[str], None] = lambda line: None,
    ) -> None:  # fmt: skip
        """Begin to listen. Raises OSError where the port is taken or the folder cannot be made."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self._secret, self._limits, self._say = folder, secret, limits, say
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=limits.strangers)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self._runs: dict[str, Receiving] = {}
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._served: dict[str, socket.socket] = {}
        self._strangers = threading.Semaphore(limits.strangers)
        self._places = threading.Semaphore(limits.connections)
        self._closed = False
        self.received = 0
        self._thread = threading.Thread(target=self._accept, name="listener", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all connections and close all captures."""
        self._closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._lock:
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            runs = list(self._runs.values())
        self._thread.join(5.0)
        for run in runs:
            with run.lock:
                run.close()

    def trainings(self) -> list[Training]:
        """Those whose captures have begun, in that order."""
        with self._lock:
            return [Training(run.path, run.ended, run.open) for run in self._runs.values() if not run.fresh or run.open]

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # it is closed, or no descriptors are left for now
                time.sleep(0.1)
                continue
            if not self._strangers.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._meet, args=(connection,), name="listener-peer", daemon=True).start()

    def _meet(self, connection: socket.socket) -> None:
        """A connection to its end: nothing that a peer does gets out of here."""
        with connection:
            with self._lock:
                self._open.add(connection)
            try:
                try:
                    wire = as_listener(connection, self._secret)
                finally:
                    self._strangers.release()
                if self._places.acquire(blocking=False):
                    try:
                        self._serve(wire, connection)
                    finally:
                        self._places.release()
            except (WireError, OSError):
                return
            finally:
                with self._lock:
                    self._open.discard(connection)

    def _serve(self, wire: Wire, connection: socket.socket) -> None:
        hello = wire.receive(5.0, 1 << 12)
        if hello is None or hello.kind is not Kind.HELLO:
            raise WireError("a sender named no run")
        run = self._run_of(Hello.decoded(hello.body), connection)
        if run is None:
            wire.send(Kind.FAULT, b"it has taken as many runs as it takes.")
            return
        with run.lock:  # the connection before has ended, or ends now
            waits = True
            try:
                self._receive(wire, run)
                waits = False
            except CaptureError as problem:
                waits = False
                self._tell(str(problem))
                wire.send(Kind.FAULT, str(problem).encode()[:400])
            finally:
                run.close(waits=waits and not self._closed)

    def _run_of(self, hello: Hello, connection: socket.socket) -> Receiving | None:
        with self._lock:
            before = self._served.get(hello.run)
            if before is not None:
                with suppress(OSError):
                    before.shutdown(socket.SHUT_RDWR)
            if hello.run not in self._runs:
                if len(self._runs) >= MOST_RUNS:
                    return None
                self._runs[hello.run] = Receiving(self._folder, hello)
            self._served[hello.run] = connection
            return self._runs[hello.run]

    def _receive(self, wire: Wire, run: Receiving) -> None:
        """Everything of one connection. Raises WireError at its end, and CaptureError."""
        message = wire.receive(5.0)
        start = None if message is None or message.kind is not Kind.RECORD else unpacked(message.kind, message.body)
        if start is None or not isinstance(start.record, RunStart):
            raise WireError("a sender described no run")
        run.begin(start.record)
        wire.send(Kind.WELCOME, json.dumps({"next": run.next, "fresh": run.fresh, "files": True}).encode())
        self._tell(f"{run.path}: a training {'begins' if run.fresh else 'goes on'}.")
        run.fresh = False
        commands = Commands(run.path)
        heard = flushed = looked = time.monotonic()
        waiting = 0
        while True:
            message = wire.receive(min(COMMIT_SECONDS, LOOK_SECONDS))
            now = time.monotonic()
            if message is not None:
                heard = now
                waiting += self._take(message, run)
            if waiting and (now - flushed > COMMIT_SECONDS or waiting > COMMIT_BYTES or message is None or run.ended):
                wire.send(Kind.KEPT, struct.pack("!Q", run.flush()))
                flushed, waiting = time.monotonic(), 0
            if message is not None and message.kind is Kind.END:
                self._tell(f"{run.path}: the training has ended.")
                return
            if now - looked > LOOK_SECONDS:
                looked = now
                for command in commands.new()[0]:
                    wire.send(Kind.CONTROL, command.encoded())
            if now - heard > SILENT_SECONDS:
                raise WireError("the sender is silent")

    def _tell(self, line: str) -> None:
        """A terminal that was closed, or a disk that is full, ends no training."""
        with suppress(OSError, ValueError):
            self._say(line)

    def _take(self, message: Message, run: Receiving) -> int:
        if message.kind not in (Kind.RECORD, Kind.PAGE, Kind.FILE):
            return 0
        size = len(message.body) + 200
        with self._lock:
            self.received += size
            full = self.received > self._limits.total
        if full:
            raise CaptureError(
                f"{run.path.name}: the listener has taken {self._limits.total} bytes, and takes no more."
            )
        run.take(unpacked(message.kind, message.body))
        return size
