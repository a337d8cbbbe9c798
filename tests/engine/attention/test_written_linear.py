"""Linear attention: the weights that it stands for, where the model divides by their sum; elsewhere why there are none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from written_attention import SAMPLE, T, Written, chain, inputs, ran

from inspector.engine.attention.written import linear

pytestmark = pytest.mark.usefixtures("one_thread")

CAUSAL = torch.ones(T, T, dtype=torch.bool).tril()


def phi(x: Tensor) -> Tensor:
    return F.elu(x) + 1


def equivalent(x: Tensor, may: Tensor | None = None) -> Tensor:
    """(a, q, k) by loops over queries and keys: φ(q)·φ(k) over its sum."""
    own = x[SAMPLE].unflatten(-1, (2, -1))
    out = torch.zeros(2, T, T, dtype=torch.float64)
    for head in range(2):
        for q in range(T):
            row = [float((phi(own[q, head]) * phi(2 * own[k, head])).sum()) for k in range(T)]
            row = [w if may is None or bool(may[q, k]) else 0.0 for k, w in enumerate(row)]
            out[head, q] = torch.tensor(row, dtype=torch.float64) / sum(row)
    return out


def parts(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """φ(q), φ(k) and v, (b, a, t, d)."""
    own = x.unflatten(-1, (2, -1)).transpose(1, 2)
    return phi(own), phi(2 * own), 3 * own


def by_einsum(x: Tensor) -> Tensor:
    q, k, v = parts(x)
    both = torch.einsum("bhnd,bhne->bhde", k, v)
    z = 1 / torch.einsum("bhnd,bhd->bhn", q, k.sum(2))
    return torch.einsum("bhnd,bhde->bhne", q, both) * z[..., None]


def by_matmul(x: Tensor) -> Tensor:
    q, k, v = parts(x)
    return (q @ (k.mT @ v)) / (q @ k.sum(2)[..., None])


def values_first(x: Tensor) -> Tensor:
    q, k, v = parts(x)
    return (q @ (v.transpose(2, 3) @ k).transpose(2, 3)) / (q * k.sum(2, keepdim=True)).sum(-1, keepdim=True)


def values_first_by_einsum(x: Tensor) -> Tensor:
    q, k, v = parts(x)
    both = torch.einsum("bhne,bhnd->bhed", v, k)
    return torch.einsum("bhed,bhnd->bhne", both, q) / (q @ k.sum(2)[..., None])


def transposed_before_the_division(x: Tensor) -> Tensor:
    q, k, v = parts(x)
    return ((q @ (k.mT @ v)).transpose(1, 2) / (q @ k.sum(2)[..., None]).transpose(1, 2)).transpose(1, 2)


def running(x: Tensor) -> Tensor:
    q, k, v = parts(x)
    both = (k[..., None] * v[..., None, :]).cumsum(2)
    return torch.einsum("bhnd,bhnde->bhne", q, both) / (q * k.cumsum(2)).sum(-1, keepdim=True)


def running_by_einsum(x: Tensor) -> Tensor:
    q, k, v = parts(x)
    both = torch.cumsum(torch.einsum("bhnd,bhne->bhnde", k, v), dim=2)
    return torch.einsum("bhnd,bhnde->bhne", q, both) / torch.einsum("bhnd,bhnd->bhn", q, k.cumsum(2))[..., None]


def at_once(x: Tensor) -> Tensor:
    q, k, v = parts(x)
    z = 1 / torch.einsum("bhnd,bhd->bhn", q, k.sum(2))
    return torch.einsum("bhn,bhnd,bhde->bhne", z, q, torch.einsum("bhnd,bhne->bhde", k, v))


def at_once_factor_last(x: Tensor) -> Tensor:
    q, k, v = (one.transpose(1, 2) for one in parts(x))
    z = 1 / (torch.einsum("nlhd,nhd->nlh", q, k.sum(1)) + 1e-6)
    return torch.einsum("nlhd,nhmd,nlh->nlhm", q, torch.einsum("nshd,nshm->nhmd", k, v), z).transpose(1, 2)


WAYS: dict[str, tuple[Callable[[Tensor], Tensor], Tensor | None]] = {
    "einsum": (by_einsum, None),
    "matmul": (by_matmul, None),
    "values first": (values_first, None),
    "values first, einsum": (values_first_by_einsum, None),
    "divided after a transposition": (transposed_before_the_division, None),
    "einsum of three": (at_once, None),
    "einsum of three, the factor last": (at_once_factor_last, None),
    "running sum": (running, CAUSAL),
    "running sum, einsum": (running_by_einsum, CAUSAL),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_weights_that_linear_attention_stands_for(way: str) -> None:
    forward, may = WAYS[way]
    x = inputs(d=8)
    seen = chain(lambda x: forward(x).transpose(1, 2).flatten(2), equivalent(x, may), x)
    assert "equivalent weights" in seen.method
    last = list(range(T)) if may is not None else [T - 1] * T
    assert seen.sink.array("inner:attention/allowed").tolist() == [[0] * T, last]


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_of_one_sequence_has_the_same_weights(way: str) -> None:
    forward, may = WAYS[way]
    x = inputs(d=8)[[SAMPLE] * 3]
    chain(lambda x: forward(x).transpose(1, 2).flatten(2), equivalent(x, may), x[:1])


def test_without_a_division_by_the_sum_there_is_no_map_and_it_is_said() -> None:
    def forward(x: Tensor) -> Tensor:
        q, k, v = parts(x)
        return q @ (k.mT @ v)

    seen = ran(Written(forward).eval(), inputs(d=8))
    assert not [name for name in seen.sink.names() if name.endswith(":attention")]
    said = [text for text in seen.logged() if "not taken" in text]
    assert len(said) == 1 and linear.NO_MAP in said[0] and said[0].startswith("A linear attention of inner")


def test_a_running_sum_without_a_division_is_shown_as_a_scan() -> None:
    def forward(x: Tensor) -> Tensor:
        q, k, v = parts(x)
        return torch.einsum("bhnd,bhnde->bhne", q, (k[..., None] * v[..., None, :]).cumsum(2))

    x = inputs(d=8)
    seen = ran(Written(forward).eval(), x)
    q, k, _ = (one[SAMPLE] for one in parts(x))
    shown = torch.from_numpy(seen.sink.array("inner:attention")).double()
    torch.testing.assert_close(shown, (q @ k.mT).tril(), rtol=1e-6, atol=1e-7)
    assert not [text for text in seen.logged() if "not taken" in text]


def test_a_division_by_something_else_is_no_map() -> None:
    def forward(x: Tensor) -> Tensor:
        q, k, v = parts(x)
        return (q @ (k.mT @ v)) / torch.tensor(0.01, dtype=x.dtype)

    seen = ran(Written(forward).eval(), inputs(d=8))
    assert not [name for name in seen.sink.names() if name.endswith(":attention")]
