"""One number of a channel for each frame of a run, read a few frames at a time; and the runs that a panel shows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import Capture, Difference, Pair, Side
from inspector.capture.over_frames import iterations_of, one_frame

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class RunOfFrames:
    """A run whose frames are drawn over training; `name` is "" where there is no other."""

    name: str
    capture: Capture


def runs_of(source: Any) -> list[RunOfFrames]:
    """The runs of what a panel shows, the shown one last: a capture, or both of a comparison.

    Along their own steps: what was aligned for the comparison of two frames says nothing about the others. None of the
    difference of an edited run, whose frames are no moments of a training.
    """
    if isinstance(source, Capture):
        return [RunOfFrames("", source)]
    if isinstance(source, Side):
        sides = [source.reference]
    elif isinstance(source, Pair) and not isinstance(source, Difference):
        sides = [source.after] if source.one_capture else list(source.sides)
    else:
        return []
    views = [getattr(side.view, "view", side.view) for side in sides]
    found = [(side, view) for side, view in zip(sides, views, strict=True) if isinstance(view, Capture)]
    return [RunOfFrames(_name(side.name, view) if len(found) > 1 else "", view) for side, view in found]


def _name(name: str, capture: Capture) -> str:
    """The name of a side without its frame: all of them are drawn."""
    return name.rpartition(" frame ")[0] or name if len(capture.frames) > 1 else name


class LineOverFrames:
    """The numbers of one channel so far, by frame."""

    def __init__(self, run: RunOfFrames, name: str, summary: str, threshold: float) -> None:
        self.run, self.name, self.summary, self.threshold = run, name, summary, threshold
        self.names: tuple[str, ...] = ()
        self._rows: dict[int, tuple[int, Array]] = {}
        """By frame: the revision that was read, and its numbers."""

    def update(self, end: float) -> bool:
        """Read frames that are new or have changed, until a time; returns whether all were read."""
        capture = self.run.capture
        for frame in capture.frames:
            revision = capture.revision(self.name, frame.index)
            if not revision or self._rows.get(frame.index, (0,))[0] == revision:
                continue
            if time.monotonic() > end:
                return False
            names, values = one_frame(capture, self.name, frame.index, self.summary, self.threshold)
            self._rows[frame.index] = (revision, values)
            self.names = max(self.names, names, key=len)
        return True

    def points(self) -> tuple[Array, Array, str]:
        """(iterations (f,), values (f, curves), what the axis counts)."""
        frames = tuple(self.run.capture.frames)
        present = [frame for frame in frames if frame.index in self._rows]
        values = np.full((len(present), len(self.names)), np.nan)
        for n, frame in enumerate(present):
            row = self._rows[frame.index][1]
            values[n, : len(row)] = row
        numbers, word = iterations_of(frames, present)
        return numbers, values, word

    def at(self, frame: int) -> Array | None:
        """The numbers of a frame."""
        found = self._rows.get(frame)
        return None if found is None else found[1]
