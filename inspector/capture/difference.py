"""Two frames of a capture as one: what changed between them, read like any capture.

Each channel says what two runs of it make (`Channel.compare`): a difference, second minus first; a ratio, second by
first; or nothing that is read, and then it is not here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.damage import Damage
from inspector.capture.holes import Holes
from inspector.capture.pyramid import reduce_rows, shrink
from inspector.capture.reader import Capture
from inspector.records import Axis, Channel

Array = npt.NDArray[Any]
TIMES = "×"
"""The unit of a ratio."""


class Difference:
    """What `second` changed against `first`. Channels that are not in both, or have other shapes, are left out."""

    def __init__(self, capture: Capture, first: int, second: int) -> None:
        self.capture, self.first, self.second = capture, first, second

    def __getattr__(self, name: str) -> Any:
        return getattr(self.capture, name)

    @property
    def channels(self) -> dict[str, Channel]:
        """Channels of both frames, described as differences or ratios; labels and counts stay as they are."""
        return {name: self._described(c) for name, c in self.capture.channels.items() if self._comparable(c)}

    def _comparable(self, channel: Channel) -> bool:
        if channel.compare == "separate" or not channel.dtype.startswith("float"):
            return False
        a, b = (self.capture.extent(channel.name, frame) for frame in (self.first, self.second))
        return a == b and 0 not in a

    def _described(self, channel: Channel) -> Channel:
        if channel.compare == "ratio":
            return replace(channel, scale="ratio", unit=TIMES, limits=None)
        return replace(channel, title=f"Δ {channel.title}", scale="diverging", limits=None)

    def frame_of(self, name: str, frame: int = -1) -> int:
        """Always the second."""
        return self.second

    def revision(self, name: str, frame: int = -1) -> int:
        """Grows with either frame; 0 where they cannot be compared."""
        if not self._comparable(self.capture.channels[name]):
            return 0
        return self.capture.revision(name, self.first) + self.capture.revision(name, self.second)

    def extent(self, name: str, frame: int = -1) -> tuple[int, ...]:
        """The shape that both have."""
        return self.capture.extent(name, self.second)

    def holes(self, name: str, frame: int = -1) -> Holes:
        """What is not known of one frame or the other."""
        return self.capture.holes(name, self.first) | self.capture.holes(name, self.second)

    def known(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> npt.NDArray[np.bool_]:
        """True for every cell of a region that is known of both frames."""
        before, after = (self.capture.known(name, which, region) for which in (self.first, self.second))
        return before & after

    def damage_of(self, name: str, frame: int = -1) -> tuple[Damage, ...]:
        """What is lost of one frame or the other."""
        found = (*self.capture.damage_of(name, self.first), *self.capture.damage_of(name, self.second))
        return tuple(dict.fromkeys(found))

    def array(self, name: str, frame: int = -1) -> Array:
        """The whole difference, or ratio."""
        return self.block(name, frame, ())

    def block(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> Array:
        """A region of it."""
        before, after = (self.capture.block(name, which, region) for which in (self.first, self.second))
        with np.errstate(all="ignore"):
            if self.capture.channels[name].compare == "ratio":
                ratio: Array = np.where((before == 0) & (after == 0), 1.0, after / before)
                return ratio.astype(after.dtype)
            difference: Array = after.astype(np.float32, copy=False) - before.astype(np.float32, copy=False)
        return difference

    def overview(
        self, name: str, frame: int = -1, *, region: tuple[slice, ...] = (), size: tuple[int, ...] = (1000, 1000)
    ) -> tuple[Array, Array]:
        """(minima, maxima) over a region, in at most `size` cells; see `Capture.overview`."""
        values = self.block(name, frame, region)
        factor = max(1, -(-values.shape[0] // max(1, size[0])))
        low, high = reduce_rows(values, factor, np.minimum), reduce_rows(values, factor, np.maximum)
        return shrink(low, high, size)

    def labels(self, domain: str, frame: int = -1) -> tuple[str, ...]:
        """Names of the second frame."""
        return self.capture.labels(domain, self.second)

    @property
    def axes(self) -> dict[str, Axis]:
        """The axes of the second frame."""
        return {name: self.axis(name) for name in self.capture.axes}

    def axis(self, name: str, frame: int = -1) -> Axis:
        """An axis of the second frame."""
        return self.capture.axis(name, self.second)
