"""One side of a comparison along aligned steps: what the other side alone has is a gap, neither a number nor known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.by_parts import overview_by_parts, within
from inspector.capture.comparable import FROM_THE_FIRST, Reference
from inspector.capture.comparing.alignment import Alignment, Positions, align
from inspector.capture.damage import Box
from inspector.capture.holes import Holes
from inspector.capture.view import View
from inspector.records import Axis, Channel

Array = npt.NDArray[Any]
STEPS = FROM_THE_FIRST - {"lag", "iteration"}
"""Dims of which each position is one of a sequence: lag 3 lies between two of them."""


class Aligned:
    """A View of another view along other positions of some label domains; everything else is its own.

    `sides`: by label domain the alignment, and the positions of this side in it.
    """

    since = None
    """Which rows are new is known of the view's own steps alone: all of an aligned array is drawn again."""

    def __init__(self, view: View, sides: Mapping[str, tuple[Alignment, Positions]]) -> None:
        self.view, self.start, self.sides = view, view.start, sides
        self._known: list[Channel] = []
        self._channels: dict[str, Channel] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.view, name)

    def _aligned(self, channel: Channel) -> dict[int, Positions]:
        """By axis number the positions of those axes that are aligned."""
        by_axis = {n: self.sides.get(channel.domain(dim)) for n, dim in enumerate(channel.dims)}
        return {n: side[1] for n, side in by_axis.items() if side is not None}

    @property
    def channels(self) -> Mapping[str, Channel]:
        """The same, with what was aligned in their method; made again where there are others."""
        own = self.view.channels
        known = list(own.values())
        if known != self._known:  # elements that are the same object are not compared further
            self._known, self._channels = known, {name: self._described(channel) for name, channel in own.items()}
        return self._channels

    def channel(self, name: str, frame: int = -1) -> Channel:
        """The same, with what was aligned in its method."""
        return self._described(self.view.channel(name, frame))

    def _described(self, channel: Channel) -> Channel:
        found = self._aligned(channel)
        if not found:
            return channel
        shape = tuple(len(found[n]) if n in found else length for n, length in enumerate(channel.shape))
        told = dict.fromkeys(self.sides[channel.domain(channel.dims[n])][0].sentence for n in found)
        return replace(channel, shape=shape, method="; ".join((channel.method, *told)), fill=None)

    def extent(self, name: str, frame: int = -1) -> tuple[int, ...]:
        """The shape along the aligned positions; 0 along all of these while there are no numbers."""
        found, own = self._aligned(self.view.channel(name, frame)), self.view.extent(name, frame)
        return tuple(len(found[n]) if n in found and length else length for n, length in enumerate(own))

    # -- numbers

    def array(self, name: str, frame: int = -1) -> Array:
        """The whole array; a gap as what is not known."""
        return self.block(name, frame)

    def block(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> Array:
        """A region of it: NaN in a gap, of whole numbers masked."""
        taken, gap = self._taken(name, frame, region, self.view.block)
        if not gap.any():
            return taken
        if taken.dtype.kind == "f":
            return np.where(gap, taken.dtype.type(np.nan), taken)
        return np.ma.MaskedArray(np.ma.getdata(taken), mask=np.ma.getmaskarray(taken) | gap)

    def known(self, name: str, frame: int = -1, region: tuple[slice, ...] = ()) -> npt.NDArray[np.bool_]:
        """False in a gap."""
        taken, gap = self._taken(name, frame, region, self.view.known)
        known: npt.NDArray[np.bool_] = taken & ~gap
        return known

    def _taken(self, name: str, frame: int, region: tuple[slice, ...], read: Any) -> tuple[Array, Array]:
        """(what is read at the positions of a region, which cells of it are gaps)."""
        found, own = self._aligned(self.view.channel(name, frame)), self.view.extent(name, frame)
        cuts = list(within(region, self.extent(name, frame)))
        if not found:
            return read(name, frame, tuple(cuts)), np.zeros((), np.bool_)
        picked, gap = {}, np.zeros([1] * len(own), np.bool_)
        for axis, positions in found.items():
            here = positions[cuts[axis]]
            missing = (here < 0) | (here >= own[axis])
            inside = here[~missing]
            first, stop = (int(inside.min()), int(inside.max()) + 1) if len(inside) else (0, min(1, own[axis]))
            cuts[axis] = slice(first, stop)
            picked[axis] = np.where(missing, first, here) - first
            gap = gap | missing.reshape([-1 if n == axis else 1 for n in range(len(own))])
        values = read(name, frame, tuple(cuts))
        for axis, where in picked.items():
            values = values.take(where, axis=axis)
        return values, np.broadcast_to(gap, values.shape)

    def overview(
        self, name: str, frame: int = -1, *, region: tuple[slice, ...] = (), size: tuple[int, ...] = (1000, 1000)
    ) -> tuple[Array, Array]:
        """(minima, maxima) over a region, in at most `size` cells; see `Capture.overview`. It is read part by part."""
        cuts = within(region, self.extent(name, frame))
        return overview_by_parts(lambda cut: self._floats(name, frame, cut), cuts, size)

    def _floats(self, name: str, frame: int, cut: tuple[slice, ...]) -> Array:
        values = self.block(name, frame, cut)
        return values if values.dtype.kind == "f" else np.ma.filled(values.astype(np.float64), np.nan)

    # -- what is not known

    def holes(self, name: str, frame: int = -1) -> Holes:
        """The gaps, and what the side itself does not know."""
        channel, own = self.view.channel(name, frame), self.view.extent(name, frame)
        extent, found = self.extent(name, frame), self._aligned(channel)
        whole = tuple((0, n) for n in extent)
        gaps = [
            (*whole[:axis], run, *whole[axis + 1 :])
            for axis, positions in found.items()
            for run in _runs((positions < 0) | (positions >= own[axis]))
        ]
        held = self.view.holes(name, frame)
        missing, damaged = ([*self._moved(boxes, found)] for boxes in (held.missing, held.damaged))
        return Holes((*gaps, *missing), tuple(damaged)) if all(extent) else Holes()

    def _moved(self, boxes: tuple[Box, ...], found: Mapping[int, Positions]) -> Iterator[Box]:
        """Boxes of the side's own cells at the aligned positions."""
        for box in boxes:
            moved: list[Box] = [box]
            for axis, positions in found.items():
                first, stop = box[axis]
                runs = _runs((positions >= first) & (positions < stop))
                moved = [(*one[:axis], run, *one[axis + 1 :]) for one in moved for run in runs]
            yield from moved

    # -- axes

    def labels(self, domain: str, frame: int = -1) -> tuple[str, ...]:
        """The common names, and with a mark those of one side only."""
        side = self.sides.get(domain)
        return self.view.labels(domain, frame) if side is None else side[0].names

    @property
    def axes(self) -> Mapping[str, Axis]:
        """The axes, as long as they are now."""
        return {name: self.axis(name) for name in self.view.axes}

    def axis(self, name: str, frame: int = -1) -> Axis:
        """One of them."""
        found, side = self.view.axis(name, frame), self.sides.get(name)
        return found if side is None else replace(found, length=len(side[1]))


def _runs(marked: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(first, stop) of each run of marked positions."""
    found = [(key, [n for n, _ in own]) for key, own in groupby(enumerate(marked.tolist()), key=lambda pair: pair[1])]
    return [(own[0], own[-1] + 1) for key, own in found if key]


def aligned(before: Reference, after: Reference) -> tuple[Reference, Reference, dict[str, Alignment]]:
    """Both sides along steps that are aligned by their names, where these differ; and what was aligned, by domain.

    Only step-like axes in a line are aligned: unit 3 of one side is not unit 5 of the other, whatever they are called,
    and a patch of a grid has a row and a column. Sequences that have nothing in common stay as they are. Raises
    CaptureError where they are too long.
    """
    found: dict[str, Alignment] = {}
    for domain in sorted(_step_domains(before) & _step_domains(after)):
        names = [side.view.labels(domain, side.frame) for side in (before, after)]
        if all(names) and names[0] != names[1]:
            made = align(*names)
            if made.common:
                found[domain] = made
    if not found:
        return before, after, {}
    sides = [{domain: (one, getattr(one, which)) for domain, one in found.items()} for which in ("first", "second")]
    first, second = (replace(one, view=Aligned(one.view, own)) for one, own in zip((before, after), sides, strict=True))
    return first, second, found


def _step_domains(side: Reference) -> set[str]:
    named = {c.domain(dim) for c in side.view.channels.values() for dim in c.dims if dim in STEPS}
    return {domain for domain in named if side.view.axis(domain, side.frame).layout == "line"}
