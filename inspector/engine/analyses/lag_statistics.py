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
    return torch.stack([_of_lag(logs[there[:, lag], lag]) for lag in range(logs.shape[1])], dim=1)


def _of_lag(logs: Tensor) -> Tensor:
    if not len(logs) or bool(logs.isnan().any()):
        return logs.new_full((len(STATISTICS),), math.nan)
    quantiles = [log_quantile(logs, level) for level in (0.5, 0.1, 0.9)]
    mean = torch.logsumexp(logs, 0) - math.log(len(logs))
    return torch.stack((*quantiles, mean)).exp()


def log_quantile(logs: Tensor, level: float) -> Tensor:
    """ln of the quantile of exp(logs), (n,) without NaN, linear between neighbours as numpy's; −∞ where it is 0.

    Taken in logarithms, since products over many steps leave the range of float64.
    """
    ordered = logs.clamp(max=LARGEST).sort().values
    place = level * (len(logs) - 1)
    below = math.floor(place)
    share = torch.tensor(place - below, dtype=logs.dtype)
    above = ordered[min(below + 1, len(logs) - 1)]
    return torch.logaddexp(ordered[below] + torch.log1p(-share), above + share.log())


def dead_share(logs: Tensor, there: Tensor) -> Tensor:
    """(lag,) share of the starts that reach a lag whose product is exactly 0; NaN where none does or one is NaN."""
    dead = (there & (logs == -torch.inf)).sum(0).double() / there.sum(0)
    unknown = (there & logs.isnan()).any(0)
    return dead.masked_fill(unknown, math.nan)
