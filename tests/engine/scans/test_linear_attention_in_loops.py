"""Linear attention written as a loop over the steps: its memory is a recurrence though it only adds, and its map is
that of queries and keys, whatever it is written with. Sums that are no memory are not shown."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.batch import Batch
from inspector.engine.model.subject import Subject
from inspector.engine.pipeline.own_run import RunOptions, perform

V, T, D, K = 11, 9, 6, 4
MEMORIES = (
    "matmul",
    "einsum",
    "in the loop",
    "outer bmm",
    "in place",
    "unbound",
    "normalised",
    "rows",
    "gated",
    "ahead",
)
OTHERS = ("mean so far", "loss", "pooled")


class Memory(nn.Module):
    """Reads o_t = q_t S_t, S_t = g_t S_{t−1} + k_t v_tᵀ (D keys of K entries), or a sum that is none."""

    def __init__(self, how: str) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.how, self.embedding = how, nn.Embedding(V, D)
        self.q, self.k, self.v, self.g = nn.Linear(D, K), nn.Linear(D, K), nn.Linear(D, D), nn.Linear(D, K)
        self.head = nn.Linear(D, V)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        q, k = self.q(x), self.k(x)
        if self.how == "normalised":
            q, k = F.elu(q) + 1, F.elu(k) + 1
        g = self.g(x).sigmoid() if self.how == "gated" else torch.ones_like(k)
        return q, k, self.v(x), g

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        q, k, v, g = self.parts(x)
        return self.head(torch.stack([*self.read(x, q, k, v, g)], 1))

    def read(  # noqa: C901 - each way of writing it
        self, x: Tensor, q: Tensor, k: Tensor, v: Tensor, g: Tensor
    ) -> list[Tensor]:
        how, many, out = self.how, range(x.shape[1]), []
        s, z = x.new_zeros(len(x), K, D), x.new_zeros(len(x), K)
        ahead = k[..., None] * v[:, :, None]
        rows = zip(q.unbind(1), k.unbind(1), v.unbind(1), strict=True) if how == "unbound" else ()
        for a, b, c in rows:
            s = s + b[..., None] * c[:, None]
            out.append((a[:, None] @ s).squeeze(1))
        for t in many if not out else ():
            if how == "matmul":
                s = s + k[:, t, :, None] * v[:, t, None]
                out.append((q[:, t, None] @ s)[:, 0])
            elif how == "einsum":
                s = s + torch.einsum("bk,bd->bkd", k[:, t], v[:, t])
                out.append(torch.einsum("bk,bkd->bd", q[:, t], s))
            elif how == "in the loop":
                s = s + self.k(x[:, t])[:, :, None] * self.v(x[:, t])[:, None]
                out.append((self.q(x[:, t])[:, None] @ s)[:, 0])
            elif how == "outer bmm":
                s = s + torch.bmm(k[:, t, :, None], v[:, t, None])
                out.append(torch.bmm(q[:, t, None], s)[:, 0])
            elif how == "in place":
                s = s.clone()
                s += k[:, t, :, None] * v[:, t, None]
                out.append((q[:, t, None] @ s)[:, 0])
            elif how == "normalised":
                s, z = s + k[:, t, :, None] * v[:, t, None], z + k[:, t]
                out.append((q[:, t, None] @ s)[:, 0] / (q[:, t] * z).sum(-1, keepdim=True))
            elif how == "rows":
                s = s + k[:, t, :, None] * v[:, t, None]
                out.append((s * q[:, t, :, None]).sum(1))
            elif how == "gated":
                s = g[:, t, :, None] * s + k[:, t, :, None] * v[:, t, None]
                out.append((q[:, t, None] @ s)[:, 0])
            elif how == "ahead":
                s = s + ahead[:, t]
                out.append((q[:, t, None] @ s)[:, 0])
            elif how == "mean so far":
                z = z + k[:, t]
                out.append(F.pad(z / (t + 1), (0, D - K)))
            elif how == "loss":
                z = z + k[:, t] * q[:, t]
                out.append(v[:, t])
            else:
                s = s + k[:, t, :, None] * v[:, t, None]
                out.append(v[:, t])
        return out if how != "pooled" else [one + s.sum(1) for one in out]


def ran(how: str, batch: int = 1) -> tuple[Listed, Tensor]:
    ids = torch.randint(0, V, (batch, T), generator=torch.Generator().manual_seed(3))
    sink = Listed()
    subject = Subject(Memory(how).double(), kind="tokens", vocabulary="abcdefghijk")
    perform(subject, Batch(ids, torch.full((batch,), T)), sink, RunOptions(only=("states", "attention/maps")))
    return sink, ids


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("how", MEMORIES)
def test_the_memory_is_a_recurrence_and_its_map_that_of_queries_and_keys(how: str, batch: int) -> None:
    sink, ids = ran(how, batch)
    model = Memory(how).double()
    with torch.no_grad():
        q, k, v, g = (one[0].numpy() for one in model.parts(model.embedding(ids)))
    states, wanted = np.zeros((T, K, D)), np.zeros((T, T))
    s = np.zeros((K, D))
    for t in range(T):
        s = g[t][:, None] * s + np.outer(k[t], v[t])
        states[t] = s
        for r in range(t + 1):
            wanted[t, r] = sum(q[t, n] * np.prod(g[r + 1 : t + 1, n]) * k[r, n] for n in range(K))
    (name,) = [one for one in sink.names() if one.endswith((":s", ":S"))]
    np.testing.assert_allclose(sink.array(name).reshape(T, K, D), states, atol=1e-6)
    maps = sink.array("model:attention")
    assert maps.shape == (1, T, T), "one map: that of all values is the same"
    np.testing.assert_allclose(maps[0], wanted, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("how", OTHERS)
def test_a_sum_that_no_step_asks_is_no_memory(how: str) -> None:
    """A mean so far, a sum of terms, and states that are pooled once the loop has ended."""
    sink, _ = ran(how)
    assert not [one for one in sink.names() if one.startswith("model:") and "attention" not in one]
