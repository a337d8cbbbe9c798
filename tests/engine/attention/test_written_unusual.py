"""Unusual ways to mask, to pick and to join what is attended to, against plain float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from written_attention import SAMPLE, D, T, Written, chain, inputs, not_taken, plain_softmax, ran

from inspector.engine.attention import live

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


MEMORY = torch.linspace(-2, 1, 5 * D, dtype=torch.float64).reshape(5, D).sin()


class Joined(nn.Module):
    """One softmax over the keys of a memory and of the sequence, whose parts weigh the values of each."""

    def __init__(self, memory: str, first: bool) -> None:
        super().__init__()
        self.kind, self.first = memory, first
        self.made = nn.Linear(D, D).double()
        self.memory: Tensor | nn.Parameter
        if memory == "parameter":
            self.memory = nn.Parameter(MEMORY.clone())
        else:
            self.register_buffer("memory", MEMORY.clone())

    def of(self, x: Tensor) -> Tensor:
        out: Tensor = self.made(x) if self.kind == "computed" else self.memory
        return out

    def forward(self, x: Tensor) -> Tensor:
        memory = self.of(x)
        parts = [x @ memory.mT, x @ x.mT]
        both = torch.cat(parts if self.first else parts[::-1], -1).softmax(-1)
        sizes = [part.shape[-1] for part in (parts if self.first else parts[::-1])]
        weights = both.split(sizes, -1)
        values = [memory, x] if self.first else [x, memory]
        return weights[0] @ values[0] + weights[1] @ values[1]


@pytest.mark.parametrize("first", [True, False], ids=["memory first", "memory last"])
@pytest.mark.parametrize("memory", ["parameter", "constant", "computed"])
def test_one_softmax_over_several_memories(memory: str, first: bool) -> None:
    torch.manual_seed(2)
    model, x = Joined(memory, first).eval(), inputs()
    of = model.of(x).detach()
    of = of[SAMPLE] if of.dim() == 3 else of
    keys = torch.cat([of, x[SAMPLE]] if first else [x[SAMPLE], of])
    seen = chain(model, plain_softmax(x[SAMPLE] @ keys.T)[None], x, place="model", domains=("step", "source step"))
    assert "several memories" in seen.method and "entries of its softmax" not in seen.method
    assert not [text for text in seen.logged() if "not taken" in text]


def test_a_part_of_a_softmax_says_so() -> None:
    """A key of zeros that has no value, of which softmax over one more than the sum is made."""

    def forward(x: Tensor) -> Tensor:
        return torch.nn.functional.pad(scores(x), (1, 0)).softmax(-1)[..., 1:] @ x

    x = inputs()
    powers = own(x).exp()
    seen = chain(forward, (powers / (1 + powers.sum(-1, keepdim=True)))[None], x)
    assert f"{T} of the {T + 1} entries of its softmax" in seen.method


DIRECTIONS = torch.linspace(-3, 2, 8 * D, dtype=torch.float64).reshape(8, D).cos()


def features(x: Tensor) -> Tensor:
    """exp(ω·x − ‖x‖²/2), positive random features (Choromanski et al. 2021)."""
    return torch.exp(x @ DIRECTIONS.T - x.square().sum(-1, keepdim=True) / 2) / 8**0.5


def by_products(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q @ (k.mT @ v) / (q @ k.sum(1, keepdim=True).mT)


def by_einsum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    sums = torch.einsum("btm,btd->bmd", k, v)
    return torch.einsum("bqm,bmd->bqd", q, sums) / torch.einsum("bqm,bm->bq", q, k.sum(1))[..., None]


@pytest.mark.parametrize("way", [by_products, by_einsum])
def test_exponentials_that_are_features(way: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
    """The keys are the positions, not the features, of which there are more."""
    x = inputs()
    q, k = features(x[SAMPLE] @ W), features(x[SAMPLE])
    weights = torch.stack([torch.stack([(one * other).sum() for other in k]) for one in q])
    seen = chain(lambda x: way(features(x @ W), features(x), x), (weights / weights.sum(-1, keepdim=True))[None], x)
    assert not [text for text in seen.logged() if "not taken" in text]


@pytest.mark.parametrize("memory_first", [True, False])
def test_rows_over_a_memory_and_the_states_so_far(memory_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the memory comes last its keys have another place in every row, so rows are not put below each other. A
    row of which the first part is known is not drawn while the model runs."""
    monkeypatch.setattr(live, "SECONDS", -1.0)

    def forward(x: Tensor) -> Tensor:
        memory, rows = (x @ W)[:, :3], []
        for t in range(T):
            both = [memory, x[:, : t + 1]] if memory_first else [x[:, : t + 1], memory]
            weights = torch.cat([torch.einsum("bd,bkd->bk", x[:, t], one) for one in both], -1).softmax(-1)
            parts = weights.split([one.shape[1] for one in both], -1)
            rows.append(sum(torch.einsum("bk,bkd->bd", w, one) for w, one in zip(parts, both, strict=True)))
        return torch.stack(rows, 1)

    x = inputs()
    own_, memory = x[SAMPLE], (x[SAMPLE] @ W)[:3]
    if memory_first:
        may = torch.cat([torch.ones(T, 3, dtype=torch.bool), torch.ones(T, T, dtype=torch.bool).tril()], 1)
        expected = plain_softmax(own_ @ torch.cat([memory, own_]).T, may)[None]
        seen = chain(forward, expected, x, domains=("position", "source step"))
        assert (
            "inner:attention/distance" not in ran(Written(forward), x, quantities=["attention/distance"]).sink.names()
        )
        return
    seen = ran(Written(forward).eval(), x)
    for t in range(T):
        row = plain_softmax(own_[t : t + 1] @ torch.cat([own_[: t + 1], memory]).T)[None]
        found = seen.sink.array(f"inner{f'.{t}' if t else ''}:attention")
        np.testing.assert_allclose(found, row, atol=1e-3)


def test_a_softmax_inside_vmap_is_listed() -> None:
    said = not_taken(lambda x: torch.vmap(lambda one: torch.softmax(one @ W @ one.T, -1) @ one)(x))
    assert "torch.func transform" in said and f"over axis 1 of {T} × {T}" in said


@pytest.mark.parametrize("fill", [-float("inf"), -1e9])
@pytest.mark.parametrize("filled", [True, False])
def test_masked_keys_of_a_row_of_nan_are_masked(fill: float, filled: bool) -> None:
    """NaN at a step: its row and those that may attend to it are NaN (all rows, where a mask is added to the NaN), and
    no later key is allowed to them."""
    may = torch.ones(T, T, dtype=torch.bool).tril()
    bias = torch.zeros(T, T, dtype=torch.float64).masked_fill(~may, fill)
    x = inputs()
    x[SAMPLE, 3, 1] = torch.nan

    def forward(x: Tensor) -> Tensor:
        s = scores(x).masked_fill(~may, fill) if filled else scores(x) + bias
        return s.softmax(-1) @ x

    seen = ran(Written(forward).eval(), x)
    np.testing.assert_array_equal(seen.sink.array("inner:attention/allowed"), [[0] * T, list(range(T))])
    if filled:
        np.testing.assert_allclose(seen.map[0, :3], plain_softmax(own(inputs()), may)[:3], atol=1e-3)
    assert bool(seen.map[0, 3 * filled :].isnan().any(-1).all())
