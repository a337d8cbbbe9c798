"""Which iterations of a training are drawn, where some of them are what is told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inspector.capture.curves import positions
from inspector.capture.view import View
from inspector.records import ITERATION_DOMAIN, Channel

AROUND, LONG = 20, 120
"""Iterations or steps that are shown on both sides of those of a finding, and from how many not all are shown."""


def iterations_around(view: View, channel: Channel, frame: int, wanted: Sequence[int]) -> tuple[int, int] | None:
    """The first and last one in view: those that are wanted, with so many recorded ones on both sides.

    None where all are to be seen: nothing is wanted, it was not recorded, that would be half of all, or there are no
    more than LONG. Raises CaptureError.
    """
    if not wanted or ITERATION_DOMAIN not in channel.dims:
        return None
    places = positions(view, channel.domain(ITERATION_DOMAIN), "", frame)
    if places is None:  # merely counted
        length = view.extent(channel.name, frame)[channel.dims.index(ITERATION_DOMAIN)]
        places = np.arange(length, dtype=np.float64)
    known = places[np.isfinite(places)]
    inside = [one for one in wanted if len(known) and known[0] <= one <= known[-1]]
    if not inside:
        return None
    first = max(0, int(np.searchsorted(known, min(inside))) - AROUND)
    last = min(len(known) - 1, int(np.searchsorted(known, max(inside))) + AROUND)
    part = len(known) > LONG and last - first < len(known) // 2
    return (int(known[first]), int(known[last])) if part else None
