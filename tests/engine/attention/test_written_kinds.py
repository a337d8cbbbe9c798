"""Attention that is no softmax: sparse, sigmoid, hard, and other ways of normalising."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from written_attention import SAMPLE, B, D, T, Written, chain, inputs, plain_softmax, ran

pytestmark = pytest.mark.usefixtures("one_thread")

W = torch.linspace(-1, 1, D * D, dtype=torch.float64).reshape(D, D)
MAY = torch.ones(T, T, dtype=torch.bool).tril()


def scores(x: Tensor) -> Tensor:
    return x @ W @ x.mT


def sparsemax(scores: Tensor) -> Tensor:
    """Martins & Astudillo 2016, algorithm 1."""
    ordered, _ = scores.sort(dim=-1, descending=True)
    numbers = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype)
    sums = ordered.cumsum(-1) - 1
    support = (numbers * ordered > sums).sum(-1, keepdim=True)
    threshold = sums.gather(-1, support - 1) / support
    return torch.clamp(scores - threshold, min=0)


def entmax15(scores: Tensor) -> Tensor:
    """Entmax with α = 1.5 by bisection (Peters et al. 2019)."""
    half = scores / 2
    low, high = half.amax(-1, keepdim=True) - 1, half.amax(-1, keepdim=True)
    for _ in range(60):
        middle = (low + high) / 2
        more = torch.clamp(half - middle, min=0).pow(2).sum(-1, keepdim=True) >= 1
        low, high = torch.where(more, middle, low), torch.where(more, high, middle)
    weights = torch.relu(half - low) ** 2
    return weights / weights.sum(-1, keepdim=True)


def projected(row: list[float]) -> list[float]:
    """The point of the simplex that is nearest to a row, by trying every size of its support."""
    ordered = sorted(row, reverse=True)
    size = max(n for n in range(1, len(row) + 1) if 1 + n * ordered[n - 1] > sum(ordered[:n]))
    threshold = (sum(ordered[:size]) - 1) / size
    return [max(s - threshold, 0.0) for s in row]


def sparse_map(x: Tensor) -> Tensor:
    return torch.tensor([projected(row.tolist()) for row in scores(x)[SAMPLE]], dtype=torch.float64)[None]


def entmax_map(x: Tensor) -> Tensor:
    """(1, q, k) by a finer search of the threshold of each row, entry by entry."""
    rows = []
    for row in scores(x)[SAMPLE].tolist():
        low, high = max(row) / 2 - 1, max(row) / 2
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if sum(max(s / 2 - middle, 0) ** 2 for s in row) >= 1 else (low, middle)
        rows.append([max(s / 2 - low, 0) ** 2 for s in row])
    return torch.tensor(rows, dtype=torch.float64)[None]


def hard_map(x: Tensor) -> Tensor:
    own = scores(x)[SAMPLE]
    out = torch.zeros_like(own)
    for row in range(T):
        out[row, max(range(T), key=lambda k: float(own[row, k]))] = 1.0
    return out[None]


def squared(scores: Tensor) -> Tensor:
    positive = F.relu(scores) ** 2
    return positive / positive.sum(-1, keepdim=True)


WAYS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "sparsemax": (lambda x: sparsemax(scores(x)) @ x, sparse_map),
    "sparsemax, multiply and sum": (lambda x: (sparsemax(scores(x))[..., None] * x[:, None]).sum(2), sparse_map),
    "entmax": (lambda x: torch.bmm(entmax15(scores(x)), x), entmax_map),
    "sigmoid": (lambda x: torch.sigmoid(scores(x)) @ x, lambda x: torch.sigmoid(scores(x)[SAMPLE])[None]),
    "sigmoid, minus the logarithm of n": (
        lambda x: torch.einsum("bqk,bkd->bqd", F.sigmoid(scores(x) - math.log(T)), x),
        lambda x: (1 / (1 + T * torch.exp(-scores(x)[SAMPLE])))[None],
    ),
    "squared relu, normalised": (
        lambda x: squared(1 + scores(x) ** 2) @ x,
        lambda x: ((1 + scores(x)[SAMPLE] ** 2) ** 2 / ((1 + scores(x)[SAMPLE] ** 2) ** 2).sum(-1, keepdim=True))[None],
    ),
    "one-hot of argmax": (lambda x: F.one_hot(scores(x).argmax(-1), T).double() @ x, hard_map),
    "one-hot by scatter": (
        lambda x: torch.zeros_like(scores(x)).scatter(-1, scores(x).argmax(-1, keepdim=True), 1.0) @ x, hard_map
    ),
    "one-hot by scatter in place": (
        lambda x: torch.zeros_like(scores(x)).scatter_(-1, scores(x).argmax(-1, keepdim=True), 1.0) @ x, hard_map
    ),
    "argmax and gather": (
        lambda x: torch.gather(x, 1, scores(x).argmax(-1)[..., None].expand(-1, -1, D)), hard_map
    ),
    "max and take along": (lambda x: torch.take_along_dim(x, scores(x).max(-1).indices[..., None], 1), hard_map),
    "argmax and index": (lambda x: x[torch.arange(B)[:, None], scores(x).argmax(-1)], hard_map),
    "straight through": (lambda x: through(scores(x)) @ x, hard_map),
}  # fmt: skip


def through(scores: Tensor) -> Tensor:
    soft = scores.softmax(-1)
    hard = F.one_hot(soft.argmax(-1), scores.shape[-1]).to(soft)
    return hard - soft.detach() + soft


@pytest.mark.parametrize("way", WAYS)
def test_other_weights_than_softmax(way: str) -> None:
    forward, expected = WAYS[way]
    x = inputs()
    seen = chain(forward, expected(x), x, atol=1e-7 if way == "entmax" else 1e-9)
    assert ("sigmoid" in seen.method) == ("sigmoid" in way)


def test_hard_pooling_over_time_by_an_index() -> None:
    x = inputs()
    u = torch.tensor([0.3, -1.0, 0.7, 0.2], dtype=torch.float64)
    expected = torch.zeros(1, 1, T, dtype=torch.float64)
    expected[0, 0, int((x[SAMPLE] @ u).argmax())] = 1.0
    ways: list[Callable[[Tensor], Tensor]] = [
        lambda x: x[torch.arange(len(x)), (x @ u).argmax(1)],
        lambda x: x.gather(1, (x @ u).argmax(1)[:, None, None].expand(-1, 1, D))[:, 0],
        lambda x: (F.one_hot((x @ u).argmax(1), T)[..., None] * x).sum(1),
    ]
    for way in ways:
        chain(way, expected, x, domains=("query", "step"))


def test_gumbel_softmax_shows_the_weights_that_were_drawn() -> None:
    x = inputs()
    drawn: list[Tensor] = []

    def forward(x: Tensor) -> Tensor:
        weights = F.gumbel_softmax(scores(x), tau=1, hard=True)
        drawn.append(weights)
        return weights @ x

    model = Written(forward).eval()
    seen = ran(model, x)
    torch.testing.assert_close(seen.map, drawn[-1][SAMPLE][None], atol=1e-6, rtol=0)
    assert set(seen.map.round().unique().tolist()) == {0.0, 1.0}


def masked_of(way: str) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    x = inputs()
    own = scores(x)[SAMPLE]
    if way == "sparsemax":
        rows = [projected(own[q, : q + 1].tolist()) + [0.0] * (T - q - 1) for q in range(T)]
        return lambda x: sparsemax(scores(x).masked_fill(~MAY, -1e9)) @ x, torch.tensor(rows, dtype=torch.float64)[None]
    if way == "hard":
        expected = torch.zeros(1, T, T, dtype=torch.float64)
        for q in range(T):
            expected[0, q, int(own[q, : q + 1].argmax())] = 1.0
        return lambda x: F.one_hot(scores(x).masked_fill(~MAY, -math.inf).argmax(-1), T).to(x) @ x, expected
    if way == "sigmoid":
        return lambda x: scores(x).masked_fill(~MAY, -math.inf).sigmoid() @ x, (torch.sigmoid(own) * MAY)[None]
    if way == "gather":
        _, expected = masked_of("hard")
        index = lambda x: scores(x).masked_fill(~MAY, -1e9).argmax(-1)[..., None].expand(-1, -1, D)  # noqa: E731
        return lambda x: x.gather(1, index(x)), expected
    return lambda x: masked_exp(x) @ x, plain_softmax(own, MAY)[None]


def masked_exp(x: Tensor) -> Tensor:
    powers = scores(x).exp() * MAY
    return powers / powers.sum(-1, keepdim=True)


@pytest.mark.parametrize("way", ["sparsemax", "hard", "sigmoid", "gather", "exp times a mask"])
def test_a_masked_key_is_masked_and_a_weight_of_zero_is_a_zero(way: str) -> None:
    forward, expected = masked_of(way)
    x = inputs()
    seen = chain(forward, expected, x)
    first, last = seen.sink.array("inner:attention/allowed")
    assert first.tolist() == [0] * T and last.tolist() == list(range(T))


def test_a_zero_of_sparsemax_without_a_mask_may_be_attended_to() -> None:
    x = inputs()
    seen = chain(WAYS["sparsemax"][0], sparse_map(x), x)
    assert bool((seen.map == 0).any())
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, [T - 1] * T]
