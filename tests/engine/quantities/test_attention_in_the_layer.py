"""Layers that attend in their own code, not in a module of their own, against float64 written out here."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn

import inspector
from inspector.engine.model.subject import Subject

V, D, HEADS, EACH = 9, 8, 2, 4
IDS = [1, 2, 3, 4, 1, 2, 5]
T = len(IDS)
ALSO = ("attention/value_zeroing", "attention/direct_logit")


class Block(nn.Module):
    """A pre-norm layer with attention and a feed-forward part."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.second = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.out, self.up, self.down = (
            nn.Linear(D, 3 * D),
            nn.Linear(D, D),
            nn.Linear(D, 16),
            nn.Linear(16, D),
        )

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (b, a, t, t) and values (b, a, t, d)."""
        q, k, v = (part.unflatten(-1, (HEADS, EACH)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, -1))
        later = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        return (q @ k.mT / EACH**0.5).masked_fill(later, -torch.inf).softmax(-1), v

    def after(self, x: Tensor, weights: Tensor, values: Tensor) -> Tensor:
        x = x + self.out((weights @ values).transpose(1, 2).flatten(-2))
        found: Tensor = x + self.down(torch.relu(self.up(self.second(x))))
        return found

    def forward(self, x: Tensor) -> Tensor:
        return self.after(x, *self.heads(x))


class Speaking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.places = nn.Embedding(V, D), nn.Embedding(T, D)
        self.layers = nn.ModuleList(Block() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(D), nn.Linear(D, V)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids) + self.places(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        found: Tensor = self.head(self.norm(x))
        return found


def streams(model: Speaking) -> list[Tensor]:
    """What each layer is given, and what the last one makes, (1, t, d)."""
    found = [model.embed(torch.tensor([IDS])) + model.places(torch.arange(T))]
    for layer in model.layers:
        found.append(layer(found[-1]))
    return found


def zeroed(layer: Block, x: Tensor) -> Tensor:
    """(t, t) cosine distances without the value of each key, rows summing to 1."""
    weights, values = layer.heads(x)
    plain, columns = layer(x)[0], []
    for key in range(T):
        without = values.clone()
        without[:, :, key] = 0
        columns.append(1 - torch.cosine_similarity(plain, layer.after(x, weights, without)[0], dim=1))
    table = torch.stack(columns, 1)
    return table / table.sum(1, keepdim=True)


def test_value_zeroing_and_direct_logits_of_a_layer_that_attends_itself() -> None:
    model = Speaking()
    twin = copy.deepcopy(model).double()
    with (
        inspector.run(Subject(model=model, next_token=True, vocabulary=list("abcdefghi")), IDS, only=ALSO) as capture,
        torch.no_grad(),
    ):
        xs = streams(twin)
        last, norm = xs[-1][0], twin.norm
        scale = (last.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
        direction = twin.head.weight[twin.head(norm(last)).argmax(-1)] * norm.weight / scale
        direction = direction - direction.mean(-1, keepdim=True)
        for number, layer in enumerate(twin.layers):
            assert isinstance(layer, Block)
            weights, values = layer.heads(xs[number])
            part = layer.out.weight.unflatten(1, (HEADS, EACH))
            added = torch.einsum("aqk,akd,ead->aqe", weights[0], values[0], part)
            place = f"layers.{number}:attention"
            known = zeroed(layer, xs[number]).numpy()
            assert np.allclose(capture.array(f"{place}/value_zeroing"), known, atol=1e-5)
            known = (added * direction).sum(-1).numpy()
            assert np.allclose(capture.array(f"{place}/direct_logit"), known, atol=1e-5)


class Apart(Block):
    """A projection of its own behind each head."""

    def __init__(self) -> None:
        super().__init__()
        self.outs = nn.ModuleList(nn.Linear(EACH, D, bias=False) for _ in range(HEADS))

    def after(self, x: Tensor, weights: Tensor, values: Tensor) -> Tensor:
        sums = weights @ values
        return x + sum(out(sums[:, head]) for head, out in enumerate(self.outs))


def test_the_projection_of_one_head_is_not_taken_for_that_of_all() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(Apart()), torch.randn(1, T, D)
    twin = copy.deepcopy(model).double()[0]
    assert isinstance(twin, Apart)
    with inspector.run(model, x[0].numpy(), only=("attention/weighted_norm",)) as capture, torch.no_grad():
        weights, values = twin.heads(x.double())
        channel = capture.channels["0:attention/head_output"]
        found = capture.array(channel.name)
    assert "no projection behind the heads was found" in channel.method
    assert np.allclose(found, (weights @ values)[0].norm(dim=-1), rtol=1e-5)
