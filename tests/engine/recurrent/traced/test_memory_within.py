"""nn.LSTMCell inside a larger step: gradients at c, their map and items against float64 autograd with leaves per step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from watched import seen

from inspector.records import Refusal

D = torch.float64
T = 7
State = tuple[Tensor, ...]


class Scaled(nn.Module):
    parts = 2

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.k = nn.LSTMCell(3, 4), nn.Parameter(torch.tensor(0.7))

    def change(self, h: Tensor) -> Tensor:
        return self.k * h

    def forward(self, x: Tensor, *state: Tensor) -> State:
        h, c = self.cell(x, state)
        return self.change(h), c


class Normed(Scaled):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4)

    def change(self, h: Tensor) -> Tensor:
        return torch.as_tensor(self.norm(h))


class Fed(Scaled):
    """h is the cell's own; what the cell is given is computed from h too."""

    def forward(self, x: Tensor, *state: Tensor) -> State:
        h, c = self.cell(x + self.k * state[0][..., :3], state)
        return h, c


class Mutual(nn.Module):
    """Each cell reads the h of the other one: the first as it was, the second as it is now, changed in between."""

    parts = 4

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LSTMCell(7, 4), nn.LSTMCell(4, 4)

    def forward(self, x: Tensor, *state: Tensor) -> State:
        h, c, g, d = state
        h, c = self.first(torch.cat((x, g), -1), (h, c))
        h = torch.sin(h)
        g, d = self.second(h * c, (g, d))
        return h, c, 0.8 * g + 0.1 * c, d


class Hyper(nn.Module):
    """The small cell's h scales what the large one reads and gives (after Ha et al. 2017)."""

    parts = 4

    def __init__(self) -> None:
        super().__init__()
        self.small, self.large = nn.LSTMCell(7, 4), nn.LSTMCell(3, 4)
        self.scale, self.shift = nn.Linear(4, 3), nn.Linear(4, 4)

    def forward(self, x: Tensor, *state: Tensor) -> State:
        h, c, g, d = state
        g, d = self.small(torch.cat((x, h), -1), (g, d))
        h, c = self.large(x * self.scale(g), (h, c))
        return h * torch.sigmoid(self.shift(g)), c, g, d


class Loop(nn.Module):
    def __init__(self, step: Any) -> None:
        super().__init__()
        self.step, self.parts = step, step.parts

    def forward(self, x: Tensor) -> Tensor:
        state, out = tuple(x.new_zeros(len(x), 4) for _ in range(self.parts)), []
        for row in x.unbind(1):
            state = self.step(row, *state)
            out.append(state[0])
        return torch.stack(out, 1)


def unrolled(step: Any, x: Tensor) -> tuple[list[State], list[State], list[dict[str, Tensor]], list[Tensor]]:
    """(states, leaves added to them, parameters of each step, losses), T of each."""
    state: State = tuple(torch.zeros(1, 4, dtype=D) for _ in range(step.parts))
    states, leaves, weights, losses = [], [], [], []
    for row in x.unbind(1):
        weights.append({name: p.detach().clone().requires_grad_() for name, p in step.named_parameters()})
        leaves.append(tuple(torch.zeros(1, 4, dtype=D, requires_grad=True) for _ in range(step.parts)))
        made = functional_call(step, weights[-1], (row, *state))
        state = tuple(part + leaf for part, leaf in zip(made, leaves[-1], strict=True))
        states.append(state)
        losses.append(state[0].square().sum())
    return states, leaves, weights, losses


def norms(losses: list[Tensor], leaves: list[list[Tensor]]) -> Tensor:
    """(loss, step): norm of the gradient of one step's loss at one step's leaves."""
    rows = []
    for loss in losses:
        flat = [leaf for step in leaves for leaf in step]
        found = torch.autograd.grad(loss, flat, retain_graph=True, allow_unused=True, materialize_grads=True)
        rows.append(torch.stack([one.norm() for one in found]).view(len(leaves), -1).norm(dim=1))
    return torch.stack(rows)


@pytest.mark.parametrize("kind", [Scaled, Normed, Fed, Mutual, Hyper])
def test_the_path_from_c_to_h_inside_the_cell_counts_once(kind: Any) -> None:
    torch.manual_seed(0)
    step, x = kind().to(D), torch.randn(1, T, 3, dtype=D)
    found, kept, _ = seen(Loop(step), x, quantities=("states", "gradient/lag_map", "bptt"))
    assert not [record for record in kept.records if isinstance(record, Refusal)]
    assert [item.place for item in found] == ["step"]
    states, leaves, weights, losses = unrolled(step, x)
    shown, delta = found[0].states, found[0].delta
    assert delta is not None
    for n in range(step.parts):
        values = torch.cat([state[n] for state in states]).detach()
        (at,) = [at for at in found[0].cell.parts.values() if torch.allclose(shown[1:, 0, at], values, rtol=1e-12)]
        total = torch.autograd.grad(
            sum(losses), [leaf[n] for leaf in leaves], retain_graph=True, materialize_grads=True, allow_unused=True
        )
        torch.testing.assert_close(delta[:, 0, at], torch.cat(total))
    lag_map = torch.tensor(kept.array("step:gradient/lag_map")).nan_to_num()
    truth = norms(losses, [list(leaf) for leaf in leaves])
    torch.testing.assert_close(lag_map.to(D), truth, rtol=1e-5, atol=1e-7)
    for name in (name for name in weights[0] if "weight_hh" in name):
        items = torch.tensor(kept.array(f"step:bptt/step.{name}")).nan_to_num()
        torch.testing.assert_close(items.to(D), norms(losses, [[one[name]] for one in weights]), rtol=1e-5, atol=1e-7)
