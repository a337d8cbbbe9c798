"""Where a token stands, as numbers: what is added to its embedding, or put beside it."""

from __future__ import annotations

import torch
from torch import Tensor


def sinusoidal(length: int, width: int) -> Tensor:
    """Encoding (t, d): sin and cos of i / 10000^{2j/d}, in turns (Vaswani et al. 2017)."""
    steps = torch.arange(length)[:, None]
    rates = torch.exp(-torch.log(torch.tensor(10_000.0)) * torch.arange(0, width, 2) / width)
    return torch.stack((torch.sin(steps * rates), torch.cos(steps * rates)), dim=-1).flatten(1)
