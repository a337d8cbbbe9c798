"""The map from token to token that a scan stands for: y_t = Σ_s M[t, s] x_s with M[t, s] = C_t (Π_{s<j≤t} a_j) B_s.

Of a selective scan it is called its hidden attention (Ali, Zimerman & Wolf 2024, arXiv 2403.01590); weights have either
sign and do not sum to 1. One map a channel of the output; channels are chosen evenly where all are too many.
Letters: t, s step; d channel, n state entry of a channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from inspector.engine.cells.check import Check
from inspector.engine.scans.values import rounding

MOST_MAPS = 64
"""Channels that are shown: more are not told apart on a page."""
MOST_NUMBERS, MOST_WORK = 1 << 24, 1 << 31
"""Entries of all maps of a scan, and multiplications that make them, about a second."""
SOURCE = "Ali, Zimerman & Wolf 2024, arXiv 2403.01590"


@dataclass(frozen=True, slots=True)
class Factors:
    """Of one sequence, in double precision: a, b's weight B and C, (t or 1, d, n) each; x and y, (t, d); start (d, n).

    y = Re Σ_n C h where the state is complex and y is real; where y is complex, so is M.
    """

    a: Tensor
    weight: Tensor
    c: Tensor
    x: Tensor
    y: Tensor
    start: Tensor

    @property
    def steps(self) -> int:
        """Of the sequence."""
        return len(self.y)


@dataclass(frozen=True, slots=True)
class Map:
    """M (d, t, s) of the chosen channels, and how well M reproduces the output from x.

    `magnitude`: M is complex, and these are |M|.
    """

    weights: Tensor
    channels: tuple[int, ...]
    check: Check
    magnitude: bool = False


def map_of(given: Factors, dtype: torch.dtype) -> Map | None:
    """The map; None where not even one channel's is small enough. `dtype`: the model's, which says what rounding is."""
    channels = chosen(given)
    if not channels:
        return None
    at = torch.tensor(channels)
    a, weight, c = (_some(one, at) for one in (given.a, given.weight, given.c))
    own = Factors(a, weight, c, given.x[:, at], given.y[:, at], given.start[at])
    weights = _weights(own)
    made = torch.einsum("dts,sd->td", weights, own.x.to(weights.dtype)) + _of_the_start(own)
    error = float((made - own.y).abs().amax())
    allowed = rounding(dtype) * max(float(own.y.abs().amax()), 1e-300)
    magnitude = weights.is_complex()
    weights = weights.abs() if magnitude else weights
    return Map(weights.to(torch.float32), tuple(channels), Check(error, allowed), magnitude)


def chosen(given: Factors) -> list[int]:
    """Channels, evenly spaced where all of them would be too many."""
    t, (d, n) = given.steps, given.start.shape
    count = min(d, MOST_MAPS, MOST_NUMBERS // (t * t), MOST_WORK // (t * t * n))
    return sorted({round(i * (d - 1) / max(1, count - 1)) for i in range(count)})


def _some(values: Tensor, at: Tensor) -> Tensor:
    return values[:, at] if values.shape[1] > 1 else values


def _weights(own: Factors) -> Tensor:
    """M (d, t, s), row by row: what each source step has left in the state, read by C."""
    t, (d, n) = own.steps, own.start.shape
    dtype = torch.promote_types(own.a.dtype, torch.promote_types(own.c.dtype, own.weight.dtype))
    left, found = torch.zeros(t, d, n, dtype=dtype), torch.zeros(d, t, t, dtype=own.y.dtype)
    weight = own.weight.expand(t, -1, -1) if len(own.weight) == 1 else own.weight
    for step in range(t):
        left[:step] *= own.a[step if len(own.a) > 1 else 0]
        left[step] = weight[step].expand(d, n)
        row = (left[: step + 1] * own.c[step if len(own.c) > 1 else 0]).sum(-1)
        found[:, step, : step + 1] = _as(own.y, row).T
    return found


def _of_the_start(own: Factors) -> Tensor:
    """What the initial state contributes to every output, (t, d)."""
    if not bool(own.start.any()):
        return torch.zeros_like(own.y)
    rows, state = [], own.start
    for step in range(own.steps):
        state = state * own.a[step if len(own.a) > 1 else 0]
        row = (state * own.c[step if len(own.c) > 1 else 0]).sum(-1)
        rows.append(_as(own.y, row))
    return torch.stack(rows)


def _as(y: Tensor, row: Tensor) -> Tensor:
    return row.real if row.is_complex() and not y.is_complex() else row


def channel_names(channels: Sequence[int], count: int, what: str = "channel") -> str:
    """Which channels, or heads, the maps are of, as text."""
    if len(channels) == count:
        return f"one map a {what} of {count}"
    return f"maps of {len(channels)} of {count} {what}s, evenly spaced: {channels[0]} to {channels[-1]}"
