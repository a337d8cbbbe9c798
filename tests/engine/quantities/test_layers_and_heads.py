"""Rollout and relevance of models that compute heads one by one, or layers beside each other, in whatever they call
them, against the maps that each model itself keeps, multiplied as the papers say.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from listed import Listed
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTH, HEADS, STEPS, WORDS = 8, 2, 5, 7
ROLLOUT, RELEVANCE = "layers:attention/rollout", "layers:attention/relevance"
NEAR = {"rtol": 1e-5, "atol": 1e-8}


class Kept(nn.Module):
    """ids (b, t) → scores; `maps` has (layer, head or None, map with its graph) of the last call."""

    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.count = layers
        self.maps: list[tuple[int, Tensor]] = []
        self.build()

    def build(self) -> None:
        """Make the layers."""

    def run(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def keep(self, layer: int, map_: Tensor) -> Tensor:
        self.maps.append((layer, map_))
        return map_

    def forward(self, ids: Tensor) -> Tensor:
        self.maps = []
        out: Tensor = self.head(self.run(self.embedding(ids)))
        return out


def projections(width: int = WIDTH // HEADS) -> nn.ModuleList:
    return nn.ModuleList(nn.Linear(WIDTH, width) for _ in range(3))


def head_of(parts: nn.ModuleList, x: Tensor, keep: Callable[[Tensor], Tensor]) -> Tensor:
    q, k, v = (part(x) for part in parts)
    weights = keep((q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1))
    out: Tensor = weights @ v
    return out


class AllInOne(Kept):
    """Every layer and head computed in the model's own forward."""

    def build(self) -> None:
        self.parts = nn.ModuleList(nn.ModuleList(projections() for _ in range(HEADS)) for _ in range(self.count))

    def run(self, x: Tensor) -> Tensor:
        for n, heads in enumerate(self.parts):
            found = []
            for parts in heads:
                found.append(head_of(parts, x, lambda map_, n=n: self.keep(n, map_)))
            x = x + torch.cat(found, -1)
        return x


class InComprehension(AllInOne):
    def run(self, x: Tensor) -> Tensor:
        for n, heads in enumerate(self.parts):
            y = F.layer_norm(x, (WIDTH,))
            x = x + torch.cat([head_of(one, y, lambda map_, n=n: self.keep(n, map_)) for one in heads], dim=-1).tanh()
        return x


class Slices(Kept):
    """One projection, whose slices are the heads in a loop in one module a layer."""

    def build(self) -> None:
        self.blocks = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(self.count))

    def run(self, x: Tensor) -> Tensor:
        for n, block in enumerate(self.blocks):
            q, k, v = block(F.layer_norm(x, (WIDTH,))).chunk(3, -1)
            wide, total = WIDTH // HEADS, torch.zeros_like(x)
            for h in range(HEADS):
                own = slice(h * wide, (h + 1) * wide)
                map_ = self.keep(n, torch.softmax(q[..., own] @ k[..., own].mT, -1))
                total[..., own] = map_ @ v[..., own]
            x = x + total
        return x


class OneHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = projections(WIDTH)

    def forward(self, x: Tensor, keep: Callable[[Tensor], Tensor]) -> Tensor:
        return head_of(self.parts, x, keep)


class HeadModules(Kept):
    """A ModuleList of heads that each return a tensor as wide as the stream, in a list of layers."""

    def build(self) -> None:
        self.layers = nn.ModuleList(nn.ModuleList(OneHead() for _ in range(HEADS)) for _ in range(self.count))

    def run(self, x: Tensor) -> Tensor:
        for n, heads in enumerate(self.layers):
            x = x + sum(head(x, lambda map_, n=n: self.keep(n, map_)) for head in heads)
        return x


class Albert(HeadModules):
    """The same heads called in each layer."""

    def run(self, x: Tensor) -> Tensor:
        for n in range(self.count):
            y = [head(x, lambda map_, n=n: self.keep(n, map_)) for head in self.layers[0]]
            x = x + torch.stack(y).sum(0)
        return x


class BesideMlp(Slices):
    """Attention and feed-forward part of one norm, as in GPT-J; fused attention a head."""

    def build(self) -> None:
        super().build()
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, WIDTH)) for _ in range(9))

    def run(self, x: Tensor) -> Tensor:
        for n, block in enumerate(self.blocks):
            y, wide, found = F.layer_norm(x, (WIDTH,)), WIDTH // HEADS, []
            for q, k, v in zip(*(part.split(wide, -1) for part in block(y).chunk(3, -1)), strict=True):
                self.keep(n, (q @ k.mT / math.sqrt(wide)).softmax(-1))
                found.append(F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])[:, 0])
            x = x + torch.cat(found, -1) + self.mlp[n](y)
        return x


class Detached(AllInOne):
    """Each layer is trained alone: it is given the numbers of the one before it without their graph."""

    def run(self, x: Tensor) -> Tensor:
        for n, heads in enumerate(self.parts):
            x = x.detach()
            x = x + torch.cat([head_of(parts, x, lambda map_, n=n: self.keep(n, map_)) for parts in heads], -1)
        return x


class WithoutGradient(Detached):
    def run(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            first = AllInOne.run(self, x)
        return first + x


class Uneven(Kept):
    """A module of two heads beside a head in a module of its own, and one layer behind both."""

    def build(self) -> None:
        self.two = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.one, self.last = OneHead(), OneHead()

    def run(self, x: Tensor) -> Tensor:
        both = self.two(x, x, x, average_attn_weights=False)
        for head in both[1].unbind(1):
            self.keep(0, head)
        x = x + both[0] + self.one(x, lambda map_: self.keep(0, map_))
        return x + self.last(x, lambda map_: self.keep(1, map_))


class Checkpointed(AllInOne):
    """Layers that are computed again for the backward pass."""

    def run(self, x: Tensor) -> Tensor:
        for n in range(self.count):
            x = checkpoint(self.layer, n, x, use_reentrant=False)
        return x

    def layer(self, n: int, x: Tensor) -> Tensor:
        heads = [head_of(parts, x, lambda map_: self.keep(n, map_)) for parts in self.parts[n]]
        return x + torch.cat(heads, -1)


class Reversible(HeadModules):
    """Two halves of the stream, each the input of the other's attention (Gomez et al. 2017)."""

    def run(self, x: Tensor) -> Tensor:
        one = other = x
        for n, heads in enumerate(self.layers):
            one, other = other, one + sum(head(other, lambda map_, n=n: self.keep(n, map_)) for head in heads)
        return one + other


class Dense(AllInOne):
    """Each layer is given what all layers before it returned."""

    def run(self, x: Tensor) -> Tensor:
        every = [x]
        for n, heads in enumerate(self.parts):
            y = torch.stack(every).mean(0)
            found = [head_of(parts, y, lambda map_, n=n: self.keep(n, map_)) for parts in heads]
            every.append(torch.cat(found, -1))
        return torch.stack(every).sum(0)


STYLES = [
    (AllInOne, 1), (AllInOne, 2), (AllInOne, 3), (InComprehension, 1), (InComprehension, 3), (Slices, 1), (Slices, 2),
    (Slices, 3), (HeadModules, 1), (HeadModules, 2), (HeadModules, 3), (Albert, 1), (Albert, 3), (BesideMlp, 2),
    (Detached, 2), (WithoutGradient, 3), (Uneven, 2), (Dense, 3), (Reversible, 1), (Checkpointed, 2), (Checkpointed, 3),
]  # fmt: skip
IDS = torch.tensor([[0, 3, 5, 1, 6], [2, 2, 4, 0, 1]])


def made(kind: type[Kept], layers: int) -> Kept:
    torch.manual_seed(11)
    model = kind(layers).double().eval()
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.randn_like(value) * 0.6)
    return model


def run(model: nn.Module, *asked: str, ids: Tensor = IDS) -> Listed:
    sink = Listed()
    batch = Batch(ids, torch.full((len(ids),), ids.shape[1]), look_at=len(ids) - 1)
    perform(Subject(model=model, kind="tokens", vocabulary="abcdefg"), batch, sink, RunOptions(only=asked))
    return sink


def by_layer(model: Kept) -> list[Tensor]:
    model(IDS)
    count = 1 + max(layer for layer, _ in model.maps)
    return [torch.stack([map_[1] for layer, map_ in model.maps if layer == n]) for n in range(count)]


def rolled_out(layers: list[Tensor]) -> Tensor:
    found, eye = [torch.eye(STEPS, dtype=torch.float64)], torch.eye(STEPS, dtype=torch.float64)
    for maps in layers:
        found.append(0.5 * (maps.detach().mean(0) + eye) @ found[-1])
    return torch.stack(found[1:])


@pytest.mark.parametrize(("kind", "layers"), STYLES)
def test_heads_beside_each_other_are_one_layer_and_layers_are_multiplied(kind: type[Kept], layers: int) -> None:
    model = made(kind, layers)
    sink = run(model, "attention/rollout")
    assert ROLLOUT not in sink.refusals(), sink.refusals()
    np.testing.assert_allclose(sink.array(ROLLOUT), rolled_out(by_layer(model)), **NEAR)
    assert len(sink.channel(ROLLOUT).labels["layer"]) == layers


@pytest.mark.parametrize(("kind", "layers"), [(AllInOne, 2), (HeadModules, 2), (Albert, 2), (InComprehension, 3)])
def test_relevance_takes_the_mean_over_the_heads_of_a_layer(kind: type[Kept], layers: int) -> None:
    model = made(kind, layers)
    sink = run(model, "attention/relevance@of=score@step=3")
    scores = model(IDS)[1, 3]
    kept = list(model.maps)
    slopes = torch.autograd.grad(scores[scores.argmax()], [map_ for _, map_ in kept])
    eye = torch.eye(STEPS, dtype=torch.float64)
    whole, found = eye, []
    for n in range(layers):
        bars = [(map_ * slope)[1].clamp(min=0) for (layer, map_), slope in zip(kept, slopes, strict=True) if layer == n]
        whole = whole + torch.stack(bars).mean(0) @ whole
        found.append(whole.detach() - eye)
    np.testing.assert_allclose(sink.array(RELEVANCE), torch.stack(found), **NEAR)


class TwoTowers(Kept):
    """Two stacks over one sequence, the second of one layer more; put together without attention, or with it."""

    joined = False

    def build(self) -> None:
        self.towers = nn.ModuleList(nn.ModuleList(OneHead() for _ in range(n)) for n in (2, 3))
        self.top = OneHead()

    def run(self, x: Tensor) -> Tensor:
        ends = []
        for number, tower in enumerate(self.towers):
            y = x
            for n, layer in enumerate(tower):
                y = y + layer(y, lambda map_, n=n, own=number: self.keep(n, map_) if own else map_)
            ends.append(y)
        out = torch.stack(ends).sum(0)
        return out + self.top(out, lambda map_: map_) if self.joined else out


class JoinedTowers(TwoTowers):
    joined = True


class OtherOrder(Kept):
    """One head reads the sequence backwards: its map is over other positions."""

    def build(self) -> None:
        self.one, self.other, self.last = OneHead(), OneHead(), OneHead()

    def run(self, x: Tensor) -> Tensor:
        y = x + self.one(x, lambda map_: map_) + self.other(x.flip(1), lambda map_: map_).flip(1)
        return y + self.last(y, lambda map_: map_)


def test_of_two_stacks_the_longer_is_shown_and_the_other_named() -> None:
    model = made(TwoTowers, 2)
    sink = run(model, "attention/rollout")
    np.testing.assert_allclose(sink.array(ROLLOUT), rolled_out(by_layer(model)), **NEAR)
    method = sink.channel(ROLLOUT).method
    assert "of several chains of layers the longest; not in it: towers.0.0, towers.0.1" in method


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (JoinedTowers, "towers.0.0 and towers.1.0 are neither heads of one layer nor computed one from the other"),
        (OtherOrder, "one and other are neither heads of one layer nor computed one from the other"),
    ],
)
def test_what_is_no_chain_is_refused(kind: type[Kept], why: str) -> None:
    assert why in run(made(kind, 2), "attention/rollout").refusals()[ROLLOUT]


class ByNumpy(AllInOne):
    """The second layer is given numbers that autograd cannot follow at all."""

    def run(self, x: Tensor) -> Tensor:
        for n, heads in enumerate(self.parts):
            if n:
                x = torch.tensor(x.detach().cpu().tolist(), dtype=x.dtype)
            x = x + torch.cat([head_of(parts, x, lambda map_, n=n: self.keep(n, map_)) for parts in heads], -1)
        return x


def test_what_autograd_cannot_follow_is_not_guessed() -> None:
    said = run(made(ByNumpy, 2), "attention/rollout").refusals()[ROLLOUT]
    assert "attends within numbers that autograd does not follow" in said


class Block(nn.Module):
    """Heads in a list, each as wide as the stream, in a layer of a list."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(OneHead() for _ in range(HEADS))

    def forward(self, x: Tensor) -> Tensor:
        return x + sum(head(x, lambda map_: map_) for head in self.heads)


class Blocks(Kept):
    def build(self) -> None:
        self.blocks = nn.ModuleList(Block() for _ in range(self.count))

    def run(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def test_heads_in_a_list_are_no_layers_of_the_residual_stream() -> None:
    for layers in (1, 2):
        sink = run(made(Blocks, layers), "residual/lens")
        names = sink.channel("blocks:residual/lens_probability").labels["layer"]
        assert names == ("into blocks.0", *(f"blocks.{n}" for n in range(layers)))
    assert "No layers were found" in next(iter(run(made(HeadModules, 2), "residual/lens").refusals().values()))
