"""What is open and what runs, without Qt: requests to the worker, generation numbers, the capture that is shown."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import platformdirs

from inspector.capture import Capture, CaptureError, open_capture
from inspector.capture.kept import KeptRuns
from inspector.records import (
    Cancel,
    Catalog,
    Edit,
    Failure,
    Finished,
    InputSpec,
    Load,
    Loaded,
    Log,
    NeedsTrust,
    Progress,
    Run,
)
from inspector.transport.process import Exit
from inspector.workspace.trust import agree, agreed_files

KEPT_RUNS = 20
CANCEL_PATIENCE = 2.0
"""Seconds that a model may go on after a cancel; then its worker is ended."""
CHECK_SECONDS = 0.003
"""How long a tick goes on checking pages that nobody has drawn yet."""
MOST_EVENTS = 500
LOG_LINES = 5_000


class Worker(Protocol):
    """The parent's end of a worker (transport.process.WorkerProcess)."""

    @property
    def alive(self) -> bool:
        """True while it runs."""

    def start(self) -> None:
        """Start it."""

    def send(self, request: Any) -> None:
        """Send a request."""

    def close(self, patience: float = 1.0) -> None:
        """End it."""


Make = Callable[[Callable[[Any], None], Callable[[str, str], None], Callable[[Any], None]], Worker]


@dataclass(slots=True)
class Changes:
    """What one tick brought: channels with new data, log lines, and whether the rest of the state moved."""

    channels: frozenset[str] = frozenset()
    another_capture: bool = False
    state: bool = False
    lines: list[Log] = field(default_factory=list)
    failure: Failure | None = None
    consent: Loaded | None = None
    untrusted: NeedsTrust | None = None
    loaded: Loaded | None = None


class Session:
    """One window's work. Every method is called in one thread; the worker's threads only fill a queue."""

    def __init__(self, make_worker: Make, runs: Path | None = None) -> None:
        self._make = make_worker
        self.runs = (
            runs if runs is not None else Path(platformdirs.user_data_dir("inspector", appauthor=False)) / "runs"
        )
        self._kept = KeptRuns(self.runs)
        self.worker: Worker | None = None
        self.catalog: Catalog | None = None
        self.loaded: Loaded | None = None
        self.capture: Capture | None = None
        self.progress: Progress | None = None
        self.running = False
        self.worker_state = "not started"
        self.sentence = ""
        self.also: tuple[str, ...] = ()
        """Keys of quantities to compute beyond the default ones."""
        self.states_of: Callable[[str], Mapping[str, tuple[str, ...]]] = lambda _subject: {}
        """What the user named as the states of a subject's hand-written cells."""
        self.log: deque[Log] = deque(maxlen=LOG_LINES)
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._load: Load | None = None
        self._agreed: dict[str, str] = {}
        """What could not be remembered for other windows."""
        self._run: Run | None = None
        self._next: Run | None = None
        self._generation = 0
        self._cancelled_at: float | None = None
        self._started_at = 0.0
        self._seconds = 0.0

    # -- the worker

    def start_worker(self) -> None:
        """Start a worker, or another after one died; the window is usable meanwhile."""
        if self.worker is not None and self.worker.alive:
            return
        self.worker_state = "starting"
        epoch = self._generation

        def output(stream: str, line: str) -> None:
            self._events.put(Log(line, "info", "model" if stream == "stdout" else "stderr"))

        self.worker = self._make(self._events.put, output, lambda ended: self._events.put((epoch, ended)))
        self.worker.start()

    def note(self, line: Log) -> None:
        """Put a line into the log at the next tick; may be called from any thread."""
        self._events.put(line)

    def start_again(self) -> None:
        """A fresh worker with the model that was open; nothing runs until it is asked for."""
        self.start_worker()
        if self._load is not None and self.worker is not None:
            self._generation += 1
            self._next = None
            self._load = replace(self._load, generation=self._generation)
            self._send_load(self._load)

    def close(self) -> None:
        """End the worker (at most three seconds) and close the capture."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None
        if self.capture is not None:
            self.capture.close()
            self.capture = None
        self._kept.release()

    # -- what the user asks for

    def open_subject(self, load: Load, then: InputSpec | None = None) -> None:
        """Open a model; its first example, or `then`, runs as soon as it is open."""
        self.start_worker()
        self._interrupt()
        self._generation += 1
        self.loaded = None
        self._load = replace(load, generation=self._generation)
        self._next = self._request(then if then is not None else InputSpec())
        self._send_load(self._load)
        self.sentence = f"Opening {load.subject} …"

    def _send_load(self, load: Load) -> None:
        """Open a model; all code that was agreed to may run, and nothing else."""
        assert self.worker is not None
        known, problem = agreed_files()
        if problem:
            self._events.put(Log(problem, "warning"))
        self.worker.send(replace(load, agreed={**known, **self._agreed}))

    def agree(self) -> None:
        """Load what fits of the checkpoint that was asked about."""
        if self._load is not None:
            self._open_again(replace(self._load, partial=True), self._next)

    def agree_to_code(self, asked: NeedsTrust) -> None:
        """The code that was asked about may run: remember it, and go on with what waits for it."""
        files = {file.path: file.sha256 for file in asked.files}
        try:
            agree(files)
        except OSError as problem:
            self._agreed.update(files)
            text = f"The answer could not be remembered ({problem.strerror or problem}); it holds for this window."
            self._events.put(Log(text, "warning"))
        if self._load is not None:
            self._open_again(self._load, self._run if asked.request == "Run" else self._next)

    def _open_again(self, load: Load, then: Run | None) -> None:
        """Open the same model otherwise, and make the run that waits for it, if there is one."""
        self.open_subject(load, then.input if then is not None else None)
        assert self._next is not None
        self._next = replace(self._next, edits=then.edits) if then is not None else None

    def run(self, spec: InputSpec, edits: tuple[Edit, ...] = ()) -> None:
        """Run the open model on a sequence, with changes if there are any; a run in progress is cancelled."""
        if self._load is None:
            self.sentence = "Open a model first."
            return
        if self.worker is None or not self.worker.alive:
            self.open_subject(self._load, spec)
            assert self._next is not None
            self._next = replace(self._next, edits=edits)
            return
        self._interrupt()
        self._generation += 1
        self._send_run(replace(self._request(spec), edits=edits))

    def again(self) -> None:
        """Run the same sequence once more."""
        if self._run is not None:
            self.run(self._run.input, self._run.edits)

    def _quantities(self) -> tuple[str, ...]:
        """The default ones and those that were asked for; empty where that is the default."""
        known = self.catalog.quantities if self.catalog is not None else ()
        more = [entry.key for entry in known if not entry.default and entry.key in self.also]
        return (*(entry.key for entry in known if entry.default), *more) if more else ()

    @property
    def subject(self) -> str:
        """What model is open, as it was named; "" for none."""
        return self._load.subject if self._load is not None else ""

    @property
    def computed(self) -> tuple[str, ...]:
        """The quantities that the run that is shown was asked for; empty for the default ones."""
        return self._run.quantities if self._run is not None else ()

    @property
    def can_run_again(self) -> bool:
        """Whether the run that is shown was made by the model that is open."""
        return self._run is not None and self._load is not None

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The changes of the run that is shown."""
        return self._run.edits if self._run is not None else ()

    def _request(self, spec: InputSpec) -> Run:
        path = self._kept.next_path()
        self._kept.prune(KEPT_RUNS)
        return Run(path=str(path), input=spec, generation=self._generation)

    def _send_run(self, request: Run) -> None:
        assert self.worker is not None
        self._run = replace(
            request,
            generation=self._generation,
            quantities=self._quantities(),
            states=dict(self.states_of(self.subject)),
        )
        self._hold(Path(self._run.path))
        self.running, self.progress, self._cancelled_at = True, None, None
        self._started_at = time.monotonic()
        self.sentence = "Running …"
        self.worker.send(self._run)

    def cancel(self) -> None:
        """Stop the run; what came so far stays. A model that does not let go loses its worker."""
        if self.running and self._cancelled_at is None:
            self._interrupt()
            self._cancelled_at = time.monotonic()
            self.sentence = "Cancelling …"

    def _interrupt(self) -> None:
        if self.running and self.worker is not None:
            self.worker.send(Cancel())

    def open_capture(self, path: Path | str) -> None:
        """Show a capture from disk. Raises CaptureError."""
        self._hold(Path(path))  # before it is opened: from then on no window removes it
        try:
            capture = open_capture(path)
        except CaptureError:
            self._hold()
            raise
        self._run = None
        self._show(capture)
        self.sentence = ""

    def _show(self, capture: Capture) -> None:
        if self.capture is not None:
            self.capture.close()
        self.capture = capture
        self._hold()

    def _hold(self, *also: Path) -> None:
        """Say to other windows that what is shown, what runs and what is about to be opened is not to be removed."""
        shown = [self.capture.path] if self.capture is not None else []
        running = [Path(self._run.path)] if self._run is not None else []
        self._kept.hold((*shown, *running, *also))

    @property
    def spec(self) -> InputSpec:
        """The sequence that runs or ran last."""
        return self._run.input if self._run is not None else InputSpec()

    @property
    def seconds(self) -> float:
        """How long the present run has taken, or the last one took."""
        return time.monotonic() - self._started_at if self.running else self._seconds

    # -- the tick

    def tick(self) -> Changes:
        """Take in what the worker said and what the capture gained. Called about sixty times a second."""
        changes = Changes()
        for _ in range(MOST_EVENTS):
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                break
            changes.state = True
            self._take(event, changes)
        self._watch_cancel(changes)
        self._watch_capture(changes)
        self.log.extend(changes.lines)
        return changes

    def _take(self, event: Any, changes: Changes) -> None:
        if isinstance(event, Log):
            changes.lines.append(event)
        elif isinstance(event, Catalog):
            self.catalog, self.worker_state = event, "ready"
            changes.lines += [Log(f"Broken: {what}", "warning") for what in event.broken]
        elif isinstance(event, tuple):
            self._worker_ended(event[1], changes)
        elif getattr(event, "generation", self._generation) == self._generation:
            self._answer(event, changes)

    def _answer(self, event: Any, changes: Changes) -> None:
        if isinstance(event, Progress):
            self.progress = event
        elif isinstance(event, Loaded):
            self.loaded = event
            changes.loaded = event
            if event.needs_consent:
                self._next = self._run if self.running else self._next
                self._finished("The checkpoint does not fit whole.")
                changes.consent = event
            elif self._next is not None:
                self._send_run(self._next)
                self._next = None
        elif isinstance(event, Finished):
            self._finished(event.stop.message or f"Done in {event.stop.seconds:.1f} s.")
            if event.stop.status == "failed":
                changes.failure = Failure(message=event.stop.message, kind="model")
                changes.lines.append(Log(event.stop.message, "error", "model"))
        elif isinstance(event, NeedsTrust):
            self._finished(event.message)
            changes.untrusted = event
            changes.lines.append(Log(event.message, "warning"))
        elif isinstance(event, Failure):
            self._finished(event.message)
            changes.failure = event
            changes.lines.append(Log(event.message, "error"))
            if event.details:
                changes.lines.append(Log(event.details, "error"))

    def _finished(self, sentence: str) -> None:
        self._seconds = self.seconds if self.running else self._seconds
        self.running, self.progress, self._cancelled_at = False, None, None
        self.sentence = sentence

    def _worker_ended(self, ended: Exit, changes: Changes) -> None:
        if ended.expected:
            return
        self.worker_state = "ended"
        self._finished(ended.sentence)
        changes.failure = Failure(message=ended.sentence, kind="worker")
        changes.lines.append(Log(ended.sentence, "error"))

    def _watch_cancel(self, changes: Changes) -> None:
        """A model that ignores the cancel is ended with its worker; a new worker opens the same model again."""
        if self._cancelled_at is None or time.monotonic() - self._cancelled_at < CANCEL_PATIENCE:
            return
        assert self.worker is not None
        self.worker.close(0.5)
        self.worker = None
        self._finished("The model did not stop, so its worker was ended; what was captured so far is kept.")
        changes.state = True
        self.start_again()

    def _watch_capture(self, changes: Changes) -> None:
        if self._run is not None and (self.capture is None or str(self.capture.path) != self._run.path):
            try:
                if Path(self._run.path).is_dir():
                    self._show(open_capture(self._run.path))
                    changes.another_capture = changes.state = True
            except CaptureError:
                pass  # it is being made: the next tick looks again
        elif self.capture is not None:
            if self.capture.changed():
                run = self.capture.start.run
                changes.channels = self.capture.refresh()
                changes.state = True
                changes.another_capture |= self.capture.start.run != run  # another run has replaced it at its path
            found = self.capture.check(CHECK_SECONDS)
            if found:
                changes.channels, changes.state = changes.channels | found, True
