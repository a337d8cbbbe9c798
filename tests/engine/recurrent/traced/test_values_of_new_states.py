"""Losses that read a value inside a step which is made of a new state: map, items and gradients against autograd.

The reference adds a zero of its own to every new state, the others held fixed, and has parameters of its own at every
step; nothing of the app is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D = torch.float64
IN, H, T = 3, 4, 8
Use = Callable[[str, Tensor], Tensor]
Held = Callable[[Tensor], Tensor]
Step = Callable[..., tuple[Tensor, Tensor, Tensor]]


def head(use: Use, held: Held, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A prediction from the new h, which the memory reads too."""
    h = held(torch.tanh(use("a", torch.cat((x, h, c), -1))))
    said = use("b", h)
    return h, held(0.5 * c + 0.3 * torch.tanh(said)), said.square()


def gate(use: Use, held: Held, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A gate from the new h."""
    h = held(torch.tanh(use("a", torch.cat((x, h, c), -1))))
    keep = torch.sigmoid(use("b", h))
    return h, held(keep * c + (1 - keep) * h), keep


def chain(use: Use, held: Held, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Two values, one made of the other, lead from the new c to h."""
    c = held(0.8 * c + 0.2 * torch.tanh(use("a", torch.cat((x, h, h), -1))))
    one = torch.tanh(use("b", c))
    two = torch.sin(use("b", one))
    return held(one * two), c, one + two.square()


def squashed(use: Use, held: Held, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """tanh(c') of an LSTM."""
    z = use("a", torch.cat((x, h, h), -1))
    c = held(torch.sigmoid(z) * c + torch.tanh(-z))
    shown = torch.tanh(c)
    return held(torch.sigmoid(2 * z) * shown), c, shown.square()


class Model(nn.Module):
    def __init__(self, step: Step, every: int) -> None:
        super().__init__()
        self.a, self.b, self.step, self.every = nn.Linear(IN + 2 * H, H), nn.Linear(H, H), step, every

    def use(self, name: str, x: Tensor) -> Tensor:
        return self.a(x) if name == "a" else self.b(x)

    def forward(self, x: Tensor) -> Tensor:
        h, c = x.new_zeros(len(x), H), x.new_zeros(len(x), H)
        out = []
        for t, row in enumerate(x.unbind(1)):
            h, c, value = self.step(self.use, lambda one: one, row, h, c)
            out.append(self.loss(h, c, value, t))
        return torch.stack(out, 1)

    def loss(self, h: Tensor, c: Tensor, value: Tensor, t: int) -> Tensor:
        found = 0.2 * h.square().sum(-1) + 0.1 * c.sin().sum(-1)
        return found + value.sum(-1) if t % self.every == 0 else found


def reference(model: Model, x: Tensor) -> SimpleNamespace:
    h, c = x.new_zeros(1, H), x.new_zeros(1, H)
    losses, zeros, weights = [], [], []
    for t in range(T):
        own = {name: value.detach().clone().requires_grad_() for name, value in model.named_parameters()}
        made: list[Tensor] = []

        def use(name: str, given: Tensor, own: dict[str, Tensor] = own) -> Tensor:
            return nn.functional.linear(given, own[f"{name}.weight"], own[f"{name}.bias"])

        def held(value: Tensor, made: list[Tensor] = made) -> Tensor:
            made.append(value)
            return value

        model.step(use, held, x[t : t + 1], h, c)
        added = [torch.zeros_like(one, requires_grad=True) for one in made]
        new = iter([one + zero for one, zero in zip(made, added, strict=True)])

        def given(_value: Tensor, new: Iterator[Tensor] = new) -> Tensor:
            return next(new)

        h, c, value = model.step(use, given, x[t : t + 1], h, c)
        losses.append(model.loss(h, c, value, t))
        zeros.append(added)
        weights.append(own)
    rows = np.zeros((T, T))
    items = {name: np.zeros((T, T)) for name, _ in model.named_parameters()}
    wanted = [zero for pair in zeros for zero in pair]
    for t, loss in enumerate(losses):
        found = torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
        both = [torch.zeros(1, H, dtype=D) if one is None else one for one in found]
        rows[t] = [float(torch.cat(both[2 * k : 2 * k + 2]).norm()) for k in range(T)]
        for name, table in items.items():
            got = torch.autograd.grad(loss, [own[name] for own in weights], retain_graph=True, allow_unused=True)
            table[t] = [0.0 if one is None else float(one.norm()) for one in got]
    total = torch.autograd.grad(sum(losses), wanted)
    return SimpleNamespace(rows=rows, items=items, total=[float(one.norm()) for one in total])


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("step", [head, gate, chain, squashed])
def test_map_items_and_gradients_have_the_path_through_the_value(step: Step, every: int) -> None:
    torch.manual_seed(3)
    model, x, sink = Model(step, every).to(D), torch.randn(1, T, IN, dtype=D), Kept()
    subject = Subject(model, loss=lambda out, batch: out)
    perform(subject, Batch(x, torch.tensor([T]), ()), sink, RunOptions(also=("bptt",)))
    truth = reference(model, x[0])
    order = (0, 1) if step in (head, gate) else (1, 0)  # in which h and c are made
    for name, n in zip(("state_norm", "cell_norm"), order, strict=True):
        np.testing.assert_allclose(sink.array(f"model:gradient/{name}"), truth.total[n::2], rtol=1e-9, atol=1e-12)
    shown = np.nan_to_num(sink.array("model:gradient/lag_map"))
    np.testing.assert_allclose(shown, truth.rows, rtol=1e-7, atol=1e-12)
    checked = [name for name in truth.items if f"model:bptt/{name}" in sink.names()]
    assert "a.weight" in checked and (step is squashed or "b.weight" in checked)
    for name in checked:
        items = np.nan_to_num(sink.array(f"model:bptt/{name}"))
        np.testing.assert_allclose(items, truth.items[name], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("every", [1, 3])
def test_a_value_that_the_loss_reads_at_some_steps_only(every: int) -> None:
    """At the others nothing depends on it, and the program of such a step is not that of the steps that read it."""

    class Halved(Model):
        def forward(self, x: Tensor) -> Tensor:
            h, out = x.new_zeros(len(x), H), []
            for t, row in enumerate(x.unbind(1)):
                said = torch.tanh(self.a(torch.cat((row, h, h), -1)))
                h = 0.5 * said
                out.append(h.square().sum(-1) + (said.sum(-1) if t % self.every == every - 1 else 0))
            return torch.stack(out, 1)

    torch.manual_seed(4)
    model, x, sink = Halved(head, every).to(D), torch.randn(1, T, IN, dtype=D), Kept()
    subject = Subject(model, loss=lambda out, batch: out)
    perform(subject, Batch(x, torch.tensor([T]), ()), sink, RunOptions(also=("bptt",)))
    (whole,) = torch.autograd.grad(model(x).sum(), [model.a.weight])
    assert sink.scalar("model:bptt/a.weight/total_norm") == pytest.approx(float(whole.norm()), rel=1e-9)
