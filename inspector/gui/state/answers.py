"""Handles the answers of a worker; an answer to an older request changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from inspector.gui.state.exchange import Changes
from inspector.gui.state.opening import Wanted
from inspector.gui.state.shown import RefusedEdits
from inspector.gui.state.work import Work
from inspector.records import (
    WEIGHTS,
    Catalog,
    Failure,
    Finished,
    InputSpec,
    Load,
    Loaded,
    Log,
    NeedsTrust,
    ParameterChanges,
    Progress,
)
from inspector.transport.process import REPLACED, Exit

OF_CHECKPOINTS = "CompareCheckpoints"
"""What a Failure says of the request for the parameters of two checkpoints."""


class Answers:
    """Takes the worker's records, one at a time, and notes for the window what changed."""

    def __init__(self, work: Work) -> None:
        self.work, self.models = work, work.models
        self._again: tuple[Load | None, Wanted | None] = None, None
        """What was asked for again as its worker was replaced, until it is answered."""

    def take(self, event: Any, changes: Changes) -> None:
        """One record."""
        if isinstance(event, ParameterChanges) or (isinstance(event, Failure) and event.request == OF_CHECKPOINTS):
            changes.parameters = event
            return
        if self.work.background.takes(event, changes):
            return
        newest = getattr(event, "generation", self.work.generation) == self.work.generation
        changes.state = True
        if isinstance(event, Catalog):
            self.work.catalog, self.work.connection.state = event, "ready"
            changes.lines += [Log(f"Broken: {what}", "warning") for what in event.broken]
        elif isinstance(event, Exit):
            self._worker_ended(event, changes)
        elif isinstance(event, Loaded):
            self._opened(event, newest, changes)
        elif isinstance(event, Failure) and (newest or not event.generation):  # 0: belongs to no request
            self._failed(event, changes)
        elif isinstance(event, NeedsTrust) and newest:
            self._needs_trust(event, changes)
        elif isinstance(event, Progress) and newest:
            self.work.progress = event
            self.work.remaining.take(event.done, event.total)
        elif isinstance(event, Finished) and newest:
            self._finished(event, changes)

    def waiting(self) -> tuple[Load | None, Wanted | None]:
        """What waited for the user's confirmation:
        a model and what is to run on it, or the run in which it was needed."""
        if self.models.pending is not None:
            return self.models.pending, self.models.then
        return self.models.load, self._asked()

    def _asked(self) -> Wanted | None:
        """The run that was requested last."""
        asked = self.work.shown.asked
        return Wanted(asked.request.input, asked.request.edits, asked.request.decode) if asked is not None else None

    def _opened(self, event: Loaded, newest: bool, changes: Changes) -> None:
        """A model is open in the worker, or will be once the user confirms;
        the request may have been cancelled meanwhile."""
        work, load = self.work, self.models.take(event.generation)
        if load is None and newest and work.running and self.models.load is not None:
            self._edited(event, changes)
            return
        if load is None or (event.needs_consent and not newest):
            return
        if event.needs_consent:
            self._needs_consent(event, changes)
            return
        self.models.load, self.models.loaded, changes.loaded = load, event, event
        self.work.background.lost()
        if not newest:
            return
        cancelled, then = work.cancelling, self.models.then
        work.not_opened(f"{self.models.why} {event.title or event.subject} is open.".lstrip())
        self.models.why = ""
        if then is not None and not cancelled:
            alone = event.kind == WEIGHTS and then.input.kind != WEIGHTS  # nothing else can be done with it
            work.begin_run(Wanted(InputSpec(kind=WEIGHTS)) if alone else then)

    def _edited(self, event: Loaded, changes: Changes) -> None:
        """The run found its model's code edited, and the worker has opened it again."""
        if not event.needs_consent:
            self.models.loaded, changes.loaded = event, event
            return
        self.models.pending, self.models.then = self.models.load, self._asked()
        self._needs_consent(event, changes)

    def _needs_consent(self, event: Loaded, changes: Changes) -> None:
        """A checkpoint does not fit its model: the user is asked."""
        changes.consent = event
        self.models.ask("The checkpoint was not loaded")
        self.work.finish("The checkpoint does not fit completely.")

    def _needs_trust(self, event: NeedsTrust, changes: Changes) -> None:
        """Code would run that was not agreed to: the user is asked, and a model that is open stays open."""
        self.models.take(event.generation)
        if self.models.pending is not None:
            self.models.ask("The code was not run")
        self.work.finish(_waits(event))
        changes.untrusted = event
        changes.lines.append(Log(_waits(event), "warning"))

    def _finished(self, event: Finished, changes: Changes) -> None:
        self._again = None, None
        if event.stop.status == "done" and self.work.question:
            self.work.shown.later += self.work.question
            changes.computed = True
        self.work.background.ended(event)
        self.work.finish(event.stop.message or f"Done in {event.stop.seconds:.1f} s.")
        if event.stop.status == "failed":
            changes.failure = Failure(message=event.stop.message, details=event.details, kind="model")
            changes.lines.append(Log(event.stop.message, "error", "model"))

    def _failed(self, event: Failure, changes: Changes) -> None:
        """A request could not be met; a model that could not be opened leaves the one before open."""
        self._again = None, None
        said = f"{event.message.removesuffix('.')}{self.models.still}."
        if event.kind == "cancelled":
            changes.not_opened = self.work.not_opened(said)
            return
        if event.kind == "needs run":
            self.work.background.lost()
            changes.needs_run = event.message
            changes.lines.append(Log(event.message))
            self.work.finish(event.message)
            return
        if self.models.pending is not None:
            self.models.take(event.generation)
            changes.not_opened = self.work.not_opened(said)
        else:
            self._run_refused(event, changes)
            self.work.finish(event.message)
        changes.failure = event
        changes.lines += [Log(text, "error") for text in (event.message, event.details) if text]

    def _run_refused(self, event: Failure, changes: Changes) -> None:
        """The requested run was not possible: the run that is shown remains the one that can be repeated."""
        asked = self.work.shown.asked
        if asked is None or not self.work.running or self.work.question or event.kind != "input":
            return
        changes.refused = asked.request
        if asked.request.edits:
            self.work.shown.refused = RefusedEdits(asked.request.edits, event.message)

    def _worker_ended(self, ended: Exit, changes: Changes) -> None:
        if ended.expected:
            return
        if ended.code in REPLACED and self._replaced(ended, changes):
            return
        self.work.connection.state, self.models.loaded = "ended", None
        self.work.background.lost()
        if self.work.running and not self.work.question:
            self.work.shown.end(ended.sentence)
        changes.not_opened = self.work.not_opened(ended.sentence)
        changes.failure = Failure(message=ended.sentence, kind="worker")
        changes.lines.append(Log(ended.sentence, "error"))

    def _replaced(self, ended: Exit, changes: Changes) -> bool:
        """A worker that can run nothing more has answered, and another takes its place: it opens what was open, or does
        what was asked for since. False where it was asked for again already: its answer never comes."""
        load, then = self.waiting() if self.work.busy else (None, None)
        asked = replace(load, generation=0) if load is not None else None, then
        if load is not None and self._again == asked:
            return False
        said, self._again = self.work.sentence, asked
        self.work.connection.state, self.models.loaded = "ended", None
        self.work.background.lost()
        changes.lines.append(Log(ended.sentence, "warning"))
        if load is None:
            self.work.start_again(said)
            return True
        self.work.start_worker()
        self.work.interrupt()
        self.work.finish("")
        self.work.begin_opening(load, then)
        return True


def _waits(asked: NeedsTrust) -> str:
    """What the question is about, while nobody has answered it."""
    others = f" (and {len(asked.files) - 1} more)" if len(asked.files) > 1 else ""
    what = "changed since you agreed to run it" if asked.files[0].what == "changed" else "is code"
    return f"{asked.files[0].path} {what}{others}; it waits for your answer."
