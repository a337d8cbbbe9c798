"""Weights whose rows do not sum to 1: softmax with one more in its denominator, tanh, ReLU, differences; blocks."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from written_attention import QUANTITIES, SAMPLE, D, T, Written, chain, inputs, not_taken, plain_softmax, ran

pytestmark = pytest.mark.usefixtures("one_thread")

W = torch.linspace(-1, 1, D * D, dtype=torch.float64).reshape(D, D)
MAY = torch.ones(T, T, dtype=torch.bool).tril()
SHORT = (torch.arange(T) < T - 1).double()[None, None]
DECAY = 0.9 ** (torch.arange(T)[:, None] - torch.arange(T)).double()


def scores(x: Tensor) -> Tensor:
    return x @ W @ x.mT / math.sqrt(D)


def own(x: Tensor) -> Tensor:
    """(q, k) the scores of the selected sequence, entry by entry."""
    one = x[SAMPLE]
    return torch.tensor([[float(q @ W @ k) / math.sqrt(D) for k in one] for q in one], dtype=torch.float64)


def one_more(x: Tensor, may: Tensor | None = None) -> Tensor:
    """(1, q, k) e^s / (1 + Σ e^s)."""
    powers = torch.exp(own(x)) * (1 if may is None else may)
    return (powers / (1 + powers.sum(-1, keepdim=True)))[None]


def stable(s: Tensor) -> Tensor:
    most = s.amax(-1, keepdim=True).clamp(min=0)
    powers = torch.exp(s - most)
    return powers / (torch.exp(-most) + powers.sum(-1, keepdim=True))


def after(x: Tensor) -> Tensor:
    """Divided by one more than the sum after the product with the values."""
    powers = scores(x).exp()
    return (powers @ x) / (1 + powers.sum(-1, keepdim=True))


MIX = nn.Parameter(torch.tensor([[0.7, -0.2], [0.4, 1.5]], dtype=torch.float64), requires_grad=False)


def two(x: Tensor) -> Tensor:
    """(b, h, q, k) causal weights of two heads."""
    return torch.stack([scores(x), -2 * scores(x)], 1).masked_fill(~MAY, -math.inf).softmax(-1)


def mixed(x: Tensor) -> Tensor:
    """(g, q, k) the weights of each head times a number for each other head, added."""
    first, second = plain_softmax(own(x), MAY), plain_softmax(-2 * own(x), MAY)
    return torch.stack([first * float(MIX[0, g]) + second * float(MIX[1, g]) for g in range(2)])


def near(x: Tensor) -> Tensor:
    """(b, k) a window around a position that depends on the sequence (Luong et al. 2015, local-p attention)."""
    at = T * torch.sigmoid(x.mean((1, 2)))
    return torch.exp(-((torch.arange(T).double() - at[:, None]) ** 2) / 2)


Ways = dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]]
SHOWN: Ways = {
    "softmax one": (lambda x: (scores(x).exp() / (1 + scores(x).exp().sum(-1, keepdim=True))) @ x, one_more),
    "softmax one, stable": (lambda x: torch.einsum("bqk,bkd->bqd", stable(scores(x)), x), one_more),
    "softmax one, multiply and sum": (lambda x: (stable(scores(x))[..., None] * x[:, None]).sum(2), one_more),
    "softmax one, divided afterwards": (after, one_more),
    "heads mixed": (
        lambda x: (torch.einsum("bhqk,hg->bgqk", two(x), MIX) @ x[:, None]).sum(1), mixed
    ),
    "times a window": (
        lambda x: (scores(x).softmax(-1) * near(x)[:, None].expand(-1, T, -1)) @ x,
        lambda x: (plain_softmax(own(x)) * near(x)[SAMPLE])[None],
    ),
    "times a window, multiply and sum": (
        lambda x: ((scores(x).softmax(-1) * near(x)[:, None].expand(-1, T, -1))[..., None] * x[:, None]).sum(2),
        lambda x: (plain_softmax(own(x)) * near(x)[SAMPLE])[None],
    ),
    "softmax one, masked": (
        lambda x: stable(scores(x).masked_fill(~MAY, -math.inf)) @ x, lambda x: one_more(x, MAY)
    ),
    "softmax one by a further key": (
        lambda x: F.pad(scores(x), (0, 1)).softmax(-1)[..., :-1] @ x, one_more
    ),
    "softmax one, padding masked": (
        lambda x: (scores(x).exp() * SHORT / (1 + (scores(x).exp() * SHORT).sum(-1, keepdim=True))) @ x,
        lambda x: one_more(x, SHORT[0]),
    ),
    "softmax, divided afterwards": (
        lambda x: (scores(x).exp() @ x) / scores(x).exp().sum(-1, keepdim=True), lambda x: plain_softmax(own(x))[None]
    ),
    "tanh": (lambda x: torch.tanh(scores(x)) @ x, lambda x: own(x).tanh()[None]),
    "tanh, over n": (lambda x: torch.einsum("bqk,bkd->bqd", scores(x).tanh() / T, x), lambda x: own(x).tanh()[None] / T),
    "tanh, masked": (lambda x: (torch.tanh(scores(x)) * MAY) @ x, lambda x: (own(x).tanh() * MAY)[None]),
    "relu over n": (lambda x: (torch.relu(scores(x)) / T) @ x, lambda x: own(x).clamp(min=0)[None] / T),
    "relu, masked before": (
        lambda x: (F.relu(scores(x).masked_fill(~MAY, -math.inf)) / T) @ x, lambda x: (own(x).clamp(min=0) * MAY)[None] / T
    ),
    "squared relu over n": (lambda x: (F.relu(scores(x)).square() / T) @ x, lambda x: own(x).clamp(min=0)[None] ** 2 / T),
    "retention": (
        lambda x: (scores(x) * (DECAY * MAY)) @ x, lambda x: (own(x) * DECAY * MAY)[None]
    ),
    "tril of exp, divided afterwards": (
        lambda x: (scores(x).exp().tril() @ x) / scores(x).exp().tril().sum(-1, keepdim=True),
        lambda x: plain_softmax(own(x), MAY)[None],
    ),
    "tril of tanh": (lambda x: torch.tril(scores(x).tanh()) @ x, lambda x: (own(x).tanh() * MAY)[None]),
    "tril of a softmax": (lambda x: scores(x).softmax(-1).tril() @ x, lambda x: (plain_softmax(own(x)) * MAY)[None]),
    "triu of sigmoid": (
        lambda x: scores(x).sigmoid().triu(diagonal=0) @ x, lambda x: (own(x).sigmoid() * MAY.mT)[None]
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", SHOWN)
def test_weights_that_exist_as_a_tensor_are_a_map(way: str) -> None:
    forward, expected = SHOWN[way]
    x = inputs()
    with_negative = bool((expected(x) < 0).any())
    seen = ran(Written(forward).eval(), x)
    assert not {name for name in seen.sink.refusals() if ":attention" in name and "entropy" not in name}
    torch.testing.assert_close(seen.map, expected(x), atol=1e-6, rtol=2**-10)
    assert seen.domains == ("step", "step")
    assert ("below 0" in seen.method) == (with_negative or "tanh" in way or way == "retention")
    assert not [text for text in seen.logged() if "not taken" in text]


def test_a_map_that_is_no_softmax_is_not_called_one() -> None:
    seen = ran(Written(lambda x: scores(x).sigmoid() @ x).eval(), inputs())
    channel = seen.sink.channel("inner:attention")
    assert "softmax" not in channel.formula
    assert not channel.source
    assert "sigmoid" in channel.method


def test_a_masked_key_is_masked() -> None:
    x = inputs()
    for way in (
        "softmax one, masked", "tanh, masked", "relu, masked before", "retention",
        "tril of exp, divided afterwards", "tril of tanh", "tril of a softmax",
    ):  # fmt: skip
        seen = ran(Written(SHOWN[way][0]).eval(), x)
        assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, list(range(T))], way


class OneQuery(nn.Module):
    """A decoder of one query a step, whose weights are the tanh of additive scores, or ReLU of dot products."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.cell = way, nn.GRUCell(D, D).double()
        self.rows: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        h, out, self.rows = x.new_zeros(len(x), D), [], []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            s = torch.einsum("bd,bkd->bk", h, x) if self.way == "einsum" else (h[:, None] * x).sum(-1)
            weights = torch.relu(s) / T
            self.rows.append(weights[SAMPLE].detach())
            out.append((weights[..., None] * x).sum(1))
        return torch.stack(out, 1)


@pytest.mark.parametrize("way", ["einsum", "multiply and sum"])
def test_one_query_a_step(way: str) -> None:
    torch.manual_seed(0)
    model = OneQuery(way).eval()
    model(inputs())
    seen = ran(model, inputs(), "model")
    torch.testing.assert_close(seen.map, torch.stack(model.rows)[None], atol=1e-6, rtol=2**-10)


def in_blocks(x: Tensor, size: int = 2) -> Tensor:
    """Softmax with a running maximum and sum over blocks of keys (Milakov & Gimelshein 2018)."""
    most = x.new_full((*x.shape[:2], 1), -math.inf)
    total, out = torch.zeros_like(most), torch.zeros_like(x)
    for at in range(0, x.shape[1], size):
        keys = x[:, at : at + size]
        s = x @ W @ keys.mT / math.sqrt(D)
        new = torch.maximum(most, s.amax(-1, keepdim=True))
        powers, scale = torch.exp(s - new), torch.exp(most - new)
        total = total * scale + powers.sum(-1, keepdim=True)
        out = out * scale + powers @ keys
        most = new
    return out / total


@pytest.mark.parametrize("size", [2, 3, T])
def test_a_softmax_block_by_block_is_put_together(size: int) -> None:
    chain(lambda x: in_blocks(x, size), plain_softmax(own(inputs()))[None])


def test_blocks_that_are_not_put_together_are_listed_with_the_reason() -> None:
    said = not_taken(wrong_blocks)
    assert "exponential" in said and "inner" in said and "block" in said


def wrong_blocks(x: Tensor) -> Tensor:
    """Each block has a largest score of its own, and nothing is divided: no softmax over all keys."""
    out = torch.zeros_like(x)
    for keys in x.split(2, 1):
        s = x @ W @ keys.mT / math.sqrt(D)
        out = out + torch.exp(s - s.amax(-1, keepdim=True)) @ keys
    return out


class Differential(nn.Module):
    """softmax(s₁) − λ softmax(s₂), times values (Ye et al. 2024)."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.factor = way, nn.Parameter(torch.tensor(0.4, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        if self.way == "one softmax":
            both = torch.stack([scores(x), x @ x.mT], 1).softmax(-1)
            return (both[:, 0] - self.factor * both[:, 1]) @ x
        one, two = scores(x).softmax(-1), (x @ x.mT).softmax(-1)
        if self.way == "two products":
            return one @ x - self.factor * (two @ x)
        if self.way == "minus":
            return (one - self.factor * two) @ x
        if self.way == "in place":
            return one.clone().sub_(two, alpha=0.4) @ x
        return torch.einsum("bqk,bkd->bqd", one + (-self.factor) * two, x)


@pytest.mark.parametrize("way", ["minus", "plus", "in place", "one softmax"])
def test_a_difference_of_two_softmaxes_is_one_map(way: str) -> None:
    x = inputs()
    expected = plain_softmax(own(x)) - 0.4 * plain_softmax(x[SAMPLE] @ x[SAMPLE].T)
    seen = ran(Differential(way).eval(), x, "model", (*QUANTITIES, "attention/largest_logit"))
    torch.testing.assert_close(seen.map, expected[None], atol=1e-6, rtol=2**-10)
    assert not [text for text in seen.logged() if "not taken" in text]
    assert "several softmaxes" in seen.method
    assert "model:attention/largest_logit" in seen.sink.refusals()  # of two softmaxes neither score is that of the map


def test_a_difference_of_two_products_is_two_maps() -> None:
    x = inputs()
    seen = ran(Differential("two products").eval(), x, "model")
    torch.testing.assert_close(seen.map, plain_softmax(own(x))[None], atol=1e-6, rtol=2**-10)
    seen.place = "model.1"
    torch.testing.assert_close(seen.map, plain_softmax(x[SAMPLE] @ x[SAMPLE].T)[None], atol=1e-6, rtol=2**-10)
    assert not [text for text in seen.logged() if "not taken" in text]


def test_products_that_are_no_weights_are_not_shown() -> None:
    """A covariance of features, a gated layer, a classifier of products."""
    x = inputs(d=D + 3)
    ways: list[Callable[[Tensor], Tensor]] = [
        lambda x: x @ torch.tanh(x.mT @ x),
        lambda x: torch.tanh(x) * torch.relu(x @ torch.ones(D + 3, D + 3).double()),
        lambda x: (x @ x.mT).tanh().sum(-1),
    ]
    for way in ways:
        seen = ran(Written(way).eval(), x)
        assert not [name for name in seen.sink.names() if name.endswith(":attention")]
        assert not [text for text in seen.logged() if "not taken" in text]


def test_softmaxes_that_are_added_are_one_map() -> None:
    x = inputs()
    expected = 0.5 * plain_softmax(own(x)) + 0.5 * plain_softmax(x[SAMPLE] @ x[SAMPLE].T)
    chain(lambda x: (0.5 * scores(x).softmax(-1) + 0.5 * (x @ x.mT).softmax(-1)) @ x, expected[None], x)
