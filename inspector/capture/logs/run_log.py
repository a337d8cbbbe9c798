"""What readers know of one run: its curves, histograms, configuration, events, and what could not be read.

A step that falls back is a restart: from there on the later points stand and the earlier ones are forgotten, as they
belong to a training that was given up. Two neighbours in the wrong order are put in order instead, since writers with
threads swap them. Counter-example: points that are logged three or more places late are taken for a restart.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np

from inspector.capture.damage import Damage
from inspector.capture.logs.curves import Block, Curve, Curves
from inspector.records import Event
from inspector.records.plain_text import plain_line, plain_sentence

MOST_CURVES = 20_000
MOST_TOLD = 200
"""Sentences about damage, and events, that are kept; more are counted."""
PENDING = 1 << 16
"""Points that wait as Python numbers before they are packed."""
FILE_BITS = 42
"""A histogram is found by `file << FILE_BITS | offset`, which a float64 holds exactly for 2,048 files of 4 TB."""
TIME, EPOCH, TOKENS = "time", "epoch", "tokens"
NOTHING: Mapping[str, float] = {}


class Pending:
    """Points of one curve that are not packed yet: iterations, values, times, and further coordinates where known."""

    __slots__ = ("bins", "histogram", "iterations", "others", "times", "values")

    def __init__(self, histogram: bool) -> None:
        self.iterations: list[float] = []
        self.values: list[float] = []
        self.times: list[float] = []
        self.others: dict[str, list[float]] = {}
        self.histogram, self.bins = histogram, 0

    def add(self, step: float, value: float, time: float, others: Mapping[str, float] = NOTHING) -> None:
        """One more point."""
        for name, number in others.items():
            own = self.others.setdefault(name, [])
            own += [math.nan] * (len(self.iterations) - len(own))
            own.append(number)
        self.iterations.append(step)
        self.values.append(value)
        self.times.append(time)

    def block(self) -> Block:
        """All of them, packed; the lists are empty then."""
        count = len(self.iterations)
        columns = {TIME: self.times, **{n: own + [math.nan] * (count - len(own)) for n, own in self.others.items()}}
        made = Block(
            np.array(self.iterations, np.float64), np.array(self.values, np.float64),
            {name: np.array(own, np.float64) for name, own in columns.items()},
        )  # fmt: skip
        self.iterations, self.values, self.times, self.others = [], [], [], {}
        return made


class RunLog:
    """One run of a log.

    Attributes:
        name: as it is chosen (`--run NAME`); title: as it is shown.
        config, summary, texts: what the format has of settings, closing numbers and notes.
        status: "done", "failed", or "" where the format does not say.
        along: what its points are numbered by, "iteration" or "epoch".
        cleared: how often all was forgotten, because a file was replaced; changes: how often anything changed.
        is_root: whether it is the run of the folder, or of the file, that was opened.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.cleared = self.changes = 0
        self.is_root = False
        self._forget()

    def _forget(self) -> None:
        self.title, self.status, self.along, self.begin = self.name, "", "iteration", math.nan
        self.curves = Curves()
        self.config: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}
        self.texts: dict[str, str] = {}
        self.events: list[Event] = []
        self.damage: list[Damage] = []
        self.more_damage = self.session = self.file = 0
        self._pending: dict[str, Pending] = {}
        self._waiting = 0
        self._full = False

    def clear(self) -> None:
        """Forget everything: a file is read anew."""
        self.cleared += 1
        self.changes += 1
        self._forget()

    # -- what readers say

    def pending(self, name: str, *, histogram: bool = False) -> Pending | None:
        """Where points of a curve are put; None where there are too many curves, or of another kind."""
        found = self._pending.get(name)
        if found is None:
            known = self.curves.by_name.get(name)
            if known is None and not self._room_for(name):
                return None
            found = self._pending[name] = Pending(histogram if known is None else known.histogram)
        return found if found.histogram is histogram else None

    def point(self, name: str, step: float, value: float, time: float = math.nan) -> None:
        """One point of a curve."""
        self.row(step, {name: value}, time)

    def row(
        self, step: float, values: Mapping[str, float], time: float = math.nan, others: Mapping[str, float] = NOTHING
    ) -> None:
        """Numbers that were logged together; `others` are further coordinates by name, such as EPOCH and TOKENS."""
        if not math.isfinite(step):
            return
        for name, value in values.items():
            pending = self.pending(name)
            if pending is not None:
                pending.add(step, value, time, others)
        self._waiting += len(values)
        if self._waiting > PENDING:
            self.flush()

    def histogram(self, name: str, step: float, where: int, bins: int, time: float = math.nan) -> None:
        """A histogram with so many bins, which the reader finds again at `where` in the present file."""
        pending = self.pending(name, histogram=True)
        if pending is None or bins < 1 or not math.isfinite(step) or not 0 <= where < 1 << FILE_BITS:
            return
        pending.add(step, float(self.file << FILE_BITS | where), time)
        pending.bins = max(pending.bins, bins)

    def lose(self, file: str, offset: int | None, what: str) -> None:
        """Something could not be read: where, and what, as the end of a sentence."""
        self.changes += 1
        if len(self.damage) >= MOST_TOLD:
            self.more_damage += 1
            return
        place = file if offset is None else f"{file}, byte {offset:,}"
        self.damage.append(Damage("", -1, None, plain_sentence(f"{place}: {what.rstrip('.')}."), anywhere=True))

    def restart(self, step: float) -> None:
        """The format itself says that training began again at a step: what came later is forgotten."""
        self.flush()
        for curve in self.curves.by_name.values():
            self._go_back(curve, step)
        self.curves.trim()

    def text(self, name: str, value: str) -> None:
        """A note; the last one of a name stands."""
        if len(self.texts) < MOST_TOLD or name in self.texts:
            self.texts[plain_line(name)] = value[:10_000]

    # -- packing

    def flush(self) -> None:
        """Pack what waits."""
        self._waiting = 0
        for name, pending in self._pending.items():
            if pending.iterations:
                curve = self._curve(name, histogram=pending.histogram)
                curve.bins = max(curve.bins, pending.bins)
                self._put(curve, pending.block())
        self.curves.trim()

    def _curve(self, name: str, *, histogram: bool = False) -> Curve:
        found = self.curves.by_name.get(name)
        if found is None:
            found = self.curves.by_name[name] = Curve(name, histogram=histogram)
            found.session = self.session
        return found

    def _room_for(self, name: str) -> bool:
        if len(self.curves.by_name) + len(self._pending) < MOST_CURVES:
            return True
        if not self._full:
            self._full = True
            self.lose(self.name, None, f"{name!r} and further names are left out: {MOST_CURVES:,} curves are read")
        return False

    def _put(self, curve: Curve, block: Block) -> None:
        """Append a block: at once where its iterations do not decrease, else piece by piece."""
        self.changes += 1
        if curve.file > self.file:
            return  # a later file has this curve
        if curve.file < self.file:
            if len(curve) and block.iterations[0] <= curve.iterations[-1]:
                self._go_back(curve, float(block.iterations[0]))
            curve.file = self.file
        falls = (np.flatnonzero(np.diff(block.iterations) < 0) + 1).tolist()
        start, count = 0, len(block.iterations)
        while start < count:
            if len(curve) and block.iterations[start] < curve.iterations[-1]:
                if not self._is_swap(curve, float(block.iterations[start])):
                    self._go_back(curve, float(block.iterations[start]))
                    continue
                self._insert_before_last(curve, block[start : start + 1])
                start += 1
                continue
            next_fall = bisect_right(falls, start)
            stop = falls[next_fall] if next_fall < len(falls) else count
            self.curves.append(curve, block[start:stop])
            start = stop

    @staticmethod
    def _is_swap(curve: Curve, step: float) -> bool:
        last = curve.iterations[-2:]
        return len(last) == 2 and step > last[0] and step != last[1]

    def _insert_before_last(self, curve: Curve, point: Block) -> None:
        """A point that came one place late."""
        step, value = float(curve.iterations[-1]), float(curve.values.now[-1])
        assert curve.axis is not None
        at = len(curve) - 1
        others = {
            name: own.now[at : at + 1].copy() for name, own in curve.axis.others.items() if len(own) > at
        }  # fmt: skip
        self.curves.cut(curve, at)
        self.curves.append(curve, point)
        self.curves.append(curve, Block(np.array([step]), np.array([value]), others))

    def _go_back(self, curve: Curve, step: float) -> None:
        """Training began again at a step: forget the points of a curve from there on. One event for all curves."""
        keep = int(np.searchsorted(curve.iterations, step, "left"))
        if keep == len(curve):
            return
        self.changes += 1
        if curve.session == self.session:
            self.session += 1
            last = float(curve.iterations[-1])
            self._note(step, f"training began again here, after {self.along} {last:.15g}")
        curve.session = self.session
        self.curves.cut(curve, keep)

    def _note(self, step: float, what: str) -> None:
        if len(self.events) < MOST_TOLD:
            self.events.append(Event(step, "restart", what))
