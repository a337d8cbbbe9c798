"""Rows of attention while a decoder runs: one call a step, each a row, written before the map is known as a whole.

Whether the calls of a place are one map, along which axes, and which rows are padding is known when the model has
returned. So these rows are a channel of their own, `PLACE:attention/rows`, which the window shows until the map is
there.
Decoders that are faster than a look at the screen write none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from inspector.engine.attention.caches import share_keys
from inspector.engine.attention.rows import Rows
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention
from inspector.records import Channel

SECONDS = 0.05
"""Between two looks at the screen, as for the states of cells."""
ROWS = "attention/rows"
METHOD = "as the rows come, stored as float16; which rows are one map is known when the model has returned"


@dataclass(slots=True)
class Place:
    """The rows of one place that are one after the other: how many keys the last and the first had, how many rows were
    written, and those that wait."""

    heads: int
    keys: int
    began_with: int
    written: int = 0
    waiting: list[Attention] = field(default_factory=list)
    over: bool = False
    before: Attention | None = None
    """The last call: the next one has keys of it, else several memories take turns, or layers."""


@dataclass(slots=True)
class LiveRows:
    """Writes the rows of calls of one query each, as long as the keys of a place stay or grow by one.

    keys_of(place, keys): the step axis of the input that has as many steps as there are keys, "" where none has.
    """

    emit: Emitter
    sample: int
    keys_of: Callable[[str, int], str] = lambda _place, _keys: ""
    places: dict[str, Place] = field(default_factory=dict)
    last: float = field(default_factory=time.monotonic)

    def arrived(self, attention: Attention) -> None:
        """One more call: a row of the map of its place, or the end of it."""
        rows = Rows(attention, self.sample)
        place = self.places.setdefault(attention.place, Place(rows.heads, rows.keys, rows.keys))
        goes_on = rows.queries == 1 and rows.heads == place.heads and rows.keys in (place.keys, place.keys + 1)
        goes_on = goes_on and (place.before is None or share_keys(place.before, attention))
        part = bool(attention.memories)  # of a softmax whose other keys may follow
        if place.over or part or not goes_on or (attention.check is not None and not attention.check.passed):
            place.over = True
            place.waiting.clear()
            return
        place.keys, place.before = rows.keys, attention
        place.waiting.append(attention)
        now = time.monotonic()
        if place.written + len(place.waiting) > 1 and now - self.last > SECONDS and not self.emit.cancelled():
            self.last = now
            for name, one in self.places.items():
                self._write(name, one)

    def _write(self, name: str, place: Place) -> None:
        if place.over or place.written + len(place.waiting) < 2:
            return
        channel = f"{name}:{ROWS}"
        first = place.waiting[0] if place.waiting else None
        if first is not None:
            self.emit.channel(
                Channel(
                    name=channel, kind="attention", dims=("head", "query", "key"), shape=(place.heads, None, None),
                    dtype="float16", limits=(0.0, 1.0), title="attention, row by row", module=first.module,
                    formula="one row for each call", method=METHOD, fill=0.0,
                    domains={"query": "query", "key": self._source(first, place)},
                )
            )  # fmt: skip
        self._write_rows(channel, place)

    def _source(self, attention: Attention, place: Place) -> str:
        """What the keys are: an encoder's states, of which there are as many at every row, have its tokens."""
        known = attention.keys_from == "source step" and place.keys == place.began_with
        return (self.keys_of(attention.place, place.keys) if known else "") or attention.keys_from

    def _write_rows(self, channel: str, place: Place) -> None:
        for attention in place.waiting:
            weights = Rows(attention, self.sample).block(0, 1).full().to(torch.float16)
            self.emit.page(channel, (0, place.written, 0), weights)
            place.written += 1
        place.waiting.clear()
