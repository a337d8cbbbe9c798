"""Decoding with a cache of keys against one pass over the whole sequence: the same map, the same distances."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from attending import probed, weights_of
from listed import Listed
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

from inspector.engine.attention import caches, recorder
from inspector.engine.attention.rows import Rows, allowed
from inspector.engine.cells.check import Check
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.quantities.attention.attention_distance import distance
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Attention, Trace
from inspector.records import Refusal

pytestmark = pytest.mark.usefixtures("one_thread")

A, D, T = 2, 4, 9


class Decoder(nn.Module):
    """One causal self-attention; `chunks` says how many positions each call brings, the keys of earlier ones are kept.

    `way`: F.scaled_dot_product_attention ("function"), softmax by hand ("hand"), nn.MultiheadAttention ("module"); with
    "static" in it, the keys live in a buffer of fixed length and a mask says how much of it is filled.
    """

    def __init__(self, way: str, chunks: tuple[int, ...], place: str = "attention") -> None:
        super().__init__()
        self.way, self.chunks, self.place = way, chunks, place
        self.add_module(place, Attend(way))

    def forward(self, x: Tensor) -> Tensor:
        attend, out, start = self.get_submodule(self.place), [], 0
        for count in self.chunks:
            out.append(attend(x, start, start + count))
            start += count
        return torch.cat(out, 1)


class Attend(nn.Module):
    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.project = nn.Linear(A * D, 3 * A * D).double()
        self.inner = nn.MultiheadAttention(A * D, A, batch_first=True).double()

    def forward(self, x: Tensor, start: int, stop: int) -> Tensor:
        may = torch.ones(stop - start, stop, dtype=torch.bool).tril(start)
        if "module" in self.way:
            y: Tensor = self.inner(x[:, start:stop], x[:, :stop], x[:, :stop], attn_mask=~may)[0]
            return y
        q, k, v = (part.unflatten(-1, (A, D)).transpose(1, 2) for part in self.project(x[:, :stop]).chunk(3, -1))
        q = q[:, :, start:]
        if "static" in self.way:
            free = T + 3 - stop
            k, v, may = F.pad(k, (0, 0, 0, free)), F.pad(v, (0, 0, 0, free)), F.pad(may, (0, free))
        if "hand" in self.way:
            scores = (q @ k.mT / math.sqrt(D)).masked_fill(~may, -math.inf)
            return (torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2)
        if "hint" in self.way:  # as it is called in practice: causal for the prompt, nothing for single tokens
            y = F.scaled_dot_product_attention(q, k, v, is_causal=stop - start > 1)
        elif "bias" in self.way:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_lower_right(*may.shape))
        else:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=may)
        return y.transpose(1, 2).flatten(2)


def distances(attention: Attention) -> Any:
    """(a, q) as the capture holds them; a Refusal where they are refused."""
    trace = Trace(Subject(nn.Identity()), Batch(torch.zeros(1, T, 1), torch.tensor([T])), attentions=[attention])
    sink = Listed()
    QUANTITIES["attention/distance"].run(trace, Emitter(sink))
    return sink.of(Refusal)[0] if sink.of(Refusal) else sink.array(f"{attention.place}:attention/distance")


WAYS = ["function", "hint", "hand", "module", "function static", "hand static", "bias"]
PROMPTS = [(4, 1, 1, 1, 1, 1), (1,) * T, (8, 1), (4, 1, 3, 1), (2, 2, 5)]
CASES = [(way, chunks) for way in WAYS for chunks in PROMPTS if way != "hint" or max(chunks[1:]) == 1]
"""The hint means the upper left triangle, which is not what a later chunk of several positions may look at."""


@pytest.mark.parametrize(("way", "chunks"), CASES)
def test_a_cache_gives_the_map_and_the_distances_of_the_whole_sequence(way: str, chunks: tuple[int, ...]) -> None:
    x = torch.randn(1, T, A * D, dtype=torch.float64)
    model, whole = Decoder(way, chunks), Decoder(way, (T,))
    whole.load_state_dict(model.state_dict())
    output, seen = probed(model, x)
    expected, full = probed(whole, x)
    torch.testing.assert_close(output, expected)
    assert len(seen) == 1, [one.place for one in seen]
    torch.testing.assert_close(weights_of(seen[0]), weights_of(full[0])[..., :T])
    assert torch.equal(allowed(seen[0], 0, 0, T)[0], torch.ones(T, T, dtype=torch.bool).tril())
    away = (torch.arange(T)[:, None] - torch.arange(T)).abs()
    by_hand = (weights_of(full[0])[..., :T] * away).sum(-1)
    torch.testing.assert_close(torch.as_tensor(distances(seen[0])), by_hand.float())
    assert (seen[0].queries_from, seen[0].keys_from) == ("step", "step") and seen[0].first_query == 0
    assert f"{len(chunks)} calls" in seen[0].note
    assert "hand" in way or (seen[0].check is not None and seen[0].check.passed)


@pytest.mark.parametrize("way", ["function", "hand", "function static", "hand static", "bias"])
@pytest.mark.parametrize("chunks", [(1,) * T, (4, 1, 3, 1)])
def test_the_largest_score_of_each_query_is_joined_too(way: str, chunks: tuple[int, ...]) -> None:
    x = torch.randn(1, T, A * D, dtype=torch.float64)
    model = Decoder(way, chunks)
    (one,) = probed(model, x)[1]
    attend = model.get_submodule(model.place)
    q, k, _ = attend.project(x[0]).detach().unflatten(-1, (3, A, D)).permute(1, 2, 0, 3)  # type: ignore[operator]
    scores = [[max(float(q[a, t] @ k[a, s]) for s in range(t + 1)) / math.sqrt(D) for t in range(T)] for a in range(A)]
    trace = Trace(Subject(nn.Identity()), Batch(torch.zeros(1, T, 1), torch.tensor([T])), attentions=[one])
    sink = Listed()
    QUANTITIES["attention/largest_logit"].run(trace, Emitter(sink))
    found = torch.as_tensor(sink.array(f"{one.place}:attention/largest_logit"))
    torch.testing.assert_close(found, torch.tensor(scores), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("way", ["function", "hint", "hand", "hand static"])
def test_a_cache_that_was_filled_elsewhere_has_an_offset(way: str) -> None:
    """The prompt went through another call that was not seen: the first query stands where the first keys end."""

    class Later(Decoder):
        def forward(self, x: Tensor) -> Tensor:
            attend = self.get_submodule(self.place)
            return torch.cat([attend(x, t, t + 1) for t in range(5, T)], 1)

    x = torch.randn(1, T, A * D, dtype=torch.float64)
    model = Later(way, ())
    whole = Decoder(way, (T,))
    whole.load_state_dict(model.state_dict())
    (one,), (full,) = probed(model, x)[1], probed(whole, x)[1]
    torch.testing.assert_close(weights_of(one), weights_of(full)[:, 5:, :T])
    assert one.first_query == 5 and one.queries_from == one.keys_from == "position" and one.of_itself
    whole_distances = (weights_of(full)[..., :T] * (torch.arange(T)[:, None] - torch.arange(T)).abs()).sum(-1)
    torch.testing.assert_close(torch.as_tensor(distances(one)), whole_distances[:, 5:].float())


@pytest.mark.parametrize("way", ["function", "bias", "module"])
def test_one_call_with_a_memory_before_it_says_so_by_its_mask(way: str) -> None:
    class Chunk(Decoder):
        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.get_submodule(self.place)(x, 4, T)
            return y

    x = torch.randn(1, T, A * D, dtype=torch.float64)
    (one,) = probed(Chunk(way, ()), x)[1]
    assert one.first_query == 4 and one.of_itself and one.check is not None and one.check.passed
    away = (torch.arange(4, T)[:, None] - torch.arange(T)).abs()
    torch.testing.assert_close(torch.as_tensor(distances(one)), (weights_of(one) * away).sum(-1).float())


def test_the_upper_left_bias_is_the_causal_triangle() -> None:
    class Biased(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(x, x, x, attn_mask=causal_upper_left(T, T))

    (one,) = probed(Biased(), torch.randn(1, T, 4))[1]
    assert one.causal and one.mask is None and one.check is not None and one.check.passed


def test_two_sequences_decoded_one_after_the_other_are_two_maps() -> None:
    class Twice(Decoder):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + super().forward(x.flip(1))

    x = torch.randn(1, T, A * D, dtype=torch.float64)
    model, whole = Twice("function", (4, 1, 1, 1, 1, 1)), Decoder("function", (T,))
    whole.load_state_dict(model.state_dict())
    first, second = probed(model, x)[1]
    torch.testing.assert_close(weights_of(first), weights_of(probed(whole, x)[1][0]))
    torch.testing.assert_close(weights_of(second), weights_of(probed(whole, x.flip(1))[1][0]))
    assert [first.place, second.place] == ["attention", "attention.1"]


def test_one_failed_call_fails_the_joined_map(monkeypatch: pytest.MonkeyPatch) -> None:
    right, number = recorder.check, iter(range(100))

    def third_fails(*arguments: Any) -> Check:
        return Check(1.0, 1e-9) if next(number) == 2 else right(*arguments)

    monkeypatch.setattr(recorder, "check", third_fails)
    x = torch.randn(1, T, A * D, dtype=torch.float64)
    (one,) = probed(Decoder("function", (4, 1, 1, 1, 1, 1)), x)[1]
    assert one.check is not None and not one.check.passed


class SelfThenOther(nn.Module):
    """Self-attention over 5 positions, then one query over 6 keys that are not those 5 and one more."""

    def __init__(self, queries: int) -> None:
        super().__init__()
        self.queries = queries

    def forward(self, x: Tensor) -> Tensor:
        y = F.scaled_dot_product_attention(x[:, :5], x[:, :5], x[:, :5])
        other = x.flip(1)[:, : 5 + self.queries]
        return torch.cat([y, F.scaled_dot_product_attention(x[:, : self.queries], other, other)], 1)


@pytest.mark.parametrize("queries", [1, 4])
def test_calls_whose_keys_are_others_are_no_cache(queries: int) -> None:
    _, seen = probed(SelfThenOther(queries), torch.randn(1, T, 4, dtype=torch.float64))
    assert [one.place for one in seen] == ["model", "model.1"]
    refused = distances(seen[1])
    assert isinstance(refused, Refusal) and "share no known positions" in refused.reason
    assert not isinstance(distances(seen[0]), Refusal)


def test_a_source_that_grows_with_the_answer_is_another_sequence_by_its_name() -> None:
    """Simultaneous translation reads a token for each it writes: only the name tells it from a cache."""
    x = torch.randn(1, T, A * D, dtype=torch.float64)
    (one,) = probed(Decoder("function", (1,) * T, place="cross_attention"), x)[1]
    assert one.keys_from == "source step" and isinstance(distances(one), Refusal)
    many = probed(Decoder("function", (4, 1, 1, 1, 1, 1), place="cross_attention"), x)[1]
    assert len(many) == 6


def test_padding_of_a_shorter_sample_is_cut_off_a_joined_map() -> None:
    x = torch.randn(2, T, A * D, dtype=torch.float64)
    model, whole = Decoder("function", (1,) * T), Decoder("function", (T,))
    whole.load_state_dict(model.state_dict())
    (one,) = probed(model, x, lengths=[T, 6], look_at=1)[1]
    (full,) = probed(whole, x, lengths=[T, 6], look_at=1)[1]
    assert one.weights is not None and one.weights.shape == (1, A, 6, 6) and one.queries_from == "step"
    torch.testing.assert_close(weights_of(one, 1), weights_of(full, 1))


def test_a_map_too_large_to_join_keeps_its_calls_and_their_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "JOINED_BYTES", 8 * A * T * T - 1)
    x = torch.randn(1, T, A * D, dtype=torch.float64)
    model, whole = Decoder("function", (4, 1, 1, 1, 1, 1)), Decoder("function", (T,))
    whole.load_state_dict(model.state_dict())
    seen, (full,) = probed(model, x)[1], probed(whole, x)[1]
    assert [one.first_query for one in seen] == [0, 4, 5, 6, 7, 8]
    expected = (weights_of(full) * (torch.arange(T)[:, None] - torch.arange(T)).abs()).sum(-1)
    found = torch.cat([torch.as_tensor(distances(one)) for one in seen], 1)
    torch.testing.assert_close(found, expected.float())


def test_distance_counts_from_the_position_of_the_query() -> None:
    q, k = torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 6, 3)
    one = Attention("layer", "Self", q, k, 1.0, kept=0, first_query=4)
    block = Rows(one, 0).block(1, 2)
    assert distance.function is not None
    assert float(distance.function(block)) == pytest.approx((5 + 4 + 3 + 2 + 1 + 0) / 6)
