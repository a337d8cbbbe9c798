"""By which angle queries turn from step to step where all tokens are the same: the frequencies of rotary positions.

Rotary positions (Su et al. 2021) turn pairs of components of queries and keys by ω_j a step. Which components are pairs
(neighbours, or halves of those that are turned) is found from the numbers: every pair must keep its length and turn at
one pace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

NEIGHBOURS, HALVES = "pairs of neighbours", "pairs of two halves"
LEAST_STEPS = 4
LENGTH, ANGLE = 2e-3, 2e-2
"""By how much a pair may change its length, relative to the largest query, and its angle from a line, in radians."""
ROUNDINGS = 3.0
"""How many roundings of the model's type a component may be off besides: its sine, its cosine, their products."""
EXACT = (2e-5, 1e-3)
"""The same where lengths are kept to rounding, which no added encoding does: then slow turns count, and lengths that
change by one factor a step."""
LEAST_TURN, LEAST_EXACT_TURN = 0.5, 0.02
"""Radians that one pair at least turns in the run, and one of an exact rotation. Small encodings that are added change
queries too little to tell them from slow turns; the fastest pair of rotary positions turns one radian a step."""


@dataclass(frozen=True, slots=True, eq=False)
class Rotation:
    """(a, p) radians a step of every pair of components of each head, NaN where a pair is 0; which they are; whether
    their lengths change by a factor a step (xPos, Sun et al. 2022)."""

    frequencies: Tensor
    pairs: str
    grows: bool = False


def rotation(queries: Tensor, eps: float = 0.0) -> Rotation | None:
    """The rotation of queries (a, t, d) of one token repeated; None where they do not turn in either way. eps: that of
    the type in which the model computed them.

    A pace of more than π a step cannot be told from a slower one. Components that stay are not turned (partial rotary).
    """
    queries = queries.detach().double().cpu()
    size = float(queries.abs().max()) if queries.numel() else 0.0
    varies = ((queries - queries[:, :1]).abs() > 1e-6 * size).any(1).any(0)
    if queries.shape[1] < LEAST_STEPS or not bool(varies.any()):
        return None
    width = queries.shape[2]
    seen = -(-(int(varies.nonzero().max()) + 1) // 2) * 2
    for turned in dict.fromkeys((seen, *(width // part // 2 * 2 for part in (1, 2, 4)))):  # slow pairs may seem to stay
        for said, pairs in _pairs(queries[..., :turned]) if seen <= turned <= width else ():
            found = _frequencies(pairs, size, ROUNDINGS * eps)
            if found is not None:
                return Rotation(found[0], said, found[1])
    return None


def _pairs(own: Tensor) -> Iterator[tuple[str, Tensor]]:
    """(a, t, p) complex: both ways in which components (a, t, 2 p) are pairs."""
    half = own.shape[-1] // 2
    yield HALVES, torch.complex(own[..., :half].contiguous(), own[..., half:].contiguous())
    yield NEIGHBOURS, torch.complex(own[..., 0::2].contiguous(), own[..., 1::2].contiguous())


def _frequencies(pairs: Tensor, size: float, rounding: float) -> tuple[Tensor, bool] | None:
    """((a, p) of pairs (a, t, p) as complex numbers, whether they grow); None where one of them changes its length or
    its pace."""
    lengths = pairs.abs()
    there = lengths[:, 0] > 1e-4 * size
    if not bool(there.any()):
        return None
    turns = torch.angle(pairs[:, 1:] * pairs[:, :-1].conj())
    phases = torch.cat([torch.zeros_like(turns[:, :1]), turns.cumsum(1)], 1)
    pace, line = _line(phases)
    off = (phases - line).abs().amax(1)
    shares = size / lengths[:, 0].clamp_min(1e-300)
    turned = float((pace.abs() * (phases.shape[1] - 1))[there].max())
    constant = (lengths - lengths[:, :1]).abs().amax(1) / size
    growing = (lengths - _line(lengths.clamp_min(1e-300).log())[1].exp()).abs().amax(1) / size
    for changed, (length, angle), least, grows in (
        (constant, (LENGTH + rounding, ANGLE), LEAST_TURN, False),
        (constant, EXACT, LEAST_EXACT_TURN, False),
        (growing, EXACT, LEAST_EXACT_TURN, True),
    ):
        even = (off <= angle + (length + min(length, LENGTH)) * shares) | ~there
        if turned >= least and bool(((changed <= length) & even).all()):
            return pace.abs().where(there, torch.nan), grows
    return None


def _line(values: Tensor) -> tuple[Tensor, Tensor]:
    """((a, p) the slope by step, (a, t, p) the line) of least squares through (a, t, p)."""
    steps = torch.arange(values.shape[1], dtype=torch.float64)[None, :, None]
    steps = steps - steps.mean()
    slope = (values * steps).sum(1) / (steps**2).sum()
    return slope, values.mean(1, keepdim=True) + slope[:, None] * steps
