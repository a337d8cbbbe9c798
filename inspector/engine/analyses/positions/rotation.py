"""By which angle queries turn from step to step where all tokens are the same: the frequencies of rotary positions.

Rotary positions (Su et al. 2021) turn pairs of components of queries and keys by ω_j a step. Which components are pairs
(neighbours, or halves of those that are turned) is found from the numbers: every pair must keep its length and turn at
one pace.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

NEIGHBOURS, HALVES = "pairs of neighbours", "pairs of two halves"
LEAST_STEPS = 4
LENGTH, ANGLE = 2e-3, 2e-2
"""By how much a pair may change its length, relative, and its angle from a line, in radians, for the rounding of half
precision."""


@dataclass(frozen=True, slots=True, eq=False)
class Rotation:
    """(a, p) radians a step of every pair of components of each head, NaN where a pair is 0; which pairs they are."""

    frequencies: Tensor
    pairs: str


def rotation(queries: Tensor) -> Rotation | None:
    """The rotation of queries (a, t, d) of one token repeated; None where they do not turn in either way.

    A pace of more than π a step cannot be told from a slower one. Components that stay are not turned (partial rotary).
    """
    queries = queries.detach().double().cpu()
    size = float(queries.abs().max()) if queries.numel() else 0.0
    varies = ((queries - queries[:, :1]).abs() > 1e-6 * size).any(1).any(0)
    if queries.shape[1] < LEAST_STEPS or not bool(varies.any()):
        return None
    turned = int(varies.nonzero().max()) + 1
    turned += turned % 2
    if turned > queries.shape[2]:
        return None
    own = queries[..., :turned]
    for said, pairs in (
        (HALVES, torch.complex(own[..., : turned // 2].contiguous(), own[..., turned // 2 :].contiguous())),
        (NEIGHBOURS, torch.complex(own[..., 0::2].contiguous(), own[..., 1::2].contiguous())),
    ):
        found = _frequencies(pairs, size)
        if found is not None:
            return Rotation(found, said)
    return None


def _frequencies(pairs: Tensor, size: float) -> Tensor | None:
    """(a, p) of pairs (a, t, p) as complex numbers; None where one of them changes its length or its pace."""
    lengths = pairs.abs()
    there = lengths[:, 0] > 1e-4 * size
    if not bool(there.any()):
        return None
    steady = ((lengths - lengths[:, :1]).abs() <= LENGTH * size).all(1)
    turns = torch.angle(pairs[:, 1:] * pairs[:, :-1].conj())
    phases = torch.cat([torch.zeros_like(turns[:, :1]), turns.cumsum(1)], 1)
    steps = torch.arange(phases.shape[1], dtype=torch.float64)[None, :, None]
    pace = (phases * (steps - steps.mean())).sum(1) / ((steps - steps.mean()) ** 2).sum()
    line = phases - phases.mean(1, keepdim=True) - pace[:, None] * (steps - steps.mean())
    allowed = ANGLE + 4e-3 * size / lengths[:, 0].clamp_min(1e-300)
    even = (line.abs().amax(1) <= allowed) | ~there
    return pace.abs().where(there, torch.nan) if bool((steady & even).all()) else None
