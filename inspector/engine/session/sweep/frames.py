"""The capture of a sweep: frames that are there already, finished ones as they come, and those that failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from inspector.capture import Capture, CaptureError, Writer, check_target, open_capture
from inspector.capture.layout import INDEX
from inspector.capture.splitting import split
from inspector.engine.errors import InputError
from inspector.engine.pipeline import Recording
from inspector.engine.session.sweep.identity import differences
from inspector.engine.session.sweep.ordering import Candidate
from inspector.engine.session.sweep.spool import spooled
from inspector.records import Frame, Labels, Log, Page, Refusal, RunStart, Scalar, report

NOT_FINITE = "non-finite"
"""See `Mismatch.problem`."""
KEY = "sweep"
"""The key of what is told of a sweep, in a RunStart's `meta`, and of a frame's checkpoint in its Frame's."""
CHECKPOINT = "run:checkpoint"
"""The channel that is refused in a frame that failed."""
Identity = tuple[Any, ...]


def key_of(identity: Mapping[str, Any]) -> Identity:
    """An identity as something to look up."""
    return tuple(identity.get(name) for name in ("path", "size", "changed", "hash"))


@dataclass(slots=True)
class Known:
    """The frames that a capture has, by their checkpoint's identity."""

    finished: dict[Identity, Frame] = field(default_factory=dict)
    failed: dict[Identity, Frame] = field(default_factory=dict)
    begun: dict[Identity, Frame] = field(default_factory=dict)
    """Frames that a sweep was merging when it was killed."""

    def of(self, identity: Identity) -> Frame | None:
        """The frame of a checkpoint, whatever became of it."""
        return next((held[identity] for held in (self.finished, self.failed, self.begun) if identity in held), None)

    def indexes(self) -> set[int]:
        """The numbers that are taken."""
        return {frame.index for held in (self.finished, self.failed, self.begun) for frame in held.values()}

    def take(self, frames: Sequence[Frame]) -> None:
        """Sort the frames of a capture."""
        for frame in frames:
            told = frame.meta.get(KEY, {})
            held = self.failed if told.get("failed") else self.finished if told.get("finished") else self.begun
            held[key_of(told)] = frame


class SweepCapture:
    """The capture at `path`. It is made with the first frame that succeeds, so that none stays where all fail.

    `settings` decide the numbers of all frames: a sweep that is there already with the same ones is continued.
    """

    def __init__(self, path: Path, overwrite: bool, settings: Mapping[str, Any], log: Callable[[Log], None]) -> None:
        self.path, self.overwrite, self.settings, self.log = path, overwrite, settings, log
        self.known = Known()
        self.order = ""
        self.recording: Recording | None = None
        self.resumed = False
        self._start: RunStart | None = None
        self._early: list[tuple[Frame, str]] = []
        self._logged: set[Log] = set()
        self._there: Capture | None = None

    def look(self) -> None:
        """Find a sweep that is there already. Raises CaptureError or InputError where it cannot be continued."""
        if self.overwrite or not (self.path / INDEX).exists():
            check_target(self.path, self.overwrite)
            return
        check_target(self.path, True)  # a run that still writes it, a link, another folder
        with open_capture(self.path) as there:
            told = there.start.meta.get(KEY)
            if not isinstance(told, Mapping):
                check_target(self.path, False)
                return
            differing = differences(told.get("settings", {}), self.settings)
            if differing:
                raise InputError(
                    f"{self.path} holds a sweep with other settings: {'; '.join(differing)}. Choose another name, or "
                    "replace it with --overwrite (overwrite=True)."
                )
            self.known.take(there.frames)
            self._logged = set(there.logs)
            self.order, self._start = str(told.get("order", "")), there.start
            self.resumed = True

    def begin(self, start: RunStart, order: str) -> None:
        """How the run begins, as soon as there is a frame."""
        self.order = order
        told = {"settings": self.settings, "order": order}
        self._start = self._start or replace(start, meta={**start.meta, KEY: told})

    def _open(self) -> Recording:
        if self.recording is None:
            assert self._start is not None
            if self.resumed:
                self._there = open_capture(self.path)
            writer = Writer(self.path, self._start, overwrite=self.overwrite, again=self.resumed)
            self.recording = Recording(writer)
            self.recording.__enter__()
            early, self._early = self._early, []
            for frame, reason in early:
                self._write_failed(frame, reason)
        return self.recording

    # -- frames

    def finished(self, frame: Frame, spool: Path) -> None:
        """Merge a frame that was computed. Raises CaptureError; ValueError where the spool is not whole."""
        recording = self._open()
        there = self._there if frame.index in {one.index for one in self.known.begun.values()} else None
        loaded = ""
        with spool.open("rb") as file:
            for record in spooled(file):
                if isinstance(record, RunStart):
                    loaded = self._told_of_loading(record, frame, recording)
                elif isinstance(record, Frame):
                    frame = replace(frame, meta={KEY: {**frame.meta[KEY], "loaded": loaded}})
                    recording.write(frame)
                elif not self._was_said(record) and (there is None or not _is_in(record, there)):
                    recording.write(record)
        frame = replace(frame, meta={KEY: {**frame.meta[KEY], "finished": True}})
        recording.write(frame)  # behind everything else of it: a frame without this is computed again
        recording.writer.flush()
        key = key_of(frame.meta[KEY])
        self.known.finished[key] = frame
        self.known.begun.pop(key, None)

    def _was_said(self, record: Any) -> bool:
        """Whether a message was given already: what is true of the model is said once, not in every frame."""
        if not isinstance(record, Log) or record in self._logged:
            return isinstance(record, Log)
        self._logged.add(record)
        return False

    def _told_of_loading(self, start: RunStart, frame: Frame, recording: Recording) -> str:
        found = report.from_meta(start.meta)
        if found is None:
            return ""
        if found.mismatches:
            bad = any(one.problem == NOT_FINITE for one in found.mismatches)
            log = Log(f"{frame.label}: {report.line(found)}", "info" if found.fits and not bad else "warning")
            recording.write(log)
            if bad:  # what comes of such weights fails nowhere: every number is NaN
                self.log(log)
        return report.line(found)

    def failed(self, frame: Frame, reason: str) -> None:
        """Note a frame that could not be computed: at once, or with the first frame that succeeds."""
        self.log(Log(f"{frame.label}: {reason}", "error"))
        frame = replace(frame, meta={KEY: {**frame.meta[KEY], "failed": reason}})
        key = key_of(frame.meta[KEY])
        self.known.failed[key] = frame
        self.known.begun.pop(key, None)
        if self.recording is None and not self.resumed:
            self._early.append((frame, reason))
        else:
            self._open()
            self._write_failed(frame, reason)

    def first_failure(self) -> str:
        """Name and reason of the first checkpoint that failed."""
        frame = min(self.known.failed.values(), key=lambda one: one.index)
        return f"{frame.label}: {frame.meta[KEY]['failed']}"

    def _write_failed(self, frame: Frame, reason: str) -> None:
        assert self.recording is not None
        self.recording.write(frame)
        self.recording.write(Refusal(CHECKPOINT, reason, frame.index))
        self.recording.write(Log(f"{frame.label}: {reason}", "error"))

    def close(self, fault: BaseException | None) -> None:
        """End the capture, which says how the sweep ended. Raises CaptureError."""
        if self._there is not None:
            self._there.close()
        if self.recording is not None:
            self.recording.__exit__(type(fault) if fault is not None else None, fault, None)


def _is_in(record: Any, there: Capture) -> bool:
    """Whether a capture has a record of a frame that was being merged when its writer was killed."""
    if isinstance(record, Page):
        return all(_has_page(part, there) for part in split(record))
    held: dict[type[Any], Sequence[Any]] = {Scalar: there.scalars, Refusal: there.refusals}
    return not isinstance(record, Labels) and record in held.get(type(record), ())


def _has_page(page: Page, there: Capture) -> bool:
    with suppress(CaptureError, KeyError):
        region = tuple(slice(first, first + n) for first, n in zip(page.offset, page.array.shape, strict=True))
        extent = there.extent(page.channel, page.frame)
        if page.array.size and all(cut.stop <= n for cut, n in zip(region, extent, strict=True)):
            return bool(there.known(page.channel, page.frame, region).all())
    return False


def numbered(found: Sequence[Candidate], identities: Mapping[Path, Identity], known: Known) -> dict[Path, int]:
    """The number of the frame of each checkpoint: as it is, or so that frames are in the order of training.

    A checkpoint that appears between others whose frames are numbered without a gap comes after all of them.
    """
    numbers = {one.path: frame.index for one in found if (frame := known.of(identities[one.path])) is not None}
    taken, before = known.indexes(), -1
    for place, one in enumerate(found):
        if one.path not in numbers:
            behind = [numbers[other.path] for other in found[place:] if other.path in numbers]
            free = next(number for number in count(before + 1) if number not in taken)
            if any(before < number < free for number in behind):
                free = max(taken) + 1
            numbers[one.path] = free
            taken.add(free)
        before = numbers[one.path]
    return numbers
