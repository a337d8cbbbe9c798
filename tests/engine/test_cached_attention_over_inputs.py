"""A decoder that keeps the keys of what it has read, in a model of two inputs: its rows are the target's steps."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from listed import Listed
from several_inputs import SOURCE, TARGET, made
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject, adopt
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.pipeline.batches import make_batch
from inspector.records import ANSWER_DOMAIN, Channel

MAPS = RunOptions(only=("attention/maps", "attention/distance"))


class Look(nn.Module):
    """Queries (b, q, 4) and keys (b, k, 4) → what is read of the keys, causal where the queries are the last of them."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, query: Tensor, key: Tensor, may: Tensor | None) -> Tensor:
        q, k = self.query(query)[:, None], self.key(key)[:, None]
        out: Tensor = F.scaled_dot_product_attention(q, k, key[:, None], attn_mask=may)[:, 0]
        return out


class Stepwise(nn.Module):
    """src (b, s) and tgt (b, t) → scores (b, t, 6), or (b, 6) where only the last step answers.

    The target is read in chunks of so many steps; "prefix": its self-attention looks at the source's positions as well.
    """

    def __init__(self, chunks: tuple[int, ...], prefix: bool = False, last: bool = False) -> None:
        super().__init__()
        self.chunks, self.prefix, self.last = chunks, prefix, last
        self.src, self.tgt = nn.Embedding(len(SOURCE), 4), nn.Embedding(len(TARGET), 4)
        self.own, self.source_attn, self.head = Look(), Look(), nn.Linear(4, len(TARGET))

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        memory, words, out, start = self.src(src), self.tgt(tgt), [], 0
        known = memory if self.prefix else words[:, :0]
        for count in self.chunks:
            new = words[:, start : start + count]
            known, start = torch.cat((known, new), 1), start + count
            may = torch.ones(count, known.shape[1], dtype=torch.bool).tril(known.shape[1] - count)
            out.append(self.source_attn(self.own(new, known, may), memory, None))
        scores: Tensor = self.head(torch.cat(out, 1))
        return scores[:, -1] if self.last else scores


def run(model: nn.Module, src: Any, tgt: Any, look_at: int = 0) -> Listed:
    inputs = {"src": {"vocabulary": SOURCE}, "tgt": {"vocabulary": TARGET}}
    subject, sink = adopt(SimpleNamespace(model=model, inputs=inputs)), Listed()
    perform(subject, make_batch(subject, {"src": src, "tgt": tgt}, 0, look_at), sink, MAPS)
    return sink


def axes(sink: Listed, place: str) -> tuple[str, str]:
    channel = sink.channel(f"{place}:attention")
    return channel.domain("query"), channel.domain("key")


@pytest.mark.parametrize("chunks", [(1, 1, 1, 1), (2, 1, 1), (1, 3)])
@pytest.mark.parametrize(("last", "domain"), [(False, ANSWER_DOMAIN), (True, "tgt")])
def test_a_cache_over_the_target_is_laid_out_as_one_pass_over_it(
    chunks: tuple[int, ...], last: bool, domain: str
) -> None:
    given = ["abcde", "abc"], ["ABCA", "BA"]
    whole = run(made(Stepwise, (4,), False, last), *given, look_at=1)
    cached = run(made(Stepwise, chunks, False, last), *given, look_at=1)
    assert axes(whole, "own") == axes(cached, "own") == (domain, domain)
    for name in ("own:attention", "own:attention/distance"):
        assert cached.array(name).shape == whole.array(name).shape
        np.testing.assert_allclose(cached.array(name), whole.array(name), atol=1e-3)
    assert whole.array("own:attention").shape == (1, 2, 2)


def test_one_look_at_the_source_a_step_is_a_map_from_the_target_to_the_source() -> None:
    given = ["abcde", "abc"], ["ABCA", "BA"]
    whole = run(made(Stepwise, (4,)), *given, look_at=1)
    looks = run(made(Stepwise, (1, 1, 1, 1)), *given, look_at=1)
    assert axes(whole, "source_attn") == axes(looks, "source_attn") == (ANSWER_DOMAIN, "step")
    assert whole.array("source_attn:attention").shape == (1, 2, 5)
    np.testing.assert_allclose(looks.array("source_attn:attention"), whole.array("source_attn:attention"), atol=1e-3)


@pytest.mark.parametrize("chunks", [(4,), (1, 1, 1, 1), (3, 1)])
def test_a_cache_that_began_with_the_source_has_the_targets_steps_as_rows_and_positions_as_keys(
    chunks: tuple[int, ...],
) -> None:
    sink = run(made(Stepwise, chunks, True), "abcde", "ABCA")
    assert axes(sink, "own") == (ANSWER_DOMAIN, "position")
    weights = sink.array("own:attention")
    assert weights.shape == (1, 4, 9)
    assert [int(row.nonzero()[0].max()) for row in weights[0]] == [5, 6, 7, 8]
    steps = np.arange(5, 9)[:, None] - np.arange(9)
    np.testing.assert_allclose(sink.array("own:attention/distance")[0], (weights[0] * steps).sum(1), atol=1e-2)


class Lazy(nn.Module):
    """Keys are added to a cache that begins as a tensor (0,); the queries are learned."""

    def __init__(self) -> None:
        super().__init__()
        self.asks, self.layer = nn.Parameter(torch.randn(1, 3, 4)), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        keys = torch.cat((x.new_zeros(0), self.layer(x)), -2)
        return nn.functional.scaled_dot_product_attention(self.asks, keys, x)


def test_an_empty_cache_is_no_key_before_the_first_step() -> None:
    torch.manual_seed(0)
    sink = Listed()
    perform(Subject(Lazy(), kind="vectors", width=4), Batch(torch.randn(1, 5, 4), torch.tensor([5])), sink, MAPS)
    channel = next(one for one in sink.of(Channel) if one.kind == "attention" and one.dims[-1] == "key")
    assert channel.domain("key") == "step"
