"""How many bytes the frames of a watched training may take, and how they become rarer so that they keep to it.

A capture is only ever added to: what was committed stays as it is while others read it, so nothing is removed to make
room. Frames are thinned before they are written. The first half of the limit is for frames at the distance that was
asked for, n of them. After that each frame is 10/n of the iterations so far away from the one before, so that the other
half, n frames more, reaches to (1 + 10/n)ⁿ times as many iterations: 1,000 times for n = 10, 20,000 times for many.
"""

from __future__ import annotations

import math

GIGABYTE = 1e9
DEFAULT = 2.0
"""Gigabytes of all frames of one training, where nothing else is asked for."""
SPREAD = 10.0
"""The second half of the limit lasts for about e to this power times the iterations of the first."""


class FrameLimit:
    """Counts the bytes of frames. `thinned`: frames are further apart than was asked for."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.used = 0
        self.thinned = False
        self._frames = 0
        self._last = 0

    def wrote(self, size: int) -> bool:
        """A frame of so many bytes was written; returns whether frames are thinned from here on."""
        self.used += size
        self._last = size
        self._frames += not self.thinned
        before, self.thinned = self.thinned, self.used >= self.limit / 2
        return self.thinned and not before

    def distance(self, iteration: int, asked: int) -> int:
        """Iterations from a frame at `iteration` to the next one."""
        return max(asked, math.ceil(iteration * SPREAD / self._frames)) if self.thinned else asked

    @property
    def has_room(self) -> bool:
        """Whether another frame as large as the last one keeps to the limit; the first one is always written."""
        return not self.used or self.used + self._last <= self.limit
