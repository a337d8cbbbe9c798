"""Less common ways of writing attention: other products, hard choices, functions of scores, masks in a part of them."""

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


def own(x: Tensor) -> Tensor:
    return x[SAMPLE] @ W @ x[SAMPLE].T


def one_by_one(w: Tensor, v: Tensor) -> Tensor:
    out = torch.zeros_like(v)
    for key in range(T):
        out = torch.addcmul(out, w[:, :, key, None], v[:, key, None])
    return out


Product = Callable[[Tensor, Tensor], Tensor]
PRODUCTS: dict[str, Product] = {
    "linalg.matmul": torch.linalg.matmul,
    "nansum": lambda w, v: (w[..., None] * v[:, None]).nansum(2),
    "vecdot": lambda w, v: torch.linalg.vecdot(w[:, :, None], v.mT[:, None]),
    "addcmul": one_by_one,
    "each key": lambda w, v: sum((w[:, :, k, None] * v[:, k, None] for k in range(T)), torch.zeros_like(v)),
    "a stack of keys": lambda w, v: torch.stack([w[:, :, k, None] * v[:, k, None] for k in range(T)]).sum(0),
    "keys beside each other": lambda w, v: torch.stack([w[..., k : k + 1] * v[:, k : k + 1] for k in range(T)], -1).sum(
        -1
    ),
    "complex values": lambda w, v: torch.view_as_real(w.to(torch.complex128) @ torch.complex(v, v.flip(-1))).sum(-1),
    "operators": lambda w, v: torch.ops.aten.bmm(w, v),
}


@pytest.mark.parametrize("product", PRODUCTS)
def test_products_under_other_names(product: str) -> None:
    chain(lambda x: PRODUCTS[product](scores(x).softmax(-1), x), plain_softmax(own(inputs()))[None])


ALONE: dict[str, Product] = {
    "inner": lambda w, v: torch.inner(w[0], v[0].T)[None],
    "multi_dot": lambda w, v: torch.linalg.multi_dot([w[0], v[0], torch.eye(D, dtype=v.dtype)])[None],
    "linear": lambda w, v: F.linear(w[0], v[0].T)[None],
}


@pytest.mark.parametrize("product", ALONE)
def test_products_of_matrices(product: str) -> None:
    x = inputs(1)
    expected = plain_softmax(x[0] @ W @ x[0].T)[None]
    chain(lambda one: ALONE[product](scores(one).softmax(-1), one), expected, x, sample=0)


SOFTMAXES: dict[str, Callable[[Tensor], Tensor]] = {
    "_softmax": lambda s: torch.ops.aten._softmax(s, -1, False),
    "_safe_softmax": lambda s: torch.ops.aten._safe_softmax(s, -1),
    "softmax.int": lambda s: torch.ops.aten.softmax.int(s, -1),
    "queries in chunks": lambda s: torch.cat([part.softmax(-1) for part in s.chunk(3, 1)], 1),
    "sequences apart": lambda s: torch.cat([s[:1].softmax(-1), s[1:].softmax(-1)]),
}


@pytest.mark.parametrize("way", SOFTMAXES)
def test_softmaxes_under_other_names(way: str) -> None:
    seen = chain(
        lambda x: SOFTMAXES[way](scores(x).masked_fill(~MAY, -1e9)) @ x, plain_softmax(own(inputs()), MAY)[None]
    )
    torch.testing.assert_close(torch.from_numpy(seen.sink.array("inner:attention/allowed")[1]).long(), torch.arange(T))


def test_a_kernel_called_by_its_own_name() -> None:
    x = inputs()

    def forward(one: Tensor) -> Tensor:
        out: Tensor = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            one[:, None], one[:, None], one[:, None], 0.0, True
        )[0][:, 0]
        return out

    chain(forward, plain_softmax(x[SAMPLE] @ x[SAMPLE].T / math.sqrt(D), MAY)[None])


HARD: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "the largest": lambda s, v: (s == s.amax(-1, keepdim=True)).to(v.dtype) @ v,
    "where": lambda s, v: torch.where(s >= s.amax(-1, keepdim=True), 1.0, 0.0).to(v.dtype) @ v,
    "identity": lambda s, v: torch.eye(T, dtype=v.dtype)[s.argmax(-1)] @ v,
    "topk": lambda s, v: v.gather(1, s.topk(1).indices.expand(-1, -1, D)),
    "argsort": lambda s, v: v.gather(1, s.argsort(-1, descending=True)[..., :1].expand(-1, -1, D)),
    "nearest": lambda s, v: v.gather(1, (-s).argmin(-1)[..., None].expand(-1, -1, D)),
}


@pytest.mark.parametrize("way", HARD)
def test_hard_attention(way: str) -> None:
    rows = own(inputs()).tolist()
    expected = torch.tensor([[float(s == max(row)) for s in row] for row in rows], dtype=torch.float64)
    chain(lambda x: HARD[way](scores(x), x), expected[None])


@pytest.mark.parametrize("way", ["index_select", "embedding", "index"])
def test_hard_attention_of_one_sequence(way: str) -> None:
    x = inputs(1)
    rows = (x[0] @ W @ x[0].T).tolist()
    expected = torch.tensor([[float(s == max(row)) for s in row] for row in rows], dtype=torch.float64)

    def forward(one: Tensor) -> Tensor:
        at = scores(one)[0].argmax(-1)
        if way == "index_select":
            return one[0].index_select(0, at)[None]
        return (F.embedding(at, one[0]) if way == "embedding" else one[0][at])[None]

    chain(forward, expected[None], x, sample=0)


def test_the_largest_of_ids_is_no_attention() -> None:
    """As CLIP takes the state at the token that ends a text."""

    def forward(x: Tensor) -> Tensor:
        return x[torch.arange(len(x)), (x[..., 0] > 0).int().argmax(-1)]

    assert "inner:attention" not in ran(Written(forward).eval(), inputs()).sink.names()


def erf(x: float) -> float:
    return 0.5 * (1 + math.erf((x - 0.7) / 0.4))


def breaking(row: list[float]) -> list[float]:
    """Weights that each take their part of what those before left (a stick is broken)."""
    left, out = 1.0, []
    for score in row:
        part = 1 / (1 + math.exp(-score))
        out.append(part * left)
        left *= 1 - part
    return out


def by_logarithms(s: Tensor) -> Tensor:
    return torch.exp(F.logsigmoid(s) + F.pad(F.logsigmoid(-s).cumsum(-1)[..., :-1], (1, 0)))


def by_products(s: Tensor) -> Tensor:
    part = torch.sigmoid(s)
    return part * torch.cat([torch.ones_like(part[..., :1]), (1 - part[..., :-1]).cumprod(-1)], -1)


FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[list[float]], list[float]]]] = {
    "softsign": (F.softsign, lambda row: [s / (1 + abs(s)) for s in row]),
    "hardsigmoid": (F.hardsigmoid, lambda row: [min(max(s / 6 + 0.5, 0.0), 1.0) for s in row]),
    "erf": (lambda s: 0.5 * (1 + torch.erf((s - 0.7) / 0.4)), lambda row: [erf(s) for s in row]),
    "arccos": (
        lambda s: (1 - torch.arccos(torch.tanh(s) * 0.9) / math.pi) ** 3,
        lambda row: [(1 - math.acos(math.tanh(s) * 0.9) / math.pi) ** 3 for s in row],
    ),
    "breaking a stick": (by_products, breaking),
    "breaking a stick by logarithms": (by_logarithms, breaking),
    "a sigmoid's gate": (
        lambda s: torch.sigmoid(s) * torch.sigmoid(-2 * s),
        lambda row: [1 / (1 + math.exp(-s)) / (1 + math.exp(2 * s)) for s in row],
    ),
}


@pytest.mark.parametrize("way", FUNCTIONS)
def test_functions_of_scores(way: str) -> None:
    function, by_hand = FUNCTIONS[way]
    expected = torch.tensor([by_hand(row) for row in own(inputs()).tolist()], dtype=torch.float64)
    seen = ran(Written(lambda x: function(scores(x)) @ x).eval(), inputs())
    torch.testing.assert_close(seen.map[0], expected, atol=2**-20, rtol=2**-10)


def set_rows(s: Tensor) -> Tensor:
    for q in range(T):
        s[:, q, q + 1 :] = -1e9
    return s


def fill_views(s: Tensor) -> Tensor:
    for q in range(T - 1):
        s[:, q, q + 1 :].fill_(-1e30)
    return s


def set_by_sequence(s: Tensor) -> Tensor:
    for n in range(len(s)):
        for q in range(T):
            s[n][q, q + 1 :] = -1e4
    return s


Masked = Callable[[Tensor], Tensor]
MASKS: dict[str, Masked] = {
    "rows of numbers": lambda s: set_rows(s.clone()),
    "views filled": lambda s: fill_views(s.clone()),
    "in each sequence": lambda s: set_by_sequence(s.clone()),
    "padded rows": lambda s: torch.stack([F.pad(s[:, q, : q + 1], (0, T - 1 - q), value=-1e9) for q in range(T)], 1),
    "logarithm": lambda s: s + torch.log(MAY.double() + 1e-45),
    "-100": lambda s: s.masked_fill(~MAY, -100.0),
    "beside a sink": lambda s: torch.cat([s.masked_fill(~MAY, -1e9), torch.full_like(s[..., :1], -1e9)], -1)[..., :-1],
    "index_put": lambda s: s.index_put(
        (torch.arange(B)[:, None], *(n.expand(B, -1) for n in torch.triu_indices(T, T, 1))),
        torch.tensor(-1e9, dtype=s.dtype),
    ),
}


@pytest.mark.parametrize("way", [name for name in MASKS if name != "padded rows"])
def test_masks_in_a_part_of_the_scores(way: str) -> None:
    seen = chain(lambda x: MASKS[way](scores(x)).softmax(-1) @ x, plain_softmax(own(inputs()), MAY)[None])
    assert seen.sink.array("inner:attention/allowed")[1].tolist() == list(range(T))


def test_columns_of_a_number_along_an_axis() -> None:
    may = torch.arange(T)[None].expand(T, T) < T - 2

    def forward(x: Tensor) -> Tensor:
        return scores(x).index_fill(-1, torch.arange(T - 2, T), -1e9).softmax(-1) @ x

    seen = chain(forward, plain_softmax(own(inputs()), may)[None])
    assert seen.sink.array("inner:attention/allowed")[1].tolist() == [T - 3] * T


def test_padded_scores() -> None:
    may = torch.arange(T)[None].expand(T, T) < T - 2

    def forward(x: Tensor) -> Tensor:
        return F.pad(scores(x)[..., : T - 2], (0, 2), value=-1e9).softmax(-1) @ x

    seen = chain(forward, plain_softmax(own(inputs()), may)[None])
    assert seen.sink.array("inner:attention/allowed")[1].tolist() == [T - 3] * T


MIXED: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "mean of heads": (
        lambda x: torch.stack([scores(x), -scores(x)], 1).softmax(-1).mean(1),
        lambda s: (plain_softmax(s) + plain_softmax(-s)) / 2,
    ),
    "two axes": (
        lambda x: scores(x).softmax(1) * scores(x).softmax(2),
        lambda s: plain_softmax(s) * plain_softmax(s.T).T,
    ),
    "identity added": (
        lambda x: scores(x).softmax(-1) + torch.eye(T, dtype=x.dtype),
        lambda s: plain_softmax(s) + torch.eye(T, dtype=torch.float64),
    ),
}


@pytest.mark.parametrize("way", MIXED)
def test_softmaxes_put_together(way: str) -> None:
    function, expected = MIXED[way]
    chain(lambda x: function(x) @ x, expected(own(inputs()))[None])


def test_weights_of_positions_alone_are_those_of_every_sequence() -> None:
    away = (torch.arange(T)[:, None] - torch.arange(T)).double()
    expected = plain_softmax(-away.square() / 4)[None]
    chain(lambda x: torch.softmax(-away.square() / 4, -1) @ x, expected, domains=("step", "key of unknown source"))


def test_rows_of_one_softmax_used_one_by_one() -> None:
    def forward(x: Tensor) -> Tensor:
        weights = scores(x).softmax(-1)
        return torch.cat([weights[:, q : q + 1] @ x for q in range(T)], 1)

    chain(forward, plain_softmax(own(inputs()))[None], domains=("query", "step"))


def test_heads_of_one_softmax_used_one_by_one_are_all_shown() -> None:
    def forward(x: Tensor) -> Tensor:
        weights = torch.stack([scores(x), -scores(x)], 1).softmax(-1)
        return weights[:, 0] @ x + weights[:, 1] @ x.flip(-1)

    seen = ran(Written(forward).eval(), inputs())
    for place, sign in (("inner", 1.0), ("inner.1", -1.0)):
        found = torch.from_numpy(seen.sink.array(f"{place}:attention").astype("float64"))[0]
        torch.testing.assert_close(found, plain_softmax(sign * own(inputs())), atol=2**-20, rtol=2**-10)


def test_additive_scores_of_a_vector_over_states_so_far() -> None:
    """A list that begins with one state: a vector that scores it is no layer with an output for each key."""
    v = torch.nn.Parameter(torch.linspace(-1, 1, D, dtype=torch.float64))

    def forward(x: Tensor) -> Tensor:
        states = [torch.zeros_like(x[:, 0])]
        for step in range(T):
            memory = torch.stack(states, 1)
            weights = (torch.tanh(memory + x[:, step, None]) @ v).softmax(-1)
            states.append(torch.tanh((weights[..., None] * memory).sum(1) + x[:, step]))
        return torch.stack(states[1:], 1)

    x, expected, states = inputs()[SAMPLE], torch.zeros(T, T, dtype=torch.float64), [torch.zeros(D).double()]
    for step in range(T):
        s = torch.tensor(
            [sum(math.tanh(float(a)) * float(b) for a, b in zip(h + x[step], v.detach(), strict=True)) for h in states]
        )
        expected[step, : step + 1] = plain_softmax(s)
        states.append(torch.tanh(sum(w * h for w, h in zip(expected[step], states, strict=False)) + x[step]))
    seen = ran(Written(forward).eval(), inputs())
    found = [name for name in seen.sink.names() if name.endswith(":attention")]
    assert found == ["inner:attention"]
    torch.testing.assert_close(seen.map[0].nan_to_num(), expected, atol=2**-20, rtol=2**-10)
