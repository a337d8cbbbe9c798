"""The protocol that panels, tables and rules read: a capture, or a comparison of two frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from inspector.capture.damage import Damage
from inspector.capture.holes import Holes
from inspector.records import Axis, Channel, RunStart

Array = npt.NDArray[Any]


class View(Protocol):
    """Channels by name, and their numbers. Every method raises CaptureError for a channel that does not exist."""

    start: RunStart

    @property
    def channels(self) -> Mapping[str, Channel]:
        """By name, in the order in which they were declared."""

    def channel(self, name: str, frame: int = -1) -> Channel:
        """The description of a channel in a frame."""

    def frame_of(self, name: str, frame: int = -1) -> int:
        """The frame that -1 denotes: the newest one in which the channel has pages."""

    def revision(self, name: str, frame: int = -1) -> int:
        """Grows whenever the channel gets a page; 0 while it has none."""

    def extent(self, name: str, frame: int = -1) -> tuple[int, ...]:
        """The shape filled so far."""

    def array(self, name: str, frame: int = -1) -> Array:
        """The whole array so far, read-only."""

    def block(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> Array:
        """A region of it."""

    def overview(
        self, name: str, frame: int = -1, *, region: tuple[slice, ...] = (), size: tuple[int, ...] = (1000, 1000)
    ) -> tuple[Array, Array]:
        """(minima, maxima) over a region, in at most `size` cells."""

    def known(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> npt.NDArray[np.bool_]:
        """True for every cell of a region that was captured and is undamaged."""

    def holes(self, name: str, frame: int = -1) -> Holes:
        """The cells that are not known, by what was checked so far."""

    def damage_of(self, name: str, frame: int = -1) -> tuple[Damage, ...]:
        """The damage of a channel in a frame, certain or possible."""

    def labels(self, domain: str, frame: int = -1) -> tuple[str, ...]:
        """Names of the positions of a label domain."""

    @property
    def axes(self) -> Mapping[str, Axis]:
        """The axes that the run described, by name."""

    def axis(self, name: str, frame: int = -1) -> Axis:
        """What is known of an axis, whose name `Channel.domain(dim)` gives; a plain line where it was not described."""
