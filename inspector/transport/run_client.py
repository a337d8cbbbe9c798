"""One blocking run in a worker process, for the command line and for the demo without a screen."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from inspector.records import (
    Cancel,
    Catalog,
    CompareCheckpoints,
    Failure,
    Finished,
    Load,
    Loaded,
    Log,
    NeedsTrust,
    ParameterChanges,
    Progress,
    Run,
    Sweep,
)
from inspector.records.report import misfit
from inspector.transport.process import Exit, WorkerProcess

INTERRUPTED = 130
"""The exit code of a command that was interrupted."""
PATIENCE = 5.0
"""Seconds that an interrupted run has to end its capture."""


@dataclass(slots=True)
class Outcome:
    """The result: exit code of the command line (0, 1, 2), a one-line message, details for --debug, what was loaded,
    whether Ctrl-C ended it, whether the capture was brought to its end."""

    code: int = 1
    sentence: str = ""
    details: str = ""
    loaded: Loaded | None = None
    interrupted: bool = False
    finished: bool = False


@contextmanager
def _working(
    first: Load | Sweep | CompareCheckpoints, output: Callable[[str, str], None], python: str | None
) -> Iterator[tuple[WorkerProcess, queue.SimpleQueue[Any]]]:
    """A worker that was sent its first request, and the queue of what it tells; closed at the end."""
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    worker = WorkerProcess(events.put, lambda stream, text: output(stream, text) if text else None, events.put, python)
    worker.start()
    worker.send(first)
    try:
        yield worker, events
    finally:
        worker.close()
        worker.drained()


def run_and_wait(
    load: Load,
    run: Run,
    progress: Callable[[Progress], None],
    output: Callable[[str, str], None],
    python: str | None = None,
) -> Outcome:
    """Open, run, wait, close the worker. A worker that dies leaves the capture and a one-line message.

    `output(stream, text)` gets the worker's output in pieces as they arrive, with line breaks; while it is busy with
    one the model waits. Ctrl-C cancels the run: what was captured is finished properly where the model lets the worker
    answer within `PATIENCE` seconds, and stays readable in any case.
    `python`: the interpreter that the worker runs in (interpreter.py).
    """
    outcome = Outcome()
    until: float | None = None
    with _working(load, output, python) as (worker, events):
        while True:
            try:
                event = events.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
            except KeyboardInterrupt:
                if outcome.interrupted:
                    return outcome
                outcome.interrupted, until = True, time.monotonic() + PATIENCE
                worker.send(Cancel())
                continue
            except queue.Empty:
                return outcome
            if isinstance(event, Loaded):
                if outcome.interrupted or not _may_run(outcome, event):
                    return outcome
                worker.send(run)
            elif isinstance(event, Progress):
                progress(event)
            elif isinstance(event, (Failure, NeedsTrust, Finished, Exit)):
                return _ended(outcome, event)


def _may_run(outcome: Outcome, loaded: Loaded) -> bool:
    """Whether what was loaded is run: not where its checkpoint does not fit and nobody can be asked."""
    outcome.loaded = loaded
    if loaded.needs_consent:
        assert loaded.report is not None
        outcome.code, outcome.sentence = 2, misfit(loaded.report)
    return not loaded.needs_consent


def sweep_and_wait(
    sweep: Sweep,
    progress: Callable[[Progress], None],
    log: Callable[[Log], None],
    output: Callable[[str, str], None],
    python: str | None = None,
) -> Outcome:
    """Run a sweep in a worker, which may start others, and wait.

    An interrupt cancels it: finished frames are kept, and the code is 130 (0 where checkpoints were followed, which
    only ends so). A second one ends the worker at once.
    """
    interrupted, outcome = False, Outcome()
    with _working(sweep, output, python) as (worker, events):
        while True:
            try:
                event = events.get()
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
                worker.send(Cancel())
                continue
            if isinstance(event, Progress):
                progress(event)
            elif isinstance(event, Log):
                log(event)
            elif isinstance(event, (Failure, NeedsTrust, Finished, Exit)):
                _ended(outcome, event)
                break
    if interrupted and (isinstance(event, Finished) or getattr(event, "kind", "") == "cancelled"):
        outcome.code = 0 if sweep.follow else INTERRUPTED
    return outcome


def compare_checkpoints(
    request: CompareCheckpoints, output: Callable[[str, str], None], python: str | None = None
) -> tuple[Outcome, ParameterChanges | None]:
    """Let a worker compare two checkpoints, and wait; the answer, None where it could not be done."""
    outcome = Outcome()
    with _working(request, output, python) as (_worker, events):
        while True:
            event = events.get()
            if isinstance(event, ParameterChanges):
                outcome.code, outcome.finished = 0, True
                return outcome, event
            if isinstance(event, (Failure, NeedsTrust, Finished, Exit)):
                return _ended(outcome, event), None


def _ended(outcome: Outcome, event: Failure | NeedsTrust | Finished | Exit) -> Outcome:
    if isinstance(event, Failure):
        outcome.code = 2 if event.kind == "input" else 1
        outcome.sentence, outcome.details = event.message, event.details
    elif isinstance(event, NeedsTrust):
        outcome.code, outcome.sentence = 2, event.message
    elif isinstance(event, Finished):
        outcome.code, outcome.finished = 0 if event.stop.status == "done" else 1, True
        outcome.sentence, outcome.details = event.stop.message, event.details
    else:
        outcome.code = 2 if event.unusable else 1
        outcome.sentence, outcome.details = event.sentence, event.stack
    return outcome


def ask_catalog() -> Catalog | None:
    """The catalogue of a worker: its first message. None where it ends before it sends it."""
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    worker = WorkerProcess(events.put, lambda _stream, _text: None, events.put)
    worker.start()
    try:
        while not isinstance(event := events.get(), (Catalog, Exit)):
            pass
        return event if isinstance(event, Catalog) else None
    finally:
        worker.close()
