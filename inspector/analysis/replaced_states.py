"""Where a state was replaced by an edit, so that autograd has no gradient at it: why a norm is NaN there."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.records import Channel, Edit, parse_edit
from inspector.records.run import EDITS

NORMS = {"gradient/state_norm": "h", "gradient/cell_norm": "c"}
"""Signal of the norm of a gradient by step → the part of the state whose gradient it is."""
NONE = "none, state replaced"
"""In place of a number, where there is little room."""


def replacing(view: Any, channel: Channel, frame: int) -> list[Edit]:
    """The edits of a frame, or of the two that are compared, that replace the whole state whose gradient a channel
    has."""
    part = NORMS.get(channel.signal, channel.signal.removeprefix("gradient/state_norm/"))
    if part == channel.signal:
        return []
    sides = [(one.view, one.frame) for one in getattr(view, "sides", ())] or [(view, frame)]
    found = [edit for one, number in sides for edit in _edits(one, number)]
    return [edit for edit in found if (edit.place, edit.signal, edit.unit) == (channel.place, part, None)]


def _edits(view: Any, frame: int) -> list[Edit]:
    frames = getattr(view, "frames", ())
    told = next((one.meta.get(EDITS, ()) for one in frames if one.index == frame), ())
    if frame < 0 and frames:
        told = frames[-1].meta.get(EDITS, ())
    found = []
    for text in told:
        with suppress(ValueError):  # of another version
            found.append(parse_edit(text))
    return found


def without_gradient(
    edits: list[Edit], steps: npt.NDArray[np.float64], values: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """At which of some steps a norm is NaN since the state was replaced there."""
    inside = np.zeros(len(steps), dtype=bool)
    for edit in edits:
        inside |= (steps >= edit.start) & (steps < (np.inf if edit.stop is None else edit.stop))
    return inside & np.isnan(values)
