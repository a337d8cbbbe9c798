"""What a layer does for each of several parts (queries, keys, values) is no step, however many layers there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

import inspector

D, HEADS, T = 8, 2, 6


def split(z: Tensor) -> Tensor:
    return z.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def inner_loop(parts: Sequence[Tensor]) -> list[Tensor]:
    found = []
    for z in parts:
        found.append(z.unflatten(-1, (HEADS, -1)).transpose(1, 2))
    return found


WAYS: dict[str, Callable[[Sequence[Tensor]], Sequence[Tensor]]] = {
    "list": lambda parts: [z.unflatten(-1, (HEADS, -1)).transpose(1, 2) for z in parts],
    "generator": lambda parts: tuple(z.unflatten(-1, (HEADS, -1)).transpose(1, 2) for z in parts),
    "map": lambda parts: tuple(map(split, parts)),
    "calls": lambda parts: [split(z) for z in parts],
    "loop": inner_loop,
}


class Attending(nn.Module):
    def __init__(self, way: str, count: int) -> None:
        super().__init__()
        self.way = WAYS.get(way)
        self.layers = nn.ModuleList(
            nn.ModuleDict({"qkv": nn.Linear(D, 3 * D), "out": nn.Linear(D, D)}) for _ in range(count)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            if self.way is None:
                parts = []
                for z in layer["qkv"](x).chunk(3, -1):
                    parts.append(z.unflatten(-1, (HEADS, -1)).transpose(1, 2))
                q, k, v = parts
            else:
                q, k, v = self.way(layer["qkv"](x).chunk(3, -1))
            heads = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + layer["out"](heads.transpose(1, 2).flatten(2))
        return x


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("way", [*WAYS, "written there"])
def test_parts_of_a_layer_are_no_steps(way: str, count: int) -> None:
    torch.manual_seed(0)
    with inspector.run(
        Attending(way, count).eval(), torch.randn(T, D), only=("states", "attention/entropy")
    ) as capture:
        assert not [name for name, one in capture.channels.items() if one.kind == "state"]
        assert sum(name.endswith("attention/entropy") for name in capture.channels) == count


class Elman(nn.Module):
    """A recurrence in two calls of a function whose steps do depend on each other."""

    def __init__(self) -> None:
        super().__init__()
        self.i, self.h = nn.Linear(3, 4), nn.Linear(4, 4)

    def half(self, rows: Sequence[Tensor], h: Tensor) -> Tensor:
        for row in rows:
            h = torch.tanh(self.i(row) + self.h(h))
        return h

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(1, 4)
        for part in (x[:, :4], x[:, 4:]):
            h = self.half(part.unbind(1), h)
        return h


def test_steps_in_two_calls_are_steps() -> None:
    torch.manual_seed(0)
    model, x = Elman().eval(), torch.randn(8, 3)
    with inspector.run(model, x, only=("states",)) as capture:
        (name,) = [name for name, one in capture.channels.items() if one.kind == "state"]
        h, known = torch.zeros(1, 4), []
        for row in x:
            h = torch.tanh(model.i(row[None]) + model.h(h))
            known.append(h[0])
        assert torch.allclose(torch.tensor(capture.array(name).tolist()), torch.stack(known), atol=1e-6)
