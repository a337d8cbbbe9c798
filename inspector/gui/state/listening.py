"""Listening for trainings on other machines: what `inspector listen` does, for as long as a window wants it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from pathlib import Path

from inspector.capture.regular import path_of
from inspector.transport.network.address import DEFAULT_PORT, Address, is_loopback, secret_in
from inspector.transport.network.listener import Limits, Listener, Training

SECRET = "secret"
LINES = 200
REACHED = "Other machines can reach it. What they send is authenticated, and not encrypted: see docs/watching.md."


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen: the folder that captures are written to, this machine's address and port (0: any that is free),
    the file of the secret ("": FOLDER/secret), and how much is written at most."""

    folder: str
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    secret_file: str = ""
    most_gb: float = 50.0

    @property
    def secret(self) -> Path:
        """The file of the secret."""
        return path_of(self.secret_file) if self.secret_file else path_of(self.folder) / SECRET


class Listening:
    """One listener at most. Its threads only append lines; everything else is read from it."""

    def __init__(self) -> None:
        self._listener: Listener | None = None
        self.place: Place | None = None
        self.lines: deque[str] = deque(maxlen=LINES)

    @property
    def on(self) -> bool:
        """Whether trainings can send."""
        return self._listener is not None

    @property
    def sentence(self) -> str:
        """Where it listens, and how a training finds it; "" while it does not."""
        if self._listener is None or self.place is None:
            return ""
        address = Address(self.place.host, self._listener.port)
        more = "" if is_loopback(self.place.host) else f" {REACHED}"
        return f"Listening at {address}; the secret is in {self.place.secret}.{more}"

    def begin(self, place: Place) -> str:
        """Listen; returns why that is not possible, "" where it does now. Ends what listened before."""
        self.close()
        folder = path_of(place.folder)
        if not place.folder.strip():
            return "No folder was given for the captures; expected one that can be written."
        try:
            limits = Limits(total=int(place.most_gb * (1 << 30)))
            self._listener = Listener(
                folder, secret_in(place.secret), place.host, place.port, limits=limits, say=self.lines.append
            )
        except ValueError as problem:
            return str(problem)
        except OSError as problem:
            reason = problem.strerror or problem
            return f"Cannot listen at {place.host}:{place.port} for {folder} ({reason})."
        self.place = place
        return ""

    def trainings(self) -> list[Training]:
        """Those that have sent something since it listens, in the order in which they began."""
        return [] if self._listener is None else self._listener.trainings()

    def close(self) -> None:
        """Listen no more: connections end, captures are closed."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
