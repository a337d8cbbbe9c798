"""One number of each head for everything that is known of heads: to sort, to group and to filter them by.

A channel of heads is a number of each head as it is, its mean (or least, or largest) over the queries, or one number
for each name along its other axis; numbers of names are words. So a new quantity of heads is a new key here, without
a change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.pyramid import with_nan
from inspector.capture.view import View
from inspector.records import Channel

Array = npt.NDArray[Any]
KINDS = ("attention_statistic", "attention_head")
OF_HEADS = (("head",), ("head", "query"), ("statistic", "head"), ("head", "statistic"), ("head", "type"))
"""Axes of a number of each head."""
EXTREMES: Mapping[str, Callable[[Array], Array]] = {
    "attention/mask_margin": lambda values: _extreme(values, np.inf, np.min),
    "attention/largest_logit": lambda values: _extreme(values, -np.inf, np.max),
}
"""Numbers of which a single query decides: whether a mask leaks, and how large scores get."""
NUMBERED = frozenset({"statistic", "part", "count"})
"""Axes whose names are several numbers of one thing, of which the largest says nothing."""


@dataclass(frozen=True, slots=True)
class Head:
    """A head with its numbers by key, and its words (the largest of several scores) by key."""

    place: str
    layer: int
    head: int
    numbers: Mapping[str, float] = field(default_factory=dict, hash=False)
    words: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class HeadTable:
    """Every head of every layer; `keys` and `words`: key → title of what they can be sorted and grouped by."""

    heads: tuple[Head, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)


def of_heads(channel: Channel) -> bool:
    """Whether a channel has numbers of heads."""
    return channel.kind in KINDS and channel.dims in OF_HEADS


def head_table(view: View, frame: int, places: Sequence[tuple[str, int]], channels: Sequence[Channel]) -> HeadTable:
    """The table of places with so many heads, from the channels of heads among some."""
    keys: dict[str, str] = {}
    words: dict[str, str] = {}
    numbers: dict[tuple[str, int], dict[str, float]] = {}
    said: dict[tuple[str, int], dict[str, str]] = {}
    steps = {channel.domain(dim) for channel in channels for dim in channel.dims if dim in ("query", "key")} | {"step"}
    for channel in channels:
        if not of_heads(channel):
            continue
        for key, title, values in _columns(view, channel, frame):
            keys.setdefault(key, title)
            for head, value in enumerate(values):
                numbers.setdefault((channel.place, head), {})[key] = float(value)
        for head, word in enumerate(_words(view, channel, frame, steps)):
            words.setdefault(channel.signal, channel.title)
            said.setdefault((channel.place, head), {})[channel.signal] = word
    heads = [
        Head(place, layer, head, numbers.get((place, head), {}), said.get((place, head), {}))
        for layer, (place, count) in enumerate(places)
        for head in range(count)
    ]
    return HeadTable(tuple(heads), keys, words)


def _columns(view: View, channel: Channel, frame: int) -> list[tuple[str, str, Array]]:
    """(key, title, numbers of the heads) of a channel."""
    if channel.value_domain:
        return []  # numbers of names
    values = with_nan(view.array(channel.name, frame)).astype(np.float64)
    if values.ndim == 1:
        return [(channel.signal, channel.title, values)]
    other = next(dim for dim in channel.dims if dim != "head")
    values, names = values if channel.dims[0] == "head" else values.T, channel.labels.get(other, ())
    if names:
        return [
            (f"{channel.signal}/{name}", f"{channel.title}: {name}", values[:, i])
            for i, name in enumerate(names[: values.shape[1]])
        ]
    if channel.signal in EXTREMES:
        return [(channel.signal, channel.title, EXTREMES[channel.signal](values))]
    return [(channel.signal, f"mean {channel.title}".replace("mean mean", "mean"), _mean(values))]


def _mean(values: Array) -> Array:
    """The mean over the queries whose number is known; NaN where none is."""
    known = np.isfinite(values)
    count = known.sum(axis=1)
    found: Array = np.where(count > 0, np.where(known, values, 0).sum(axis=1) / np.maximum(count, 1), np.nan)
    return found


def _extreme(values: Array, none: float, which: Callable[..., Array]) -> Array:
    """The least or the largest over the queries whose number is known; NaN where none is."""
    known = np.isfinite(values)
    found: Array = np.where(known.any(axis=1), which(np.where(known, values, none), axis=1, initial=none), np.nan)
    return found


def _words(view: View, channel: Channel, frame: int, steps: Set[str]) -> list[str]:
    """The name of the largest score of each head, of a channel with a score for each of several types."""
    if channel.value_domain and len(channel.dims) == 1:
        if channel.value_domain in steps:
            return []  # positions, which are no types
        names = view.labels(channel.value_domain, frame)
        numbers = with_nan(view.array(channel.name, frame))
        return [names[int(n)] if np.isfinite(n) and 0 <= n < len(names) else "not known" for n in numbers]
    if (
        len(channel.dims) < 2
        or channel.dims[0] != "head"
        or channel.dims[1] in NUMBERED
        or not channel.labels.get(channel.dims[1])
    ):
        return []
    names = channel.labels[channel.dims[1]]
    values = with_nan(view.array(channel.name, frame))
    return [names[int(np.nanargmax(row))] if np.isfinite(row).any() else "not known" for row in values]
