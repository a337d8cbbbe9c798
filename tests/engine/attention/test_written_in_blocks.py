"""Attention that a model computes for some queries, or some keys, at a time is one map."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from listed import Listed
from torch import Tensor, nn
from written_attention import SAMPLE, B, D, T, Written, chain, inputs, plain_softmax, ran

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

pytestmark = pytest.mark.usefixtures("one_thread")

W = torch.linspace(-1, 1, D * D, dtype=torch.float64).reshape(D, D)
MAY = torch.ones(T, T, dtype=torch.bool).tril()
Way = Callable[[Tensor], Tensor]


def rows(q: Tensor, k: Tensor) -> Tensor:
    return (q @ k.mT).softmax(-1) @ k


def heads(x: Tensor) -> Tensor:
    return x.unflatten(-1, (2, 2)).transpose(1, 2)


def one_softmax(x: Tensor) -> Tensor:
    w = (x @ W @ x.mT).softmax(-1)
    return torch.cat([w[:, at : at + 2] @ x for at in range(0, T, 2)], 1)


def in_a_buffer(x: Tensor) -> Tensor:
    out = torch.zeros_like(x)
    for at in range(T - 2, -1, -2):
        out[:, at : at + 2] = rows((x @ W)[:, at : at + 2], x)
    return out


def copied(x: Tensor) -> Tensor:
    out = torch.empty_like(x)
    for at in range(0, T, 2):
        out.narrow(1, at, 2).copy_(rows((x @ W).narrow(1, at, 2), x))
    return out


QUERIES: dict[str, Way] = {
    "one softmax": one_softmax,
    "a softmax each": lambda x: torch.cat([rows((x @ W)[:, at : at + 4], x) for at in range(0, T, 4)], 1),
    "split": lambda x: torch.cat([rows(q, x) for q in (x @ W).split(2, 1)], 1),
    "projected each": lambda x: torch.cat([F.linear(rows(q, x), W) for q in (x @ W).split(2, 1)], 1),
    "a kernel": lambda x: torch.cat(
        [F.scaled_dot_product_attention(q, x, x, scale=1.0) for q in (x @ W).split(2, 1)], 1
    ),
    "a buffer": in_a_buffer,
    "copies": copied,
    "a stack": lambda x: torch.stack([rows(q, x) for q in (x @ W).split(2, 1)], 1).flatten(1, 2),
}


def own(x: Tensor) -> Tensor:
    return x[SAMPLE] @ W @ x[SAMPLE].T


@pytest.mark.parametrize("way", QUERIES)
def test_blocks_of_queries(way: str) -> None:
    seen = chain(QUERIES[way], plain_softmax(own(inputs()))[None])
    assert "put together from" in seen.method


def test_blocks_of_queries_of_several_heads() -> None:
    x = inputs()
    q, k = heads(x @ W)[SAMPLE], heads(x)[SAMPLE]
    chain(
        lambda x: torch.cat([rows(q, heads(x)) for q in heads(x @ W).split(2, 2)], 2).transpose(1, 2).flatten(2),
        plain_softmax(q @ k.mT),
    )


def test_blocks_of_queries_of_a_padded_sequence() -> None:
    """Queries that are padding are left out, keys that no query attends to too."""
    keep = torch.arange(T) < torch.tensor([T, 4, T])[:, None]

    def forward(x: Tensor) -> Tensor:
        return torch.cat(
            [(q @ x.mT).masked_fill(~keep[:, None], -torch.inf).softmax(-1) @ x for q in (x @ W).split(3, 1)], 1
        )

    chain(forward, plain_softmax(own(inputs())[:4, :4])[None], lengths=[T, 4, T])


def test_blocks_that_attend_to_keys_of_their_own_stay_apart() -> None:
    seen = ran(
        Written(lambda x: torch.cat([rows(x[:, at : at + 3] @ W, x[:, at : at + 3]) for at in (0, 3)], 1)), inputs()
    )
    found = [name for name in seen.sink.names() if name.endswith(":attention")]
    assert [seen.sink.array(name).shape for name in found] == [(1, 3, 3)] * 2


def test_results_beside_each_other_along_features_stay_apart() -> None:
    seen = ran(Written(lambda x: torch.cat([rows(x @ W, x), rows(x @ W.T, x)], -1)), inputs())
    assert len([name for name in seen.sink.names() if name.endswith(":attention")]) == 2


# --- blocks of keys


def begun(q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return q.new_full((*q.shape[:-1], 1), -math.inf), q.new_zeros((*q.shape[:-1], 1)), torch.zeros_like(q)


def carried(q: Tensor, blocks: list[Tensor], scores: Callable[[Tensor, int], Tensor]) -> tuple[Tensor, Tensor]:
    """(sums, sums of exponentials) of keys that are values too."""
    most, total, out = begun(q)
    at = 0
    for k in blocks:
        s = scores(q @ k.mT, at)
        new = torch.maximum(most, s.amax(-1, keepdim=True))
        p, c = torch.exp(s - new), torch.exp(most - new)
        total, out, most = total * c + p.sum(-1, keepdim=True), out * c + p @ k, new
        at += k.shape[-2]
    return out, total


def plain(x: Tensor) -> Tensor:
    out, total = carried(x @ W, list(x.split(2, 1)), lambda s, _: s)
    return out / total


def backwards(x: Tensor) -> Tensor:
    out, total = carried(x @ W, list(x.split(2, 1))[::-1], lambda s, _: s)
    return out * total.reciprocal()


def queries_too(x: Tensor) -> Tensor:
    parts = [carried(q, list(x.split(2, 1)), lambda s, _: s) for q in (x @ W).split(3, 1)]
    return torch.cat([out / total for out, total in parts], 1)


def divided_each_time(x: Tensor) -> Tensor:
    """Keys in the outer loop (Dao et al. 2022, algorithm 1)."""
    queries = list((x @ W).split(2, 1))
    states = [begun(q) for q in queries]
    for k in x.split(2, 1):
        for number, q in enumerate(queries):
            most, total, out = states[number]
            s = q @ k.mT
            here = s.amax(-1, keepdim=True)
            p = torch.exp(s - here)
            new = torch.maximum(most, here)
            before, now = torch.exp(most - new), torch.exp(here - new)
            after = before * total + now * p.sum(-1, keepdim=True)
            states[number] = new, after, (total * before * out + now * (p @ k)) / after
    return torch.cat([out for _, _, out in states], 1)


def in_a_ring(x: Tensor) -> Tensor:
    """Each block is a softmax of its own, and they are added by the shares of their sums (Liu et al. 2023)."""
    out, total = torch.zeros_like(x), x.new_full((*x.shape[:2], 1), -math.inf)
    for k in x.split(2, 1):
        s = x @ W @ k.mT
        here = s.logsumexp(-1, keepdim=True)
        both = torch.logaddexp(total, here)
        out = out * torch.exp(total - both) + (torch.exp(s - here) @ k) * torch.exp(here - both)
        total = both
    return out


def at_the_end(x: Tensor) -> Tensor:
    parts = [x @ W @ k.mT for k in x.split(2, 1)]
    outs = torch.stack([s.softmax(-1) @ k for s, k in zip(parts, x.split(2, 1), strict=True)])
    return (torch.stack([s.logsumexp(-1) for s in parts]).softmax(0)[..., None] * outs).sum(0)


def of_two(x: Tensor) -> Tensor:
    """exp2 of scores times log₂ e, nothing subtracted."""
    total, out = torch.zeros(B, T, 1, dtype=x.dtype), torch.zeros_like(x)
    for k in x.split(2, 1):
        p = torch.exp2(x @ W @ k.mT / math.log(2.0))
        total, out = total + p.sum(-1, keepdim=True), out + p @ k
    return out / total


KEYS: dict[str, Way] = {
    "carried": plain, "backwards": backwards, "queries too": queries_too, "divided each time": divided_each_time,
    "a ring": in_a_ring, "at the end": at_the_end, "powers of two": of_two,
}  # fmt: skip


@pytest.mark.parametrize("way", KEYS)
def test_blocks_of_keys(way: str) -> None:
    seen = chain(KEYS[way], plain_softmax(own(inputs()))[None])
    assert "blocks of keys" in seen.method


MASKED: dict[str, Callable[[Tensor, int], Tensor]] = {
    "minus infinity": lambda s, at: s.masked_fill(~MAY[:, at : at + s.shape[-1]], -torch.inf),
    "a large number": lambda s, at: torch.where(MAY[:, at : at + s.shape[-1]], s, -1e9),
}


@pytest.mark.parametrize("mask", MASKED)
def test_masks_of_blocks_of_keys(mask: str) -> None:
    def forward(x: Tensor) -> Tensor:
        out, total = carried(x @ W, list(x.split(3, 1)), MASKED[mask])
        return out / total

    chain(forward, plain_softmax(own(inputs()), MAY)[None])


def test_blocks_of_keys_that_begin_where_the_mask_ends() -> None:
    """Blocks above the diagonal are left out, as every kernel does."""

    def forward(x: Tensor) -> Tensor:
        parts = []
        for at in range(0, T, 2):
            may = MAY[at : at + 2]
            q, blocks = (x @ W)[:, at : at + 2], list(x[:, : at + 2].split(2, 1))
            parts.append(carried(q, blocks, lambda s, k, may=may: s.masked_fill(~may[:, k : k + 2], -torch.inf)))
        return torch.cat([out / total for out, total in parts], 1)

    chain(forward, plain_softmax(own(inputs()), MAY)[None])


def test_the_gradient_at_weights_of_blocks_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """∂L/∂A of one softmax in blocks of keys and queries, against autograd at the weights themselves."""
    x = inputs()[SAMPLE : SAMPLE + 1]
    weights = (x[0] @ W @ x[0].T).softmax(-1).requires_grad_()
    ((weights @ x[0]) ** 2).sum().backward()
    monkeypatch.setitem(globals(), "W", nn.Parameter(W.clone()))
    for way in (queries_too, QUERIES["a softmax each"]):
        sink = Listed()
        subject = Subject(Written(way).eval(), loss=lambda out, _: (out**2).sum(-1))
        perform(subject, Batch(x, torch.tensor([T])), sink, RunOptions(only=["attention/gradient"]))
        assert weights.grad is not None
        found = torch.from_numpy(sink.array("inner:attention/gradient")).double()
        torch.testing.assert_close(found[0], weights.grad, atol=1e-6, rtol=1e-5)
