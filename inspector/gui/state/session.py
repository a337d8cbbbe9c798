"""The requests of a user, without Qt: open a model or a capture, run, run again, cancel; and the tick."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import platformdirs

from inspector.gui.state.answers import Answers
from inspector.gui.state.capture_opening import CaptureOpening
from inspector.gui.state.exchange import Changes, Make
from inspector.gui.state.folder_look import FolderLook
from inspector.gui.state.followed_log import FollowedLog, LogOpening, as_log
from inspector.gui.state.listening import Listening
from inspector.gui.state.opening import Wanted
from inspector.gui.state.runs_opening import RunsOpening
from inspector.gui.state.shown import Made
from inspector.gui.state.steering import Steering
from inspector.gui.state.sweeping import Sweeping
from inspector.gui.state.work import Work
from inspector.records import Decode, Edit, Failure, InputSpec, Load, Log, NeedsTrust, split_request

CANCEL_PATIENCE = 2.0
"""Seconds that a model may continue after a cancel; then its worker is ended."""
DID_NOT_STOP = "The model did not stop, so its worker was ended; what was captured so far is stored."
TICK_SECONDS = 0.008
"""Seconds that a tick may spend on records: half of the time between two ticks."""
LOG_LINES = 5_000


class Session(Work):
    """The session of one window. Every method is called in one thread; the worker's threads only fill a queue."""

    def __init__(self, make_worker: Make, runs: Path | None = None) -> None:
        self.runs = (
            runs if runs is not None else Path(platformdirs.user_data_dir("inspector", appauthor=False)) / "runs"
        )
        super().__init__(make_worker, self.runs)
        self.log: deque[Log] = deque(maxlen=LOG_LINES)
        self._answers = Answers(self)
        self.steering, self.listening = Steering(), Listening()
        self.sweeping = Sweeping(make_worker)
        self.reading: LogOpening | None = None
        """The log that is being opened."""

    def note(self, line: Log) -> None:
        """Put a line into the log, from any thread."""
        self.connection.note(line)

    def close(self) -> None:
        """Close the capture and begin to end the worker, for which the window does not wait (`wait_for_end`)."""
        if self.reading is not None:
            self.reading.close()
        self.steering.close()
        self.listening.close()
        self.sweeping.close()
        self.connection.close()
        self.shown.close()

    def wait_for_end(self) -> None:
        """Wait, after `close`, until the workers have ended: at most some seconds."""
        for connection in (self.connection, self.sweeping.connection):
            connection.wait_for_end()

    # -- opening

    def open_capture(self, path: Path | str) -> None:
        """Show a capture from disk. Raises CaptureError."""
        if self.reading is not None:
            self.reading.cancel()
        self.shown.open(Path(path))
        self.sentence = f"{Path(path).name} is shown."
        self._seconds = 0.0  # how long the run of another capture took

    def read_capture(self, path: Path | str) -> None:
        """The same in the background, for a capture that `takes_long`; shown as soon as it was read."""
        if self.reading is not None:
            self.reading.cancel()
        self.shown.expect(Path(path))
        self.reading = CaptureOpening(Path(path))
        self.sentence = self.reading.sentence

    def open_log(self, path: Path | str, why: str = "") -> None:
        """Read a log of another tool in the background; it is shown as soon as it was read, until then what was. `why`
        it was taken for one is said then."""
        if self.reading is not None:
            self.reading.cancel()
        self.reading = LogOpening(Path(path), why)
        self.sentence = self.reading.sentence

    def open_together(self, paths: Sequence[Path | str]) -> None:
        """Read several captures and logs in the background; their curves are shown together once all were read."""
        if self.reading is not None:
            self.reading.cancel()
        self.reading = RunsOpening([Path(path) for path in paths])
        self.sentence = self.reading.sentence

    def look_through(self, look: FolderLook) -> None:
        """Wait for folders to be looked through; they are opened then (`Changes.looked`)."""
        if self.reading is not None:
            self.reading.cancel()
        self.reading = look
        self.sentence = look.sentence

    def forget_look(self) -> None:
        """Nothing waits any more for folders that are being looked through: something else is opened."""
        if isinstance(self.reading, FolderLook):
            self.reading.cancel()
            self.reading = None

    def show_run(self, run: str | None) -> None:
        """Show one run of the log that is shown, or all of them. Raises CaptureError."""
        log = as_log(self.capture)
        if log is not None:
            self.shown.show_log(log.of_run(run))

    def show_again(self, made: Made) -> None:
        """Show the capture of an earlier run of this window. Raises CaptureError where it is no longer there."""
        self.shown.open(Path(made.request.path))
        self.shown.made = made
        self.sentence = f"{Path(made.request.path).name} is shown."

    def open_subject(
        self, load: Load, then: InputSpec | None = None, edits: tuple[Edit, ...] = (), decode: Decode | None = None
    ) -> None:
        """Open a model; its first example, or `then`, runs as soon as it is open. Until then the one before stays."""
        self.start_worker()
        self.interrupt()
        self.finish("")
        self.begin_opening(load, Wanted(then if then is not None else InputSpec(), edits, decode))

    def agree(self) -> None:
        """Load what fits of the checkpoint, as the user confirmed."""
        if self.opening is not None:
            self._open_agreed(partial=True)

    def agree_to_code(self, asked: NeedsTrust) -> None:
        """The code may run: remember it, and continue with what waits for it."""
        problem = self.models.remember(asked)
        if problem:
            self.note(Log(problem, "warning"))
        self._open_agreed()

    def _open_agreed(self, partial: bool = False) -> None:
        """Open a model after the user's confirmation, and make the run that waits for it, if there is one."""
        load, then = self._answers.waiting()
        if load is None:
            return
        load = replace(load, partial=partial or load.partial)
        if then is not None:
            self.open_subject(load, then.input, then.edits, then.decode)
        else:
            self.begin_opening(load, None)

    def refuse(self) -> None:
        """Do not open it: a checkpoint that does not fit, or code that must not run."""
        if self.models.waiting:
            self.not_opened(f"{self.models.if_refused}{self.models.still}.")
        elif not self.busy:  # a run came to the code
            self.sentence = "The code was not run."

    # -- running

    def run(self, spec: InputSpec, edits: tuple[Edit, ...] = (), decode: Decode | None = None) -> bool:
        """Run the open model on a sequence, with changes if there are any; a run in progress is cancelled.

        With `decode` the answer to the sequence is searched for token by token.

        False where that is not possible now: `sentence` says why.
        """
        wanted = Wanted(spec, edits, decode)
        if self.opening is not None and self.models.again:
            self.models.then = wanted
        elif self.opening is not None:
            self.sentence = f"{self.opening.subject} is still being opened; Esc cancels that."
            return False
        elif self.models.load is None:
            self.sentence = "Open a model first."
            return False
        elif not self.connection.alive or self.loaded is None:
            self.open_subject(self.models.load, spec, edits, decode)
        else:
            self.interrupt()
            self.generation += 1
            self.begin_run(wanted)
        return True

    def again(self) -> None:
        """Run the sequence that is shown once more, with the changes that it had."""
        made = self.shown.current
        if made is None and (self.models.load is None or self.loaded is not None):
            what = "Nothing was run here yet" if self.capture is None else "What is shown was opened, not run here"
            self.sentence = f"{what}: choose or type a sequence and press Enter."
        elif made is not None and made.subject == self.subject:
            self.run(made.request.input, made.request.edits, made.request.decode)
        else:  # a run of another model that was open
            self.run(InputSpec())

    def run_with(self, made: Made, edits: tuple[Edit, ...]) -> None:
        """Run the sequence of a run that is or was shown, with other changes."""
        if made.subject == self.subject:
            self.run(made.request.input, edits)
        else:
            self.sentence = f"That was a run of {made.subject}, which is no longer open."

    def analyse(self, keys: tuple[str, ...]) -> None:
        """Compute quantities for the run that is shown, without a new run where that is possible.

        What is being computed for it already is asked for once more, together with these.
        """
        made = self.again_possible
        if made is not None and self.question and not self.cancelling:
            keys = tuple(dict.fromkeys((*self.question, *keys)))
            self.interrupt()
            self.begin_question(made, keys)
        elif made is None or self.busy or not self.connection.alive or self.loaded is None:
            self.again()
        else:
            self.begin_question(made, keys)

    def cancel(self) -> None:
        """Stop the run, or the opening; what was captured so far stays.
        The worker of a model that does not stop is ended."""
        if self.reading is not None:
            self.reading.cancel()
        if self.busy and not self.cancelling:
            self.interrupt()
            self.cancelled_at = time.monotonic()
            self.sentence = "Cancelling …"

    @property
    def again_possible(self) -> Made | None:
        """The run that is shown, where it is of the model that is open; else None."""
        made = self.shown.current
        return made if made is not None and made.subject == self.subject else None

    @property
    def can_run_again(self) -> bool:
        """Whether the run that is shown was made by the model that is open."""
        return self.again_possible is not None

    @property
    def runs_another(self) -> str:
        """The model that a sequence would run on, where what is shown was not made by it in this window; else ""."""
        another = self.capture is not None and self.subject and not self.can_run_again
        return Path(self.subject).name if another else ""

    @property
    def spec(self) -> InputSpec:
        """The sequence that runs, or else the one of the run that is shown."""
        made = self.shown.asked if self.running else self.shown.current
        return made.request.input if made is not None else InputSpec()

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The changes of the run that is shown."""
        made = self.shown.current
        return made.request.edits if made is not None else ()

    @property
    def computed(self) -> tuple[str, ...]:
        """Keys of quantities beyond the default ones that were requested for the shown run, then or later."""
        made = self.shown.current
        requests = (*made.request.also, *self.shown.later) if made is not None else ()
        stop = self.capture.stop if self.capture is not None else None
        left = stop.left if stop is not None else ()
        return tuple(split_request(request)[0] for request in requests if request not in left)

    # -- the tick

    def tick(self) -> Changes:
        """Take the worker's records and what was added to the capture. Called about sixty times a second.

        Only so many printed lines are taken that the window stays responsive.
        """
        changes = Changes()
        end = time.monotonic() + TICK_SECONDS
        while time.monotonic() < end and (event := self.connection.record()) is not None:
            self._answers.take(event, changes)
        if changes.needs_run:
            self.again()
            self.sentence = f"{changes.needs_run} {self.sentence}"
        self._watch_cancel(changes)
        self._watch_reading(changes)
        self.shown.watch(changes)
        if changes.replaced and not self.busy and self.capture is not None:
            self.sentence = f"{Path(self.capture.path).name} was replaced by another run, which is shown now."
        changes.state |= self.steering.follow(self.capture, grown=bool(changes.channels))
        self.background.go_on()
        swept = self.sweeping.short
        changes.lines[:0] = [*self.connection.lines(), *self.sweeping.tick()]
        changes.state |= swept != self.sweeping.short
        changes.begun = self.connection.begun()
        self.log.extend(changes.lines)
        return changes

    def _watch_reading(self, changes: Changes) -> None:
        """Show a log that was read, or say why it could not be."""
        reading = self.reading
        if reading is None:
            return
        changes.state = True
        if not reading.finished:
            self.sentence = reading.sentence
            return
        self.reading = None
        if reading.cancelled:
            self.sentence = f"Reading {reading.name} was cancelled."
            return
        if isinstance(reading, FolderLook) and not reading.problem:
            self.sentence, changes.looked = "", reading
            return
        self.sentence = reading.problem or reading.shown
        if isinstance(reading, CaptureOpening) and reading.capture is not None:
            self.shown.take(reading.capture)
            changes.another_capture = changes.opened = True
            self._seconds = 0.0
        elif reading.view is not None:
            self.shown.show_log(FollowedLog(reading.view))
            changes.another_capture = True
            self._seconds = 0.0
        else:
            changes.failure = Failure(message=reading.problem)

    def _watch_cancel(self, changes: Changes) -> None:
        """A model that ignores the cancel is ended with its worker; a new worker opens again what was open."""
        if self.cancelled_at is None or time.monotonic() - self.cancelled_at < CANCEL_PATIENCE:
            return
        self.connection.end()
        self.models.loaded, changes.state = None, True
        if self.opening is None:
            self.finish("")
            self.shown.end(DID_NOT_STOP)
            self.start_again(DID_NOT_STOP)
            return
        again = self.models.again
        changes.not_opened = self.not_opened("Opening the model was cancelled. Open a model first.")
        if self.models.load is None:
            self.start_worker()
        elif again:
            self.start_worker()  # the model that was open does not open any more: it is tried again on request only
            self.sentence = f"Opening {self.subject} was cancelled; F5 opens it again."
        else:
            self.start_again("Opening the model was cancelled.")
