"""How well units, gates and heads track a mark on the steps of a sequence, and after how many steps. numpy only.

The score of a unit at delay d is the point-biserial correlation, which is Pearson's of a mark of 0 and 1 (Tate 1954,
"Correlation between a discrete and a continuous variable"), between the mark at step t and the unit's value at t + d.
Of a head it is that between the mark at step k and the weight that query k + d gives to key k: whether it attends to
what is marked, more than to what is not, from d steps later. Only steps at which both exist and the value is finite
count. What the best of many would reach by chance is told by shifting the mark around the sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import Capture
from inspector.records import Channel

Array = npt.NDArray[Any]
Marks = npt.NDArray[np.bool_]
FEWEST = 3
"""Steps that a correlation needs."""
LISTED = 40
"""Tracks of a channel that are kept."""
MOST_ENTRIES = 1 << 24
"""Numbers of a state that are read: 100,000 steps of 160 units; the first steps of more."""
MOST_WEIGHTS = 1 << 28
"""Weights of a map that are read: 12 heads of 4,700 steps."""
BLOCK = 64
"""Units, or queries, that are computed together."""
LEAST_SHIFTS = 5
"""Shifts of the mark from which something is said of chance."""


@dataclass(frozen=True, slots=True)
class Track:
    """One unit or head of a channel that follows the mark: `r` at `delay`, the delay at which |r| is largest."""

    channel: str
    number: int
    delay: int
    r: float


@dataclass(frozen=True, slots=True)
class Tracked:
    """What was found of a channel: its best tracks, |r| that the best of it reaches by chance in one of twenty cases
    (NaN where the sequence is too short to say), and the steps that were read; `why` nothing was, "" where it was."""

    channel: str
    tracks: tuple[Track, ...] = ()
    chance: float = np.nan
    steps: int = 0
    why: str = ""


def correlations(values: Array, mark: Marks, longest: int) -> npt.NDArray[np.float64]:
    """(longest + 1, units): r of the mark at t with values (steps, units) at t + d, for d = 0 … longest; NaN where one
    of them does not vary, or fewer than three steps are known."""
    known = np.isfinite(values)
    with np.errstate(all="ignore"):
        centre = np.where(known, values, 0.0).sum(0, dtype=np.float64) / known.sum(0)
    centred = np.where(known, values - centre, 0.0).astype(np.float64)
    found = np.full((longest + 1, values.shape[1]), np.nan)
    for delay in range(min(longest + 1, len(mark))):
        at = mark[: len(mark) - delay].astype(np.float64)
        found[delay] = _pearson(centred[delay:], known[delay:].astype(np.float64), at)
    return found


def _pearson(values: Array, known: Array, mark: Array) -> npt.NDArray[np.float64]:
    """Of (steps, units) values, 0 where they are not known, with a mark (steps,)."""
    count, of_mark = known.sum(0), mark @ known
    total, squares, product = values.sum(0), (values * values).sum(0), mark @ values
    with np.errstate(all="ignore"):
        spread = (count * of_mark - of_mark**2) * (count * squares - total**2)
        r = (count * product - of_mark * total) / np.sqrt(spread)
    constant = count * squares - total**2 <= 1e-12 * np.maximum(count * squares, 1e-300)
    r[constant | (count < FEWEST) | (of_mark == 0) | (of_mark == count)] = np.nan
    return np.asarray(np.clip(r, -1, 1))


def by_chance(values: Array, mark: Marks, longest: int) -> npt.NDArray[np.float64]:
    """(shifts,) max |r| over units and longest + 1 delays when the mark is shifted around the sequence, by more than
    the delays on both sides; empty where fewer than five such shifts do not overlap."""
    steps, width = len(mark), longest + 1
    shifts = range(2 * width, steps - 2 * width, width)
    if len(shifts) < LEAST_SHIFTS or not 0 < mark.sum() < steps:
        return np.zeros(0)
    safe = np.where(np.isfinite(values), values, np.nan)
    with np.errstate(all="ignore"):
        centred = np.nan_to_num(safe - np.nanmean(np.where(np.isfinite(safe), safe, 0.0), axis=0), nan=0.0)
    centred -= centred.mean(0)
    norm = np.sqrt((centred**2).sum(0)) * np.sqrt(steps * mark.mean() * (1 - mark.mean()))
    turned = np.conj(np.fft.rfft(mark - mark.mean()))[:, None]
    with np.errstate(all="ignore"):
        around = np.fft.irfft(np.fft.rfft(centred, axis=0) * turned, n=steps, axis=0) / norm
    largest = np.nanmax(np.where(np.isfinite(around), np.abs(around), 0.0), axis=1)
    return np.array([largest[one : one + width].max() for one in shifts])


def chance(shifted: Array, *more: Array) -> float:
    """The 95th percentile of the best over several groups of units of the same shifts; NaN where there are none."""
    best = np.max((shifted, *more), axis=0)
    return float(np.percentile(best, 95)) if len(best) else float("nan")


def track(capture: Capture, channel: Channel, frame: int, mark: Marks, longest: int) -> Tracked:
    """The best units of a (step, unit) channel, or heads of a (head, query, key) channel."""
    longest = longest_delay(len(mark), longest)
    if channel.kind == "attention":
        return _heads(capture, channel, frame, mark, longest)
    steps, units = capture.extent(channel.name, frame)
    steps = min(steps, len(mark), max(FEWEST, MOST_ENTRIES // max(1, units)))
    found, shifted = np.zeros((longest + 1, units)), []
    for first in range(0, units, BLOCK):
        cut = (slice(0, steps), slice(first, min(units, first + BLOCK)))
        values = _floats(capture.block(channel.name, frame, cut))
        found[:, cut[1]] = correlations(values, mark[:steps], longest)
        shifted.append(by_chance(values, mark[:steps], longest))
    return Tracked(channel.name, best(channel.name, found), chance(*shifted), steps)


def longest_delay(steps: int, asked: int) -> int:
    """The longest delay of a sequence: at least half of its steps, and three, have a value that much later. Of fewer
    the best of many delays would be one at which a handful of steps agree by chance."""
    return max(0, min(asked, steps // 2, steps - FEWEST))


def _heads(capture: Capture, channel: Channel, frame: int, mark: Marks, longest: int) -> Tracked:
    heads, queries, keys = capture.extent(channel.name, frame)
    steps = min(queries, keys, len(mark))
    if heads * steps * steps > MOST_WEIGHTS:
        return Tracked(channel.name, why=f"{heads} heads of {steps:,} steps have more weights than are read here")
    found, shifted = np.full((longest + 1, heads), np.nan), []
    for head in range(heads):
        given = diagonals(capture, channel.name, frame, head, steps, longest)
        for delay in range(longest + 1):
            found[delay, head] = correlations(given[:, delay : delay + 1], mark[:steps], 0)[0, 0]
        shifted.append(by_chance(given, mark[:steps], 0))
    return Tracked(channel.name, best(channel.name, found), chance(*shifted), steps)


def diagonals(capture: Capture, name: str, frame: int, head: int, steps: int, longest: int) -> npt.NDArray[np.float64]:
    """(steps, longest + 1): the weight that query k + d gives to key k; NaN where there is no such query, or it may
    not attend to that key."""
    found = np.full((steps, longest + 1), np.nan)
    for first in range(0, steps, BLOCK):
        stop, left = min(steps, first + BLOCK), max(0, first - longest)
        rows = _floats(capture.block(name, frame, (slice(head, head + 1), slice(first, stop), slice(left, stop))))[0]
        for delay in range(longest + 1):
            queries = np.arange(max(first, delay), stop)
            found[queries - delay, delay] = rows[queries - first, queries - delay - left]
    return found


def best(channel: str, found: Array) -> tuple[Track, ...]:
    """Of r (delays, units) the best delay of each, and of these the best by |r|; what has no r is left out."""
    size = np.where(np.isfinite(found), np.abs(found), -1.0)
    delays = size.argmax(0)
    largest = size[delays, np.arange(found.shape[1])]
    order = np.argsort(-largest, kind="stable")[:LISTED]
    return tuple(Track(channel, int(n), int(delays[n]), float(found[delays[n], n])) for n in order if largest[n] >= 0)


def _floats(values: Array) -> npt.NDArray[np.float64]:
    """As float64, NaN where something is not known."""
    return np.ma.filled(np.ma.asarray(values).astype(np.float64), np.nan)


def series(capture: Capture, track_: Track, frame: int, steps: int) -> npt.NDArray[np.float64]:
    """(steps,) what a track is made of: the unit's value at each step, or the weight that key k is given `delay` steps
    later."""
    channel = capture.channels[track_.channel]
    if channel.kind == "attention":
        shown = min(steps, *capture.extent(channel.name, frame)[1:])
        return diagonals(capture, channel.name, frame, track_.number, shown, track_.delay)[:, track_.delay]
    cut = (slice(0, min(steps, capture.extent(channel.name, frame)[0])), slice(track_.number, track_.number + 1))
    return _floats(capture.block(channel.name, frame, cut))[:, 0]
