"""Layers in one module that attend with one query each are layers, and not the rows of one decoder."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

import inspector

D, HEADS = 8, 2


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return nn.functional.scaled_dot_product_attention(q, k, v)


def by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1) @ v


class Layers(nn.Module):
    """Self-attention in two layers of one module, or a learned query of each layer that attends to all of its steps."""

    def __init__(self, attend, pooling: bool) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.attend, self.pooling = attend, pooling
        self.qkv = nn.ModuleList(nn.Linear(D, 3 * D) for _ in range(2))
        self.first = nn.Parameter(torch.randn(1, 1, D))

    def forward(self, x: Tensor) -> Tensor:
        for qkv in self.qkv:
            q, k, v = qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            if self.pooling:
                q = q[:, :, :1]
            x = x + self.attend(q, k, v).transpose(1, 2).flatten(2)
        return x


class Decoder(nn.Module):
    """Six steps that attend to one source, whose keys are computed again in each."""

    def __init__(self, attend) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.attend = attend
        self.query, self.key, self.step = nn.Linear(D, D), nn.Linear(D, D), nn.GRUCell(D, D)

    def forward(self, x: Tensor) -> Tensor:
        h, rows = x.mean(1), []
        for _ in range(6):
            seen = self.attend(self.query(h)[:, None, None], self.key(x)[:, None], x[:, None])
            h = self.step(seen[:, 0, 0], h)
            rows.append(h)
        return torch.stack(rows, 1)


def maps(model: nn.Module, steps: int) -> list[tuple[int, ...]]:
    with inspector.run(model.eval(), torch.randn(steps, D), only=("attention/maps",)) as capture:
        names = [name for name, one in capture.channels.items() if name.partition(":")[2] == "attention"]
        return [capture.array(name).shape for name in names]


@pytest.mark.parametrize("attend", [fused, by_hand])
def test_layers_over_one_step(attend: object) -> None:
    torch.manual_seed(0)
    assert maps(Layers(attend, pooling=False), 1) == [(HEADS, 1, 1)] * 2


@pytest.mark.parametrize("attend", [fused, by_hand])
def test_layers_that_pool(attend: object) -> None:
    torch.manual_seed(0)
    assert maps(Layers(attend, pooling=True), 5) == [(HEADS, 1, 5)] * 2


@pytest.mark.parametrize("attend", [fused, by_hand])
@pytest.mark.parametrize("steps", [1, 5])
def test_a_decoder_is_one_map(attend: object, steps: int) -> None:
    torch.manual_seed(0)
    assert maps(Decoder(attend), steps) == [(1, 6, steps)]


class Written(nn.Module):
    """A memory that is written in each step, read by its content: rows of one map, although no value stays."""

    def __init__(self) -> None:
        super().__init__()
        self.key, self.add = nn.Linear(D, D), nn.Linear(D, D)
        self.memory = nn.Parameter(torch.randn(1, 4, D))

    def forward(self, x: Tensor) -> Tensor:
        memory, rows = self.memory + 0 * x[:, :1], []
        for step in x.unbind(1):
            weights = torch.softmax((memory @ self.key(step)[..., None])[..., 0], -1)
            rows.append((weights[..., None] * memory).sum(1))
            memory = memory + torch.tanh(self.add(step))[:, None]
        return torch.stack(rows, 1)


def test_a_memory_that_is_written_is_one_map() -> None:
    torch.manual_seed(0)
    assert (1, 5, 4) in maps(Written(), 5)  # and what its memory adds up to, as a scan
