"""Attention in further styles of writing; every map, entropy and largest weight against plain float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from written_attention import SAMPLE, D, T, chain, inputs, plain_softmax

pytestmark = pytest.mark.usefixtures("one_thread")

W = torch.linspace(-1, 1, D * D, dtype=torch.float64).reshape(D, D)
MAY = torch.ones(T, T, dtype=torch.bool).tril()
AWAY = (torch.arange(T)[:, None] - torch.arange(T)).double()
SINK = torch.linspace(-1, 1, D, dtype=torch.float64)


def scores(x: Tensor) -> Tensor:
    return x @ W @ x.mT


def own(x: Tensor) -> Tensor:
    return x[SAMPLE] @ W @ x[SAMPLE].T


def cosine(x: Tensor) -> Tensor:
    unit = F.normalize(x, dim=-1)
    return (10 * unit @ unit.mT).softmax(-1) @ x


def distances(x: Tensor) -> Tensor:
    return (-torch.cdist(x, x).square()).softmax(-1) @ x


def by_rows(x: Tensor) -> Tensor:
    """One query after the other, in a list."""
    return torch.stack([torch.einsum("bk,bkd->bd", scores(x)[:, q].softmax(-1), x) for q in range(T)], 1)


def reduced(x: Tensor) -> Tensor:
    return reduce(torch.matmul, [scores(x).softmax(-1), x])


def logged(x: Tensor) -> Tensor:
    return scores(x).log_softmax(-1).exp() @ x


def by_logsumexp(x: Tensor) -> Tensor:
    s = scores(x)
    return torch.exp(s - torch.logsumexp(s, -1, keepdim=True)) @ x


def temperature(x: Tensor) -> Tensor:
    return torch.baddbmm(torch.zeros_like(x), (scores(x) / 0.5).softmax(-1), x)


def transposed(x: Tensor) -> Tensor:
    """(b, d, t): channels first."""
    c = x.mT.contiguous()
    weights = torch.softmax(torch.einsum("bcq,bck->bqk", c, c), 2)
    return torch.einsum("bck,bqk->bcq", c, weights).mT


def with_a_bias_of_distance(x: Tensor) -> Tensor:
    return (scores(x) - AWAY.abs()).masked_fill(~MAY, torch.finfo(torch.float64).min).softmax(-1).matmul(x)


def softmax_of_keys(x: Tensor) -> Tensor:
    """Normalised over queries, and then over keys (slot attention)."""
    weights = scores(x).softmax(1) + 1e-8
    return (weights / weights.sum(-1, keepdim=True)) @ x


def slots(x: Tensor) -> Tensor:
    weights = plain_softmax(own(x).T).T + 1e-8
    return weights / weights.sum(-1, keepdim=True)


def sinkhorn(x: Tensor) -> Tensor:
    weights = scores(x).softmax(-1)
    for _ in range(3):
        weights = weights / weights.sum(1, keepdim=True)
        weights = weights / weights.sum(2, keepdim=True)
    return weights @ x


def sinkhorn_map(x: Tensor) -> Tensor:
    weights = plain_softmax(own(x))
    for _ in range(3):
        weights = weights / weights.sum(0, keepdim=True)
        weights = weights / weights.sum(1, keepdim=True)
    return weights


def top(x: Tensor) -> Tensor:
    """The three largest scores of each row."""
    s = scores(x)
    least = s.topk(3, -1).values[..., -1:]
    return s.masked_fill(s < least, -math.inf).softmax(-1) @ x


def top_map(x: Tensor) -> Tensor:
    rows = [[s >= sorted(row, reverse=True)[2] for s in row] for row in own(x).tolist()]
    return plain_softmax(own(x), torch.tensor(rows))


def capped(x: Tensor) -> Tensor:
    return (3 * torch.tanh(scores(x) / 3)).softmax(-1) @ x


def unit(x: Tensor) -> Tensor:
    return x[SAMPLE] / x[SAMPLE].norm(dim=-1, keepdim=True)


STYLES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "cosine": (cosine, lambda x: plain_softmax(10 * unit(x) @ unit(x).T)),
    "distances": (
        distances, lambda x: plain_softmax(-(x[SAMPLE][:, None] - x[SAMPLE][None]).square().sum(-1))
    ),
    "row by row": (by_rows, lambda x: plain_softmax(own(x))),
    "reduce": (reduced, lambda x: plain_softmax(own(x))),
    "exp of log softmax": (logged, lambda x: plain_softmax(own(x))),
    "by logsumexp": (by_logsumexp, lambda x: plain_softmax(own(x))),
    "channels first": (transposed, lambda x: plain_softmax(x[SAMPLE] @ x[SAMPLE].T)),
    "a bias of the distance": (with_a_bias_of_distance, lambda x: plain_softmax(own(x) - AWAY.abs(), MAY)),
    "over queries, then over keys": (softmax_of_keys, slots),
    "sinkhorn": (sinkhorn, sinkhorn_map),
    "the largest three": (top, top_map),
    "soft cap": (capped, lambda x: plain_softmax(3 * torch.tanh(own(x) / 3))),
    "baddbmm": (temperature, lambda x: plain_softmax(own(x) / 0.5)),
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_a_style_of_writing(style: str) -> None:
    forward, expected = STYLES[style]
    x = inputs()
    domains = ("query" if style == "row by row" else "step", "step")
    chain(forward, expected(x)[None], x, domains=domains, atol=1e-7)
