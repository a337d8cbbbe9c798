"""Unusual ways to mask, to pick and to join what is attended to, against plain float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from written_attention import SAMPLE, D, T, Written, chain, inputs, plain_softmax, ran

pytestmark = pytest.mark.usefixtures("one_thread")

W = torch.linspace(-1, 1, D * D, dtype=torch.float64).reshape(D, D)
LENGTHS = torch.tensor([6, 3, 5])


def scores(x: Tensor) -> Tensor:
    return x @ W @ x.mT


def own(x: Tensor) -> Tensor:
    return x[SAMPLE] @ W @ x[SAMPLE].T


@pytest.mark.parametrize("padded", [True, False])
def test_masked_before_and_after_and_divided(padded: bool) -> None:
    """softmax(scores · m) · m over its sum: that sum is none of values, whatever the mask holds."""
    may = torch.arange(T) < (LENGTHS[:, None] if padded else T)
    m = may.double()[:, None]

    def forward(x: Tensor) -> Tensor:
        weights = torch.softmax(scores(x) * m, -1) * m
        return (weights / (weights.sum(-1, keepdim=True) + 1e-13)) @ x

    x = inputs()
    seen = chain(Written(forward).eval(), plain_softmax(own(x), may[SAMPLE].expand(T, T))[None], x)
    if padded:
        assert (seen.sink.array("inner:attention/allowed")[1] == LENGTHS[SAMPLE] - 1).all()


def test_the_largest_are_put_back_behind_their_softmax() -> None:
    def forward(x: Tensor) -> Tensor:
        largest = scores(x).topk(3, -1)
        weights = torch.zeros_like(scores(x)).scatter(-1, largest.indices, largest.values.softmax(-1))
        return weights @ x

    x = inputs()
    may = torch.tensor([[s >= sorted(row, reverse=True)[2] for s in row] for row in own(x).tolist()])
    seen = chain(forward, plain_softmax(own(x), may)[None], x)
    first, last = seen.sink.array("inner:attention/allowed")
    np.testing.assert_array_equal(first, [row.index(True) for row in may.tolist()])
    np.testing.assert_array_equal(last, [T - 1 - row[::-1].index(True) for row in may.tolist()])
    assert not [text for text in seen.logged() if "not taken" in text]


class Beside(nn.Module):
    """Queries of the sequence, keys that no parameter has touched: of a memory as long, or of the sequence itself."""

    def __init__(self, keys: str) -> None:
        super().__init__()
        self.keys, self.query = keys, nn.Linear(D, D).double()
        self.memory: Tensor
        self.register_buffer("memory", inputs().flip(0).cos())

    def of(self, x: Tensor) -> Tensor:
        if self.keys == "memory":
            return self.memory
        return x if self.keys == "sequence" else x / x.norm(dim=-1, keepdim=True)

    def forward(self, x: Tensor) -> Tensor:
        return torch.bmm((self.query(x) @ self.of(x).mT).softmax(-1), self.of(x))


@pytest.mark.parametrize(("keys", "domain"), [("memory", "source step"), ("sequence", "step"), ("unit", "step")])
def test_whose_keys_without_a_graph_are(keys: str, domain: str) -> None:
    torch.manual_seed(1)
    model, x = Beside(keys).eval(), inputs()
    products = model.query(x)[SAMPLE].detach() @ model.of(x)[SAMPLE].T
    seen = chain(model, plain_softmax(products)[None], x, place="model", domains=("step", domain))
    assert ("model:attention/distance" in ran(model, x, "model", ["attention/distance"]).sink.names()) == (
        keys != "memory"
    )
    assert "not known" not in seen.method
