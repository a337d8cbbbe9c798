"""Norms of products by lag, summarised over the starts: median, 10 % and 90 % quantile, arithmetic mean, dead starts.

A geometric mean would not do: one start whose product is exactly 0 (every unit clipped at one step) makes it 0.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

STATISTICS = ("median", "p10", "p90", "mean")
"""Rows of a table by lag. The median decides the horizon."""
OVER_STARTS = "median, 10 % and 90 % quantile and arithmetic mean over the starts k that reach the lag"
LARGEST = 1e4
"""Logarithms above are cut here: their numbers are infinite in any case."""


def reaching(starts: Tensor, steps: int, lags: int) -> Tensor:
    """(start, lag) True where the product from a start over `lag` steps ends within `steps`."""
    return starts[:, None] + torch.arange(lags + 1) < steps


def by_lag(logs: Tensor, there: Tensor) -> Tensor:
    """(4, lag): the rows of STATISTICS of exp(logs), over the starts that are `there`.

    `logs` (start, lag) are natural logarithms, −∞ of a product that is 0. A NaN among them makes the lag NaN; a lag
    that no start reaches is NaN.
    """
    count = there.sum(0)
    unknown = (there & logs.isnan()).any(0) | (count == 0)
    ordered = logs.clamp(max=LARGEST).masked_fill(~there, torch.inf).sort(0).values
    quantiles = [_log_quantiles(ordered, count.clamp(min=1), level) for level in (0.5, 0.1, 0.9)]
    mean = torch.logsumexp(logs.masked_fill(~there, -torch.inf), 0) - count.to(logs.dtype).log()
    return torch.stack((*quantiles, mean)).exp().masked_fill(unknown, math.nan)


def log_quantile(logs: Tensor, level: float) -> Tensor:
    """ln of the quantile of exp(logs), (n,) without NaN, linear between neighbours as numpy's; −∞ where it is 0.

    Taken in logarithms, since products over many steps leave the range of float64.
    """
    ordered = logs.clamp(max=LARGEST).sort().values
    return _log_quantiles(ordered[:, None], torch.tensor([len(logs)]), level)[0]


def _log_quantiles(ordered: Tensor, count: Tensor, level: float) -> Tensor:
    """(ℓ,) the same of each column's first `count` (ℓ,) logarithms, which are in ascending order: ordered (n, ℓ)."""
    place = level * (count - 1).to(torch.float64)
    below = place.floor()
    share = (place - below).to(ordered.dtype)
    first = below.long()
    low, high = (ordered.gather(0, at[None])[0] for at in (first, torch.minimum(first + 1, count - 1)))
    return torch.logaddexp(low + torch.log1p(-share), high + share.log())


def dead_share(logs: Tensor, there: Tensor) -> Tensor:
    """(lag,) share of the starts that reach a lag whose product is exactly 0; NaN where none does or one is NaN."""
    dead = (there & (logs == -torch.inf)).sum(0).double() / there.sum(0)
    unknown = (there & logs.isnan()).any(0)
    return dead.masked_fill(unknown, math.nan)
