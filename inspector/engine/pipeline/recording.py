"""Writes the results of a run into a capture: how the run began, its frames, and how it ended, each of them once.

A recording is the sink of every kind of run: of a run that the app makes (`perform`), of an edited run (two frames), of
a model at several checkpoints (a frame each), and of calls that a user's own training loop makes (`call`). The capture
stays open between frames; forward and backward passes are the caller's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from inspector.capture import CaptureError, Writer
from inspector.engine.errors import CancelledError, InputError, ModelError
from inspector.engine.pipeline.options import DEFAULTS, RunOptions
from inspector.engine.pipeline.starting import start_of
from inspector.engine.pipeline.watched_call import WatchedCall, batch_of
from inspector.engine.wording import error_text
from inspector.records import SECONDS, Frame, Labels, Log, RunStart, RunStop, Scalar, split_request


class Sink(Protocol):
    """What a recording writes to: a capture's Writer, or a connection to one elsewhere."""

    path: Path

    @property
    def begun(self) -> bool:
        """Whether something of this run is there."""

    def write(self, record: Any) -> None:
        """Take a record. Raises CaptureError."""

    def flush(self) -> None:
        """Return when everything is there. Raises CaptureError."""

    def close(self) -> None:
        """Finish. Raises CaptureError."""


class Recording:
    """A capture that is being written, as a context manager; leaving it records how the run ended, and closes it.

    `stop` has that too, with a note where nothing was written to the folder. `ended`: the stop record of the run to
    whose capture is added; it remains the capture's own, with what was computed since taken off `left`.
    """

    def __init__(self, writer: Sink, ended: RunStop | None = None) -> None:
        self.writer, self.ended = writer, ended
        self._chosen: tuple[str, ...] = () if ended is None else ended.left
        self.frames = 0
        self.stop: RunStop | None = None
        self.details = ""
        """All of what a model said that raised, with the lines of its code."""
        self._began = time.monotonic()
        self.seconds: dict[str, float] = {}
        """What the quantities that were computed took, by key, all frames together."""
        self._labelled: set[Labels] = set()
        self._expected: dict[str, int] = {}

    def expect(self, requests: Iterable[str], frames: int = 1) -> None:
        """These requests will be computed, in so many frames each: what is missing at the end is `left`."""
        self._expected |= {split_request(request)[0]: frames for request in requests}
        if self.ended is None:
            self._chosen += tuple(requests)

    @property
    def left(self) -> tuple[str, ...]:
        """Requests that were chosen and are not computed in all their frames."""
        return tuple(request for request in self._chosen if self._expected.get(split_request(request)[0], 1) > 0)

    @property
    def path(self) -> Path:
        """The folder of the capture."""
        return self.writer.path

    def write(self, record: Any) -> None:
        """Write one record; labels of all frames that are already written are left out. Raises CaptureError."""
        if isinstance(record, Labels) and record.frame < 0:
            if record in self._labelled:
                return
            self._labelled.add(record)
        if isinstance(record, Frame):
            self.frames = max(self.frames, record.index + 1)
        if isinstance(record, Scalar) and record.name.startswith(SECONDS):
            key = record.name.removeprefix(SECONDS)
            self._expected[key] = self._expected.get(key, 1) - 1  # it is the last record of each quantity and frame
            self.seconds[key] = self.seconds.get(key, 0.0) + record.value
        self.writer.write(record)

    def call(
        self, model: Any, inputs: Any, options: RunOptions = DEFAULTS, *, label: str = "", step: int | None = None
    ) -> WatchedCall:
        """A frame of a call that the caller makes within this context: `with recording.call(model, x): …`.

        Args:
            model: the nn.Module that is called, or a subject.
            inputs: the sequences it is called on, (b, t) ids or (b, t, i) numbers, or a batch of several inputs.
            options: which quantities are computed when the context is left.
            label, step: of the frame; the training step gives it its place among the others.
        """
        batch = batch_of(inputs)
        frame = Frame(index=self.frames, label=label or batch.title, step=step)
        return WatchedCall(model, batch, self, options, frame)

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        seconds = time.monotonic() - self._began
        if isinstance(self.writer, Writer) and isinstance(fault, (CancelledError, KeyboardInterrupt)):
            self.writer.patient = False
        try:
            if not isinstance(fault, CaptureError):
                self._end(_stop_of(fault, seconds), getattr(fault, "details", ""))
        finally:
            self.writer.close()

    def _end(self, stop: RunStop, details: str) -> None:
        self.details = details
        if details:
            with suppress(CaptureError):
                self.write(Log(details, "error", "model"))
        stop = replace(stop, left=self.left)
        if self.ended is not None:
            self.ended = replace(self.ended, seconds=self.ended.seconds + stop.seconds, left=stop.left)
        self.write(stop if self.ended is None else self.ended)
        self.writer.flush()
        nothing = "" if self.writer.begun else f"Nothing was captured; {self.path} is as it was."
        self.stop = replace(stop, message=f"{stop.message} {nothing}".strip())


def record(
    path: Path | str, start: RunStart | Any, *, overwrite: bool = False, block: bool = True, title: str = "",
    whole: bool = False, say: Callable[[str], None] | None = None,
) -> Recording:  # fmt: skip
    """Begin a capture at `path`, of the run that `start` describes, or of a model.

    `overwrite`, `whole`, `say` and `block` are the writer's: with `whole` a capture that is replaced stays until this
    run has ended, and with `block=False` a slow disk never stops a training loop, and pages that are dropped for lack
    of time are counted. Raises CaptureError.
    """
    known = start if isinstance(start, RunStart) else start_of(start, title)
    return Recording(Writer(path, known, overwrite=overwrite, block=block, whole=whole, say=say))


def _stop_of(fault: BaseException | None, seconds: float) -> RunStop:
    """How a run ended, by the exception that was raised in it."""
    if fault is None:
        return RunStop("done", seconds=seconds)
    if isinstance(fault, CancelledError):
        return RunStop("cancelled", "Cancelled; what was captured so far is stored.", seconds)
    if isinstance(fault, KeyboardInterrupt):
        return RunStop("cancelled", "Interrupted; what was captured so far is stored.", seconds)
    own = isinstance(fault, (ModelError, InputError))
    return RunStop("failed", str(fault) if own else f"The run ended with {error_text(fault)}.", seconds)
