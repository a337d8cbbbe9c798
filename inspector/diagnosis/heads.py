"""Statistics of attention heads, as rules read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.diagnosis.rule import Run
from inspector.records import Channel
from inspector.records.catalogue import EQUIVALENT_MAP

Array = npt.NDArray[Any]
NAMED = 6
"""Layers that are named; of more, their number."""


@dataclass(frozen=True, slots=True)
class Heads:
    """A table of one attention: `values` (head, query), NaN where it is not defined or was not captured."""

    channel: Channel
    values: Array

    def known(self, least: int) -> Array:
        """(head,) whether at least so many queries of a head have a number."""
        enough: Array = np.isfinite(self.values).sum(axis=1) >= least
        return enough


def head_tables(run: Run, frame: int, signal: str) -> Iterator[Heads]:
    """The tables of this statistic, one for each attention; left out are those that are not whole yet, and those of
    maps that a scan stands for."""
    for name, known in run.channels.items():
        if known.signal != signal or not run.revision(name, frame):
            continue
        if of_a_scan(run, known.place):
            continue
        values = np.ma.filled(np.ma.asarray(run.array(name, frame), np.float64), np.nan)
        if values.ndim == 2 and tuple(values.shape) == tuple(known.shape):
            yield Heads(run.channel(name, frame), values)


def of_a_scan(run: Run, place: str) -> bool:
    """Whether the map is what a linear recurrence stands for: it has no queries, keys and softmax that could be ill."""
    channel = run.channels.get(f"{place}:attention")
    return channel is not None and channel.title == EQUIVALENT_MAP


def crosses(run: Run, place: str) -> bool:
    """Whether the keys of an attention are positions of another sequence than its queries are."""
    channel = run.channels.get(f"{place}:attention")
    return channel is not None and channel.domain("query") != channel.domain("key")


def listed(heads: Array) -> str:
    """Head numbers for a message."""
    return ("head " if len(heads) == 1 else "heads ") + ", ".join(str(int(one)) for one in heads)


@dataclass(frozen=True, slots=True)
class Layer:
    """The heads of one attention that a finding is about: its place and channel, and which, in words."""

    place: str
    channel: str
    said: str


def the_place(found: Sequence[Layer]) -> str:
    """The place of a finding about some layers: the one that there is, "" for several."""
    return found[0].place if len(found) == 1 else ""


def in_layers(found: Sequence[Layer]) -> str:
    """Which heads: "head 1 of 4", and of several layers "3 layers: a (head 1 of 4), b (…) and 1 more"."""
    if len(found) == 1:
        return found[0].said
    named = ", ".join(f"{one.place} ({one.said})" for one in found[:NAMED])
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return f"{len(found)} layers: {named}{more}"
