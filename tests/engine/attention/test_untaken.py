"""A softmax that is not attention is listed with the reason; one that cannot be shown is refused with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from written_attention import B, D, T, Written, inputs, not_taken, ran

from inspector.engine.attention.written import judging, unfollowed
from inspector.engine.attention.written.facts import Origin
from inspector.engine.attention.written.transformed import TRANSFORMED
from inspector.engine.attention.written.untaken import MOST, lines

pytestmark = pytest.mark.usefixtures("one_thread")


class Several(nn.Module):
    """Three layers, weighed by a softmax of a fourth: `way` says how they are put together."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.layers = nn.ModuleList(nn.Linear(D, D) for _ in range(3))
        self.gate = nn.Linear(D, 3)
        self.each = nn.Parameter(torch.randn(3, D, D))
        self.scores = nn.Parameter(torch.randn(3))
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        weights = self.gate(x).softmax(-1) if self.way not in OTHERS else x
        parts = torch.stack([layer(x) for layer in self.layers], -2)
        if self.way == "layers":
            return (weights[..., None] * parts).sum(-2)
        if self.way == "matmul":
            return (weights.unsqueeze(-2) @ parts).squeeze(-2)
        if self.way == "einsum of parameters":
            return torch.einsum("btn,btd,nde->bte", weights, x, self.each)
        if self.way == "one layer, split":
            return (weights[..., None] * F.linear(x, self.each.flatten(0, 1)).unflatten(-1, (3, D))).sum(-2)
        if self.way == "fixed":
            return (self.scores.softmax(0)[:, None] * parts).sum(-2)
        if self.way == "router":
            best = weights.topk(2, -1)
            return (best.values[..., None] * parts.gather(-2, best.indices[..., None].expand(-1, -1, -1, D))).sum(-2)
        if self.way == "gate":
            return torch.softmax(x, -1) * x
        if self.way == "classifier":
            return weights
        if self.way == "soft embedding":
            return weights @ self.each[0, :3]
        if self.way == "two of three":
            return sum((weights[..., n : n + 1] * parts[..., n, :] for n in range(2)), torch.zeros_like(x))
        if self.way == "one by one":
            return sum((weights[..., n : n + 1] * parts[..., n, :] for n in range(3)), torch.zeros_like(x))
        return self.of_positions(x)

    def of_positions(self, x: Tensor) -> Tensor:
        scores = x @ x.mT
        if self.way == "heads mixed":
            heads = torch.stack([(n + 1) * scores for n in range(D)], -1).softmax(2)
            return torch.as_tensor(self.gate(heads)[..., 0] @ x)
        return torch.softmax(scores, -1).mT @ x


OTHERS = ("fixed", "gate", "another axis", "heads mixed")
"""Those without the softmax of the gate."""

REASONS = {
    "layers": judging.LAYERS,
    "matmul": judging.LAYERS,
    "einsum of parameters": judging.OUTPUTS,
    "one layer, split": judging.OUTPUTS,
    "fixed": judging.FIXED,
    "router": judging.ROUTED,
    "gate": judging.GATE,
    "classifier": judging.UNUSED,
    "soft embedding": judging.PARAMETERS,
    "two of three": judging.PIECES,
    "one by one": judging.OUTPUTS,
    "another axis": judging.ELSEWHERE,
    "heads mixed": judging.LAYER,
}


@pytest.mark.parametrize("way", REASONS)
def test_why_a_softmax_is_not_attention(way: str) -> None:
    said = not_taken(Several(way).eval(), place="model")
    assert REASONS[way] in said and said.startswith("A softmax of model, over axis "), said


def test_three_positions_do_not_make_a_mixture_attention() -> None:
    """As many layers as steps: the values still come from different layers."""
    for way in ("layers", "matmul"):
        assert judging.LAYERS in not_taken(Several(way).eval(), inputs(t=3), place="model")


def test_a_module_that_says_that_it_attends_is_attention() -> None:
    """Location-based attention: one score for each output of a layer, over as many positions."""

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.score = nn.Linear(D, T).double()

        def forward(self, x: Tensor) -> Tensor:
            return torch.bmm(self.score(x).softmax(-1), x)

    seen = ran(Attention().eval(), inputs(), "model")
    assert "model:attention" in seen.sink.names()
    assert not [text for text in seen.logged() if "not taken" in text]


def test_attention_that_is_put_together_in_an_unknown_way_is_listed() -> None:
    """Weights in overlapping windows of a copy, as of Longformer: what they weigh is not known."""

    class LocalAttention(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            near = F.pad(x, (0, 0, 1, 1)).unfold(1, 3, 1)  # (b, t, d, 3)
            weights = torch.einsum("btd,btdk->btk", x, near).softmax(-1)
            return torch.stack([(row * window).sum(-1) for row, window in zip(
                F.pad(weights, (0, 1))[..., :3].flatten(0, 1), near.flatten(0, 1), strict=True)]).view_as(x)  # fmt: skip

    said = not_taken(LocalAttention().eval(), place="model")
    assert judging.UNSEEN in said


WAYS: list[Callable[[Tensor], Tensor]] = [
    lambda x: torch.sigmoid(x) * x,
    lambda x: (x.cumsum(1) / torch.arange(1, T + 1)[:, None]) @ torch.ones(D, D).to(x),
    lambda x: x.exp() / x.exp().sum(),
    lambda x: F.relu(x) @ x.mT,
    lambda x: torch.clamp(x, 0, 1).mT @ x,
    lambda x: F.one_hot((x[..., 0] > 0).long(), 2).double() @ torch.randn(2, D, dtype=torch.float64),
]


@pytest.mark.parametrize("number", range(len(WAYS)))
def test_what_only_resembles_weights_is_no_attention(number: int) -> None:
    seen = ran(Written(WAYS[number]).eval(), inputs())
    assert not [name for name in seen.sink.names() if name.endswith(":attention")]
    assert not seen.sink.refusals() or ":attention" not in str(seen.sink.refusals())


def test_many_places_are_counted() -> None:
    many = [Origin("softmax", f"layer{n}", "", (2, 3), 1) for n in range(MOST + 2)]
    said = lines([*many, *many])
    assert len(said) == MOST + 1 and said[-1] == "2 further places with a softmax likewise."
    assert said[0].startswith("2 softmaxes of layer0, over axis 1 of 2 × 3, were not taken for attention: ")
    assert lines([Origin("sigmoid", "gate", "", (2,), 0), Origin("softmax", "a", "", (2,), 0, taken=True)]) == []


INDEXED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "rows": lambda s, v: v[s.argmax(-1)],
    "gather": lambda s, v: v.gather(0, s.max(-1).indices[:, None].expand(-1, D)),
    "take along": lambda s, v: torch.take_along_dim(v, s.argmax(-1, keepdim=True), 0),
    "index_select": lambda s, v: v.index_select(0, s.topk(1, -1).indices[:, 0]),
    "one_hot": lambda s, v: F.one_hot(s.argmax(-1), T).to(v) @ v,
    "scatter": lambda s, v: torch.zeros_like(s).scatter(-1, s.argmax(-1, keepdim=True), 1.0) @ v,
    "sorted": lambda s, v: v[s.argsort(-1, descending=True)[:, 0]],
    "embedding": lambda s, v: F.embedding(s.argmax(-1), v),
    "twice": lambda s, v: torch.vmap(lambda row: v[row.argmax()])(s),
    "compared": lambda s, v: (s == s.amax(-1, keepdim=True)).to(v) @ v,
}


@pytest.mark.parametrize("way", INDEXED)
def test_hard_attention_inside_vmap_is_listed(way: str) -> None:
    said = not_taken(lambda x: torch.vmap(INDEXED[way])(x @ x.mT, x))
    assert TRANSFORMED in said and said.startswith("A choice of the largest score of inner, over axis "), said


def test_an_index_inside_vmap_that_picks_nothing_is_not_listed() -> None:
    """Classes, rows at an index of whole numbers that were given, a comparison with a number of each row."""
    at = torch.arange(T).flip(0)
    for one in (lambda row: row[at] * row.argmax(-1, keepdim=True), lambda row: row * (row == row[:, :1])):
        seen = ran(Written(lambda x, one=one: torch.vmap(one)(x)).eval(), inputs())  # type: ignore[misc]
        assert not [text for text in seen.logged() if "not taken" in text]


def in_bags(x: Tensor) -> Tensor:
    at = (torch.arange(B)[:, None, None] * T + torch.arange(T)).expand(B, T, T)[: len(x)]
    weights = (x @ x.mT).softmax(-1).reshape(-1, T)
    bags = F.embedding_bag(at.reshape(-1, T), x.reshape(-1, D), per_sample_weights=weights, mode="sum")
    return bags.view(x.shape)


def by_sparse(x: Tensor) -> Tensor:
    weights = (x @ x.mT).softmax(-1)
    return torch.stack([torch.sparse.mm(one.to_sparse(), rows) for one, rows in zip(weights, x, strict=True)])


def by_convolution(x: Tensor) -> Tensor:
    weights = x.sum(-1).softmax(1).repeat_interleave(D, 0)[:, None]
    return F.conv1d(x.transpose(1, 2).reshape(1, -1, T), weights, groups=len(weights)).reshape(len(x), D)


INSIDE_OF = {
    "embedding_bag": (in_bags, unfollowed.INSIDE.format("embedding_bag")),
    "sparse": (by_sparse, unfollowed.SPARSE),
    "convolution": (by_convolution, unfollowed.INSIDE.format("a convolution")),
}


@pytest.mark.parametrize("way", INSIDE_OF)
def test_what_sums_values_inside_is_named(way: str) -> None:
    forward, reason = INSIDE_OF[way]
    assert reason in not_taken(forward)


def test_weights_that_a_convolution_reads_and_that_weigh_values_are_attention() -> None:
    """As location-sensitive attention has them."""
    kernel = torch.ones(1, 1, 3, dtype=torch.float64)

    def forward(x: Tensor) -> Tensor:
        weights = (x @ x.mT).softmax(-1)
        near = F.conv1d(weights.flatten(0, 1)[:, None], kernel, padding=1).view_as(weights)
        return weights @ x + near.sum(-1, keepdim=True)

    seen = ran(Written(forward).eval(), inputs())
    assert "inner:attention" in seen.sink.names()
    assert not [text for text in seen.logged() if "not taken" in text]
