"""The layers of a model that attend within one sequence, in the order in which one was computed from the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.analyses.attention.descent import Descent, Layer, stacks
from inspector.engine.attention.rows import Rows
from inspector.engine.attention.statistics import refusal
from inspector.engine.errors import Unsupported
from inspector.engine.trace.attention import Lineage
from inspector.engine.trace.trace import Attention

LONGEST = 4096
"""Positions beyond which maps of all layers are not multiplied: one takes 128 MB in float64 there."""
NONE = "No layer attends within one sequence, so there is no chain of layers."
TOO_LONG = "Maps of {:,} positions are multiplied for up to {:,} positions."
BETWEEN = "{} attends over other positions between {} and {}, so their maps are not multiplied."
LEFT_OUT = "of several chains of layers the longest; not in it: {}"
MOST_NAMES = 4
Lineages = Callable[[], Mapping[str, Lineage | None]]
"""By place; only called where there is more than one attention, since the model is called again for it."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Layers, the lowest first, and the places of those that belong to other chains."""

    layers: list[Layer]
    others: tuple[str, ...] = ()

    def note(self) -> str:
        """What a reader must know of what is not in it, or ""."""
        more = f" and {len(self.others) - MOST_NAMES} more" if len(self.others) > MOST_NAMES else ""
        return LEFT_OUT.format(", ".join(self.others[:MOST_NAMES]) + more) if self.others else ""


def in_series(attentions: Sequence[Attention], sample: int, lineages: Lineages) -> Chain:
    """Self-attentions over the same positions; of several such chains the longest, then the first.

    A layer that is called several times is as many layers, each where it ran. What was computed from the same beside
    each other, and from which the same was computed, are heads of one layer, however the model calls them.
    Raises Unsupported, also where it is not known which of both they are.
    """
    every = sorted(attentions, key=lambda one: one.order)
    groups: dict[tuple[str, int], list[Attention]] = {}
    for one in every:
        rows = Rows(one, sample)
        if is_usable(one) and one.of_itself and rows.queries == rows.keys:
            groups.setdefault((one.queries_from, rows.queries), []).append(one)
    if not groups:
        raise Unsupported(NONE)
    if sum(map(len, groups.values())) == 1:
        ((length, only),) = ((length, one[0]) for (_, length), one in groups.items())
        chain = Chain([Layer((only,))])
    else:
        length, chain = _longest(every, groups, lineages())
    if length > LONGEST:
        raise Unsupported(TOO_LONG.format(length, LONGEST))
    return chain


def is_usable(attention: Attention) -> bool:
    """Whether there are weights whose rows are all there."""
    return not attention.equivalent and not attention.first_query and refusal(attention) is None


def _longest(
    every: Sequence[Attention], groups: Mapping[tuple[str, int], list[Attention]], known: Mapping[str, Lineage | None]
) -> tuple[int, Chain]:
    """(positions, the chain). Raises Unsupported."""
    descent = Descent(every, known)
    found = [(length, stack) for (_, length), own in groups.items() for stack in stacks(descent, own)]
    length, stack = max(found, key=lambda one: (len(one[1].layers), -one[1].first.order))
    layers = stack.in_order()
    members = {one.place for layer in layers for one in layer.heads}
    for one in every:
        if one.of_itself and not one.equivalent and one.place not in members:
            _check_beside(descent, one, layers)
    others = [one.place for _, other in found if other is not stack for layer in other.layers for one in layer.heads]
    return length, Chain(layers, tuple(others))


def _check_beside(descent: Descent, other: Attention, layers: Sequence[Layer]) -> None:
    """Raises Unsupported where another attention lies between two of the layers."""
    below = [one for one in layers if descent.follows(other, one.first)]
    above = [one for one in layers if descent.follows(one.first, other)]
    if below and above:
        raise Unsupported(BETWEEN.format(other.place, below[-1].name, above[0].name))


def mean_map(layer: Layer, sample: int) -> Tensor:
    """(q, k) the mean over heads of the weights; rows that may attend to no key are 0."""
    total: Tensor | None = None
    heads = sum(Rows(one, sample).heads for one in layer.heads)
    for attention in layer.heads:
        rows = Rows(attention, sample)
        for some, q0, q1 in rows.blocks():
            weights = rows.block(q0, q1, some).weights.nan_to_num(nan=0.0)
            if total is None:
                total = torch.zeros(rows.queries, rows.keys, dtype=weights.dtype, device=weights.device)
            total[q0:q1, : weights.shape[2]] += weights.sum(0) / heads
    assert total is not None
    return total


def rolled(map_: Tensor, before: Tensor | None) -> Tensor:
    """The rollout behind one more layer, which keeps half of what it is given (Abnar & Zuidema 2020)."""
    mixed = 0.5 * map_ + 0.5 * unit_of(map_)
    return mixed if before is None else mixed @ before


def unit_of(square: Tensor) -> Tensor:
    """The unit matrix of the same size and type."""
    return torch.eye(len(square), dtype=square.dtype, device=square.device)
