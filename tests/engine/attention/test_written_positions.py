"""Positions, groups, windows and caches: every form of scaled scores, in functions and by hand."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from listed import Listed
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from written_attention import SAMPLE, D, T, Written, chain, inputs, plain_softmax, ran

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline.options import RunOptions
from inspector.engine.pipeline.own_run import perform

pytestmark = pytest.mark.usefixtures("one_thread")

A, HD = 2, 16
CAUSAL = torch.ones(T, T, dtype=torch.bool).tril()
AWAY = torch.arange(T)[:, None] - torch.arange(T)
SLOPES = torch.tensor([0.5, 0.25], dtype=torch.float64)


def heads(x: Tensor, count: int = A) -> Tensor:
    """(b, a, t, d)"""
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def dots(x: Tensor) -> Tensor:
    """(a, q, k) of the selected sequence."""
    own = x[SAMPLE].unflatten(-1, (A, -1)).transpose(0, 1)
    return own @ own.mT / math.sqrt(own.shape[-1])


def long(t: int = T) -> Tensor:
    return inputs(t=t, d=A * HD)


def flexible(x: Tensor, **options: object) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that it is not compiled
        q = heads(x)
        return flex_attention(q, q, q, **options).transpose(1, 2).flatten(2)  # type: ignore[arg-type]


BLOCKS = {
    "causal": create_block_mask(lambda b, h, q, k: q >= k, None, None, T, T, device="cpu"),
    "window": create_block_mask(lambda b, h, q, k: (q - k).abs() <= 1, None, None, T, T, device="cpu"),
}


@pytest.mark.parametrize("way", ["plain", "alibi", "causal", "window", "soft cap", "scale", "causal by score"])
def test_flex_attention(way: str) -> None:
    options: dict[str, dict[str, object]] = {
        "plain": {},
        "alibi": {"score_mod": lambda s, b, h, q, k: s - SLOPES.float()[h] * (q - k).abs()},
        "causal": {"block_mask": BLOCKS["causal"]},
        "window": {"block_mask": BLOCKS["window"]},
        "soft cap": {"score_mod": lambda s, b, h, q, k: 2 * torch.tanh(s / 2)},
        "scale": {"scale": 0.7},
        "causal by score": {"score_mod": lambda s, b, h, q, k: torch.where(q >= k, s, -float("inf"))},
    }
    x = long().float()
    raw, may = dots(x.double()), torch.ones(T, T, dtype=torch.bool)
    expected = {
        "alibi": raw - SLOPES[:, None, None] * AWAY.abs(), "soft cap": 2 * torch.tanh(raw / 2),
        "scale": raw * 0.7 * math.sqrt(HD),
    }.get(way, raw)  # fmt: skip
    may = CAUSAL if "causal" in way else AWAY.abs() <= 1 if way == "window" else may
    seen = chain(lambda x: flexible(x, **options[way]), plain_softmax(expected, may), x, atol=2e-6)
    first, last = seen.sink.array("inner:attention/allowed")
    rows = [row.nonzero().flatten().tolist() for row in may]
    assert (first.tolist(), last.tolist()) == ([row[0] for row in rows], [row[-1] for row in rows])


def test_flex_attention_with_grouped_heads() -> None:
    x = long().float()

    def forward(x: Tensor) -> Tensor:
        q = heads(x, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = flex_attention(q, q[:, :2], q[:, :2], enable_gqa=True)
        assert isinstance(y, Tensor)
        return y.transpose(1, 2).flatten(2)

    own = x[SAMPLE].double().unflatten(-1, (4, -1)).transpose(0, 1)
    keys = own[:2].repeat_interleave(2, 0)
    chain(forward, plain_softmax(own @ keys.mT / math.sqrt(8)), x, atol=2e-6)


def rotate(x: Tensor) -> Tensor:
    """Rotary positions (Su et al. 2021) of (…, t, d)."""
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] / 10_000 ** (torch.arange(half, dtype=x.dtype) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


def rotated_by_complex_numbers(x: Tensor) -> Tensor:
    """(a, q, k) dots of rotated queries and keys, by e^{i(q−k)θ}: another way than `rotate`."""
    own = x[SAMPLE].unflatten(-1, (A, -1)).transpose(0, 1)
    half = own.shape[-1] // 2
    z = torch.complex(own[..., :half], own[..., half:])
    theta = 1 / 10_000 ** (torch.arange(half, dtype=torch.float64) / half)
    turn = torch.polar(torch.ones(T, T, half, dtype=torch.float64), AWAY[..., None] * theta)
    return torch.einsum("aqd,akd,qkd->aqk", z, z.conj(), turn).real / math.sqrt(own.shape[-1])


class Shaw(nn.Module):
    """Relative positions as vectors added to the keys (Shaw et al. 2018), clipped at 2."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, HD).double()

    def forward(self, x: Tensor) -> Tensor:
        q = heads(x)
        relative = self.table(AWAY.clamp(-2, 2) + 2)
        scores = (q @ q.mT + torch.einsum("bhqd,qkd->bhqk", q, relative)) / math.sqrt(HD)
        weights = scores.softmax(-1)
        out = weights @ q + torch.einsum("bhqk,qkd->bhqd", weights, relative)
        return out.transpose(1, 2).flatten(2)

    def expected(self, x: Tensor) -> Tensor:
        own = x[SAMPLE].unflatten(-1, (A, -1)).transpose(0, 1)
        scores = torch.zeros(A, T, T, dtype=torch.float64)
        for q in range(T):
            for k in range(T):
                vector = self.table.weight[max(-2, min(2, q - k)) + 2].detach()
                scores[:, q, k] = (own[:, q] * (own[:, k] + vector)).sum(-1) / math.sqrt(HD)
        return plain_softmax(scores)


class T5(nn.Module):
    """A learned bias for each distance, no scale (Raffel et al. 2020)."""

    def __init__(self, function: bool) -> None:
        super().__init__()
        self.function = function
        self.bias = nn.Embedding(2 * T, A).double()

    def forward(self, x: Tensor) -> Tensor:
        q = heads(x)
        bias = self.bias(AWAY + T).permute(2, 0, 1)[None]
        if self.function:
            y = F.scaled_dot_product_attention(q, q, q, attn_mask=bias, scale=1.0)
        else:
            scores = q @ q.transpose(3, 2)
            scores += bias
            y = F.softmax(scores.float(), dim=-1).type_as(scores) @ q
        return y.transpose(1, 2).flatten(2)

    def expected(self, x: Tensor) -> Tensor:
        return plain_softmax(dots(x) * math.sqrt(HD) + self.bias.weight.detach()[AWAY + T].permute(2, 0, 1))


class TransformerXL(nn.Module):
    """Content and position terms with a shift by row (Dai et al. 2019), causal."""

    def __init__(self) -> None:
        super().__init__()
        self.u, self.v = nn.Parameter(torch.randn(A, HD).double()), nn.Parameter(torch.randn(A, HD).double())
        self.register_buffer("r", torch.randn(T, A, HD).double())  # of distances T−1 … 0

    def forward(self, x: Tensor) -> Tensor:
        q = x.unflatten(-1, (A, -1)).transpose(0, 1)  # (t, b, a, d): time first, as in the original
        content = torch.einsum("ibnd,jbnd->ijbn", q + self.u, q)
        position = torch.einsum("ibnd,jnd->ijbn", q + self.v, self.r)
        scores = (content + self.shifted(position)) / math.sqrt(HD)
        scores = scores.masked_fill(~CAUSAL[:, :, None, None], -1e30)
        weights = F.softmax(scores, dim=1)
        return torch.einsum("ijbn,jbnd->ibnd", weights, q).flatten(2).transpose(0, 1)

    def shifted(self, x: Tensor) -> Tensor:
        zero = torch.cat([x.new_zeros(x.shape[0], 1, *x.shape[2:]), x], 1)
        return zero.view(x.shape[1] + 1, x.shape[0], *x.shape[2:])[1:].view_as(x)

    def expected(self, x: Tensor) -> Tensor:
        own = x[SAMPLE].unflatten(-1, (A, -1))
        scores = torch.full((A, T, T), -math.inf, dtype=torch.float64)
        for q in range(T):
            for k in range(q + 1):
                r = self.r[T - 1 - (q - k)]
                both = ((own[q] + self.u) * own[k]).sum(-1) + ((own[q] + self.v) * r).sum(-1)
                scores[:, q, k] = both.detach() / math.sqrt(HD)
        return plain_softmax(scores)


def by_hand(x: Tensor, scores: Callable[[Tensor], Tensor]) -> Tensor:
    return (scores(heads(x)).softmax(-1) @ heads(x)).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("way", ["shaw", "t5", "t5 function", "transformer-xl"])
def test_relative_positions(way: str) -> None:
    torch.manual_seed(2)
    models = {"shaw": Shaw(), "t5": T5(False), "t5 function": T5(True), "transformer-xl": TransformerXL()}
    model, x = models[way].eval(), long()
    seen = ran(model, x, "model")
    about = [name for name in seen.sink.names() if name.endswith(":attention")]
    assert about == ["model:attention"], about
    chain(model, model.expected(x), x, place="model", atol=3e-6 if way == "t5" else 1e-9)  # type: ignore[operator]


def test_rotary_positions_and_alibi() -> None:
    x = long()
    rotary = plain_softmax(rotated_by_complex_numbers(x), CAUSAL)
    alibi = plain_softmax(dots(x) - SLOPES[:, None, None] * AWAY, CAUSAL)
    slopes = -SLOPES[:, None, None] * AWAY
    ways: list[tuple[Callable[[Tensor], Tensor], Tensor]] = [
        (lambda x: by_hand(x, lambda q: (rotate(q) @ rotate(q).mT / HD**0.5).masked_fill(~CAUSAL, -math.inf)), rotary),
        (lambda x: F.scaled_dot_product_attention(rotate(heads(x)), rotate(heads(x)), heads(x), is_causal=True)
            .transpose(1, 2).flatten(2), rotary),
        (lambda x: by_hand(x, lambda q: (q @ q.mT / HD**0.5 + slopes).masked_fill(~CAUSAL, -1e9)), alibi),
        (lambda x: F.scaled_dot_product_attention(heads(x), heads(x), heads(x),
            attn_mask=slopes.masked_fill(~CAUSAL, -math.inf)[None]).transpose(1, 2).flatten(2), alibi),
    ]  # fmt: skip
    for forward, expected in ways:
        seen = chain(forward, expected, x)
        assert seen.sink.array("inner:attention/allowed")[1].tolist() == list(range(T))


GROUPED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "repeated": lambda q, k: (q @ k.repeat_interleave(2, 1).mT).softmax(-1) @ k.repeat_interleave(2, 1),
    "expanded": lambda q, k: (q @ spread(k).mT).softmax(-1) @ spread(k),
    "groups as an axis": lambda q, k: torch.einsum(
        "bngqk,bnkd->bngqd", torch.einsum("bngqd,bnkd->bngqk", q.unflatten(1, (2, 2)), k).softmax(-1), k
    ).flatten(1, 2),
    "broadcast": lambda q, k: ((q.unflatten(1, (2, 2)) @ k[:, :, None].mT).softmax(-1) @ k[:, :, None]).flatten(1, 2),
    "function": lambda q, k: F.scaled_dot_product_attention(q, k, k, scale=1.0, enable_gqa=True),
}


def spread(k: Tensor) -> Tensor:
    return k[:, :, None].expand(-1, -1, 2, -1, -1).reshape(len(k), 4, *k.shape[2:])


@pytest.mark.parametrize("way", GROUPED)
def test_grouped_heads(way: str) -> None:
    x = long()
    own = x[SAMPLE].unflatten(-1, (4, -1)).transpose(0, 1)
    expected = plain_softmax(own @ own[:2].repeat_interleave(2, 0).mT)
    chain(lambda x: GROUPED[way](heads(x, 4), heads(x, 4)[:, :2]).transpose(1, 2).flatten(2), expected, x)


MULTI_QUERY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "einsum": lambda q, k: torch.einsum("bhqk,bkd->bhqd", torch.einsum("bhqd,bkd->bhqk", q, k).softmax(-1), k),
    "broadcast": lambda q, k: (q @ k[:, None].mT).softmax(-1) @ k[:, None],
    "function": lambda q, k: F.scaled_dot_product_attention(q, k[:, None], k[:, None], scale=1.0, enable_gqa=True),
}


@pytest.mark.parametrize("way", MULTI_QUERY)
def test_multi_query_heads(way: str) -> None:
    x = long()
    own = x[SAMPLE].unflatten(-1, (A, -1)).transpose(0, 1)
    forward = MULTI_QUERY[way]
    chain(lambda x: forward(heads(x), heads(x)[:, 0]).transpose(1, 2).flatten(2), plain_softmax(own @ own[0].T), x)


def test_sliding_window_and_cross_attention() -> None:
    x = long()
    near = (AWAY >= 0) & (AWAY <= 2)
    expected = plain_softmax(dots(x), near)
    seen = chain(
        lambda x: by_hand(x, lambda q: torch.where(near, q @ q.mT / HD**0.5, torch.finfo(q.dtype).min)), expected, x
    )
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0, 0, 0, 1, 2, 3], list(range(T))]
    source = torch.randn(3, 9, A * HD, dtype=torch.float64)
    q, k = x[SAMPLE].unflatten(-1, (A, -1)).transpose(0, 1), source[SAMPLE].unflatten(-1, (A, -1)).transpose(0, 1)

    def cross(x: Tensor) -> Tensor:
        weights = torch.einsum("bhqd,bhkd->bhqk", heads(x), heads(source)).softmax(-1)
        return torch.einsum("bhqk,bhkd->bqhd", weights, heads(source)).flatten(2)

    chain(cross, plain_softmax(q @ k.mT), x, domains=("step", "source step"))


def test_chunked_attention_is_the_windows_of_the_sample() -> None:
    """Two chunks of three steps with attention inside each: windows, with positions of their own."""
    x = inputs()

    def forward(x: Tensor) -> Tensor:
        chunks = x.unflatten(1, (2, 3))
        weights = torch.einsum("bnqd,bnkd->bnqk", chunks, chunks).softmax(-1)
        return torch.einsum("bnqk,bnkd->bnqd", weights, chunks).flatten(1, 2)

    own = x[SAMPLE].unflatten(0, (2, 3))
    chain(forward, plain_softmax(own @ own.mT), x, domains=("position", "position"))


def test_attention_over_a_picture_has_one_axis_of_keys() -> None:
    x = inputs(t=6)

    def forward(x: Tensor) -> Tensor:
        grid = x.unflatten(1, (2, 3))
        scores = torch.einsum("bqd,bxyd->bqxy", x, grid)
        weights = scores.flatten(2).softmax(-1).view_as(scores)
        return torch.einsum("bqxy,bxyd->bqd", weights, grid)

    chain(forward, plain_softmax(x[SAMPLE] @ x[SAMPLE].T)[None], x)


class Cached(nn.Module):
    """One query a call; keys of earlier calls are kept. `way`: written by hand, or in one matrix product a head."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way

    def forward(self, x: Tensor) -> Tensor:
        out, kept = [], heads(x)[:, :, :0]
        for t in range(x.shape[1]):
            q = heads(x)[:, :, t : t + 1]
            kept = torch.cat([kept, q], 2)
            scores = q @ kept.mT / HD**0.5
            if self.way == "matmul":
                y = scores.softmax(-1) @ kept
            elif self.way == "einsum":
                y = torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1), kept)
            else:
                y = (scores.softmax(-1).transpose(2, 3) * kept).sum(2, keepdim=True)
            out.append(y)
        return torch.cat(out, 2).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("way", ["matmul", "einsum", "multiply and sum"])
def test_a_cache_of_keys_with_one_query_a_call(way: str) -> None:
    x = long()
    seen = chain(Cached(way).eval(), plain_softmax(dots(x), CAUSAL), x, place="model")
    assert f"{T} calls" in seen.method


def test_multi_query_heads_with_a_cache_are_heads_and_not_queries() -> None:
    """(b, h, k) weights and (b, k, d) values in each call: the rows are heads."""
    x = long()

    def forward(x: Tensor) -> Tensor:
        out = []
        for t in range(x.shape[1]):
            kept = heads(x)[:, 0, : t + 1]
            weights = torch.einsum("bhd,bkd->bhk", heads(x)[:, :, t], kept).softmax(-1)
            out.append(torch.einsum("bhk,bkd->bhd", weights, kept).flatten(1))
        return torch.stack(out, 1)

    own = x[SAMPLE].unflatten(-1, (A, -1)).transpose(0, 1)
    chain(forward, plain_softmax(own @ own[0].T, CAUSAL), x)


def test_a_loop_over_the_batch_is_refused_and_a_common_memory_is_shown() -> None:
    """Weights (q, k) of as many queries as sequences: whose they are is not known."""
    x = inputs(b=T)

    def one_by_one(x: Tensor) -> Tensor:
        return torch.stack([(one @ one.T).softmax(-1) @ one for one in x])

    seen = ran(Written(one_by_one).eval(), x)
    assert "the sequences have no axis" in seen.sink.refusals()["inner:attention"]
    memory, project = torch.linspace(-1, 1, 9 * D, dtype=torch.float64).reshape(9, D), nn.Linear(D, D).double()
    expected = plain_softmax(x[SAMPLE] @ memory.T)[None]
    chain(lambda x: (x @ memory.T).softmax(-1) @ project(memory), expected, x, domains=("step", "source step"))


def test_two_layers_of_attention_in_one_module_are_two_maps() -> None:
    x = long()

    def forward(x: Tensor) -> Tensor:
        first = by_hand(x, lambda q: q @ q.mT)
        return by_hand(first, lambda q: q @ q.mT)

    seen = ran(Written(forward).eval(), x)
    assert {"inner:attention", "inner.1:attention"} <= seen.sink.names()
    own = x[SAMPLE].unflatten(-1, (A, -1)).transpose(0, 1)
    torch.testing.assert_close(seen.map, plain_softmax(own @ own.mT), atol=1e-6, rtol=2**-10)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own, when its compiler is loaded
def test_flex_attention_that_is_compiled_runs_uncompiled_and_is_shown() -> None:
    compiled = torch.compile(flex_attention)
    x = long().float()

    def forward(x: Tensor) -> Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = compiled(heads(x), heads(x), heads(x), block_mask=BLOCKS["causal"])
        assert isinstance(y, Tensor)
        return y.transpose(1, 2).flatten(2)

    batch, sink = Batch(x, torch.full((len(x),), T), look_at=SAMPLE), Listed()
    perform(Subject(Written(forward).eval()), batch, sink, RunOptions(only=["attention/maps"]))
    found = torch.from_numpy(sink.array("inner:attention").astype("float64"))
    torch.testing.assert_close(found, plain_softmax(dots(x.double()), CAUSAL), atol=2e-6, rtol=2**-10)
