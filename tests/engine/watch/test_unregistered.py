"""Parameters in plain containers, which torch does not find: all of them, and no others."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import inspector
from inspector.engine.watch.unregistered import unregistered


class Net(nn.Module):
    """Two layers in a list and one in a dictionary of lists; the head is a part as it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)]
        self.more = {"a": [nn.Parameter(torch.ones(2))], "name": "net", "sizes": (1, 2)}
        self.head = nn.Linear(2, 1)
        self.teacher = [nn.Linear(2, 2).requires_grad_(False)]
        self.same = (self.head, self.layers[0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        found: torch.Tensor = self.head(x * self.more["a"][0])  # type: ignore[index]
        return found


NAMES = ["layers[0].weight", "layers[1].weight", "more['a'][0]"]


def test_what_lies_in_containers_is_found_once() -> None:
    model = Net()
    assert unregistered(model, []) == NAMES
    assert unregistered(nn.ModuleDict({"net": model}), []) == [f"net.{name}" for name in NAMES]


def test_what_an_optimizer_was_given_is_trained() -> None:
    model = Net()
    optimizer = torch.optim.SGD([*model.parameters(), *model.layers[0].parameters()], 0.1)
    assert unregistered(model, [optimizer]) == NAMES[1:]


def test_it_is_told_of_a_watched_training(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with inspector.watch(model, optimizer, tmp_path / "r.inspect", every=1):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(4, 2)).square().mean().backward()
            optimizer.step()
    (found,) = [one for one in inspector.diagnose(tmp_path / "r.inspect").findings if one.id == "IN110"]
    assert all(name in found.message for name in NAMES)
