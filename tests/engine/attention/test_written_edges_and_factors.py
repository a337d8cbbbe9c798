"""Attention over the edges of a graph and attention-free transformers, against plain loops in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Log

pytestmark = pytest.mark.usefixtures("one_thread")
WIDTH, STEPS, SAMPLE = 4, 6, 1
SOURCE = torch.tensor([0, 1, 2, 3, 4, 5, 0, 1, 2, 5, 3, 0])
TARGET = torch.tensor([0, 1, 2, 3, 4, 5, 1, 2, 0, 3, 5, 5])


def run(model: nn.Module, x: Tensor) -> Listed:
    sink = Listed()
    batch = Batch(x, torch.full((len(x),), x.shape[1]), look_at=SAMPLE)
    perform(Subject(model=model, kind="vectors", width=WIDTH), batch, sink, RunOptions(only=("attention/maps",)))
    return sink


def inputs() -> Tensor:
    return torch.randn(3, STEPS, WIDTH, generator=torch.Generator().manual_seed(6)).double()


class Graph(nn.Module):
    """(b, t, e) with heads or without; scores as in Veličković et al. 2018."""

    def __init__(self, how: str, heads: int) -> None:
        super().__init__()
        self.how, self.heads = how, heads
        self.layer = nn.Linear(WIDTH, heads * WIDTH)
        self.ends, self.starts = (nn.Parameter(torch.randn(heads, WIDTH)) for _ in range(2))

    def scores(self, h: Tensor) -> Tensor:
        """(b, e, a)."""
        return F.leaky_relu((h * self.ends).sum(-1)[:, TARGET] + (h * self.starts).sum(-1)[:, SOURCE], 0.2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x).unflatten(-1, (self.heads, WIDTH))
        power = torch.exp(self.scores(h))
        sums = torch.zeros(*x.shape[:2], self.heads, dtype=x.dtype).index_add(1, TARGET, power)
        weights = power / (sums[:, TARGET] + (1e-16 if self.how == "eps" else 0))
        rows = h.index_select(1, SOURCE) if self.how == "select" else h[:, SOURCE]
        if self.how == "flat":
            rows, weights = h[:, :, 0][:, SOURCE], weights[:, :, 0]
        given = rows * weights[..., None] if self.how == "values first" else weights.unsqueeze(-1) * rows
        zeros = torch.zeros(x.shape[0], STEPS, *given.shape[2:], dtype=x.dtype)
        if self.how == "scatter":
            wide = TARGET[None, :, None, None].expand_as(given)
            out = zeros.scatter_add(1, wide, given)
        elif self.how == "in place":
            out = zeros.index_add_(1, TARGET, given)
        else:
            out = torch.index_add(zeros, 1, TARGET, given)
        return out.flatten(2)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("how", ["plain", "eps", "select", "values first", "scatter", "in place"])
def test_edges_of_a_graph_are_a_map(how: str, heads: int) -> None:
    torch.manual_seed(0)
    model, x = Graph(how, heads).double(), inputs()
    edges(model, x, heads)


def test_edges_without_an_axis_of_heads() -> None:
    torch.manual_seed(0)
    edges(Graph("flat", 1).double(), inputs(), 1)


def edges(model: Graph, x: Tensor, heads: int) -> None:
    sink = run(model, x)
    h = model.layer(x).unflatten(-1, (heads, WIDTH))
    scores = model.scores(h)[SAMPLE].detach()
    expected = np.zeros((heads, STEPS, STEPS))
    for a in range(heads):
        for q in range(STEPS):
            own = [e for e in range(len(TARGET)) if TARGET[e] == q]
            total = sum(float(scores[e, a].exp()) for e in own)
            for e in own:
                expected[a, q, int(SOURCE[e])] = float(scores[e, a].exp()) / total
    found = sink.array("model:attention").astype(float)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    ends = [[int(end(SOURCE[q == TARGET])) for q in range(STEPS)] for end in (torch.min, torch.max)]
    np.testing.assert_array_equal(sink.array("model:attention/allowed"), ends)  # where no edge is, it is masked


class Untold(Graph):
    """The values of the edges are made, not taken: of what they are rows nothing is seen."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x).unflatten(-1, (self.heads, WIDTH))
        power = torch.exp(self.scores(h))
        weights = power / torch.zeros(*x.shape[:2], self.heads).double().index_add(1, TARGET, power)[:, TARGET]
        given = weights[..., None] * (h[:, SOURCE] + h[:, TARGET]).tanh()
        return torch.zeros_like(h).index_add(1, TARGET, given).flatten(2)


def test_edges_whose_values_are_not_rows_are_listed() -> None:
    torch.manual_seed(0)
    sink = run(Untold("", 2).double(), inputs())
    assert not [one for one in sink.names() if one.endswith(":attention")]
    said = [one.text for one in sink.of(Log) if "over the edges of a graph" in one.text]
    assert said and "values of its edges were not seen to be rows of one tensor" in said[0]


class Mean(nn.Module):
    """A graph convolution: what is summed by an index is not weighed."""

    def forward(self, x: Tensor) -> Tensor:
        counts = torch.bincount(TARGET, minlength=STEPS)[None, :, None]
        return torch.zeros_like(x).index_add(1, TARGET, x[:, SOURCE]) / counts


def test_sums_by_an_index_that_are_no_attention_are_not_listed() -> None:
    sink = run(Mean(), inputs())
    assert not [one for one in sink.of(Log) if "edges" in one.text]


Way = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def by_matmul(q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> Tensor:
    power, matrix = k.exp(), w.exp()
    return q.sigmoid() * (matrix @ (power * v) / (matrix @ power))


def by_einsum(q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> Tensor:
    num = torch.einsum("ts,bsd->btd", w.exp(), torch.exp(k) * v)
    return q.sigmoid() * num.div(torch.einsum("ts,bsd->btd", w.exp(), torch.exp(k)))


def shifted(q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> Tensor:
    power = torch.exp(k - k.amax(1, keepdim=True))
    matrix = torch.exp(w - w.amax(-1, keepdim=True))[None]
    num, den = torch.matmul(matrix, v * power), torch.matmul(matrix, power)
    return torch.mul(num / (den + 1e-9), torch.sigmoid(q))


def over_all_pairs(q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> Tensor:
    scores = w[None, :, :, None] + k[:, None]
    return q.sigmoid() * (scores.softmax(2) * v[:, None]).sum(2)


def exp_of_all_pairs(q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> Tensor:
    power = torch.exp(w[None, :, :, None] + k[:, None])
    return q.sigmoid() * ((power * v[:, None]).sum(2) / power.sum(2))


def gated_first(q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> Tensor:
    power, matrix = k.exp(), w.exp()
    return q.sigmoid() * (matrix @ (power * v)) / (matrix @ power)


def gated_times_the_reciprocal(q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> Tensor:
    power, matrix = k.exp(), w.exp()
    return (torch.einsum("ts,bsd->btd", matrix, v * power) * q.sigmoid()) * (1 / (matrix @ power))


def gated_sums_of_all_pairs(q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> Tensor:
    power = torch.exp(w[None, :, :, None] + k[:, None])
    return torch.sigmoid(q).mul((power * v[:, None]).sum(2)) / power.sum(2)


def gated_twice(q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> Tensor:
    power, matrix = k.exp(), w.exp()
    return v.tanh() * (q.sigmoid() * (matrix @ (power * v))) / (matrix @ power)


class Free(nn.Module):
    def __init__(self, way: Way, local: bool) -> None:
        super().__init__()
        self.parts, self.way = nn.ModuleList(nn.Linear(WIDTH, 3) for _ in range(3)), way
        self.w = nn.Parameter(torch.randn(STEPS, STEPS))
        apart = (torch.arange(STEPS)[:, None] - torch.arange(STEPS)).abs()
        self.register_buffer("near", (apart < 3).double() if local else torch.ones(STEPS, STEPS).double())

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part(x) for part in self.parts)
        return self.way(q, k, v, self.w * self.near)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("way", [by_matmul, by_einsum, shifted, over_all_pairs, exp_of_all_pairs,
                                 gated_first, gated_twice, gated_times_the_reciprocal, gated_sums_of_all_pairs])  # fmt: skip
def test_an_attention_free_transformer_has_a_map_for_each_feature(way: Way, local: bool) -> None:
    torch.manual_seed(1)
    model, x = Free(way, local).double(), inputs()
    k, w = model.parts[1](x[SAMPLE]).detach(), (model.w * model.near).detach()
    expected = torch.zeros(3, STEPS, STEPS, dtype=torch.float64)
    for d in range(3):
        for t in range(STEPS):
            row = (w[t] + k[:, d]).exp()
            expected[d, t] = row / row.sum()
    found = run(model, x).array("model:attention").astype(float)
    np.testing.assert_allclose(found, expected, atol=1e-3)
