"""The tree of a search as channels along its tokens, and back (see analysis/decoded_tree.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from inspector.engine.trace.emitter import Emitter
from inspector.records import Channel
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
PLACE, NODE = "decoding", "node"
SOURCE = "length penalty: Wu et al. 2016"


def named(tree: DecodedTree, names: Sequence[str] | None) -> DecodedTree:
    """The tree with the labels of its tokens; ids without one are their numbers."""
    known = names or ()
    tokens = (replace(one, text=known[one.token] if one.token < len(known) else str(one.token)) for one in tree.tokens)
    return replace(tree, tokens=tuple(tokens))


def write_tree(tree: DecodedTree, emit: Emitter) -> None:
    """Write every field of the tokens, and their labels."""
    if not tree.tokens:
        return
    emit.labels(NODE, [one.text for one in tree.tokens])
    for field, (dtype, unit, title, formula) in CHANNELS.items():
        values: list[Any] = [getattr(one, field) for one in tree.tokens]
        numbers = [FATES.index(value) for value in values] if field == "fate" else values
        channel = Channel(
            name=f"{PLACE}:{field}", kind=PLACE, dims=(NODE,), shape=(len(values),), dtype=dtype, unit=unit,
            title=title, formula=formula, compare="separate",
            source=SOURCE if field == "score" else "",
        )  # fmt: skip
        emit.array(channel, np.array(numbers, dtype=dtype))
