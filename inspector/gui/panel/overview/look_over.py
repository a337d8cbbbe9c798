"""What the overview knows of a capture: small pictures of a frame and what the rules say, read in a thread.

Pictures come first, since they are cheap. While a capture grows all is looked at again, at intervals that are long
beside what it takes; until then the last complete answers stay. Nothing is read while nobody looks.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.capture import CaptureError
from inspector.diagnosis import (
    Answer,
    Diagnosis,
    Settings,
    SettingsError,
    answers,
    gathered,
    project_file,
    read_settings,
)
from inspector.diagnosis.settings import Mute
from inspector.gui.panel.overview.pictures import PICTURES, SmallPicture, pictures_in_order
from inspector.gui.state.aside import Aside
from inspector.gui.widgets.sketch import Sketch
from inspector.records import Channel

AGAIN_SECONDS = 1.0
TIMES = 4.0
"""Seconds between the end of a look and the next one at least, and how many times as long as it took."""
KEPT = 200
"""Sketches of earlier frames that are kept."""


@dataclass(frozen=True, slots=True)
class Pictured:
    """A picture of one frame, as it was read.

    Attributes:
        key: of the picture. sketch: what is drawn, None where the capture has nothing for it; problem: what went wrong.
        state: of its channels and of what was read, as they were then. read: (channel, frame) of all from which it was
            made.
    """

    key: str
    sketch: Sketch | None = None
    problem: str = ""
    state: Hashable = ()
    read: frozenset[tuple[str, int]] = frozenset()


class LookOver:
    """One view at a time, one frame of it."""

    def __init__(self) -> None:
        self.view: Any = None
        self.frame = -1
        self.pictures: dict[str, Pictured] = {}
        self.complete = False
        """Whether every rule was asked once at least about what is shown."""
        self.problem = ""
        self._known: dict[tuple[str, int], Pictured] = {}
        self._answers: list[Answer] = []
        self._next: list[Answer] = []
        self._settings = Settings()
        self._aside: Aside | None = None
        self._stale = False
        self._began = self._not_before = 0.0

    # -- what is asked for

    def show(self, view: Any, frame: int) -> None:
        """Another capture, log, or none."""
        self.close()
        self.view, self.frame, self.pictures, self._known = view, frame, {}, {}
        self._answers, self.complete, self._stale, self._not_before = [], False, view is not None, 0.0
        self.problem = ""

    def turn(self, frame: int) -> None:
        """Another frame: its pictures are read at once."""
        if frame != self.frame:
            self.frame, self._stale, self._not_before = frame, True, 0.0
            self._end()

    def grown(self) -> None:
        """There is more of what is shown."""
        self._stale = True

    @property
    def busy(self) -> bool:
        """Whether something is being read, or is to be."""
        return self._aside is not None or self._stale

    def tick(self) -> bool:
        """Take what was read, begin what is due; whether anything has changed. Takes no time itself."""
        changed = False
        if self._aside is not None:
            finished = self._aside.finished  # before the last results are taken
            for result in self._aside.take():
                self._take(result)
                changed = True
            if finished:
                self._finish(self._aside)
                changed = True
        if self._aside is None and self._stale and self.view is not None and time.monotonic() >= self._not_before:
            self._begin()
        return changed

    def wait(self) -> None:
        """Until all that is due was read: a figure in a file shows the whole."""
        self._not_before = 0.0
        self.tick()
        while self._aside is not None:
            self._aside.wait()
            self.tick()

    def close(self) -> None:
        """Give up what is being read, and wait for that."""
        if self._aside is not None:
            self._aside.close()
            self._aside = None
        self._next = []

    # -- what is known

    @property
    def diagnosis(self) -> Diagnosis:
        """What the rules say, as far as they were asked."""
        return gathered(self._answers, self._settings)

    @property
    def asked(self) -> frozenset[str]:
        """Keys of the rules that were asked."""
        return frozenset(answer.key for answer in self._answers)

    @property
    def read(self) -> set[tuple[str, int]]:
        """(channel, frame) of all from which the pictures were made."""
        return {one for picture in self.pictures.values() for one in picture.read}

    @property
    def mutes(self) -> tuple[Mute, ...]:
        """What the project mutes."""
        return self._settings.muted

    # -- looking

    def read_project(self) -> None:
        """The project's file as it is now: what it mutes counts at once, its limits from the next look on."""
        try:
            path = project_file(Path.cwd())
            self._settings = Settings() if path is None else read_settings(path)
        except (SettingsError, OSError) as problem:
            self.problem = str(problem)

    def _begin(self) -> None:
        self._stale, self._began, self._next = False, time.monotonic(), []
        self.read_project()
        frame, settings, known = self.frame, self._settings, dict(self._known)

        def work(view: Any) -> Iterator[Any]:
            yield from sketched(view, frame, known)
            yield from answers(view, list(view.frames), settings)

        self._aside = Aside(self.view, work, "overview")

    def _end(self) -> None:
        """Give up what is being read, without waiting for it."""
        if self._aside is not None:
            self._aside.stop()
            self._aside, self._next = None, []

    def _take(self, result: Any) -> None:
        if isinstance(result, Answer):
            self._next.append(result)
            if not self.complete:
                self._answers = list(self._next)
            return
        self.pictures[result.key] = result
        if result.sketch is not None:
            self._known[result.key, self.frame] = result
            while len(self._known) > KEPT:
                del self._known[next(iter(self._known))]

    def _finish(self, aside: Aside) -> None:
        self._aside = None
        broken = "; ".join(f"{bad.origin} is broken: {bad.reason}" for bad in PICTURES.broken)
        self.problem = aside.problem or self.problem or broken
        if not aside.problem:
            self._answers, self.complete = self._next, True
        took = time.monotonic() - self._began
        self._not_before = time.monotonic() + max(AGAIN_SECONDS, TIMES * took)


def sketched(view: Any, frame: int, known: Mapping[tuple[str, int], Pictured]) -> Iterator[Pictured]:
    """Every picture of a frame; those whose channels have not changed are taken from what is known."""
    for key, picture in pictures_in_order():
        yield _one(view, frame, key, picture, known.get((key, frame)))


def _one(view: Any, frame: int, key: str, picture: SmallPicture, known: Pictured | None) -> Pictured:
    try:
        with view.noting() as read:
            found = picture.find(view, frame)
            if not found:
                return Pictured(key)
            if known is not None and known.state == _state(view, frame, found, known.read):
                return known
            sketch, used = picture.read(view, frame, found), frozenset(read)
            return Pictured(key, sketch, state=_state(view, frame, found, used), read=used)
    except CaptureError as problem:
        return Pictured(key, problem=str(problem))
    except Exception as fault:  # noqa: BLE001 - one picture may not take the others along
        return Pictured(key, problem=f"{type(fault).__name__}: {fault}")


def _state(view: Any, frame: int, found: Sequence[Channel], read: frozenset[tuple[str, int]]) -> Hashable:
    """What differs once there is more of a picture's channels, or of anything that was read for it.

    What goes over a training has its pages in a frame of its own, and none in the one that is shown.
    """
    own = [(one.name, frame if view.revision(one.name, frame) else view.frame_of(one.name)) for one in found]
    return tuple((name, at, view.revision(name, at)) for name, at in (*own, *sorted(read)))
