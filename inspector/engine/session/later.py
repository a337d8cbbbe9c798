"""Later analysis of the run that ended last: its traces, the capture they belong to, and how it began and ended.

They are released when another run begins, when another model is opened, when an analysis is cancelled, and at once
where they take more than `pipeline.MOST_BYTES`, which is then reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inspector.capture import Writer
from inspector.engine.errors import InputError
from inspector.engine.pipeline import (
    MOST_BYTES,
    KeptTrace,
    Recording,
    RunOptions,
    analyse_later,
    chosen_quantities,
    reasons_for_a_run,
    tensor_bytes,
)
from inspector.engine.pipeline.options import Progress
from inspector.records import RunStart, RunStop

NOTHING = "No run of this model is stored in memory, so {} {} a new run."
TOO_LARGE = "The last run is too large to be stored in memory ({:.1f} GiB; the limit is {:.1f}), so {} {} a new run."
ANOTHER = "The run that is stored in memory is that of {}, so {} {} a new run."


class NeedsRunError(InputError):
    """The quantities cannot be computed from the stored traces: the model has to run again; the message says why."""


@dataclass(slots=True)
class KeptRun:
    """The frames of the run that ended last, for later analysis."""

    path: Path | None = None
    start: RunStart | None = None
    stop: RunStop | None = None
    frames: list[KeptTrace] = field(default_factory=list)
    too_large: int = 0

    def let_go(self) -> None:
        """Release everything, and its memory."""
        self.path = self.start = self.stop = None
        self.frames, self.too_large = [], 0

    def keep(self, recording: Recording, start: RunStart, frames: Sequence[KeptTrace]) -> None:
        """Store a finished run, unless it is too large."""
        self.let_go()
        self.path = recording.path
        size = tensor_bytes([kept.trace for kept in frames])
        if size > MOST_BYTES:
            self.too_large = size
            return
        self.start, self.stop, self.frames = start, recording.stop, list(frames)

    def asked(self, path: Path, keys: Sequence[str]) -> tuple[str, ...]:
        """The requests that are still to be computed. Raises InputError for unknown ones, NeedsRunError."""
        wanted = chosen_quantities(RunOptions(only=tuple(keys)))
        listed, verb = ", ".join(keys), "needs" if len(keys) == 1 else "need"
        if self.path is not None and path.absolute() != self.path.absolute():
            raise NeedsRunError(ANOTHER.format(self.path.name, listed, verb))
        if self.too_large:
            raise NeedsRunError(TOO_LARGE.format(self.too_large / 2**30, MOST_BYTES / 2**30, listed, verb))
        if not self.frames:
            raise NeedsRunError(NOTHING.format(listed, verb))
        left = tuple(key for key in wanted if any(key not in kept.keys for kept in self.frames))
        reasons = dict.fromkeys(reason for kept in self.frames for reason in reasons_for_a_run(kept, left))
        if reasons:
            raise NeedsRunError(f"{'; '.join(reasons)}.")
        return left

    def question(
        self, keys: Sequence[str], cancelled: Callable[[], bool], progress: Progress
    ) -> tuple[Recording, Callable[[], None]]:
        """The capture of the run, open once more, and a function that computes the quantities into it.
        Raises CaptureError."""
        assert self.path is not None and self.start is not None and self.stop is not None
        options = RunOptions(only=tuple(keys), cancelled=cancelled, progress=progress)
        recording = Recording(Writer(self.path, self.start, again=True), self.stop)

        def compute() -> None:
            frames, self.frames = self.frames, []  # where it ends half-way, nothing is computed twice
            self.frames = [analyse_later(kept, recording, options) for kept in frames]

        return recording, compute
