"""The layers of a model that attend within one sequence, in the order in which they ran."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from inspector.engine.attention.rows import Rows
from inspector.engine.attention.statistics import refusal
from inspector.engine.errors import Unsupported
from inspector.engine.trace.trace import Attention

LONGEST = 4096
"""Positions beyond which maps of all layers are not multiplied: one takes 128 MB in float64 there."""
NONE = "No layer attends within one sequence, so there is no chain of layers."
TOO_LONG = "Maps of {:,} positions are multiplied for up to {:,} positions."


def in_series(attentions: Sequence[Attention], sample: int) -> list[Attention]:
    """Self-attentions over the same positions, the lowest first; of several such chains the longest, then the first.

    A layer that is called several times is as many layers, each where it ran. Places of one list ("decoder.layers.0.…") are a chain; without a number in their name, those that begin alike.
    Counter-example: layers of a decoder and of an encoder by turns in one list. Raises Unsupported.
    """
    chains: dict[tuple[str, str, int], list[Attention]] = {}
    for one in sorted(attentions, key=lambda one: one.order):
        rows = Rows(one, sample)
        if (
            one.of_itself
            and not one.equivalent
            and not one.first_query
            and refusal(one) is None
            and rows.queries == rows.keys
        ):
            chains.setdefault((stack_of(one.called), one.queries_from, rows.queries), []).append(one)
    if not chains:
        raise Unsupported(NONE)
    (_, _, length), found = max(chains.items(), key=lambda item: len(item[1]))
    if length > LONGEST:
        raise Unsupported(TOO_LONG.format(length, LONGEST))
    return found


def stack_of(place: str) -> str:
    """What the modules of a list of layers have in common, `place` being the name of one of them."""
    words = place.split(".")
    number = next((n for n, word in enumerate(words) if word.isdigit() and n), 1)
    return ".".join(words[:number])


def mean_map(attention: Attention, sample: int) -> Tensor:
    """(q, k) the mean over heads of the weights; rows that may attend to no key are 0."""
    rows = Rows(attention, sample)
    total: Tensor | None = None
    for heads, q0, q1 in rows.blocks():
        weights = rows.block(q0, q1, heads).weights.nan_to_num(nan=0.0)
        if total is None:
            total = torch.zeros(rows.queries, rows.keys, dtype=weights.dtype, device=weights.device)
        total[q0:q1, : weights.shape[2]] += weights.sum(0) / rows.heads
    assert total is not None
    return total


def rolled(map_: Tensor, before: Tensor | None) -> Tensor:
    """The rollout behind one more layer, which keeps half of what it is given (Abnar & Zuidema 2020)."""
    mixed = 0.5 * map_ + 0.5 * unit_of(map_)
    return mixed if before is None else mixed @ before


def unit_of(square: Tensor) -> Tensor:
    """The unit matrix of the same size and type."""
    return torch.eye(len(square), dtype=square.dtype, device=square.device)
