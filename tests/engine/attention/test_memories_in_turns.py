"""Calls of one module that attend to several memories in turns are one map for each memory, against float64 loops."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from written_attention import SAMPLE, D, T, inputs, plain_softmax, ran

pytestmark = pytest.mark.usefixtures("one_thread")


class Attend(nn.Module):
    def forward(self, h: Tensor, memory: Tensor) -> Tensor:
        weights = torch.einsum("bd,bkd->bk", h, memory).softmax(1)
        return torch.einsum("bk,bkd->bd", weights, memory)


class Decoder(nn.Module):
    """Attends to two memories in each step, by one module."""

    def __init__(self, first: int, second: int, steps: int) -> None:
        super().__init__()
        self.inner, self.sizes, self.steps = Attend(), (first, second), steps

    def memories(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x[:, : self.sizes[0]].sin(), x[:, -self.sizes[1] :].cos()

    def forward(self, x: Tensor) -> Tensor:
        one, two = self.memories(x)
        h, out = x.new_full((len(x), D), 0.1), []
        for _ in range(self.steps):
            h = torch.tanh(h + self.inner(h, one))
            h = torch.tanh(h - self.inner(h, two))
            out.append(h)
        return torch.stack(out, 1)

    def maps(self, x: Tensor) -> list[Tensor]:
        one, two = self.memories(x)
        h = torch.full((D,), 0.1, dtype=torch.float64)
        rows: list[list[Tensor]] = [[], []]
        for _ in range(self.steps):
            for n, memory in enumerate((one[SAMPLE], two[SAMPLE])):
                weights = plain_softmax(torch.stack([h @ key for key in memory]))
                h = torch.tanh(h + (1 - 2 * n) * (weights @ memory))
                rows[n].append(weights)
        return [torch.stack(own)[None] for own in rows]


@pytest.mark.parametrize(
    ("first", "second", "steps"),
    [(T, T - 2, 4), (T, T, T // 2), (3, T, 2)],
    ids=["other sizes", "as many calls", "few"],
)
def test_each_memory_has_its_map(first: int, second: int, steps: int) -> None:
    model, x = Decoder(first, second, steps).eval(), inputs()
    expected = model.maps(x)
    for place, own in zip(("inner", "inner.1"), expected, strict=True):
        seen = ran(model, x, place)
        torch.testing.assert_close(seen.map, own, atol=1e-3, rtol=1e-3)
    assert len([name for name in seen.sink.names() if name.endswith(":attention")]) == 2


class Cached(nn.Module):
    """Self-attention with a cache and attention to a source, both in the decoder's own forward."""

    def forward(self, x: Tensor) -> Tensor:
        y, cache, out = x[:, :1] * 0 + 0.1, x[:, :0], []
        for _ in range(4):
            cache = torch.cat((cache, y), 1)
            y = torch.tanh(y + (y @ cache.mT).softmax(-1) @ cache)
            y = torch.tanh(y + (y @ x.mT).softmax(-1) @ x)
            out.append(y)
        return torch.cat(out, 1)


def test_a_cache_and_a_source() -> None:
    x = inputs()
    own, y = x[SAMPLE], torch.full((D,), 0.1, dtype=torch.float64)
    cache: list[Tensor] = []
    first, second = torch.zeros(4, 4, dtype=torch.float64), torch.zeros(4, T, dtype=torch.float64)
    for step in range(4):
        cache.append(y)
        first[step, : step + 1] = plain_softmax(torch.stack([y @ key for key in cache]))
        y = torch.tanh(y + sum(w * key for w, key in zip(first[step], cache, strict=False)))
        second[step] = plain_softmax(torch.stack([y @ key for key in own]))
        y = torch.tanh(y + second[step] @ own)
    seen = ran(Cached().eval(), x, "model")
    torch.testing.assert_close(seen.map[0], first, atol=1e-3, rtol=1e-3)
    seen.place = "model.1"
    torch.testing.assert_close(seen.map[0], second, atol=1e-3, rtol=1e-3)
