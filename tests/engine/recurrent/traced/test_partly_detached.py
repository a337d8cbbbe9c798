"""Steps that detach a part of their state: gradients are those of autograd, and Jacobians say what they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Channel

D = torch.float64
IN, H, T = 3, 4, 7
Step = Callable[[Tensor, Tensor], Tensor]


def half(made: Tensor, h: Tensor) -> Tensor:
    return made + 0.5 * h + 0.5 * h.detach()


def halved(made: Tensor, h: Tensor) -> Tensor:
    return 0.5 * made + 0.5 * made.detach()


def rounded(made: Tensor, h: Tensor) -> Tensor:
    """A straight-through estimator."""
    return made + (torch.round(4 * made) / 4 - made).detach()


def kept_gate(made: Tensor, h: Tensor) -> Tensor:
    z = torch.sigmoid(made)
    return z.detach() * h + (1 - z) * made


class Model(nn.Module):
    def __init__(self, step: Step) -> None:
        super().__init__()
        self.step, self.l = step, nn.Linear(IN + H, H)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), []
        for row in x.unbind(1):
            h = self.step(torch.tanh(self.l(torch.cat((row, h), -1))), h)
            out.append(h.square().sum(-1))
        return torch.stack(out, 1)


@pytest.mark.parametrize("step", [half, halved, rounded, kept_gate])
def test_gradients_are_autograds_and_jacobians_say_what_they_are(step: Step) -> None:
    torch.manual_seed(5)
    model, x, sink = Model(step).to(D), torch.randn(1, T, IN, dtype=D), Kept()
    perform(Subject(model, loss=lambda o, b: o), Batch(x, torch.tensor([T]), ()), sink, RunOptions(also=("bptt",)))
    weight, bias = model.l.weight.detach(), model.l.bias.detach()
    h, states, weights, losses = x.new_zeros(1, H), [], [], []
    for row in x[0]:
        weights.append(weight.clone().requires_grad_())
        made = torch.tanh(torch.cat((row[None], h), -1) @ weights[-1].T + bias)
        states.append(torch.zeros(1, H, dtype=D, requires_grad=True))
        h = step(made, h) + states[-1]
        losses.append(h.square().sum())
    total = torch.autograd.grad(sum(losses), states, retain_graph=True)
    np.testing.assert_allclose(sink.array("model:gradient/state_norm"), [float(g.norm()) for g in total], rtol=1e-9)
    for name, wanted in (("gradient/lag_map", states), ("bptt/l.weight", weights)):
        rows = []
        for loss in losses:
            found = torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
            rows.append([0.0 if g is None else float(g.norm()) for g in found])
        np.testing.assert_allclose(np.nan_to_num(sink.array(f"model:{name}")), rows, rtol=1e-8, atol=1e-14)
    said = [refusal.reason for refusal in sink.refusals() if refusal.channel == "model:gradient/detached_parts"]
    assert len(said) == 1 and "do not say how the gradient flows" in said[0]
    for signal in ("frobenius_norm", "spectral_norm", "spectral_radius", "singular_values", "eigenvalues", "lag"):
        assert sink.channel(f"model:jacobian/{signal}").method.count("detaches") == 1, signal
    assert "detaches" in sink.channel("model:lyapunov/exponents").method
    assert not any("detaches" in sink.channel(f"model:{name}").method for name in ("h", "gradient/state_norm"))


def test_a_state_that_is_not_detached_says_nothing() -> None:
    sink = Kept()
    model, x = Model(lambda made, h: made + 0.5 * h).to(D), torch.randn(1, T, IN, dtype=D)
    perform(Subject(model, loss=lambda o, b: o), Batch(x, torch.tensor([T]), ()), sink, RunOptions())
    assert not any("detached_parts" in refusal.channel for refusal in sink.refusals())
    assert not any("detaches" in channel.method for channel in sink.of(Channel))
