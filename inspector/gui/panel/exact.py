"""Exact numbers for the readout: a cell that is not known says why, and is never called NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import Capture
from inspector.capture.holes import inside

DAMAGED, COMING, ABSENT = "damaged", "not there yet", "not there"


def exact(capture: Capture, name: str, frame: int, region: tuple[slice, ...]) -> npt.NDArray[Any]:
    """As `Capture.block`, as objects: numbers of the channel's type, and words where a cell is not known."""
    values = np.ma.getdata(capture.block(name, frame, region))
    found = np.empty(values.shape, dtype=object)
    for place in np.ndindex(values.shape):
        found[place] = values[place]
    holes = capture.holes(name, frame)  # by what was checked so far: the cells that were just read as well
    if holes:
        extent = capture.extent(name, frame)
        cuts = (*region, *[slice(None)] * (len(extent) - len(region)))
        bounds = tuple(cut.indices(size)[:2] for cut, size in zip(cuts, extent, strict=True))
        missing = _missing(capture)
        for word, boxes in ((missing, holes.missing), (DAMAGED, holes.damaged)):
            for box in boxes:
                cut = inside(box, bounds)
                if cut is not None:
                    found[cut] = word
    return found


def exact_at(capture: Capture, name: str, frame: int, *at: int) -> Any:
    """One cell: its number, or the word."""
    return exact(capture, name, frame, tuple(slice(one, one + 1) for one in at)).reshape(-1)[0]


def why_not_known(capture: Capture, name: str, frame: int) -> str:
    """The word for what is not known of a channel, wherever that is; "" where all is known."""
    holes = capture.holes(name, frame)
    if holes.damaged:
        return DAMAGED
    return _missing(capture) if holes else ""


def or_why(value: Any, capture: Capture, name: str, frame: int) -> Any:
    """A number computed from a channel; where it is NaN and something of the channel is not known, the word."""
    return (why_not_known(capture, name, frame) or value) if np.isnan(value) else value


def _missing(capture: Capture) -> str:
    """The word for what no page brought: of a run that goes on it is to come, and what a run has left may be on its
    way; of one that failed, was cancelled or broke off nothing comes any more."""
    stop = capture.stop
    if stop is not None:
        return COMING if stop.status == "done" and stop.left else ABSENT
    return ABSENT if capture.status == "unfinished" and not _may_go_on(capture) else COMING


def _may_go_on(capture: Capture) -> bool:
    """Whether a run that nobody here writes may go on: where another machine writes it that is not known."""
    return bool(getattr(capture, "written_elsewhere", False)) or getattr(capture, "awaited", None) is not None
