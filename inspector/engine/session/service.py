"""What the worker does with each request: Load, Run, Analyse. Answers go out as records."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from inspector.capture import CaptureError, Writer
from inspector.engine.errors import CancelledError, InputError, ModelError
from inspector.engine.interventions.runs import Plan, perform_with_edits, plan_edits
from inspector.engine.model.named_batches import primary_value
from inspector.engine.model.subject import Subject, to_device
from inspector.engine.opening.open_subject import Opened, open_subject, places
from inspector.engine.pipeline import chosen_quantities, perform, set_threads
from inspector.engine.registries import INPUTS, LOADERS, PROBES, QUANTITIES
from inspector.engine.session.batches import batch_of_spec
from inspector.records import (
    Analyse,
    Catalog,
    Entry,
    Failure,
    Finished,
    Frame,
    Load,
    Loaded,
    Log,
    Progress,
    Run,
    RunStart,
    RunStop,
)
from inspector.registry import Registry

PROGRESS_SECONDS = 0.05


def catalog() -> Catalog:
    """What this worker can do."""
    threads = set_threads()
    torch.sparse.check_sparse_tensor_invariants.enable()
    registries: tuple[Registry[Any], ...] = (PROBES, QUANTITIES, LOADERS, INPUTS)
    entries = [_entries(registry) for registry in registries]
    devices = ("cpu", *(f"cuda:{n}" for n in range(torch.cuda.device_count())))
    return Catalog(
        torch=torch.__version__, threads=threads, devices=devices, probes=entries[0], quantities=entries[1],
        loaders=entries[2], inputs=entries[3],
        broken=tuple(f"{bad.origin}: {bad.reason}" for registry in registries for bad in registry.broken),
    )  # fmt: skip


def _entries(registry: Registry[Any]) -> tuple[Entry, ...]:
    return tuple(
        Entry(key=key, summary=entry.summary, default=bool(getattr(entry, "default", False)))
        for key, entry in registry.items()
    )


class CaptureLostError(Exception):
    """The capture could not be written to its end; what was committed before stays readable (exit code 1)."""


class Service:
    """Holds the model that is open. `send` takes the answers; `cancel` may be called from another thread."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self.send = send
        self.opened: Opened | None = None
        self._load: Load | None = None
        self._cancelled = threading.Event()
        self._told_at = 0.0

    def cancel(self) -> None:
        """Stop the run in progress at its next page."""
        self._cancelled.set()

    def close(self) -> None:
        """Let the model go."""
        self.opened = None

    def serve(self, request: Any) -> None:
        """Do what a request asks; bad input and raising models are answered with a Failure."""
        name, generation = type(request).__name__, int(getattr(request, "generation", 0))
        try:
            if isinstance(request, Load):
                self._open(request)
            elif isinstance(request, (Run, Analyse)):
                self._cancelled.clear()
                self._run(request)
            else:
                raise InputError(f"The worker does not know the request {name}.")
        except (InputError, CaptureError) as problem:
            self.send(Failure(message=str(problem), request=name, kind="input", generation=generation))
        except CaptureLostError as problem:
            self.send(Failure(message=str(problem), request=name, kind="capture", generation=generation))
        except ModelError as problem:
            self.send(
                Failure(
                    message=str(problem), details=problem.details, request=name, kind="model", generation=generation
                )
            )

    def _open(self, load: Load) -> None:
        self.opened = None
        opened = open_subject(load)
        self.opened, self._load = (None, None) if opened.pending else (opened, load)
        self.send(describe(opened, load))

    def _run(self, request: Run | Analyse) -> None:
        if self.opened is None or self._load is None:
            raise InputError("No model is open yet; open one first.")
        if isinstance(request, Analyse):
            raise InputError("More quantities are computed by running again with them; the model is still open.")
        subject = self.opened.subject
        chosen_quantities(request.quantities)
        batch = to_device(batch_of_spec(subject, request.input, request.seed), self._load.device)
        start = RunStart(
            run=uuid.uuid4().hex, title=f"{self.opened.title}: {batch.title}" if batch.title else self.opened.title,
            subject=self._load.subject, checkpoint=self.opened.checkpoint, created=time.time(), seed=request.seed,
            places=places(subject.model), meta={"torch": torch.__version__, "device": self._load.device},
        )  # fmt: skip
        step = self.opened.report.step if self.opened.report is not None else None
        frame = Frame(index=0, label=request.frame_label or batch.title, step=step)
        plan = (
            plan_edits(subject, batch, request.edits, seed=request.seed, states=request.states)
            if request.edits
            else None
        )
        began = time.monotonic()
        writer = Writer(request.path, start, overwrite=True)  # a folder that cannot be used is bad input
        try:
            with writer:
                stop = self._perform(subject, batch, writer, request, frame, began, plan)
                writer.write(stop)
                writer.flush()
        except CaptureError as problem:  # a disk that fills meanwhile is not
            raise CaptureLostError(str(problem)) from None
        self.send(Finished(path=request.path, stop=stop, generation=request.generation))

    def _perform(
        self, subject: Subject, batch: Any, writer: Writer, request: Run, frame: Frame, began: float, plan: Plan | None
    ) -> RunStop:
        """Run; a model that raises or a cancel ends the capture properly, with what was seen in it."""
        try:
            options: dict[str, Any] = {
                "quantities": request.quantities, "cancelled": self._cancelled.is_set, "seed": request.seed,
                "states": request.states,
                "progress": lambda done, total, text: self._tell(done, total, text, request.generation), "frame": frame,
            }  # fmt: skip
            if plan is not None:
                perform_with_edits(subject, batch, writer, plan, **options)
            else:
                perform(subject, batch, writer, **options)
            return RunStop("done", seconds=time.monotonic() - began)
        except CancelledError:
            return RunStop("cancelled", "Cancelled; what came so far is kept.", time.monotonic() - began)
        except (ModelError, InputError) as problem:
            with suppress(CaptureError):
                writer.write(Log(getattr(problem, "details", ""), "error", "model"))
            return RunStop("failed", str(problem), time.monotonic() - began)

    def _tell(self, done: float, total: float, text: str, generation: int) -> None:
        now = time.monotonic()
        if done >= total or now - self._told_at >= PROGRESS_SECONDS:
            self._told_at = now
            self.send(Progress(done=done, total=total, text=text, generation=generation))


def describe(opened: Opened, load: Load) -> Loaded:
    """What the window needs to know of the model that was opened."""
    subject = opened.subject
    first = primary_value(subject, next(iter(subject.examples.values()), ""))
    vocabulary = subject.vocabulary or ()
    return Loaded(
        subject=load.subject, title=opened.title, kind=str(subject.kind), width=subject.width,
        vocabulary=len(vocabulary), characters=bool(vocabulary) and all(len(str(entry)) == 1 for entry in vocabulary),
        examples=tuple(subject.examples), default_text=first if isinstance(first, str) else "",
        audio=subject.frames is not None, has_loss=subject.loss is not None, places=places(subject.model),
        report=opened.report, needs_consent=opened.pending, generation=load.generation,
    )  # fmt: skip
