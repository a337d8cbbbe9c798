"""One run in a worker process, waited for: what the command line does, and the demo without a screen."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from inspector.records import Catalog, Failure, Finished, Load, Loaded, NeedsTrust, Progress, Run
from inspector.records.report import misfit
from inspector.transport.process import Exit, WorkerProcess


@dataclass(slots=True)
class Outcome:
    """How it went: exit code of the command line (0, 1, 2), one sentence, details for --debug, what was loaded."""

    code: int = 1
    sentence: str = ""
    details: str = ""
    loaded: Loaded | None = None
    output: list[str] = field(default_factory=list)


def run_and_wait(
    load: Load,
    run: Run,
    progress: Callable[[Progress], None],
    output: Callable[[str, str], None],
    python: str | None = None,
) -> Outcome:
    """Open, run, wait, close the worker. A worker that dies leaves the capture and one sentence.

    `output(stream, text)` gets what the worker prints in pieces as they come, line breaks and all; while it is busy
    with one the model waits. `python`: the interpreter that the worker runs in (interpreter.py).
    """
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    worker = WorkerProcess(events.put, lambda stream, text: output(stream, text) if text else None, events.put, python)
    worker.start()
    worker.send(load)
    outcome = Outcome()
    try:
        while True:
            event = events.get()
            if isinstance(event, Loaded):
                outcome.loaded = event
                if event.needs_consent:
                    assert event.report is not None
                    outcome.code, outcome.sentence = 2, misfit(event.report)
                    return outcome
                worker.send(run)
            elif isinstance(event, Progress):
                progress(event)
            elif isinstance(event, (Failure, NeedsTrust, Finished, Exit)):
                return _ended(outcome, event)
    finally:
        worker.close()
        worker.drained()


def _ended(outcome: Outcome, event: Failure | NeedsTrust | Finished | Exit) -> Outcome:
    if isinstance(event, Failure):
        outcome.code = 2 if event.kind == "input" else 1
        outcome.sentence, outcome.details = event.message, event.details
    elif isinstance(event, NeedsTrust):
        outcome.code, outcome.sentence = 2, event.message
    elif isinstance(event, Finished):
        outcome.code = 0 if event.stop.status == "done" else 1
        outcome.sentence = event.stop.message
    else:
        outcome.code = 2 if event.unusable else 1
        outcome.sentence, outcome.details = event.sentence, event.stack
    return outcome


def ask_catalog() -> Catalog | None:
    """What a worker can do: its first word. None where it ends before it says it."""
    events: queue.SimpleQueue[Any] = queue.SimpleQueue()
    worker = WorkerProcess(events.put, lambda _stream, _text: None, events.put)
    worker.start()
    try:
        while not isinstance(event := events.get(), (Catalog, Exit)):
            pass
        return event if isinstance(event, Catalog) else None
    finally:
        worker.close()
