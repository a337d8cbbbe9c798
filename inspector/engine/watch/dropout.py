"""Modules that drop a large share of their numbers while they are trained."""

from __future__ import annotations

from torch import nn

LEAST = 0.5
"""From here on a share is written down."""


def strong_dropout(model: nn.Module) -> dict[str, float]:
    """{module: share that it drops}, of torch's dropout and recurrent modules; functions are not seen."""
    found = {}
    for name, part in model.named_modules():
        share = getattr(part, "p", None) if isinstance(part, nn.modules.dropout._DropoutNd) else None
        if (isinstance(part, nn.RNNBase) and part.num_layers > 1) or isinstance(part, nn.MultiheadAttention):
            share = part.dropout
        if isinstance(share, (int, float)) and share >= LEAST:
            found[name or "model"] = float(share)
    return found
