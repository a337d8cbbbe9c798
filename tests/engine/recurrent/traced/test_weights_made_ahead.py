"""Weights that the model computes before the steps read them (dropout of a weight, a normalised one): their items.

The reference is a plain float64 loop with the same masks, in which every step reads a copy of its own of each weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.nn import functional

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D = torch.float64
IN, H, T = 3, 4, 6


class Tanh(nn.Module):
    """h_t = tanh(V x_t + W' h_{t−1} + b), W' = weight(W); `shown`: the name of its items."""

    shown = "weight"
    used: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.W, self.V = nn.Parameter(torch.randn(H, H)), nn.Parameter(torch.randn(H, IN))
        self.b = nn.Parameter(torch.randn(H))

    def weight(self) -> Tensor:
        return functional.dropout(self.W, 0.5, self.training)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        weight = self.weight()
        self.used = weight.detach()
        for row in x.unbind(1):
            h = torch.tanh(functional.linear(row, self.V) + functional.linear(h, weight) + self.b)
            out.append(h)
        return torch.stack(out, 1)


class Products(Tanh):
    """Without F.linear."""

    shown = "dropped"

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        dropped = self.weight()
        self.used = dropped.detach()
        for row in x.unbind(1):
            h = torch.tanh(row @ self.V.T + h @ dropped.T + self.b)
            out.append(h)
        return torch.stack(out, 1)


class Rows(Tanh):
    shown = "rows"

    def weight(self) -> Tensor:
        rows = self.W / self.W.norm(dim=1, keepdim=True)
        return rows


class Antisymmetric(Tanh):
    shown = "W.sub"

    def weight(self) -> Tensor:
        W = self.W - self.W.T
        return W


def run(model: nn.Module, x: Tensor) -> Kept:
    kept = Kept()
    subject = Subject(model=model, kind="vectors", width=IN, loss=lambda out, batch: out.square().sum(-1))
    perform(subject, Batch(x, torch.tensor([T] * len(x))), kept, RunOptions(only=("bptt", "truncation")))
    return kept


def norms(losses: list[Tensor], own: list[Tensor]) -> Any:
    """‖∂ℓ_t/∂θ_k‖ (t, k)."""
    return torch.stack([
        torch.stack(torch.autograd.grad(one, own, retain_graph=True, allow_unused=True, materialize_grads=True))
        for one in losses
    ]).flatten(2).norm(dim=2)  # fmt: skip


@pytest.mark.parametrize("kind", [Tanh, Products, Rows, Antisymmetric], ids=lambda kind: kind.__name__)
def test_a_weight_that_is_made_before_the_loop_has_items(kind: type[Tanh]) -> None:
    torch.manual_seed(2)
    model, x = kind().to(D).train(), torch.randn(2, T, IN, dtype=D)
    kept = run(model, x)
    assert not kept.reasons()
    own = {
        name: [value.detach().clone().requires_grad_() for _ in range(T)]
        for name, value in ((model.shown, model.used), ("V", model.V), ("b", model.b))
    }
    h, losses = torch.zeros(H, dtype=D), []
    for t in range(T):
        h = torch.tanh(own["V"][t] @ x[0, t] + own[model.shown][t] @ h + own["b"][t])
        losses.append(h.square().sum())
    for name, steps in own.items():
        np.testing.assert_allclose(kept.array(f"model:bptt/{name}"), norms(losses, steps), rtol=1e-9, atol=1e-13)
    assert {name.split("/")[1] for name in kept.names() if ":bptt/" in name} == set(own)


class DroppedCell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.RNNCell(IN, H)
        self.raw = nn.Parameter(self.cell.weight_hh.detach().clone())
        del self.cell.weight_hh

    def forward(self, x: Tensor) -> Tensor:
        self.cell.weight_hh = functional.dropout(self.raw, 0.5, self.training)
        h, out = x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            h = self.cell(row, h)
            out.append(h)
        return torch.stack(out, 1)

    @property
    def weights(self) -> dict[str, Tensor]:
        cell = self.cell
        return {"weight_hh": cell.weight_hh, "weight_ih": cell.weight_ih, "bias": cell.bias_ih + cell.bias_hh}


class DroppedModule(nn.Module):
    """As in AWD-LSTM: the fused module runs with a dropped weight, and a bias that is computed, too."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(IN, H, batch_first=True)
        self.raw = nn.Parameter(self.rnn.weight_hh_l0.detach().clone())
        self.rnn.flatten_parameters = lambda: None  # type: ignore[method-assign]
        del self.rnn.weight_hh_l0
        self.shift = nn.Parameter(torch.randn(H))
        del self.rnn.bias_hh_l0

    def forward(self, x: Tensor) -> Tensor:
        self.rnn.weight_hh_l0 = functional.dropout(self.raw, 0.5, self.training)
        self.rnn.bias_hh_l0 = self.shift.sin()
        self.rnn._flat_weights = [getattr(self.rnn, name) for name in self.rnn._flat_weights_names]
        out: Tensor = self.rnn(x)[0]
        return out

    @property
    def weights(self) -> dict[str, Tensor]:
        rnn = self.rnn
        bias = rnn.bias_ih_l0 + rnn.bias_hh_l0
        return {"weight_hh": rnn.weight_hh_l0, "weight_ih": rnn.weight_ih_l0, "bias": bias}


@pytest.mark.parametrize("kind", [DroppedCell, DroppedModule])
def test_a_torch_module_with_a_dropped_weight_has_items(kind: type[DroppedCell | DroppedModule]) -> None:
    torch.manual_seed(3)
    model, x = kind().to(D).train(), torch.randn(2, T, IN, dtype=D)
    kept = run(model, x)
    assert not kept.reasons()
    (place,) = {name.partition(":")[0] for name in kept.names()}
    own = {name: [one.detach().clone().requires_grad_() for _ in range(T)] for name, one in model.weights.items()}
    h, losses = torch.zeros(H, dtype=D), []
    for t in range(T):
        h = torch.tanh(own["weight_ih"][t] @ x[0, t] + own["weight_hh"][t] @ h + own["bias"][t])
        losses.append(h.square().sum())
    for name, steps in own.items():
        np.testing.assert_allclose(kept.array(f"{place}:bptt/{name}"), norms(losses, steps), rtol=1e-9, atol=1e-13)
