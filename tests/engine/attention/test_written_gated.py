"""Scores Σ_d q[t, d] k[s, d] g[t, s, d] that are read as they are: a map, in whatever way they are written."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from written_attention import SAMPLE, D, T, Written, inputs, ran

pytestmark = pytest.mark.usefixtures("one_thread")

EACH = torch.linspace(0.2, 1.5, D, dtype=torch.float64)
PAIRS = torch.exp(-torch.arange(T).double().sub(torch.arange(T).double()[:, None]).abs()[..., None] * EACH)
CAUSAL = torch.ones(T, T, dtype=torch.float64).tril()
Way = Callable[[Tensor, Tensor], Tensor]
OF_FEATURES: dict[str, Way] = {
    "last": lambda q, k: (q[:, :, None] * k[:, None] * EACH).sum(-1),
    "first": lambda q, k: (EACH * (q[:, :, None] * k[:, None])).sum(-1),
    "methods": lambda q, k: q.unsqueeze(2).mul(k.unsqueeze(1)).mul(EACH).sum(dim=-1),
    "keepdim": lambda q, k: (q[:, :, None] * k[:, None] * EACH).sum(-1, keepdim=True)[..., 0],
    "divided": lambda q, k: (q[:, :, None] * k[:, None] / (1 / EACH)).sum(-1),
    "product with a vector": lambda q, k: (q[:, :, None] * k[:, None]) @ EACH,
    "product with a column": lambda q, k: ((q[:, :, None] * k[:, None]) @ EACH[:, None])[..., 0],
    "einsum": lambda q, k: torch.einsum("btd,bsd,d->bts", q, k, EACH),
    "einsum, another order": lambda q, k: torch.einsum("d,btd,bsd->bts", EACH, q, k),
}
OF_PAIRS: dict[str, Way] = {
    "last": lambda q, k: (q[:, :, None] * k[:, None] * PAIRS).sum(-1),
    "first": lambda q, k: (PAIRS * (q[:, :, None] * k[:, None])).sum(-1),
    "between": lambda q, k: (q[:, :, None] * PAIRS[None] * k[:, None]).sum(-1),
    "in place": lambda q, k: (q[:, :, None] * k[:, None]).mul_(PAIRS).sum(-1),
    "einsum": lambda q, k: torch.einsum("btd,bsd,tsd->bts", q, k, PAIRS),
}


def by_loops(q: Tensor, k: Tensor, gate: Tensor) -> Tensor:
    found = torch.zeros(T, T, dtype=torch.float64)
    for t in range(T):
        for s in range(T):
            found[t, s] = sum(float(q[t, d] * k[s, d] * gate[t, s, d]) for d in range(D))
    return found


def shown(way: Way, gate: Tensor) -> None:
    x = inputs()
    seen = ran(Written(lambda x: way(x.tanh(), x.sin()) @ x).eval(), x)
    expected = by_loops(x[SAMPLE].tanh(), x[SAMPLE].sin(), gate.expand(T, T, D))
    torch.testing.assert_close(seen.map[0], expected, atol=1e-4, rtol=2**-10)  # as float16
    assert seen.domains == ("step", "step")


@pytest.mark.parametrize("way", OF_FEATURES)
def test_a_number_for_each_feature(way: str) -> None:
    shown(OF_FEATURES[way], EACH)


@pytest.mark.parametrize("way", OF_PAIRS)
def test_a_decay_of_each_pair_and_feature(way: str) -> None:
    shown(OF_PAIRS[way], PAIRS)


def test_gated_linear_attention_over_all_pairs() -> None:
    """Decays of each feature that are computed from the input, masked behind the sum."""
    x = inputs()

    def decays(x: Tensor) -> Tensor:
        run = F.logsigmoid(x * 2).cumsum(-2)
        return (run.unsqueeze(-2) - run.unsqueeze(-3)).exp()

    seen = ran(Written(lambda x: ((x[:, :, None] * x[:, None] * decays(x)).sum(-1) * CAUSAL) @ x).eval(), x)
    expected = by_loops(x[SAMPLE], x[SAMPLE], decays(x[SAMPLE])) * CAUSAL
    torch.testing.assert_close(seen.map[0], expected, atol=1e-4, rtol=2**-10)
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, list(range(T))]


def test_a_softmax_of_such_scores_is_as_before() -> None:
    x = inputs()
    seen = ran(Written(lambda x: OF_PAIRS["last"](x, x).softmax(-1) @ x).eval(), x)
    expected = by_loops(x[SAMPLE], x[SAMPLE], PAIRS).softmax(-1)
    torch.testing.assert_close(seen.map[0], expected, atol=2**-25, rtol=2**-10)


class Bilinear(nn.Module):
    """Products of two layers, summed over features, that no values are read with."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.each = nn.Linear(D, D), nn.Linear(D, D), nn.Parameter(torch.randn(D))
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        return (self.one(x)[:, :, None] * self.two(x)[:, None] * self.each).sum(2)


def test_a_sum_over_positions_is_no_scores() -> None:
    seen = ran(Bilinear().eval(), inputs())
    assert not [name for name in seen.sink.names() if name.endswith(":attention")]
