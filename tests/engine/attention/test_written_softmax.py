"""Attention by softmax, in each way of writing the softmax, the weighted sum and their axes."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from attending import probed, weights_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from written_attention import SAMPLE, B, D, T, Written, chain, inputs, plain_softmax, ran

pytestmark = pytest.mark.usefixtures("one_thread")

W = torch.linspace(-1, 1, D * D, dtype=torch.float64).reshape(D, D)
u = torch.tensor([0.3, -1.0, 0.7, 0.2], dtype=torch.float64)


def self_map(x: Tensor) -> Tensor:
    """(1, t, t) softmax(x Wᵀ xᵀ) of the selected sequence."""
    one = x[SAMPLE]
    return plain_softmax(one @ W @ one.mT)[None]


def pool_map(x: Tensor) -> Tensor:
    """(1, 1, t) one row over time: softmax(u·tanh(x))."""
    return plain_softmax(torch.tanh(x[SAMPLE]) @ u)[None, None]


def scores(x: Tensor) -> Tensor:
    return x @ W @ x.mT


def pooled(x: Tensor) -> Tensor:
    return torch.tanh(x) @ u


USES: dict[str, Callable[[Tensor], Tensor]] = {
    "matmul": lambda x: scores(x).softmax(-1) @ x,
    "function matmul": lambda x: torch.matmul(torch.softmax(scores(x), dim=2), x),
    "bmm": lambda x: torch.bmm(F.softmax(scores(x), -1), x),
    "bmm with mat2 by name": lambda x: torch.bmm(F.softmax(scores(x), -1), mat2=x),
    "columns, transposed": lambda x: torch.softmax(scores(x).transpose(1, 2), 1).transpose(1, 2) @ x,
    "columns, mT": lambda x: torch.softmax(scores(x).mT, 1).mT @ x,
    "values on the left": lambda x: (x.mT @ torch.softmax(scores(x), 2).permute(0, 2, 1)).mT,
    "keys first, no transpose back": lambda x: x.transpose(1, 2).bmm(scores(x).mT.softmax(1)).transpose(1, 2),
    "einsum": lambda x: torch.einsum("bqk,bkd->bqd", scores(x).softmax(-1), x),
    "einsum, values first": lambda x: torch.einsum("bsd,bts->btd", x, scores(x).softmax(-1)),
    "einsum, keys first": lambda x: torch.einsum("kqb,bkd->dbq", scores(x).softmax(-1).permute(2, 1, 0), x).permute(1, 2, 0),
    "einsum of three": lambda x: torch.einsum("bqk,bkd,de->bqe", scores(x).softmax(-1), x, W),
    "einsum with dots": lambda x: torch.einsum("...qk,...kd->...qd", scores(x).softmax(-1), x),
    "multiply and sum": lambda x: (scores(x).softmax(-1).unsqueeze(-1) * x.unsqueeze(1)).sum(2),
    "sum of a product": lambda x: torch.sum(x[:, None] * scores(x).softmax(-1)[..., None], dim=-2),
    "columns, multiply and sum": lambda x: (torch.softmax(scores(x).mT, 1)[..., None] * x[:, :, None]).sum(1, keepdim=True)[:, 0],
    "time first": lambda x: time_first(x.transpose(0, 1)).transpose(0, 1),
    "log_softmax and exp": lambda x: F.log_softmax(scores(x), -1).exp() @ x,
    "exp of scores minus logsumexp": lambda x: torch.exp(scores(x) - scores(x).logsumexp(-1, keepdim=True)) @ x,
    "exp over sum": lambda x: (scores(x).exp() / scores(x).exp().sum(-1, keepdim=True)) @ x,
    "exp over sum, largest subtracted": lambda x: written_out(scores(x)) @ x,
    "exp over sum in place": lambda x: in_place(scores(x)) @ x,
    "softmin": lambda x: F.softmin(-scores(x), -1) @ x,
    "module": lambda x: nn.Softmax(dim=-1)(scores(x)) @ x,
    "special": lambda x: torch.special.softmax(scores(x), -1) @ x,
    "cast and back": lambda x: scores(x).softmax(-1).to(torch.float64).clone().contiguous() @ x,
}  # fmt: skip


def time_first(x: Tensor) -> Tensor:
    """(t, b, d): the keys are the first axis of weights (k, b, q)."""
    weights = torch.softmax(torch.einsum("kbd,de,qbe->kbq", x, W.T, x), 0)
    return torch.einsum("kbq,kbd->qbd", weights, x)


def written_out(scores: Tensor) -> Tensor:
    powers = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    return powers / powers.sum(dim=-1, keepdim=True)


def in_place(scores: Tensor) -> Tensor:
    powers = scores.exp()
    powers /= powers.sum(-1, keepdim=True)
    return powers


@pytest.mark.parametrize("way", USES)
def test_self_attention(way: str) -> None:
    x = inputs()
    seen = chain(USES[way], self_map(x), x)
    assert not [text for text in seen.logged() if "not taken" in text]


POOLS: dict[str, Callable[[Tensor], Tensor]] = {
    "multiply and sum": lambda x: (F.softmax(pooled(x), 1).unsqueeze(-1) * x).sum(1),
    "softmax over time of (b, t, 1)": lambda x: (F.softmax(pooled(x)[..., None], dim=1) * x).sum(dim=1),
    "values first": lambda x: (x * F.softmax(pooled(x)[..., None], dim=1)).sum(1),
    "torch.sum": lambda x: torch.sum(torch.mul(x, F.softmax(pooled(x)[..., None], dim=1)), 1),
    "bmm": lambda x: torch.bmm(F.softmax(pooled(x), 1).unsqueeze(1), x).squeeze(1),
    "values transposed": lambda x: x.transpose(1, 2).bmm(F.softmax(pooled(x), 1).unsqueeze(2)).squeeze(2),
    "einsum": lambda x: torch.einsum("btd,bt->bd", x, F.softmax(pooled(x), 1)),
    "matmul": lambda x: (F.softmax(pooled(x), 1)[:, None] @ x)[:, 0],
    "one by one": lambda x: sum(pieces(x), torch.zeros_like(x[:, 0])),
    "one by one, in place": lambda x: added_up(x),
    "one by one, time first": lambda x: one_by_one_of_rows(x),
    "time first": lambda x: (F.softmax(pooled(x.transpose(0, 1)), 0)[..., None] * x.transpose(0, 1)).sum(0),
    "exp over sum": lambda x: (written_out(pooled(x))[..., None] * x).sum(1),
    "log_softmax and exp": lambda x: (F.log_softmax(pooled(x), 1).exp()[..., None] * x).sum(1),
    "a dot product of each sequence": lambda x: torch.stack([F.softmax(pooled(x), 1)[:, None] @ x], 0)[0, :, 0],
}


def pieces(x: Tensor) -> list[Tensor]:
    weights = F.softmax(pooled(x), 1)
    return [weights[:, i : i + 1] * x[:, i] for i in range(x.shape[1])]


def added_up(x: Tensor) -> Tensor:
    weights, out = F.softmax(pooled(x), 1), torch.zeros_like(x[:, 0])
    for i in range(x.shape[1]):
        out += weights[:, i].unsqueeze(-1) * x[:, i]
    return out


def one_by_one_of_rows(x: Tensor) -> Tensor:
    weights, out = F.softmax(pooled(x.transpose(0, 1)), 0), torch.zeros_like(x[:, 0])
    for i in range(x.shape[1]):
        out = out + x[:, i] * weights[i][:, None]
    return out


@pytest.mark.parametrize("way", POOLS)
def test_pooling_over_time(way: str) -> None:
    x = inputs()
    chain(POOLS[way], pool_map(x), x, domains=("query", "step"))


def test_pooling_of_a_batch_of_one() -> None:
    x = inputs(b=1)
    expected = plain_softmax(torch.tanh(x[0]) @ u)[None, None]
    for way in POOLS.values():
        chain(way, expected, x, sample=0, domains=("query", "step"))


def test_two_dimensional_tensors_of_a_single_sequence() -> None:
    x = inputs(b=1)
    expected = plain_softmax(x[0] @ W @ x[0].mT)[None]
    ways: list[Callable[[Tensor], Tensor]] = [
        lambda x: ((x[0] @ W @ x[0].T).softmax(-1) @ x[0])[None],
        lambda x: torch.mm(torch.softmax(x[0] @ W @ x[0].T, 1), x[0])[None],
        lambda x: torch.einsum("qk,kd", (x[0] @ W @ x[0].T).softmax(-1), x[0])[None],
        lambda x: torch.tensordot((x[0] @ W @ x[0].T).softmax(-1), x[0], 1)[None],
        lambda x: torch.tensordot(x[0], (x[0] @ W @ x[0].T).softmax(-1), dims=([0], [1])).T[None],
    ]
    for way in ways:
        chain(way, expected, x, sample=0)


def test_weights_for_each_feature_are_heads() -> None:
    """Softmax over time of every feature by itself: as many heads as features, of one value each."""
    x = inputs()
    expected = plain_softmax((x[SAMPLE] @ W).T)[:, None]
    chain(lambda x: (torch.softmax(x @ W, dim=1) * x).sum(dim=1), expected, x, domains=("query", "step"))


def test_heads_in_any_place() -> None:
    """(b, a, q, k), (b, q, a, k), (a, b, q, k): the sequence of the batch and the heads are found in each."""
    x = inputs(b=3, t=5, d=8)
    heads = x.unflatten(-1, (2, 4))
    own = heads[SAMPLE]
    expected = plain_softmax(torch.einsum("qad,kad->aqk", own, own))
    ways: dict[str, Callable[[Tensor], Tensor]] = {
        "b a q k": lambda x: weigh("bqad,bkad->baqk", "baqk,bkad->bqad", x),
        "b q a k": lambda x: weigh("bqad,bkad->bqak", "bqak,bkad->bqad", x),
        "a b q k": lambda x: weigh("bqad,bkad->abqk", "abqk,bkad->bqad", x),
        "q b a k": lambda x: weigh("bqad,bkad->qbak", "qbak,bkad->bqad", x),
    }
    for way in ways.values():
        chain(way, expected, x)


@settings(deadline=None, max_examples=60)
@given(
    weights=st.permutations("baqk"), values=st.permutations("bakd"), out=st.permutations("baqd"),
    b=st.sampled_from([1, 2, 5]), first=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
def test_axes_in_any_order(
    weights: list[str], values: list[str], out: list[str], b: int, first: bool, seed: int
) -> None:
    """A weighted sum with its axes in any order gives the map of the sample, or none."""
    torch.manual_seed(seed)
    sizes = {"b": b, "a": 3, "q": 4, "k": 6, "d": 7}
    raw = torch.randn([sizes[axis] for axis in "baqk"], dtype=torch.float64)
    value = torch.randn([sizes[axis] for axis in values], dtype=torch.float64)
    names = "".join(weights)

    def forward(x: Tensor) -> Tensor:
        own = torch.einsum(f"baqk->{names}", raw).contiguous().softmax(names.index("k"))
        one, two = (names, own), ("".join(values), value)
        left, right = (one, two) if first else (two, one)
        return torch.einsum(f"{left[0]},{right[0]}->{''.join(out)}", left[1], right[1])

    with torch.no_grad():
        _, seen = probed(Written(forward), torch.zeros(b, 6, 1), look_at=b - 1)
    assert len(seen) == 1 and seen[0].check is not None and seen[0].check.passed
    torch.testing.assert_close(weights_of(seen[0], b - 1), plain_softmax(raw[b - 1]))


def weigh(score: str, use: str, x: Tensor) -> Tensor:
    heads = x.unflatten(-1, (2, 4))
    return torch.einsum(use, torch.einsum(score, heads, heads).softmax(-1), heads).flatten(2)


def test_dropout_in_training_is_left_out_and_said() -> None:
    class Dropping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(0.5)

        def forward(self, x: Tensor) -> Tensor:
            weights = self.drop(scores(x).softmax(-1))
            return (weights.unsqueeze(-1) * x.unsqueeze(1)).sum(2)

    x = inputs()
    model = Dropping().train()
    seen = chain(model, self_map(x), x, place="model")
    assert "shown without the dropout" in seen.method


def test_half_precision() -> None:
    x = inputs(dtype=torch.bfloat16)
    for way in ("matmul", "multiply and sum", "exp over sum, largest subtracted"):
        model = Written(lambda x, way=way: LOW[way](x)).eval()
        expected = plain_softmax((x[SAMPLE] @ x[SAMPLE].mT).double())[None]
        chain(model, expected, x, atol=0.01)


LOW: dict[str, Callable[[Tensor], Tensor]] = {
    "matmul": lambda x: (x @ x.mT).softmax(-1) @ x,
    "multiply and sum": lambda x: ((x @ x.mT).softmax(-1).unsqueeze(-1) * x.unsqueeze(1)).sum(2),
    "exp over sum, largest subtracted": lambda x: written_out(x @ x.mT) @ x,
}


def test_every_sample_of_the_batch_is_its_own() -> None:
    x = inputs()
    for sample in range(B):
        expected = plain_softmax(x[sample] @ W @ x[sample].mT)[None]
        for way in ("matmul", "time first", "einsum, keys first", "exp over sum"):
            chain(USES[way], expected, x, sample=sample)


def test_a_sum_over_the_batch_is_refused() -> None:
    """Values of all sequences in one sum: there is no map of one sequence."""
    seen = ran(Written(lambda x: torch.einsum("bqk,bkd->qd", scores(x).softmax(-1), x)).eval(), inputs())
    assert "same for all sequences" in seen.sink.refusals()["inner:attention"]
    assert not [name for name in seen.sink.names() if ":attention" in name]


def test_padding_is_cut_off_where_nobody_looks_at_it() -> None:
    x, lengths = inputs(), [T, 4, T]
    may = torch.arange(T)[None] < torch.tensor(lengths)[:, None]

    def forward(x: Tensor) -> Tensor:
        return scores(x).masked_fill(~may[:, None], -math.inf).softmax(-1) @ x

    expected = plain_softmax(x[SAMPLE, :4] @ W @ x[SAMPLE, :4].mT)[None]
    chain(forward, expected, x, lengths=lengths)


@pytest.mark.parametrize("train", [True, False])
def test_gradients_and_the_graph_are_as_without_watching(train: bool) -> None:
    """Every way, with gradients: the same numbers bit by bit, and the same maps."""

    def run(way: Callable[[Tensor], Tensor], watched: bool) -> tuple[Tensor, Tensor]:
        torch.manual_seed(3)
        x = inputs().requires_grad_()

        def dropping(x: Tensor) -> Tensor:
            return way(F.dropout(x, 0.1, training=train))

        y = probed(Written(dropping), x, look_at=SAMPLE)[0] if watched else dropping(x)
        y.square().sum().backward()
        assert x.grad is not None
        return y.detach(), x.grad

    ways = [way for name, way in USES.items() if "in place" not in name]  # autograd needs what that overwrites
    for way in (*ways, *POOLS.values()):
        plain, watched = run(way, False), run(way, True)
        assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))
    x = inputs().requires_grad_()
    _, seen = probed(Written(USES["einsum"]), x, look_at=SAMPLE)
    assert seen[0].weights is not None and not seen[0].weights.requires_grad


def test_what_is_watched_is_freed_afterwards() -> None:
    """Neither weights nor values are held once the model has returned and the map is dropped."""
    made: list[weakref.ref[Tensor]] = []

    def forward(x: Tensor) -> Tensor:
        weights = scores(x).softmax(-1)
        values = 2 * x
        made.extend(weakref.ref(one) for one in (weights, values))
        product = weights.unsqueeze(-1) * values.unsqueeze(1)
        made.append(weakref.ref(product))
        return product.sum(2)

    with torch.no_grad():
        probed(Written(forward), inputs())
    gc.collect()
    assert [one() for one in made] == [None] * 3
