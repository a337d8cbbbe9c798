"""What curves do in a range of steps: first, last, least, largest, mean, standard deviation, change. numpy only.

Sums are float64, block by block: means and squares of deviations are merged as in Chan, Golub and LeVeque (1979,
"Updating formulae and a pairwise algorithm for computing sample variances"), so that a long range of numbers far from 0
loses no digits. Numbers whose squares a float64 cannot hold are scaled by a power of two before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import Capture
from inspector.records import Channel

Array = npt.NDArray[Any]
Ranges = tuple[tuple[int, int], ...]
"""(first, last) step of each part of a range, in order, apart."""
UNSCALED = 400
"""Binary exponents up to which a number is taken as it is: 2¹⁰²⁴ over- and 2⁻¹⁰⁷⁴ underflows, and it is squared."""
BLOCK = 1 << 19
"""Numbers that are read at a time: some milliseconds."""
COLUMNS = ("first", "last", "change", "least", "largest", "mean", "sd", "NaN", "∞", "not there")
WALKED = ("step", "query")
"""Dims of steps along which curves go."""


@dataclass(slots=True)
class Statistics:
    """Of each curve of a channel; least, largest, mean and deviation are those of its finite numbers."""

    curves: int
    steps: int = 0
    first: Array = field(init=False)
    last: Array = field(init=False)
    least: Array = field(init=False)
    largest: Array = field(init=False)
    nan: Array = field(init=False)
    infinite: Array = field(init=False)
    unknown: Array = field(init=False)
    """How many numbers are NaN, are ±∞, and are not there: not written yet, or damaged."""
    ends: npt.NDArray[np.bool_] = field(init=False)
    """(2, curve) whether the first and the last number are there."""
    _count: Array = field(init=False)
    _exponent: Array = field(init=False)
    """Mean and squares are those of the numbers times 2**−exponent, of each curve."""
    _mean: Array = field(init=False)
    _squares: Array = field(init=False)

    def __post_init__(self) -> None:
        n = self.curves
        self.first, self.last = np.full(n, np.nan), np.full(n, np.nan)
        self.ends = np.zeros((2, n), np.bool_)
        self.least, self.largest = np.full(n, np.inf), np.full(n, -np.inf)
        self._mean, self._squares, self._exponent = np.zeros(n), np.zeros(n), np.zeros(n, np.int32)
        self.nan, self.infinite, self.unknown, self._count = (np.zeros(n, np.int64) for _ in range(4))

    def add(self, values: npt.NDArray[np.float64], known: npt.NDArray[np.bool_] | None = None) -> None:
        """The next steps, (step, curve); `known` is False where there is no number, None where there are all."""
        if not len(values):
            return
        there = np.ones((1, self.curves), np.bool_) if known is None else known
        if not self.steps:
            self.first, self.ends[0] = np.where(there[0], values[0], np.nan), there[0]
        self.last, self.ends[1] = np.where(there[-1], values[-1], np.nan), there[-1]
        self.steps += len(values)
        finite = np.isfinite(values)
        if finite.all():  # as nearly all are: arithmetic that need not look at each number is several times as fast
            self._merge(values, np.full(self.curves, len(values)), True)
            return
        finite &= there
        self.nan += (np.isnan(values) & there).sum(0)
        self.infinite += (np.isinf(values) & there).sum(0)
        self.unknown += (~there).sum(0) if known is not None else 0
        self._merge(values, finite.sum(0), finite)

    def _merge(self, values: npt.NDArray[np.float64], count: Array, where: Any) -> None:
        """Finite numbers, where they are."""
        self.least = np.minimum(self.least, values.min(0, where=where, initial=np.inf))
        self.largest = np.maximum(self.largest, values.max(0, where=where, initial=-np.inf))
        values = self._scaled(values)
        mean = values.sum(0, where=where) / np.maximum(count, 1)
        with np.errstate(invalid="ignore"):
            apart = values - mean
        squares = (np.multiply(apart, apart, out=apart)).sum(0, where=where)
        both = np.maximum(self._count + count, 1)
        away = np.where(count > 0, mean - self._mean, 0.0)
        self._squares += squares + away**2 * self._count * count / both
        self._mean += away * count / both
        self._count += count

    def _scaled(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Numbers that can be squared, whatever their size; what was added before is scaled in the same way."""
        size = np.maximum(np.abs(self.least), np.abs(self.largest))
        exponent = np.frexp(np.where(np.isfinite(size), size, 0.0))[1]
        exponent[np.abs(exponent) <= UNSCALED] = 0
        before, self._exponent = self._exponent - exponent, exponent
        if before.any():
            self._mean, self._squares = np.ldexp(self._mean, before), np.ldexp(self._squares, 2 * before)
        return np.ldexp(values, -exponent) if exponent.any() else values

    def add_unknown(self, steps: int) -> None:
        """Steps that the channel has not come to."""
        if steps:  # the first number is one of them where nothing came before, and is NaN as it was
            self.unknown += steps
            self.steps += steps
            self.last, self.ends[1] = np.full(self.curves, np.nan), False

    @property
    def mean(self) -> Array:
        """The mean of the numbers; 0 where there are none."""
        found: Array = np.ldexp(self._mean, self._exponent)
        return found

    @property
    def deviation(self) -> Array:
        """The standard deviation of the numbers, divided by their count; NaN where there are none."""
        scaled = np.ldexp(np.sqrt(self._squares / np.maximum(self._count, 1)), self._exponent)
        found: Array = np.where(self._count > 0, scaled, np.nan)
        return found

    def table(self) -> npt.NDArray[np.float64]:
        """(curve, column): see COLUMNS."""
        none = self._count == 0
        with np.errstate(invalid="ignore", over="ignore"):
            change = self.last - self.first
        ends = [np.where(none, np.nan, one) for one in (self.least, self.largest, self.mean)]
        found = (self.first, self.last, change, *ends, self.deviation, self.nan, self.infinite, self.unknown)
        return np.stack([np.asarray(one, np.float64) for one in found], axis=1)


def step_axis(channel: Channel) -> int | None:
    """Which axis of a channel is that of the steps of its curves; None where it has no curves over steps: maps of steps
    by steps, tables of words, single numbers."""
    walked = [axis for axis, dim in enumerate(channel.dims) if dim in WALKED]
    if len(walked) != 1 or len(channel.dims) > 2 or channel.value_domain:
        return None
    steps = channel.domain(channel.dims[walked[0]])
    others = (channel.domain(dim) for axis, dim in enumerate(channel.dims) if axis != walked[0])
    return walked[0] if steps not in others else None


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The steps of ranges that may overlap, as ranges that do not."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)


def read(view: Capture, channel: Channel, frame: int, ranges: Ranges, found: Statistics) -> Iterator[None]:
    """Add the numbers of a channel in a range of steps to `found`, some at a time."""
    axis = step_axis(channel)
    assert axis is not None
    there = view.extent(channel.name, frame)[axis]
    whole = channel.shape[axis]
    length = there if whole is None else max(there, whole)
    rows = max(1, BLOCK // max(1, found.curves))
    for first, last in ranges:
        stop = min(last + 1, there)
        for start in range(first, stop, rows):
            found.add(*_block(view, channel, frame, axis, slice(start, min(stop, start + rows))))
            yield
        found.add_unknown(max(0, min(last + 1, length) - max(first, there)))


def curves_of(view: Capture, channel: Channel, frame: int) -> int:
    """How many curves a channel has."""
    axis = step_axis(channel)
    return int(np.prod([n for at, n in enumerate(view.extent(channel.name, frame)) if at != axis], dtype=np.int64))


def _block(
    view: Capture, channel: Channel, frame: int, axis: int, cut: slice
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_] | None]:
    """(step, curve) numbers, and which of them are there, where not all are."""
    region = tuple(cut if at == axis else slice(None) for at in range(len(channel.dims)))
    given = view.block(channel.name, frame, region)
    values = _by_step(np.ma.filled(np.ma.asarray(given).astype(np.float64), np.nan), axis)
    if not np.isnan(values).any():
        return values, None
    known = _by_step(view.known(channel.name, frame, region), axis)
    return values, known if known.shape == values.shape else None


def _by_step(values: Array, axis: int) -> Array:
    return np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
