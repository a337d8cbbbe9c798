"""Lens and direct logits where a model scales or caps the result of its head, as Cohere, Granite and Gemma 2 do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import inspector
from inspector.engine.analyses.attention.score_scale import ScoreScale, score_scale
from inspector.engine.model.subject import Subject

V, D, IDS = 9, 8, [1, 2, 3, 4, 1, 2, 5]
AFTER: dict[str, Callable[[Tensor], Tensor]] = {
    "times": lambda x: x * 0.625,
    "over": lambda x: x / 3.0,
    "cap": lambda x: 0.9 * torch.tanh(x / 0.9),
    "scaled cap": lambda x: torch.tanh(x * 1.5 / 4.0) * 4.0,
}
KNOWN = {
    "times": ScoreScale(0.625), "over": ScoreScale(1 / 3), "cap": ScoreScale(1.0, 0.9), "scaled cap": ScoreScale(1.5, 4.0)
}  # fmt: skip


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(D), nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (one.unflatten(-1, (2, -1)).transpose(1, 2) for one in self.qkv(self.norm(x)).chunk(3, -1))
        heads = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(heads.transpose(1, 2).flatten(-2))


class Scaled(nn.Module):
    def __init__(self, then: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embedding, self.positions = nn.Embedding(V, D), nn.Parameter(torch.randn(len(IDS), D))
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V)
        self.then = then

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.then(self.head(self.norm(x)))


def shown(then: Callable[[Tensor], Tensor]) -> Any:
    model = Scaled(then).eval()
    subject = Subject(model=model, next_token=True, vocabulary=list("abcdefghi"))
    return inspector.run(subject, IDS, only=("attention/direct_logit", "residual/lens"))


def lens(stream: Tensor, model: Any, then: Callable[[Tensor], Tensor]) -> Tensor:
    scale = (stream.var(-1, unbiased=False, keepdim=True) + model.norm.eps).sqrt()
    normed = (stream - stream.mean(-1, keepdim=True)) / scale * model.norm.weight + model.norm.bias
    return then(normed @ model.head.weight.T + model.head.bias)


@pytest.mark.parametrize("way", AFTER)
def test_lens_and_direct_logits_count_what_follows_the_head(way: str) -> None:
    then, known = AFTER[way], KNOWN[way]
    with shown(lambda x: x) as plain, shown(then) as scaled:
        for name in [one for one in plain.channels if "direct_logit" in one]:
            np.testing.assert_allclose(scaled.array(name), known.factor * plain.array(name), rtol=1e-4, atol=1e-6)
            said = scaled.channels[name].formula
            assert (f"its soft cap of {known.cap:.4g}" in said) == math.isfinite(known.cap)
        model: Any = Scaled(then).double()
        stream = model.embedding(torch.tensor([IDS])) + model.positions
        tables = [lens(stream, model, then)]
        for layer in model.layers:
            stream = layer(stream)
            tables.append(lens(stream, model, then))
        logs = torch.stack(tables)[:, 0].log_softmax(-1)
        kl = (logs[-1].exp() * (logs[-1] - logs)).sum(-1).detach().numpy()
        assert kl[0].max() > 1e-3
        np.testing.assert_allclose(scaled.array("layers:residual/lens_divergence"), kl, atol=5e-6)
        assert all(one in scaled.channels["layers:residual/lens_divergence"].method for one in known.names)


@pytest.mark.parametrize("then", [torch.relu, lambda x: x + torch.arange(V), lambda x: x.sin()])
def test_other_ends_are_refused(then: Callable[[Tensor], Tensor]) -> None:
    with shown(then) as capture:
        assert not any("lens" in name or "direct" in name for name in capture.channels)
        reasons = {one.reason for one in capture.refusals}
        assert any("nor that times a number or with a soft cap" in one for one in reasons), reasons


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("factor", "cap"), [(1.0, 30.0), (0.7, 2.5), (-2.0, math.inf), (1.0, 0.01)])
def test_factor_and_cap_are_found_from_the_numbers(dtype: torch.dtype, factor: float, cap: float) -> None:
    x = (3 * torch.randn(40, 50, generator=torch.Generator().manual_seed(0))).to(dtype)
    y = (factor * x.double() if math.isinf(cap) else cap * torch.tanh(factor * x.double() / cap)).to(dtype)
    found = score_scale(x, y)
    if cap == 0.01:  # all of it lies at the cap, so that nothing tells what the factor was
        assert found is None or torch.allclose(found.of(x), y, atol=1e-4)
        return
    assert found is not None and torch.allclose(found.of(x.double()), y.double(), atol=0.02 * float(y.abs().max()))
    if dtype != torch.bfloat16:
        assert found.factor == pytest.approx(factor, rel=1e-4) and found.cap == pytest.approx(cap, rel=1e-3)


def test_ruled_out_classes_and_empty_scores() -> None:
    x = torch.randn(4, 6)
    y = (x / 2).masked_fill(torch.eye(4, 6, dtype=torch.bool), -torch.inf)
    assert score_scale(x, y) == ScoreScale(0.5)
    assert score_scale(x, x[:2]) is None and score_scale(x[:0], x[:0]) is None
    assert score_scale(torch.zeros(3), torch.ones(3)) is None
