"""Where the frames of a capture lie along its timeline, once for each capture: 50,000 take a tenth of a second, so that
they are placed where a capture is opened in the background, and not in a tick of the window's."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from inspector.records import Frame


class PlacedFrames(NamedTuple):
    """The frames as the capture has them, each with its place, the places, and whether these are iterations."""

    source: tuple[Frame, ...]
    frames: tuple[tuple[Frame, float], ...]
    at: npt.NDArray[np.float64]
    by_iteration: bool


_KNOWN: WeakKeyDictionary[Any, PlacedFrames] = WeakKeyDictionary()


def placed(capture: Any, *, has_curves: bool = False) -> PlacedFrames:
    """The frames of a capture, or of what is shown as one, along iterations where it has curves or the frames' own
    differ, else along their count; those of the last time where it has no other."""
    source = capture.frames
    known = None
    with suppress(TypeError):  # what is compared by its parts has no hash
        known = _KNOWN.get(capture)
    if known is not None and known.source is source and (known.by_iteration or not has_curves):
        return known
    steps = [frame.step for frame in source]
    by_iteration = has_curves or (len(steps) > 0 and None not in steps and len(set(steps)) > 1)
    at = [float(step or 0) for step in steps] if by_iteration else list(map(float, range(len(steps))))
    found = PlacedFrames(source, tuple(zip(source, at, strict=True)), np.array(at, np.float64), by_iteration)
    with suppress(TypeError):
        _KNOWN[capture] = found
    return found
