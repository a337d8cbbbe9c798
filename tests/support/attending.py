"""A model run under the attention probe, and attention written as loops in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.attention.rows import rows
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.probes.attention import AttentionProbe
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention, Trace


def probed(
    model: nn.Module,
    x: Tensor,
    call: Callable[[Tensor], Any] | None = None,
    lengths: list[int] | None = None,
    look_at: int = 0,
    sink: Listed | None = None,
) -> tuple[Any, list[Attention]]:
    """The model's output under the probe, and what the probe saw."""
    lengths = lengths or [x.shape[1]] * x.shape[0]
    trace = Trace(Subject(model), Batch(x, torch.tensor(lengths), look_at=look_at))
    emit = Emitter(Listed() if sink is None else sink)
    probe = AttentionProbe()
    probe.attach(model, trace, emit)
    try:
        output = (call or model)(x)
    finally:
        probe.detach()
        probe.detach()
    probe.finish(trace, emit)
    return output, trace.attentions


def explicit(query: Tensor, key: Tensor, scale: float, may: Tensor | None, bias: Tensor | None = None) -> Tensor:
    """Weights (a, q, k) by loops in float64; may (q, k) or (a, q, k); NaN in rows without a key."""
    a, q, d = query.shape
    k = key.shape[1]
    out = torch.zeros(a, q, k, dtype=torch.float64)
    for h in range(a):
        for i in range(q):
            scores = []
            for j in range(k):
                open_ = may is None or bool(may[h, i, j] if may.dim() == 3 else may[i, j])
                extra = 0.0 if bias is None else float(bias[h, i, j] if bias.dim() == 3 else bias[i, j])
                dot = sum(float(query[h, i, n]) * float(key[h, j, n]) for n in range(d)) * scale + extra
                scores.append(dot if open_ else -math.inf)
            top = max(scores)
            if top == -math.inf:
                out[h, i] = math.nan
                continue
            powers = [math.exp(s - top) for s in scores]
            out[h, i] = torch.tensor(powers, dtype=torch.float64) / sum(powers)
    return out


def weights_of(attention: Attention, sample: int = 0) -> Tensor:
    queries = attention.query.shape[2] if attention.weights is None else attention.weights.shape[2]
    return rows(attention, sample, 0, queries)


def reference_layer(x: Tensor, module: nn.MultiheadAttention, source: Tensor | None = None) -> Tensor:
    """(a, q, k) weights of one sample (t, e) from the packed weights, in float64, without masks."""
    source = x if source is None else source
    e = x.shape[-1]
    weight, bias = module.in_proj_weight.double(), module.in_proj_bias.double()
    q = (x.double() @ weight[:e].T + bias[:e]).reshape(len(x), module.num_heads, -1).transpose(0, 1)
    k = (source.double() @ weight[e : 2 * e].T + bias[e : 2 * e]).reshape(len(source), module.num_heads, -1)
    return torch.softmax(q @ k.transpose(0, 1).mT / math.sqrt(e / module.num_heads), -1)
