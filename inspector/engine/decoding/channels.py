"""The tree of a search as channels along its tokens, written while it grows (read by analysis/decoded_tree.py)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from inspector.engine.decoding.growth import Growth
from inspector.engine.trace.emitter import Emitter
from inspector.records import Channel, DecodedToken
from inspector.records.decoding import FATES, DecodedTree

CHANNELS: Mapping[str, tuple[str, str, str, str]] = {
    "token": ("int32", "1", "token", "id of the token"),
    "parent": ("int32", "1", "token before", "position in the tree of the token before it, −1 at the beginning"),
    "log_probability": ("float64", "nat", "log probability", "ln p(token | what is read and stands before it)"),
    "total": ("float64", "nat", "log probability of the hypothesis", "sum of ln p from the beginning to this token"),
    "score": ("float64", "nat", "score of the hypothesis", "sum of ln p / ((5 + tokens) / 6)^α"),
    "fate": ("uint8", "1", "fate", ", ".join(f"{number} {name}" for number, name in enumerate(FATES))),
    "times": ("int32", "1", "samples", "how many samples went through this token"),
}
"""Field of a token → dtype, unit, title and formula of its channel, `decoding:FIELD`."""
CHANGING = ("fate", "times")
"""Fields that a token may still change after it was noted."""
PLACE, NODE = "decoding", "node"
SOURCE = "length penalty: Wu et al. 2016"
EVERY_SECONDS = 0.2
"""How often the tree is written while it grows, a page for each field: thousands of tokens are not as many pages."""


def named(tree: DecodedTree, names: Sequence[str] | None) -> DecodedTree:
    """The tree with the labels of its tokens; ids without one are their numbers."""
    return replace(tree, tokens=tuple(replace(one, text=_text(one, names)) for one in tree.tokens))


def _text(one: DecodedToken, names: Sequence[str] | None) -> str:
    return names[one.token] if names is not None and one.token < len(names) else str(one.token)


class TreeWriter:
    """Writes what grew since the last time: new tokens at the end, and what became of those that are there.

    `begin()` begins the frame and gives its emitter, once there is something to write; `names()` are the labels of ids,
    known by then.
    """

    def __init__(self, begin: Callable[[], Emitter], names: Callable[[], Sequence[str] | None]) -> None:
        self._begin, self._names = begin, names
        self._emit: Emitter | None = None
        self._growth: Growth | None = None
        self._written: list[tuple[Any, ...]] = []
        """The changing fields of each token, as written."""
        self._at = time.monotonic()

    @property
    def begun(self) -> bool:
        """Whether the frame has begun."""
        return self._emit is not None

    def grow(self, growth: Growth) -> None:
        """Take the tree so far; it is written now and then."""
        self._growth = growth
        if time.monotonic() - self._at >= EVERY_SECONDS:
            self.write()

    def write(self) -> None:
        """Write what is not written yet."""
        tokens = [] if self._growth is None else self._growth.tokens
        if not tokens:
            return
        if self._emit is None:  # what was tried is kept where the search is cancelled, too
            self._emit = replace(self._begin(), cancelled=lambda: False)
        known = len(self._written)
        now = [tuple(getattr(one, field) for field in CHANGING) for one in tokens]
        changed = [at for at in range(known) if now[at] != self._written[at]]
        if changed:
            self._rows(self._emit, CHANGING, tokens[changed[0] : changed[-1] + 1], changed[0])
        if len(tokens) > known:
            names = self._names()
            self._emit.labels(NODE, [_text(one, names) for one in tokens[known:]], first=known)
            self._rows(self._emit, tuple(CHANNELS), tokens[known:], known)
        self._written, self._at = now, time.monotonic()

    @staticmethod
    def _rows(emit: Emitter, fields: Sequence[str], tokens: Sequence[DecodedToken], first: int) -> None:
        for field in fields:
            dtype, unit, title, formula = CHANNELS[field]
            values: list[Any] = [getattr(one, field) for one in tokens]
            numbers = [FATES.index(value) for value in values] if field == "fate" else values
            channel = Channel(
                name=f"{PLACE}:{field}", kind=PLACE, dims=(NODE,), shape=(None,), dtype=dtype, unit=unit, title=title,
                formula=formula, compare="separate", source=SOURCE if field == "score" else "",
            )  # fmt: skip
            emit.channel(channel)
            emit.page(channel.name, (first,), np.array(numbers, dtype=dtype))
