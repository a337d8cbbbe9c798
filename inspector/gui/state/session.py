"""What is open and what runs, without Qt: requests to the worker, generation numbers, the capture that is shown."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import platformdirs

from inspector.capture import Capture, CaptureError, open_capture
from inspector.capture.kept import KeptRuns
from inspector.gui.state.exchange import Changes, Make, Worker
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
    split_request,
)
from inspector.transport.inbox import MOST_LINES, Inbox
from inspector.transport.process import Exit
from inspector.workspace.trust import agree, agreed_files

KEPT_RUNS = 20
CANCEL_PATIENCE = 2.0
"""Seconds that a model may go on after a cancel; then its worker is ended."""
CHECK_SECONDS = 0.003
"""How long a tick goes on checking pages that nobody has drawn yet."""
TICK_SECONDS = 0.008
"""What a tick may spend on records: half of the time between two ticks."""
TICK_LINES = 500
FLOOD_SECONDS = 0.1
"""Between two looks at what is printed, where there is more of it than one look takes: nobody reads that anyway."""
LOG_LINES = 5_000


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
        """What the worker said of the model that is open in it."""
        self.opening: Load | None = None
        """The model that is being opened, or waits for the user's word."""
        self.capture: Capture | None = None
        self.progress: Progress | None = None
        self.running = False
        self.worker_state = "not started"
        self.sentence = ""
        self.also: tuple[str, ...] = ()
        """Requests for quantities beyond the default ones: keys, with options after `@`."""
        self.states_of: Callable[[str], Mapping[str, tuple[str, ...]]] = lambda _subject: {}
        """What the user named as the states of a subject's hand-written cells."""
        self.log: deque[Log] = deque(maxlen=LOG_LINES)
        self._inbox = Inbox()
        self._printed_at = 0.0
        self._left: list[Log] = []
        """What a worker said before another took its place."""
        self._load: Load | None = None
        """How the model that is open was opened; a worker that is started again opens it again."""
        self._asked: dict[int, Load] = {}
        self._agreed: dict[str, str] = {}
        """Code that may run, whose agreement could not be remembered for other windows."""
        self._run: Run | None = None
        self._made_by = ""
        self._next: Run | None = None
        self._generation = 0
        self._why = ""
        """Why a worker had to be started again, until its model is open again."""
        self._waiting = False
        """Whether what is being opened waits for the user's word."""
        self._if_refused = ""
        """What a no of the user means, in words."""
        self._cancelled_at: float | None = None
        self._started_at = 0.0
        self._seconds = 0.0

    # -- the worker

    def start_worker(self) -> None:
        """Start a worker, or another after one died; the window is usable meanwhile."""
        if self.worker is not None and self.worker.alive:
            return
        self.worker_state = "starting"
        self._left += self._inbox.lines(MOST_LINES)
        self._inbox.close()
        self._inbox = inbox = Inbox()  # what another worker still says is not of this one
        self._asked.clear()
        self.worker = self._make(inbox.on_record, inbox.on_output, inbox.on_exit)
        self.worker.start()

    def start_again(self, why: str = "") -> None:
        """A fresh worker with the model that was open; nothing runs until it is asked for."""
        self.start_worker()
        self._why = why
        if self._load is not None:
            self._open(self._load, None)
            self.sentence = f"{why} Opening {self.subject} again …".lstrip()

    def note(self, line: Log) -> None:
        """Put a line into the log, from any thread."""
        self._inbox.on_record(line)

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

    def open_subject(self, load: Load, then: InputSpec | None = None, edits: tuple[Edit, ...] = ()) -> None:
        """Open a model; its first example, or `then`, runs as soon as it is open. Until then the one before stays."""
        self.start_worker()
        self._interrupt()
        self._finished("")
        self._open(load, then if then is not None else InputSpec(), edits)

    def _open(self, load: Load, then: InputSpec | None, edits: tuple[Edit, ...] = ()) -> None:
        assert self.worker is not None
        self._generation += 1
        self.opening = self._asked[self._generation] = replace(load, generation=self._generation)
        self._next = replace(self._request(then), edits=edits) if then is not None else None
        self._waiting, self._started_at = False, time.monotonic()
        self.sentence = f"Opening {load.subject} …"
        known, problem = agreed_files()
        if problem:
            self.note(Log(problem, "warning"))
        self.worker.send(replace(self.opening, agreed={**known, **self._agreed}))

    def _opens_again(self) -> bool:
        """Whether what is being opened is the model that was open, in a worker that was started again."""
        if self.opening is None or self._load is None:
            return False
        return replace(self.opening, generation=self._load.generation) == self._load

    def agree(self) -> None:
        """Load what fits of the checkpoint that was asked about."""
        if self.opening is not None:
            self._ask_again(replace(self.opening, partial=True), self._next)

    def agree_to_code(self, asked: NeedsTrust) -> None:
        """The code that was asked about may run: remember it, and go on with what waits for it."""
        files = {file.path: file.sha256 for file in asked.files}
        try:
            agree(files)
        except OSError as problem:
            self._agreed.update(files)
            text = f"The answer could not be remembered ({problem.strerror or problem}); it holds for this window."
            self.note(Log(text, "warning"))
        if self.opening is not None:
            self._ask_again(self.opening, self._next)
        elif self._load is not None:
            self._ask_again(self._load, self._run)

    def _ask_again(self, load: Load, then: Run | None) -> None:
        """Open a model after the user's word, and make the run that waits for it, if there is one."""
        if then is not None:
            self.open_subject(load, then.input, then.edits)
        else:
            self._open(load, None)

    def refuse(self) -> None:
        """Do not open what was asked about: a checkpoint that does not fit, or code that is not to run."""
        if self._waiting:
            self._not_opened(f"{self._if_refused}{self._still()}.")

    def _not_opened(self, sentence: str) -> Load | None:
        """Nothing is being opened any more; what was."""
        opening, self.opening = self.opening, None
        self._next, self._waiting = None, False
        self._finished(sentence)
        return opening

    def _still(self) -> str:
        """What is open all the same, to be added to a sentence."""
        return f"; {self.loaded.title or self.loaded.subject} is still open" if self.loaded is not None else ""

    def run(self, spec: InputSpec, edits: tuple[Edit, ...] = ()) -> None:
        """Run the open model on a sequence, with changes if there are any; a run in progress is cancelled."""
        if self.opening is not None and self._opens_again():
            self._next = replace(self._request(spec), edits=edits)
        elif self.opening is not None:
            self.sentence = f"{self.opening.subject} is still being opened; Esc cancels that."
        elif self._load is None:
            self.sentence = "Open a model first."
        elif self.worker is None or not self.worker.alive or self.loaded is None:
            self.open_subject(self._load, spec, edits)
        else:
            self._interrupt()
            self._generation += 1
            self._send_run(replace(self._request(spec), edits=edits))

    def again(self) -> None:
        """Run the same sequence once more."""
        if self._run is None:
            self.sentence = "Nothing was run here yet: choose or type a sequence and press Enter."
        elif self._made_by == self.subject:
            self.run(self._run.input, self._run.edits)
        else:  # of another model that was open
            self.run(InputSpec())

    def _also(self) -> tuple[str, ...]:
        """What was asked for beyond the default quantities, as far as the worker knows it."""
        known = {entry.key for entry in self.catalog.quantities} if self.catalog is not None else set()
        return tuple(request for request in self.also if split_request(request)[0] in known)

    @property
    def subject(self) -> str:
        """What model is open, as it was named; "" for none."""
        return self._load.subject if self._load is not None else ""

    @property
    def computed(self) -> tuple[str, ...]:
        """Keys of the quantities beyond the default ones that the run that is shown was asked for."""
        return tuple(split_request(request)[0] for request in self._run.also) if self._run is not None else ()

    @property
    def can_run_again(self) -> bool:
        """Whether the run that is shown was made by the model that is open."""
        return self._run is not None and self._load is not None and self._made_by == self.subject

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
            also=self._also(),
            states=dict(self.states_of(self.subject)),
        )
        self._made_by = self.subject
        self._hold(Path(self._run.path))
        self.running, self.progress, self._cancelled_at = True, None, None
        self._started_at = time.monotonic()
        self.sentence = "Running …"
        self.worker.send(self._run)

    @property
    def busy(self) -> bool:
        """Whether something runs or is being opened, so that there is something to cancel."""
        return self.running or (self.opening is not None and not self._waiting)

    def cancel(self) -> None:
        """Stop the run, or the opening; what came so far stays. A model that does not let go loses its worker."""
        if self.busy and self._cancelled_at is None:
            self._interrupt()
            self._cancelled_at = time.monotonic()
            self.sentence = "Cancelling …"

    def _interrupt(self) -> None:
        if self.busy and self.worker is not None:
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
        """How long the present run, or opening, has taken, or the last one took."""
        return time.monotonic() - self._started_at if self.busy else self._seconds

    # -- the tick

    def tick(self) -> Changes:
        """Take in what the worker said and what the capture gained. Called about sixty times a second.

        Of what was printed only so much is taken that the window keeps its pace.
        """
        changes = Changes()
        end = time.monotonic() + TICK_SECONDS
        while time.monotonic() < end and (event := self._inbox.record()) is not None:
            changes.state = True
            self._take(event, changes)
        self._watch_cancel(changes)
        self._watch_capture(changes)
        changes.lines[:0] = [*self._left, *self._printed()]
        self._left = []
        self.log.extend(changes.lines)
        return changes

    def _printed(self) -> list[Log]:
        """What was printed, some of it, and while there is much of it not at every tick."""
        now = time.monotonic()
        if now < self._printed_at:
            return []
        lines = self._inbox.lines(TICK_LINES)
        self._printed_at = now + (FLOOD_SECONDS if len(lines) >= TICK_LINES else 0.0)
        return lines

    def _take(self, event: Any, changes: Changes) -> None:
        generation = getattr(event, "generation", self._generation)
        if isinstance(event, Catalog):
            self.catalog, self.worker_state = event, "ready"
            changes.lines += [Log(f"Broken: {what}", "warning") for what in event.broken]
        elif isinstance(event, Exit):
            self._worker_ended(event, changes)
        elif isinstance(event, Loaded):
            self._opened(event, changes)
        elif isinstance(event, Failure) and generation in (0, self._generation):  # 0: the worker knows of no request
            self._failed(event, changes)
        elif isinstance(event, NeedsTrust) and generation == self._generation:
            self._needs_trust(event, changes)
        elif generation == self._generation:
            self._answer(event, changes)

    def _opened(self, event: Loaded, changes: Changes) -> None:
        """A model is open in the worker, or would be if the user agreed; perhaps nobody waits for it any more."""
        load = self._asked.pop(event.generation, None)
        newest = event.generation == self._generation
        if load is None and newest and self.running and self._load is not None:
            self._edited(event, changes)
            return
        if load is None or (event.needs_consent and not newest):
            return
        if event.needs_consent:
            self._needs_consent(event, changes)
            return
        self._load, self.loaded, changes.loaded = load, event, event
        if not newest:
            return
        cancelled, then = self._cancelled_at is not None, self._next
        self._not_opened(f"{self._why} {event.title or event.subject} is open.".lstrip())
        self._why = ""
        if then is not None and not cancelled:
            self._send_run(then)

    def _edited(self, event: Loaded, changes: Changes) -> None:
        """The run found its model's code edited, and the worker has opened it anew."""
        assert self._load is not None
        if not event.needs_consent:
            self.loaded, changes.loaded = event, event
            return
        self.opening, self._next = self._load, self._run
        self._needs_consent(event, changes)

    def _needs_consent(self, event: Loaded, changes: Changes) -> None:
        """A checkpoint does not fit its model: the user is asked."""
        changes.consent, self._waiting = event, True
        self._if_refused = "The checkpoint was not loaded"
        self._finished("The checkpoint does not fit whole.")

    def _needs_trust(self, event: NeedsTrust, changes: Changes) -> None:
        """Code would run that was not agreed to: the user is asked, and a model that is open stays open."""
        self._asked.pop(event.generation, None)
        self._waiting = self.opening is not None
        self._if_refused = "The code was not run"
        self._finished(event.message)
        changes.untrusted = event
        changes.lines.append(Log(event.message, "warning"))

    def _answer(self, event: Any, changes: Changes) -> None:
        if isinstance(event, Progress):
            self.progress = event
        elif isinstance(event, Finished):
            self._finished(event.stop.message or f"Done in {event.stop.seconds:.1f} s.")
            if event.stop.status == "failed":
                changes.failure = Failure(message=event.stop.message, kind="model")
                changes.lines.append(Log(event.stop.message, "error", "model"))

    def _failed(self, event: Failure, changes: Changes) -> None:
        """A request could not be met; a model that could not be opened leaves the one before open."""
        if event.kind == "cancelled":
            changes.not_opened = self._not_opened(f"{event.message.removesuffix('.')}{self._still()}.")
            return
        if self.opening is not None:
            self._asked.pop(event.generation, None)
            changes.not_opened = self._not_opened(f"{event.message.removesuffix('.')}{self._still()}.")
        else:
            self._finished(event.message)
        changes.failure = event
        changes.lines += [Log(text, "error") for text in (event.message, event.details) if text]

    def _finished(self, sentence: str) -> None:
        self._seconds = self.seconds if self.running else self._seconds
        self.running, self.progress, self._cancelled_at = False, None, None
        self.sentence = sentence

    def _worker_ended(self, ended: Exit, changes: Changes) -> None:
        if ended.expected:
            return
        self.worker_state, self.loaded = "ended", None
        changes.not_opened = self._not_opened(ended.sentence)
        changes.failure = Failure(message=ended.sentence, kind="worker")
        changes.lines.append(Log(ended.sentence, "error"))

    def _watch_cancel(self, changes: Changes) -> None:
        """A model that ignores the cancel is ended with its worker; a new worker opens again what was open."""
        if self._cancelled_at is None or time.monotonic() - self._cancelled_at < CANCEL_PATIENCE:
            return
        assert self.worker is not None
        self.worker.close(0.5)
        self.worker, self.loaded, changes.state = None, None, True
        if self.opening is None:
            self._finished("")
            self.start_again("The model did not stop, so its worker was ended; what was captured so far is kept.")
            return
        again = self._opens_again()
        changes.not_opened = self._not_opened("Opening the model was cancelled. Open a model first.")
        if self._load is None:
            self.start_worker()
        elif again:
            self.start_worker()  # the model that was open does not open any more: once more on demand only
            self.sentence = f"Opening {self.subject} was cancelled; F5 opens it again."
        else:
            self.start_again("Opening the model was cancelled.")

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
