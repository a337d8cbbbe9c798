"""Which weights still are as PyTorch draws them: uniform within a bound that their shape gives.

nn.Linear, convolutions and recurrent modules draw from U(−b, b), b = 1/√fan_in (recurrent ones: 1/√hidden), the inner
projections of nn.MultiheadAttention with b = √(6 / (fan_in + fan_out)) (Glorot & Bengio 2010). Training pushes
some of many entries over so sharp an edge, so weights that fill the interval evenly and never leave it were not
trained, or for some steps only (a hundred of Adam at 1e-3 show).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from inspector.engine.watch.parameters import local, plain_name

FEWEST, MOST = 128, 65_536
"""Entries of a weight that are needed, and those that are looked at, evenly spaced."""
LEVEL = 1.95
"""Of Kolmogorov's test: D √n is above it with a probability of 0.001 (Smirnov 1948)."""
EDGE = 12.0
"""The largest of n uniform entries is below b (1 − EDGE / n) with a probability of exp(−EDGE), 6e-6."""


def as_drawn(model: nn.Module, names: Sequence[str]) -> list[str]:
    """Those of some parameters, by their names, that are matrices as PyTorch draws them."""
    wanted, found = set(names), list[str]()
    for place, module in model.named_modules():
        for name, tensor in module.named_parameters(recurse=False):
            whole = plain_name(f"{place}.{name}" if place else name)
            if whole in wanted and tensor.dim() > 1 and any(fills(tensor, b) for b in bounds(module, tensor)):
                found.append(whole)
    return found


def bounds(module: nn.Module, tensor: Tensor) -> tuple[float, ...]:
    """The b that PyTorch may have drawn a weight with."""
    if isinstance(module, (nn.RNNBase, nn.RNNCellBase)):
        return (1 / math.sqrt(module.hidden_size),)
    if isinstance(module, (nn.Linear, nn.modules.conv._ConvNd)):
        return (1 / math.sqrt(tensor[0].numel()),)
    if isinstance(module, nn.MultiheadAttention):
        return (math.sqrt(6 / (tensor.shape[0] + tensor.shape[1])),)
    return ()


def fills(tensor: Tensor, bound: float) -> bool:
    """Whether the entries are uniform in (−bound, bound), and none is beyond."""
    values = local(tensor).detach()
    if not values.is_floating_point() or values.numel() < FEWEST:
        return False
    flat = values.reshape(-1)
    picked = flat[:: -(-len(flat) // MOST)].to("cpu", torch.float64)
    slack = 1 + torch.finfo(values.dtype).eps
    largest, n = float(picked.abs().max()), len(picked)
    if not bound * (1 - EDGE / n) <= largest <= bound * slack:
        return False
    ordered = picked.sort().values / (2 * bound) + 0.5
    steps = torch.arange(n + 1, dtype=torch.float64) / n
    apart = float(torch.maximum(steps[1:] - ordered, ordered - steps[:-1]).max())
    return apart * math.sqrt(n) <= LEVEL
