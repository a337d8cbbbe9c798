"""A worker that records what it is asked and says what a test wants, and what such a worker usually says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inspector.capture import Writer
from inspector.gui.state.exchange import Changes
from inspector.gui.state.session import Session
from inspector.records import Catalog, Failure, Finished, Load, Loaded, Run, RunStart, RunStop


class Fake:
    """What a session needs of a WorkerProcess. `lets_go` is set as long as closing it takes no time."""

    made: list[Fake]

    def __init__(
        self, say: Callable[[Any], None], output: Callable[[str, str], None], ended: Callable[[Any], None]
    ) -> None:
        self.say, self.output, self.ended = say, output, ended
        self.sent: list[Any] = []
        self.alive = False
        self.lets_go, self.closed = threading.Event(), threading.Event()
        self.lets_go.set()
        Fake.made.append(self)

    def start(self) -> None:
        self.alive = True

    def send(self, request: Any) -> None:
        self.sent.append(request)

    def close(self, patience: float = 1.0) -> None:
        self.lets_go.wait(10)
        self.alive = False
        self.closed.set()


def opened(session: Session) -> Fake:
    """A worker in which the model x is open, its first example running."""
    session.open_subject(Load(subject="x"))
    fake = Fake.made[-1]
    fake.say(Catalog(torch="2", threads=1, devices=("cpu",)))
    fake.say(Loaded(subject="x", generation=fake.sent[-1].generation))
    session.tick()
    return fake


def done(session: Session, fake: Fake) -> None:
    """The run in progress ends well; nothing was captured."""
    run = fake.sent[-1]
    fake.say(Finished(path=run.path, stop=RunStop("done"), generation=run.generation))
    session.tick()


def run_captured(session: Session, fake: Fake, status: str = "done") -> None:
    """The run in progress writes a capture and ends."""
    run = fake.sent[-1]
    assert isinstance(run, Run)
    with Writer(Path(run.path), RunStart(run=run.path, title="t")) as writer:
        writer.write(RunStop(status))
    fake.say(Finished(path=run.path, stop=RunStop(status), generation=run.generation))
    session.tick()


def refuse(session: Session, fake: Fake, sentence: str = "That cannot be read.", kind: str = "input") -> Changes:
    """The run in progress is refused before it begins."""
    run = next(request for request in reversed(fake.sent) if isinstance(request, Run))
    fake.say(Failure(message=sentence, request="Run", kind=kind, generation=run.generation))
    return session.tick()


def ended_early(session: Session, fake: Fake) -> None:
    """The run in progress fails before it has captured anything."""
    run = fake.sent[-1]
    fake.say(Finished(path=run.path, stop=RunStop("failed", "No."), generation=run.generation))
    session.tick()
