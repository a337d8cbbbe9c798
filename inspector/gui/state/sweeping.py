"""A sweep of checkpoints of one window: what `inspector sweep` does, in a worker of its own."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspector.capture import Capture, CaptureError, open_capture
from inspector.gui.state.connection import Connection
from inspector.gui.state.exchange import Make
from inspector.records import (
    Cancel,
    CheckpointList,
    Failure,
    Finished,
    Frame,
    ListCheckpoints,
    Log,
    NeedsTrust,
    Progress,
    Sweep,
)
from inspector.transport.process import Exit
from inspector.workspace.trust import agree, agreed_files

KEY = "sweep"
"""The key of what is told of a checkpoint in a Frame's `meta`."""
LOOK_SECONDS = 0.3
"""The frames of the capture are looked at so often."""
READING, COMPUTED = "Reading the checkpoints …", "computed"
WAITS = "{} is code{}; it waits for your answer."


@dataclass(frozen=True, slots=True)
class Row:
    """A checkpoint of the sweep. `state` is "", "computed", or the reason why it could not be run."""

    path: str
    name: str
    step: int | None = None
    told_by: str = ""
    state: str = ""
    failed: bool = False


class Sweeping:
    """One sweep at most. Its worker is not the one of the session, so the model that is open stays open."""

    def __init__(self, make: Make) -> None:
        self.connection = Connection(make)
        self.listed: CheckpointList | None = None
        self.reading = self.running = self.cancelling = False
        self.sentence = ""
        self.failed = False
        """Whether `sentence` says what went wrong."""
        self.progress: Progress | None = None
        self.asked: NeedsTrust | None = None
        """Code that is to run and waits for the user's answer."""
        self.appeared: Path | None = None
        """The capture, once it has a frame; whoever shows it takes it away."""
        self._request: Sweep | None = None
        self._generation, self._looked = 0, 0.0
        self._reader: Capture | None = None
        self._replaced = ""
        """The run that is at the path and is going to be replaced."""
        self._agreed: dict[str, str] = {}

    # -- requests

    def look_into(self, paths: Sequence[str]) -> None:
        """Look which checkpoints there are; `listed` has them as soon as the worker has answered."""
        if self.running:
            return
        self._forget()
        self.listed, self.reading, self.sentence, self.failed = None, True, READING, False
        self._send(ListCheckpoints(paths=tuple(paths)))

    def begin(self, request: Sweep) -> None:
        """Run every checkpoint. What was computed before, with the same settings, is not computed again."""
        self._forget()
        agreed = {**agreed_files()[0], **self._agreed}
        self._request = replace(request, load=replace(request.load, agreed=agreed))
        if request.run.overwrite:
            self._replaced = self._run_at(Path(request.run.path))
        self.running, self.cancelling, self.progress, self.failed = True, False, None, False
        self.reading, self.sentence = False, "Beginning …"
        self._send(self._request)

    def agree(self, asked: NeedsTrust) -> None:
        """The code may run: go on."""
        files = {file.path: file.sha256 for file in asked.files}
        try:
            agree(files)
        except OSError as problem:
            self._agreed.update(files)
            why = problem.strerror or problem
            self.connection.note(
                Log(f"The answer could not be remembered ({why}); it holds for this window.", "warning")
            )
        if self._request is not None:
            self.begin(self._request)

    def cancel(self) -> None:
        """Stop; finished frames stay. A second time its worker, which may hang in a model, is ended."""
        if not self.running:
            return
        if self.cancelling:
            self.connection.end()
            self._over("Ended; the frames that were finished are kept.")
            return
        self.cancelling, self.sentence = True, "Cancelling …"
        self.connection.send(Cancel())

    def rest(self) -> None:
        """End the worker where it computes nothing: it takes a few hundred megabytes."""
        if not self.running:
            self.reading = False
            self.connection.end()

    def close(self) -> None:
        """End everything; the window does not wait for the worker."""
        if self.running:
            self.connection.send(Cancel())
        self.connection.close()
        self._forget()

    # -- what is known

    @property
    def path(self) -> Path | None:
        """The capture of the sweep that runs or ran last."""
        return Path(self._request.run.path) if self._request is not None else None

    @property
    def short(self) -> str:
        """How far it is, in a few words; "" where none runs."""
        told = self.progress.text.partition(" · ")[0] if self.progress is not None else "begins"
        return f"checkpoints: {told}" if self.running else ""

    @property
    def rows(self) -> list[Row]:
        """The checkpoints in their order, with what became of each; those that appeared later come last."""
        frames = {str(frame.meta[KEY].get("path", "")): frame for frame in self._frames}
        listed = self.listed.checkpoints if self.listed is not None else ()
        rows = [_row(one.path, one.name, one.step, one.told_by, frames.pop(one.path, None)) for one in listed]
        if self.listed is None or self._request is None:
            return rows
        later = [_row(path, Path(path).name, frame.step, "", frame) for path, frame in frames.items()]
        return rows + [row for row in later if row.state]

    @property
    def _frames(self) -> list[Frame]:
        if self._reader is None:
            return []
        return [frame for frame in self._reader.frames if isinstance(frame.meta.get(KEY), Mapping)]

    # -- the tick

    def tick(self) -> list[Log]:
        """Take what the worker told; returns its lines for the log."""
        while (event := self.connection.record()) is not None:
            self._take(event)
        if self.running and time.monotonic() - self._looked >= LOOK_SECONDS:
            self._look()
        return self.connection.lines()

    def _take(self, event: Any) -> None:
        if isinstance(event, Exit):
            self._ended(event)
        elif getattr(event, "generation", -1) != self._generation:
            return
        elif isinstance(event, CheckpointList):
            self.listed, self.reading, self.sentence = event, False, event.order
        elif isinstance(event, Progress):
            self._told(event)
        elif isinstance(event, NeedsTrust):
            self.asked = event
            others = f" (and {len(event.files) - 1} more)" if len(event.files) > 1 else ""
            self._over(WAITS.format(event.files[0].path, others))
        elif isinstance(event, Failure):
            self._over("Cancelled; nothing was computed." if event.kind == "cancelled" else event.message)
            self.failed = event.kind != "cancelled"
        elif isinstance(event, Finished):
            cancelled = " Cancelled; begin again to go on from here." if event.stop.status == "cancelled" else ""
            self._over(event.stop.message + cancelled)
            self.connection.end()

    def _told(self, progress: Progress) -> None:
        """How far it is; the last report may come after the end, since an inbox gives other records first."""
        if self.running:
            self.progress = progress
            self.sentence = self.sentence if self.cancelling else progress.text

    def _ended(self, ended: Exit) -> None:
        if not ended.expected and (self.running or self.reading):
            self._over(ended.sentence)
            self.failed = True

    def _over(self, sentence: str) -> None:
        self._look()
        self.running = self.reading = self.cancelling = False
        self.progress, self.sentence = None, sentence

    def _look(self) -> None:
        """Read which frames there are."""
        self._looked = time.monotonic()
        try:
            if self._reader is None:
                self._open()
            elif self._reader.changed():
                self._reader.refresh()
        except CaptureError:
            pass  # it is being made: the next look tries again

    def _open(self) -> None:
        if self.path is None or not self.path.is_dir():
            return
        found = open_capture(self.path)
        if found.start.run == self._replaced or KEY not in found.start.meta:
            found.close()
            return
        self._reader, self.appeared = found, self.path

    def _run_at(self, path: Path) -> str:
        try:
            with open_capture(path) as there:
                return there.start.run
        except CaptureError:
            return ""

    def _send(self, request: ListCheckpoints | Sweep) -> None:
        self.connection.start()
        self._generation += 1
        self.connection.send(replace(request, generation=self._generation))

    def _forget(self) -> None:
        """The capture of the sweep before is not looked at any more."""
        reader, self._reader, self.asked, self.appeared, self._replaced = self._reader, None, None, None, ""
        if reader is not None:
            reader.close()


def _row(path: str, name: str, step: int | None, told_by: str, frame: Frame | None) -> Row:
    told = frame.meta[KEY] if frame is not None else {}
    why = str(told.get("failed", "")).removeprefix(f"{name} ")
    state = f"failed: {why}" if why else COMPUTED if told.get("finished") else ""
    return Row(path, name, step, told_by, state, bool(why))
