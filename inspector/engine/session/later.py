"""Later analysis of the run that ended last: its traces, the capture they belong to, and how it began and ended.

They are released when another run begins and when another model is opened. What takes more than `pipeline.MOST_BYTES`
is not stored, which is then reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.shares import LEAST_SECONDS, part_of
from inspector.engine.trace.trace import Trace
from inspector.records import RunStart, RunStop, split_request

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
    """Bytes of a run that is not stored, or not as a whole."""
    elsewhere: list[frozenset[str]] = field(default_factory=list)
    """Requests that were computed in each frame that is not stored."""
    _judged: dict[int, int] = field(default_factory=dict)
    """Bytes of the frames that have room, by the id of their trace: analysis lets traces grow, and what was left to it
    must find them."""

    def let_go(self) -> None:
        """Release everything, and its memory."""
        self.path = self.start = self.stop = None
        self.frames, self.too_large, self.elsewhere, self._judged = [], 0, [], {}

    def room(self, trace: Trace) -> bool:
        """Whether one more frame of the present run will be stored: all of them within `MOST_BYTES`."""
        size = sum(self._judged.values()) + tensor_bytes([trace])
        if size > MOST_BYTES:
            self.too_large = size
            return False
        self._judged[id(trace)] = size - sum(self._judged.values())
        return True

    def keep(self, recording: Recording, start: RunStart, frames: Sequence[KeptTrace]) -> None:
        """Store a finished run, except for frames that are too large; `room` may have judged some of them already."""
        self.path, self.start, self.stop = recording.path, start, recording.stop
        for kept in frames:
            fits = id(kept.trace) in self._judged or (not self.too_large and self.room(kept.trace))
            if fits:
                self.frames.append(kept)
            else:
                self.elsewhere.append(kept.keys)

    @property
    def traces(self) -> list[Trace]:
        """Those of the stored frames."""
        return [kept.trace for kept in self.frames]

    def missing(self) -> list[str]:
        """Keys of quantities that are not computed in all stored frames and can be."""
        if self.too_large:
            return []
        keys = list(QUANTITIES)
        computed = [{split_request(request)[0] for request in kept.keys} for kept in self.frames]
        can = [key for key in keys if not any(reasons_for_a_run(kept, [key]) for kept in self.frames)]
        return [key for key in can if any(key not in have for have in computed)]

    def asked(self, path: Path, keys: Sequence[str]) -> tuple[str, ...]:
        """The requests that are still to be computed. Raises InputError for unknown ones, NeedsRunError."""
        wanted = chosen_quantities(RunOptions(only=tuple(keys)))
        listed, verb = ", ".join(keys), "needs" if len(keys) == 1 else "need"
        if self.path is not None and path.absolute() != self.path.absolute():
            raise NeedsRunError(ANOTHER.format(self.path.name, listed, verb))
        if self.too_large and (not self.frames or any(not set(wanted) <= done for done in self.elsewhere)):
            raise NeedsRunError(TOO_LARGE.format(self.too_large / 2**30, MOST_BYTES / 2**30, listed, verb))
        if not self.frames:
            raise NeedsRunError(NOTHING.format(listed, verb))
        left = tuple(key for key in wanted if any(key not in kept.keys for kept in self.frames))
        reasons = dict.fromkeys(reason for kept in self.frames for reason in reasons_for_a_run(kept, left))
        if reasons:
            raise NeedsRunError(f"{'; '.join(reasons)}.")
        return left

    def question(
        self, keys: Sequence[str], cancelled: Callable[[], bool], progress: Progress, expected: Mapping[str, float]
    ) -> tuple[Recording, Callable[[], None]]:
        """The capture of the run, open once more, and a function that computes the quantities into it, one at a time:
        what is cancelled half-way is computed again when it is asked for again. `expected`: about how many seconds each
        takes, on all traces. Raises CaptureError."""
        assert self.path is not None and self.start is not None and self.stop is not None
        recording = Recording(Writer(self.path, self.start, again=True), self.stop)
        waiting = {key: [n for n, kept in enumerate(self.frames) if key not in kept.keys] for key in keys}
        for key, numbers in waiting.items():
            recording.expect([key], len(numbers))
        shares = {key: max(LEAST_SECONDS, expected.get(key, 0.0) / max(1, len(self.frames))) for key in waiting}
        total = sum(shares[key] * len(numbers) for key, numbers in waiting.items())

        def compute() -> None:
            done = 0.0
            for key, numbers in waiting.items():
                for number in numbers:
                    told = part_of(progress, done, shares[key], total)
                    options = RunOptions(only=(key,), cancelled=cancelled, progress=told)
                    self.frames[number] = analyse_later(self.frames[number], recording, options)
                    done += shares[key]

        return recording, compute
