"""Gradients of parameters by module against backward() on the user's own model."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.quantities.gradient.depth_parameters import owner
from inspector.records import Channel, Page, Refusal


class Deep(nn.Module):
    """Defined in another order than it runs in; the last module is never used."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 2)
        self.rnn = nn.GRU(3, 4, 2, batch_first=True)
        self.first = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
        self.unused = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.rnn(torch.relu(self.first(x)))[0])
        return out


def loss(out: Tensor, batch: Batch) -> Tensor:
    real = torch.arange(out.shape[1]) < batch.lengths[:, None]
    return torch.where(real, out.square().sum(-1), torch.nan)


def test_every_module_equals_backward_in_the_order_in_which_it_runs() -> None:
    torch.manual_seed(0)
    model = Deep().double().eval()
    batch = Batch(torch.randn(3, 7, 3, dtype=torch.float64), torch.tensor([7, 5, 1]))
    kept = Kept()
    perform(
        Subject(model=model, kind="vectors", width=3, loss=loss), batch, kept, RunOptions(only=("depth/parameters",))
    )
    assert all(parameter.grad is None for parameter in model.parameters())
    other = copy.deepcopy(model)
    loss(other(batch.inputs), batch).nansum().backward()
    expected: dict[str, list[Tensor]] = {"first": [], "rnn.l0": [], "rnn.l1": [], "head": [], "unused": []}
    for name, value in other.named_parameters():
        layer = f".l{name[-1]}" if name.startswith("rnn") else ""
        grad = value.grad if value.grad is not None else torch.zeros_like(value)
        expected[name.split(".")[0] + layer].append(grad.flatten())
    channel = next(r for r in kept.records if isinstance(r, Channel))
    assert channel.labels["module"] == tuple(expected)
    rms, norm = next(r.array for r in kept.records if isinstance(r, Page))
    flat = [torch.cat(rows) for rows in expected.values()]
    np.testing.assert_allclose(norm, [float(row.norm()) for row in flat], rtol=1e-9)
    np.testing.assert_allclose(rms, [float(row.norm()) / math.sqrt(len(row)) for row in flat], rtol=1e-9)


def test_frozen_models_are_refused_in_a_sentence() -> None:
    model = Deep().requires_grad_(False)
    kept = Kept()
    batch = Batch(torch.randn(1, 4, 3), torch.tensor([4]))
    perform(
        Subject(model=model, kind="vectors", width=3, loss=loss), batch, kept, RunOptions(only=("depth/parameters",))
    )
    assert any("No parameter is connected" in r.reason for r in kept.records if isinstance(r, Refusal))


def test_a_loss_over_other_steps_than_the_input_has() -> None:
    """An answer with steps of its own (an encoder and decoder): the gradient is that of its losses."""
    torch.manual_seed(1)
    model = Deep().double().eval()
    batch = Batch(torch.randn(1, 7, 3, dtype=torch.float64), torch.tensor([7]))
    kept = Kept()
    subject = Subject(
        model=model, kind="vectors", width=3, loss=lambda out, _: out[:, -2:].square().sum(-1),
        answer=lambda out, _: torch.zeros(len(out), 2, dtype=torch.long),
    )  # fmt: skip
    perform(subject, batch, kept, RunOptions(only=("depth/parameters",)))
    other = copy.deepcopy(model)
    other(batch.inputs)[:, -2:].square().sum().backward()
    _, norm = next(r.array for r in kept.records if isinstance(r, Page))
    expected = torch.cat([p.grad.flatten() for p in other.head.parameters()]).norm()
    channel = next(r for r in kept.records if isinstance(r, Channel))
    np.testing.assert_allclose(norm[channel.labels["module"].index("head")], float(expected), rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("weight", ("", "")), ("rnn.weight_hh_l1_reverse", ("rnn", "l1")), ("a.b.bias", ("a.b", "")),
        ("rnn.parametrizations.weight_hh_l0.original0", ("rnn", "l0")),
    ],
)  # fmt: skip
def test_whose_a_parameter_is(name: str, place: tuple[str, str]) -> None:
    assert owner(name) == place
