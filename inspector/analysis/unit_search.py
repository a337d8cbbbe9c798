"""The search of a capture for units that are on in a range of steps, and for where else they are on together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.unit_matching import (
    Match,
    Span,
    choose,
    find_spans,
    neighbourhood,
    score_units,
    share_on,
    states_of,
)
from inspector.capture import Capture
from inspector.records import Channel

Array = npt.NDArray[Any]
Marks = npt.NDArray[np.bool_]
LISTED = 8
"""Units that are listed at least."""


@dataclass(frozen=True)
class Found:
    """What a search found: the listed units, those searched for together, their passages, and what was read for that.

    values and known (t, m) are of the listed units from step `offset` on; the searched units are the first of them.
    """

    threshold: float = 0.0
    matches: list[Match] = field(default_factory=list)
    searched: list[Match] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    offset: int = 0
    values: Array = field(default_factory=lambda: np.zeros((0, 0)))
    known: Marks = field(default_factory=lambda: np.zeros((0, 0), np.bool_))

    def on(self, cut: slice = slice(None)) -> Marks:
        """(t, m) which of the searched units are on, over some of the steps that were read; False where not known."""
        return states_of(self.values[cut, : len(self.searched)], self.searched, self.threshold, self.there(cut))

    def there(self, cut: slice = slice(None)) -> Marks:
        """(t, m) of which of the searched units it is known."""
        return self.known[cut, : len(self.searched)]

    def share(self, cut: slice = slice(None)) -> npt.NDArray[np.float64]:
        """(t,) the share of the searched units that is on; NaN where none of them is known."""
        return share_on(self.on(cut), self.there(cut))

    def how_many(self, step: int) -> str:
        """How many of the searched units are on at a step that was read, of those that are known there."""
        row = slice(step - self.offset, step - self.offset + 1)
        there = int(self.there(row).sum())
        if not there:
            return "unknown"
        unknown = len(self.searched) - there
        return f"{int(self.on(row).sum())} of {there}" + (f", {unknown} unknown" if unknown else "")

    def unknown_steps(self) -> int:
        """At how many of the steps that were read some searched unit is not known."""
        return int((~self.there()).any(1).sum())


def search(
    capture: Capture, channel: Channel, frame: int, chosen: tuple[int, int], threshold: float, most: int
) -> Found:
    """Score the units of a (step, unit) channel over the steps chosen[0] … chosen[1], and search the rest, of which at
    most so many bytes count as one part."""
    first, last = chosen
    steps, units = capture.extent(channel.name, frame)
    start, stop = neighbourhood(first, last, steps)
    values, known = _read(capture, channel, frame, (slice(start, stop), slice(0, units)))
    inside, signed = slice(first - start, last + 1 - start), channel.limits != (0, 1)
    scored = score_units(values, inside, threshold, signed=signed, known=known)
    searched = choose(scored)
    matches = scored[: max(LISTED, len(searched))]
    begin, end = _searched(chosen, steps, most // max(1, units * values.itemsize))
    parts = [
        _read(capture, channel, frame, (slice(begin, end), slice(match.unit, match.unit + 1))) for match in matches
    ]
    empty = np.zeros((end - begin, 0))
    values = np.concatenate([one for one, _ in parts], axis=1) if parts else empty
    known = np.concatenate([one for _, one in parts], axis=1) if parts else empty.astype(np.bool_)
    found = Found(threshold, matches, searched, [], begin, values, known)
    spans = find_spans(found.on(), last - first + 1, (first - begin, last - begin), found.there())
    spans = [Span(s.first + begin, s.last + begin, s.share, s.score) for s in spans]
    return Found(threshold, matches, searched, spans, begin, values, known)


def _searched(chosen: tuple[int, int], steps: int, most: int) -> tuple[int, int]:
    """(begin, end) of the steps that are searched: all, or as many around the range as the budget allows."""
    first, last = chosen
    many = max(last - first + 1, most)
    begin = max(0, min(first - many // 2, steps - many))
    return begin, min(steps, max(begin + many, last + 1))


def _read(capture: Capture, channel: Channel, frame: int, region: tuple[slice, ...]) -> tuple[Array, Marks]:
    """A region, and which of its cells are known; reading is what finds the damage."""
    values = capture.block(channel.name, frame, region)
    holes = capture.holes(channel.name, frame)
    known = capture.known(channel.name, frame, region) if holes else np.ones(values.shape, np.bool_)
    return values, known
