"""The state of a session: the worker, the model, the capture, and the present activity."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from inspector.capture import Capture
from inspector.capture.regular import in_words
from inspector.gui.state.background import Background
from inspector.gui.state.connection import Connection
from inspector.gui.state.exchange import Make, Worker
from inspector.gui.state.opening import Opening, Wanted
from inspector.gui.state.remaining import Remaining
from inspector.gui.state.shown import Made, Shown
from inspector.records import Analyse, Cancel, Catalog, Load, Loaded, Log, Progress, Run, split_request


class Work:
    """At most one activity at a time: a model is being opened, or the one that is open runs."""

    def __init__(self, make_worker: Make, runs: Path) -> None:
        self.connection, self.models, self.shown = Connection(make_worker), Opening(), Shown(runs)
        self.catalog: Catalog | None = None
        self.progress: Progress | None = None
        self.remaining = Remaining()
        """About how long the present run still takes."""
        self.running = False
        self.sentence = ""
        self.generation = 0
        """The number of the newest request; answers to older ones are ignored."""
        self.cancelled_at: float | None = None
        self.also: tuple[str, ...] = ()
        """Requests for quantities beyond the default ones: keys, with options after `@`."""
        self.states_of: Callable[[str], Mapping[str, tuple[str, ...]]] = lambda _subject: {}
        """The variables that the user named as the states of a subject's hand-written cells."""
        self.question: tuple[str, ...] = ()
        """The quantities that are being computed for the run that is shown; () during any other activity."""
        self.background = Background(self)
        self._started_at = self._seconds = 0.0

    # -- the present state

    @property
    def worker(self) -> Worker | None:
        """The present worker."""
        return self.connection.worker

    @property
    def worker_state(self) -> str:
        """ "not started", "starting", "ready" or "ended"."""
        return self.connection.state

    @property
    def capture(self) -> Capture | None:
        """The capture that is shown."""
        return self.shown.capture

    @property
    def loaded(self) -> Loaded | None:
        """The worker's record of the model that is open in it."""
        return self.models.loaded

    @property
    def opening(self) -> Load | None:
        """The model that is being opened, or waits for the user's confirmation."""
        return self.models.pending

    @property
    def subject(self) -> str:
        """The name of the open model, as it was given; "" for none."""
        return self.models.load.subject if self.models.load is not None else ""

    @property
    def busy(self) -> bool:
        """Whether something runs or is being opened."""
        return self.running or (self.opening is not None and not self.models.waiting)

    @property
    def waited_for(self) -> bool:
        """Whether the user waits for the present activity, so that buttons offer to cancel it.

        A model that is opened again by itself, in a worker that was started again, does not count: a run that is
        requested meanwhile comes after it. Esc cancels it too.
        """
        return self.busy and not (self.models.again and self.models.then is None)

    @property
    def cancelling(self) -> bool:
        """Whether the present activity was cancelled and has not stopped yet."""
        return self.cancelled_at is not None

    @property
    def seconds(self) -> float:
        """How long the present run, or opening, has taken, or the last one took."""
        return time.monotonic() - self._started_at if self.busy else self._seconds

    # -- beginning and ending

    def start_worker(self) -> None:
        """Start a worker, or another after one died; the window is usable meanwhile."""
        if self.connection.start():
            self.models.another_worker()

    def start_again(self, why: str = "") -> None:
        """A fresh worker with the model that was open; nothing runs until it is requested."""
        self.start_worker()
        self.models.why = why
        if self.models.load is not None:
            self.begin_opening(self.models.load, None)
            self.sentence = f"{why} Opening {self.subject} again …".lstrip()

    def begin_opening(self, load: Load, then: Wanted | None) -> None:
        """Ask the worker for a model; `then` runs as soon as it is open."""
        self.generation += 1
        request, problem = self.models.begin(load, then, self.generation)
        self._started_at = time.monotonic()
        self.sentence = f"Opening {load.subject} …"
        if problem:
            self.connection.note(Log(problem, "warning"))
        self.connection.send(request)

    def begin_run(self, wanted: Wanted) -> None:
        """Ask the worker for a run of the model that is open."""
        try:
            path = str(self.shown.next_path())
        except OSError as problem:
            where = problem.filename or "their folder"
            self.sentence = f"The run cannot be stored: {where} cannot be made or written to ({in_words(problem)})."
            return
        request = Run(
            path=path, input=wanted.input, edits=wanted.edits, decode=wanted.decode,
            generation=self.generation, also=self.known_also(), now=self._now(),
            states=dict(self.states_of(self.subject)),
        )  # fmt: skip
        self.background.forget()
        self.shown.ask(Made(request, self.subject))
        self.running, self.progress, self.cancelled_at = True, None, None
        self.remaining.begin()
        self._started_at = time.monotonic()
        self.sentence = "Running …" if wanted.decode is None else "Searching for the answer …"
        self.connection.send(request)

    def begin_question(self, made: Made, keys: tuple[str, ...]) -> None:
        """Ask the worker for quantities of a run that has ended, from its stored trace."""
        self.background.stop()
        self.generation += 1
        self.running, self.progress, self.cancelled_at = True, None, None
        self.remaining.begin()
        self._started_at = time.monotonic()
        self.sentence, self.question = "Computing …", keys
        self.connection.send(Analyse(path=made.request.path, quantities=keys, generation=self.generation))

    def known_also(self) -> tuple[str, ...]:
        """The requested quantities beyond the default ones, as far as the worker has them."""
        known = {entry.key for entry in self.catalog.quantities} if self.catalog is not None else set()
        return tuple(request for request in self.also if split_request(request)[0] in known)

    def _now(self) -> tuple[str, ...] | None:
        """What a run computes before it ends: what is recorded and what is cheap; the rest is left to `background`."""
        return tuple(entry.key for entry in self.catalog.quantities if entry.cheap) if self.catalog else None

    def interrupt(self) -> None:
        """Tell the worker to stop the present activity."""
        self.background.stop()
        if self.busy:
            self.connection.send(Cancel())

    def finish(self, sentence: str) -> None:
        """Nothing runs any more."""
        self._seconds = self.seconds if self.running else self._seconds
        self.running, self.progress, self.cancelled_at, self.question = False, None, None, ()
        self.sentence = sentence

    def not_opened(self, sentence: str) -> Load | None:
        """Nothing is being opened any more; returns what was."""
        pending = self.models.over()
        self.finish(sentence)
        return pending
