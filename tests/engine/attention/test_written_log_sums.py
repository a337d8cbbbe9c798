"""Weights exp(s − log(e^sink + Σ e^s)), whose rows sum to less than 1, by loops."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from written_attention import SAMPLE, T, Written, inputs, ran

pytestmark = pytest.mark.usefixtures("one_thread")

SINK = 0.7
CAUSAL = torch.ones(T, T, dtype=torch.bool).tril()


def scores(x: Tensor, masked: bool) -> Tensor:
    found = x @ x.mT / 2
    return found.masked_fill(~CAUSAL, -math.inf) if masked else found


def total(s: Tensor) -> Tensor:
    return s.logsumexp(-1, keepdim=True)


def sink(s: Tensor) -> Tensor:
    return torch.tensor(SINK).to(s)


WAYS: dict[str, Callable[[Tensor], Tensor]] = {
    "logaddexp": lambda s: (s - torch.logaddexp(total(s), sink(s))).exp(),
    "the other way": lambda s: torch.exp(s - torch.logaddexp(sink(s), total(s))),
    "with an axis added": lambda s: (s - torch.logaddexp(torch.logsumexp(s, -1), sink(s))[..., None]).exp(),
    "softplus": lambda s: (s - SINK - F.softplus(total(s - SINK))).exp(),
}


def by_loops(s: Tensor) -> Tensor:
    found = torch.zeros(T, T, dtype=torch.float64)
    for q in range(T):
        below = math.exp(SINK) + sum(math.exp(float(one)) for one in s[q])
        for k in range(T):
            found[q, k] = math.exp(float(s[q, k])) / below
    return found


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_sink_in_the_logarithm_of_the_sum(way: str, masked: bool) -> None:
    x = inputs()
    seen = ran(Written(lambda x: WAYS[way](scores(x, masked)) @ x).eval(), x)
    torch.testing.assert_close(seen.map[0], by_loops(scores(x, masked)[SAMPLE]), atol=2**-25, rtol=2**-10)
    assert bool((seen.map.sum(-1) < 0.95).any())
    last = list(range(T)) if masked else [T - 1] * T
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, last]


def test_what_is_divided_once_more_is_shown_as_it_is_then() -> None:
    """Minus a bound that was made of such a sum: the map is that of the quotient."""
    x = inputs()

    def forward(x: Tensor) -> Tensor:
        s = scores(x, masked=False)
        power = (s - (total(s) + 2)).exp()
        return (power @ x) / power.sum(-1, keepdim=True)

    seen = ran(Written(forward).eval(), x)
    torch.testing.assert_close(seen.map[0], scores(x, masked=False)[SAMPLE].softmax(-1), atol=2**-25, rtol=2**-10)
