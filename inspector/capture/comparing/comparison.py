"""Two frames of any captures as one view: two checkpoints, two runs, two models, or a run and an edited one.

Each channel declares how two of it are compared (`Channel.compare`): a difference, second minus first; a ratio, second
by first (unit ×, to be drawn on a logarithmic scale around 1, as changes of norms are read); or not at all, and then it
is listed as separate. What cannot be compared is listed with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from inspector.capture.by_parts import overview_by_parts, within
from inspector.capture.comparable import Names, Reference, Verdict, judge
from inspector.capture.comparing.alignment import Alignment
from inspector.capture.damage import Box, Damage
from inspector.capture.holes import Holes
from inspector.capture.layout import CaptureError
from inspector.capture.rounding import counts_as_none, rounding_of
from inspector.records import Axis, Channel, RunStart, counted

Array = npt.NDArray[Any]
MOST_NAMED = 5
"""Channels that are refused of which a text gives the reason."""


class Comparison:
    """A View of the change of the second reference against the first; every frame number stands for this comparison.

    With `edited` the second side is the first one after a change of its tokens, its states or its weights at the same
    sequence: tokens that differ are then the change. Otherwise numbers of different tokens are not compared.
    """

    def __init__(self, before: Reference, after: Reference, *, edited: bool = False) -> None:
        self.before, self.after = _named(before, "first"), _named(after, "second")
        self.edited = edited
        self.start: RunStart = self.after.view.start
        """How the second run began."""
        self.alignments: Mapping[str, Alignment] = {}
        """By label domain the steps that were aligned by their names (see `compare`)."""
        self.opened: tuple[Any, ...] = ()
        """Captures that were opened for this comparison alone: `close` closes them."""
        self._label_names = None if edited else Names(self.before, self.after)
        self._counts: dict[str, object] = {}
        self._verdicts: dict[str, tuple[object, Verdict]] = {}

    def __str__(self) -> str:
        """What is compared with what, and what cannot be and why, a line each."""
        refused = [f"  {name}: {reason}" for name, reason in list(self.refused.items())[:MOST_NAMED]]
        more = [f"  and {len(self.refused) - len(refused):,} more"] if len(self.refused) > len(refused) else []
        told = [
            f"{self.after.name} compared with {self.before.name}: {counted(len(self.channels), 'channel')} compared"
            f", {len(self.separate):,} read one run at a time, {len(self.refused):,} refused" + (":" if refused else "")
        ]
        return "\n".join([*told, *refused, *more])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.after.name} compared with {self.before.name}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the captures that were opened for it."""
        for view in self.opened:
            view.close()

    # -- what is compared

    @property
    def channels(self) -> Mapping[str, Channel]:
        """Channels that are compared, described as differences or ratios, in the order of the second side."""
        return {name: one.channel for name, one in self._all().items() if one.channel is not None}

    @property
    def refused(self) -> Mapping[str, str]:
        """Channels that cannot be compared, and why, as one line each."""
        return {name: one.reason for name, one in self._all().items() if one.reason}

    @property
    def separate(self) -> tuple[str, ...]:
        """Channels of both sides whose numbers are read one run at a time, as they declare."""
        return tuple(name for name, one in self._all().items() if one.separate)

    def _all(self) -> dict[str, Verdict]:
        """The verdict on every channel of either side; names added since the last call count too."""
        names = list(dict.fromkeys((*self.after.view.channels, *self.before.view.channels)))
        counts: dict[str, object] = {}
        for name in names:
            for domain in self._domains(name):
                if self._label_names is not None and domain not in counts:
                    counts[domain] = self._label_names.count(domain)
        if counts != self._counts:
            self._counts, self._verdicts = counts, {}
        return {name: self._verdict(name) for name in names}

    def _domains(self, name: str) -> set[str]:
        channel = self.after.view.channels.get(name)
        return set() if channel is None else {channel.domain(dim) for dim in channel.dims}

    def _verdict(self, name: str) -> Verdict:
        """The verdict on a channel, found again when either side has grown or has a new description."""
        key = tuple(
            side.view.revision(name, side.frame) if name in side.view.channels else -1
            for side in (self.before, self.after)
        )
        known = self._verdicts.get(name)
        if known is None or known[0] != key:
            known = self._verdicts[name] = (key, self._judged(name))
        return known[1]

    def _judged(self, name: str) -> Verdict:
        verdict = judge(name, self.before, self.after, self._label_names)
        if not self.edited or verdict.channel is None or verdict.channel.compare == "ratio":
            return verdict
        told = counts_as_none(self.after.view.channel(name, self.after.frame))
        return replace(verdict, channel=replace(verdict.channel, method=f"{verdict.channel.method}; {told}"))

    def channel(self, name: str, frame: int = -1) -> Channel:
        """The description of a channel's comparison. Raises CaptureError, with the reason, where there is none."""
        verdict = self._verdict(name)
        if verdict.channel is None:
            reason = "It is read one run at a time." if verdict.separate else verdict.reason
            raise CaptureError(f"{name} is not compared: {reason}")
        return verdict.channel

    def frame_of(self, name: str, frame: int = -1) -> int:
        """The frame of the second side."""
        return self.after.view.frame_of(name, self.after.frame)

    def revision(self, name: str, frame: int = -1) -> int:
        """Grows with either side; 0 where they are not compared."""
        if self._verdict(name).channel is None:
            return 0
        return sum(side.view.revision(name, side.frame) for side in (self.before, self.after))

    def extent(self, name: str, frame: int = -1) -> tuple[int, ...]:
        """The shape that both have in common."""
        self.channel(name)
        return self._verdict(name).extent

    # -- numbers

    def array(self, name: str, frame: int = -1) -> Array:
        """The whole difference, or ratio, as floats."""
        return self.block(name, frame)

    def block(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> Array:
        """A region of it; no more than that is read of both sides. NaN where either is not known."""
        channel, cut = self.channel(name), self._cut(name, region)
        dtype = np.dtype(channel.dtype)
        before, after = (
            side.view.block(name, side.frame, cut).astype(dtype, copy=False) for side in (self.before, self.after)
        )
        with np.errstate(all="ignore"):
            if channel.compare == "ratio":
                ratio: Array = np.where((before == 0) & (after == 0), dtype.type(1), after / before)
                return ratio
            difference: Array = after - before
            if self.edited:
                difference[np.abs(difference) <= self._rounding(name, cut)] = 0
        return difference

    def _rounding(self, name: str, cut: tuple[slice, ...]) -> Array:
        """What equal runs may differ by in a region."""
        sides = [(side.view, side.view.channel(name, side.frame), side.frame) for side in (self.before, self.after)]
        first, second = (rounding_of(view, channel, frame, cut) for view, channel, frame in sides)
        larger: Array = np.maximum(first, second)
        return larger

    def _cut(self, name: str, region: tuple[slice, ...]) -> tuple[slice, ...]:
        """A region within the common shape, with its ends written out: the sides may be longer."""
        return within(region, self.extent(name))

    def overview(
        self, name: str, frame: int = -1, *, region: tuple[slice, ...] = (), size: tuple[int, ...] = (1000, 1000)
    ) -> tuple[Array, Array]:
        """(minima, maxima) over a region, in at most `size` cells; see `Capture.overview`. It is read part by part."""
        return overview_by_parts(lambda cut: self.block(name, frame, cut), self._cut(name, region), size)

    # -- what is not known

    def holes(self, name: str, frame: int = -1) -> Holes:
        """The cells that are not known of one side or the other, within the common shape."""
        extent = self.extent(name)
        both = self.before.view.holes(name, self.before.frame) | self.after.view.holes(name, self.after.frame)
        return Holes(_cut_boxes(both.missing, extent), _cut_boxes(both.damaged, extent))

    def known(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> npt.NDArray[np.bool_]:
        """True for every cell of a region that is known of both sides."""
        cut = self._cut(name, region)
        before, after = (side.view.known(name, side.frame, cut) for side in (self.before, self.after))
        return before & after

    def damage_of(self, name: str, frame: int = -1) -> tuple[Damage, ...]:
        """What is lost of one side or the other; where these are two captures each message names the capture."""
        found = [(side, one) for side in (self.before, self.after) for one in side.view.damage_of(name, side.frame)]
        if self.before.view is self.after.view:
            return tuple(dict.fromkeys(one for _, one in found))
        return tuple(replace(one, sentence=f"{side.name}: {one.sentence}") for side, one in found)

    # -- axes

    def labels(self, domain: str, frame: int = -1) -> tuple[str, ...]:
        """Names of the second side."""
        return self.after.view.labels(domain, self.after.frame)

    @property
    def axes(self) -> Mapping[str, Axis]:
        """The axes of the second side."""
        return {name: self.axis(name) for name in self.after.view.axes}

    def axis(self, name: str, frame: int = -1) -> Axis:
        """An axis of the second side."""
        return self.after.view.axis(name, self.after.frame)


def _named(side: Reference, otherwise: str) -> Reference:
    return side if side.name else replace(side, name=otherwise)


def _cut_boxes(boxes: tuple[Box, ...], extent: tuple[int, ...]) -> tuple[Box, ...]:
    """The parts of some boxes that lie within a shape."""
    cut = (tuple((first, min(stop, n)) for (first, stop), n in zip(box, extent, strict=True)) for box in boxes)
    return tuple(box for box in cut if all(first < stop for first, stop in box))
