"""Attention over windows of keys that overlap: a map over steps, not a head for each query."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from written_attention import SAMPLE, D, T, Written, chain, inputs, plain_softmax, ran

pytestmark = pytest.mark.usefixtures("one_thread")

W = 3
AWAY = torch.arange(T)[:, None] - torch.arange(T)
Way = Callable[[Tensor], Tensor]


def centred(x: Tensor) -> Tensor:
    """(b, t, w, d) the step before, the step and the one after it."""
    return F.pad(x, (0, 0, 1, 1)).unfold(1, W, 1).transpose(2, 3)


def causal(x: Tensor) -> Tensor:
    return F.pad(x, (0, 0, W - 1, 0)).unfold(1, W, 1).transpose(2, 3)


def by_index(x: Tensor) -> Tensor:
    at = torch.arange(x.shape[1])[:, None] + torch.arange(W) - (W - 1)
    return torch.cat([x.new_zeros(len(x), W - 1, x.shape[2]), x], 1)[:, at + W - 1]


def by_lag(x: Tensor) -> Tensor:
    """(b, t, w, d): key j is the step j before."""
    return torch.stack([F.pad(x, (0, 0, lag, 0))[:, : x.shape[1]] for lag in range(W)], 2)


def inside(first: int, lag: bool = False) -> Tensor:
    """(t, w) True where a key of a window is a step."""
    steps = torch.arange(T)[:, None] + (-torch.arange(W) if lag else torch.arange(W) + first)
    return (steps >= 0) & (steps < T)


MASKED: dict[str, tuple[Way, Tensor, Tensor]] = {
    "centred": (centred, inside(-1), AWAY.abs() <= 1),
    "causal": (causal, inside(1 - W), (AWAY >= 0) & (AWAY < W)),
    "causal, copied": (lambda x: causal(x).contiguous(), inside(1 - W), (AWAY >= 0) & (AWAY < W)),
    "by an index": (by_index, inside(1 - W), (AWAY >= 0) & (AWAY < W)),
    "by lag": (by_lag, inside(0, lag=True), (AWAY >= 0) & (AWAY < W)),
}


def attended(x: Tensor, windows: Way, may: Tensor | None, use: str = "einsum") -> Tensor:
    keys = windows(x)
    scores = torch.einsum("btd,btwd->btw", x, keys)
    weights = (scores if may is None else scores.masked_fill(~may, -math.inf)).softmax(-1)
    if use == "sum":
        return (weights[..., None] * keys).sum(2)
    if use == "matmul":
        return (weights[:, :, None] @ keys)[:, :, 0]
    return torch.einsum("btw,btwd->btd", weights, keys)


@pytest.mark.parametrize("use", ["einsum", "sum", "matmul"])
@pytest.mark.parametrize("way", MASKED)
def test_windows_whose_padding_is_masked_are_a_map_over_steps(way: str, use: str) -> None:
    windows, may, near = MASKED[way]
    x = inputs()
    expected = plain_softmax(x[SAMPLE] @ x[SAMPLE].T, near)[None]
    seen = chain(lambda x: attended(x, windows, may, use), expected, x)
    first, last = seen.sink.array("inner:attention/allowed")
    rows = [row.nonzero().flatten().tolist() for row in near]
    assert (first.tolist(), last.tolist()) == ([row[0] for row in rows], [row[-1] for row in rows])


@pytest.mark.parametrize(("windows", "before", "after"), [(centred, 1, 1), (causal, 2, 0), (by_index, 2, 0)])
def test_padding_that_takes_part_is_keys_before_and_after_the_steps(windows: Way, before: int, after: int) -> None:
    x = inputs()
    own = torch.cat([torch.zeros(before, D).double(), x[SAMPLE], torch.zeros(after, D).double()])
    away = torch.arange(T)[:, None] + before - torch.arange(T + 2)
    near = (away.abs() <= 1) if after else (away >= 0) & (away < W)
    expected = plain_softmax(x[SAMPLE] @ own.T, near)[None]
    seen = chain(lambda x: attended(x, windows, None), expected, x, domains=("step", "position"))
    distance = ran(
        Written(lambda x: attended(x, windows, None)).eval(), x, quantities=["attention/distance"]
    ).sink.array("inner:attention/distance")
    np.testing.assert_allclose(distance, (expected * away.abs()).sum(-1).numpy(), rtol=1e-5)
    assert "windows that overlap" in seen.method


def test_heads_over_windows_are_heads() -> None:
    x = inputs(d=8)

    def forward(x: Tensor) -> Tensor:
        q, k = x.unflatten(-1, (2, 4)), causal(x).unflatten(-1, (2, 4))
        weights = torch.einsum("btad,btwad->btaw", q, k).masked_fill(~inside(1 - W)[:, None], -1e9).softmax(-1)
        return torch.einsum("btaw,btwad->btad", weights, k).flatten(2)

    own = x[SAMPLE].unflatten(-1, (2, 4)).transpose(0, 1)
    chain(forward, plain_softmax(own @ own.mT, (AWAY >= 0) & (AWAY < W)), x)


def test_windows_without_padding_have_fewer_queries_than_steps() -> None:
    x = inputs()
    u = torch.tensor([0.3, -1.0, 0.7, 0.2], dtype=torch.float64)

    def forward(x: Tensor) -> Tensor:
        keys = x.unfold(1, W, 1).transpose(2, 3)
        return torch.einsum("bqw,bqwd->bqd", (keys @ u).softmax(-1), keys)

    near = (torch.arange(T - W + 1)[:, None] <= torch.arange(T)) & (
        torch.arange(T) < torch.arange(T - W + 1)[:, None] + W
    )
    expected = plain_softmax((x[SAMPLE] @ u).expand(T - W + 1, T), near)[None]
    chain(forward, expected, x, domains=("query", "step"))


def test_chunks_that_read_the_chunk_before_too_are_one_map() -> None:
    """Two queries a chunk over the keys of their chunk and of the one before (the windows of Longformer)."""
    x = inputs()

    def forward(x: Tensor) -> Tensor:
        queries, keys = x.unflatten(1, (-1, 2)), F.pad(x, (0, 0, 2, 0)).unfold(1, 4, 2).transpose(2, 3)
        scores = torch.einsum("bcqd,bckd->bcqk", queries, keys)
        first = (torch.arange(3) == 0)[:, None, None] & (torch.arange(4) < 2)
        weights = scores.masked_fill(first, -math.inf).softmax(-1)
        return torch.einsum("bcqk,bckd->bcqd", weights, keys).flatten(1, 2)

    chunk = torch.arange(T) // 2
    near = (chunk[:, None] - chunk >= 0) & (chunk[:, None] - chunk <= 1)
    chain(forward, plain_softmax(x[SAMPLE] @ x[SAMPLE].T, near)[None], x)


def test_windows_of_a_picture_are_refused_with_the_reason() -> None:
    x = inputs(t=T * T)

    def forward(x: Tensor) -> Tensor:
        picture = x.unflatten(1, (T, T))
        keys = picture.unfold(1, W, 1).unfold(2, W, 1)  # (b, x, y, d, i, j)
        scores = keys.sum(3).flatten(3).softmax(-1).unflatten(-1, (W, W))
        return torch.einsum("bxyij,bxydij->bxyd", scores, keys)

    refused = ran(Written(forward).eval(), x).sink.refusals()["inner:attention"]
    assert "overlap along more than one axis" in refused


def test_windows_whose_first_step_cannot_be_told_are_refused() -> None:
    x = inputs()

    def forward(x: Tensor) -> Tensor:
        wide = torch.cat([x[:, 3:5].cos(), x], 1)
        return attended(x, lambda _: wide.unfold(1, W, 1).transpose(2, 3), None)

    assert "which of its 8 keys is the first step" in ran(Written(forward).eval(), x).sink.refusals()["inner:attention"]


def test_heads_with_equal_values_are_no_windows() -> None:
    x = inputs()

    def forward(x: Tensor) -> Tensor:
        values = torch.ones(len(x), T, T, D).double() * x[:, :1, None]
        return torch.einsum("bhk,bhkd->bhd", (x @ x.mT).softmax(-1), values)

    assert ran(Written(forward).eval(), x).map.shape == (T, 1, T)
