"""q·k by dimension, queries and keys, and largest scores of attention that a model writes itself, against the vectors and
scores that the model tells (float64 sums)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import inspector
from inspector.engine.model.subject import Subject

T, D, HEADS, V = 6, 8, 2, 9
IDS = [1, 2, 3, 4, 5, 2]
QUERY, KEY = 4, 2
ASKED = (
    "attention/maps", "attention/largest_logit", f"attention/pair@query={QUERY}@key={KEY}", "attention/queries_and_keys",
)  # fmt: skip
HEADED = (
    "matmul", "scaled before", "einsum", "keys in front", "bias", "temperature", "keys first", "baddbmm", "cosine",
    "rotary", "part",
)  # fmt: skip
ONE_HEAD = ("multiply and sum", "keepdim", "decoder", "growing")


class Written(nn.Module):
    """Attention in one of many ways; tells queries times the scale, keys and scores of the sequence (a, q, k)."""

    def __init__(self, way: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.way, self.embedding, self.out = way, nn.Embedding(V, D), nn.Linear(D, V)
        self.q, self.k, self.v, self.w = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, 1)
        self.t, self.b = nn.Parameter(torch.rand(HEADS) + 0.5), nn.Parameter(torch.randn(HEADS, T, T))
        self.cell = nn.GRUCell(D, D)
        self.told: dict[str, Tensor] = {}

    def tell(self, scores: Tensor, q: Tensor | None = None, k: Tensor | None = None) -> Tensor:
        parts = {"scores": scores} | ({} if q is None or k is None else {"q": q, "k": k})
        self.told = {name: part.detach()[0].reshape(-1, *part.shape[-2:]).double() for name, part in parts.items()}
        return scores

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        q, k, v = self.q(x), self.k(x), self.v(x)
        if self.way in ("decoder", "growing"):
            return self.steps(x, k, v)
        if self.way in (*ONE_HEAD, "additive"):
            return self.one_head(q, k, v)
        q, k, v = (one.view(*one.shape[:2], HEADS, -1).transpose(1, 2) for one in (q, k, v))
        z = self.heads(q, k, v)
        out: Tensor = self.out(z.transpose(1, 2).flatten(2))
        return out

    def one_head(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if self.way == "additive":
            self.hidden = torch.tanh(q[:, :, None] + k[:, None])
            scores = self.tell(self.w(self.hidden).squeeze(-1))
        else:
            keep = self.way == "keepdim"
            scores = (q[:, :, None] * k[:, None]).sum(-1, keepdim=keep)
            scores = self.tell(scores.squeeze(-1) / 3 if keep else scores, q / 3 if keep else q, k)
        out: Tensor = self.out(scores.softmax(-1) @ v)
        return out

    def steps(self, x: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """A state that attends to all keys, or to those so far, step by step."""
        h, rows, states, given = torch.zeros(len(x), D), [], [], []
        for t in range(T):
            last = t + 1 if self.way == "growing" else T
            states.append(h)
            scores = torch.bmm(k[:, :last], h[:, :, None]).squeeze(-1)
            given.append(F.pad(scores, (0, T - last), value=-math.inf))
            c = torch.bmm(scores.softmax(-1)[:, None], v[:, :last])[:, 0]
            h = self.cell(x[:, t] + c, h)
            rows.append(c)
        self.tell(torch.stack(given, 1), torch.stack(states, 1), k)
        out: Tensor = self.out(torch.stack(rows, 1))
        return out

    def heads(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        way, later = self.way, torch.ones(T, T, dtype=torch.bool).triu(1)
        if way == "keys in front":
            scores = torch.einsum("bhqd,bhkd->bqhk", q, k)
            self.tell(scores.transpose(1, 2), q, k)
            return torch.einsum("bqhk,bhkd->bhqd", scores.softmax(-1), v)
        if way == "keys first":
            scores = k @ q.mT
            self.tell(scores.mT, q, k)
            return scores.softmax(2).mT @ v
        if way == "rotary":
            angle = torch.arange(T)[:, None] / torch.tensor([1.0, 10.0])
            q, k = (torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)
                    for a, b in (one.chunk(2, -1) for one in (q, k)))  # fmt: skip
        if way == "cosine":
            q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        flat = [one.reshape(-1, T, D // HEADS) for one in (q, k)]
        scores, scale = {
            "matmul": lambda: ((q @ k.mT / 2).masked_fill(later, -math.inf), 0.5),
            "scaled before": lambda: (((q * 0.5) @ k.mT).masked_fill(later, -math.inf), 0.5),
            "einsum": lambda: (
                torch.einsum("bhqd,bhkd->bhqk", q, k) * 0.5 + torch.zeros(T, T).masked_fill(later, -1e9), 0.5
            ),
            "bias": lambda: (q @ k.mT * 0.5 + self.b, 0.5),
            "temperature": lambda: (q @ k.mT * self.t[:, None, None], self.t.detach()[:, None, None]),
            "baddbmm": lambda: (
                torch.baddbmm(self.b.repeat(len(q), 1, 1), flat[0], flat[1].mT, alpha=0.5).view(*q.shape[:2], T, T), 0.5
            ),
            "cosine": lambda: (q @ k.mT * 5, 5.0),
            "rotary": lambda: (q @ k.mT, 1.0),
            "part": lambda: ((q @ torch.cat([k, k], 2).mT)[..., :T], 1.0),
            "two": lambda: (q @ k.mT + q @ v.mT, 1.0),
            "capped": lambda: (torch.tanh(q @ k.mT), 1.0),
        }[way]()  # fmt: skip
        return self.tell(scores, q * scale, k).softmax(-1) @ v


def shown(model: nn.Module, asked: tuple[str, ...] = ASKED) -> Any:
    return inspector.run(Subject(model=model.eval(), next_token=True, vocabulary=list("abcdefghi")), IDS, only=asked)


@pytest.mark.parametrize("way", (*HEADED, *ONE_HEAD))
def test_products_of_queries_and_keys(way: str) -> None:
    model = Written(way)
    with shown(model) as capture:
        map_name = next(name for name in capture.channels if name.endswith(":attention"))
        q, k, scores = (model.told[name].numpy() for name in ("q", "k", "scores"))
        near = {"rtol": 1e-5, "atol": 1e-5}
        np.testing.assert_allclose(capture.array(f"{map_name}/pair"), q[:, QUERY] * k[:, KEY], **near)
        queries, keys = capture.array(f"{map_name}/queries"), capture.array(f"{map_name}/keys")
        np.testing.assert_allclose(queries, q, **near)
        np.testing.assert_allclose(keys, k, **near)
        allowed, sums = scores > -1e8, queries @ keys.swapaxes(1, 2)
        plus = f"{map_name}/bias" in capture.channels
        assert plus == (way in ("bias", "baddbmm"))
        sums = sums + capture.array(f"{map_name}/bias") if plus else sums
        np.testing.assert_allclose(sums[allowed], scores[allowed], **near)
        np.testing.assert_allclose(capture.array(f"{map_name}/largest_logit"), scores.max(-1), **near)


def test_an_additive_score_by_hidden_unit() -> None:
    model = Written("additive")
    with shown(model) as capture:
        hidden, w = model.hidden.detach()[0, QUERY, KEY].numpy(), model.w.weight.detach()[0].numpy()
        name = "model:attention/pair"
        np.testing.assert_allclose(capture.array(name)[0], hidden * w, rtol=1e-5, atol=1e-6)
        assert "hidden unit" in capture.channels[name].title
        assert f"{float(model.w.bias.detach()[0]):.4g}" in capture.channels[name].method
        said = {one.channel: one.reason for one in capture.refusals}
        assert "(additive)" in said["model:attention/queries"]


@pytest.mark.parametrize(("way", "why"), [("two", "the sum of several products"), ("capped", "no product was found")])
def test_other_scores_are_refused_with_the_reason(way: str, why: str) -> None:
    with shown(Written(way)) as capture:
        said = {one.channel: one.reason for one in capture.refusals}
        assert why in said["model:attention/pair"] and why in said["model:attention/queries"]
        assert "model:attention/largest_logit" in capture.channels
