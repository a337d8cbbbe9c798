"""Layers that are called several times, whatever their names, against the same model written out in float64."""

from __future__ import annotations

import math

import attended_models as models
import numpy as np
import pytest
import torch
from attended_models import STEPS, VOCABULARY, WIDTH, Block
from listed import Listed
from torch import Tensor, nn

pytestmark = pytest.mark.usefixtures("one_thread")
NEAR = {"rtol": 1e-5, "atol": 1e-8}
ASKED = (
    "attention/rollout", "attention/relevance@of=score", "residual/lens", "attention/direct_logit",
    "attention/value_zeroing",
)  # fmt: skip


class Repeated(nn.Module):
    """Layers in a given order, some of them more than once."""

    def __init__(self, order: tuple[int, ...], in_list: bool) -> None:
        super().__init__()
        self.order, self.in_list = order, in_list
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        blocks = [Block("written") for _ in range(1 + max(order))]
        if in_list:
            self.groups = nn.ModuleList(blocks)
        else:
            self.layer = blocks[0]
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

    def block(self, number: int) -> Block:
        return self.groups[number] if self.in_list else self.layer  # type: ignore[return-value]

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for number in self.order:
            x = self.block(number)(x)
        out: Tensor = self.head(self.norm(x))
        return out


def made(order: tuple[int, ...], in_list: bool) -> Repeated:
    torch.manual_seed(7)
    model = Repeated(order, in_list).double().eval()
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.randn_like(value) * 0.5)
    return model


class Plain:
    """The run on the shown sequence: maps (a, t, t), what each head adds (a, t, e), the stream (t, e)."""

    def __init__(self, model: Repeated, ids: Tensor) -> None:
        self.maps: list[Tensor] = []
        self.added: list[Tensor] = []
        x = model.embedding.weight[ids]
        self.stream = [x]
        for number in model.order:
            block = model.block(number)
            x = self._layer(block, x, None)
            self.stream.append(x)
        self.logits = x_scores(model, x)

    def _layer(self, block: Block, x: Tensor, without: int | None) -> Tensor:
        own = block.attention
        y = normed(block.first, x)
        wide = WIDTH // models.HEADS
        adds = torch.zeros_like(x)
        heads = []
        maps = []
        for a in range(models.HEADS):
            rows = slice(a * wide, (a + 1) * wide)
            q, k, v = (y @ part.weight[rows].T + part.bias[rows] for part in (own.q, own.k, own.v))
            later = torch.ones(STEPS, STEPS, dtype=torch.bool).triu(1)
            maps.append((q @ k.T / math.sqrt(wide)).masked_fill(later, -math.inf).softmax(-1))
        kept = torch.stack(maps)
        if without is None:
            self.maps.append(kept)
        for a in range(models.HEADS):
            rows = slice(a * wide, (a + 1) * wide)
            v = y @ own.v.weight[rows].T + own.v.bias[rows]
            if without is not None:
                v = v * (torch.arange(STEPS) != without)[:, None]
            heads.append(kept[a] @ v @ own.o.weight[:, rows].T)
            adds = adds + heads[-1]
        if without is None:
            self.added.append(torch.stack(heads))
        x = x + adds + own.o.bias
        y = normed(block.second, x)
        return x + block.layers(y)

    def zeroed(self, model: Repeated) -> list[Tensor]:
        """(t, t) of each layer."""
        found = []
        for number, before, after in zip(model.order, self.stream, self.stream[1:], strict=False):
            one = torch.zeros(STEPS, STEPS, dtype=torch.float64)
            for key in range(STEPS):
                moved = self._layer(model.block(number), before, key)
                one[:, key] = 1 - torch.cosine_similarity(after, moved, dim=1)
            found.append(one / one.sum(1, keepdim=True))
        return found


def normed(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight + norm.bias


def x_scores(model: Repeated, x: Tensor) -> Tensor:
    return normed(model.norm, x) @ model.head.weight.T + model.head.bias


@pytest.mark.parametrize(
    ("order", "in_list", "places"),
    [
        ((0, 0, 0), False, ("layer.attention", "layer.attention.1", "layer.attention.2")),
        ((0, 1, 0, 1), True, tuple(f"groups.{n}.attention{m}" for m in ("", ".1") for n in (0, 1))),
    ],
    ids=["one layer three times", "two by turns"],
)
def test_each_call_is_a_layer_where_it_ran(order: tuple[int, ...], in_list: bool, places: tuple[str, ...]) -> None:
    model = made(order, in_list)
    sink = models.run(model, *ASKED)
    ids = models.batch().inputs[1]
    known = Plain(model, ids)
    assert not [name for name in sink.refusals() if "attention/" in name or "residual/" in name]
    assert sink.channel("layers:attention/rollout").labels["layer"] == places
    _follows(sink, known)
    stack = "groups" if in_list else "layers"
    with torch.no_grad():
        final = known.logits.log_softmax(-1)
        lens = torch.stack([x_scores(model, x).log_softmax(-1) for x in known.stream])
        expected = (final.exp() * (final - lens)).sum(-1)
        np.testing.assert_allclose(sink.array(f"{stack}:residual/lens_divergence"), expected, rtol=1e-5, atol=1e-8)
        for place, adds, zeroed in zip(places, known.added, known.zeroed(model), strict=True):
            np.testing.assert_allclose(
                sink.array(f"{place}:attention/direct_logit"), direct(model, known, adds), **NEAR
            )
            np.testing.assert_allclose(sink.array(f"{place}:attention/value_zeroing"), zeroed, rtol=1e-4, atol=1e-6)


def direct(model: Repeated, known: Plain, adds: Tensor) -> Tensor:
    """(a, t)."""
    x, top = known.stream[-1], known.logits.argmax(-1)
    sigma = ((x - x.mean(-1, keepdim=True)).square().mean(-1, keepdim=True) + model.norm.eps).sqrt()
    linear = (adds - adds.mean(-1, keepdim=True)) / sigma * model.norm.weight
    return (linear * model.head.weight[top]).sum(-1)


def _follows(sink: Listed, known: Plain) -> None:
    unit = torch.eye(STEPS, dtype=torch.float64)
    slopes = torch.autograd.grad(known.logits[-1].max(), known.maps, retain_graph=True)
    rollout, relevance = unit, unit
    for number, (maps, slope) in enumerate(zip(known.maps, slopes, strict=True)):
        rollout = (0.5 * maps.detach().mean(0) + 0.5 * unit) @ rollout
        relevance = relevance + (maps.detach() * slope).clamp(min=0).mean(0) @ relevance
        np.testing.assert_allclose(sink.array("layers:attention/rollout")[number], rollout, **NEAR)
        np.testing.assert_allclose(sink.array("layers:attention/relevance")[number], relevance - unit, **NEAR)
