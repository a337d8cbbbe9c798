"""Observing somebody's own training step: nothing of it changes, and gradients inside come from its own backward pass."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import analyse, observe
from inspector.engine.registries import PROBES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace


class ByHand(nn.Module):
    """A plain recurrence in a loop of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(len(x), 4)
        out = []
        for t in range(x.shape[1]):
            h = torch.tanh(self.inner(x[:, t]) + self.outer(h))
            out.append(h)
        return torch.stack(out, 1)


class Fused(nn.Module):
    """The same by torch's module."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.rnn = kind(3, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.rnn(x)[0]
        return out


MODELS: dict[str, Callable[[], nn.Module]] = {
    "rnn": lambda: Fused(nn.RNN), "lstm": lambda: Fused(nn.LSTM), "by hand": ByHand,
}  # fmt: skip


def prepared(make: Callable[[], nn.Module]) -> tuple[nn.Module, Tensor, Trace, Emitter, Kept]:
    torch.manual_seed(3)
    model, x, kept = make(), torch.randn(2, 6, 3), Kept()
    subject = Subject(model=model, kind="vectors", width=3, loss=lambda output, batch: output.square().sum(-1))
    return model, x, Trace(subject, Batch(x, torch.tensor([6, 6]))), Emitter(kept), kept


@pytest.mark.parametrize("kind", MODELS)
def test_gradients_of_states_come_from_the_callers_own_backward_pass(kind: str) -> None:
    model, x, trace, emit, kept = prepared(MODELS[kind])
    watched = observe(model, trace, emit, [PROBES[key]() for key in PROBES])
    with watched:
        out = model(x)
        out.square().sum().backward()
    watched.finish()
    analyse(trace, emit, ["gradients"])
    shown = kept.array(f"{trace.recurrences[0].place}:gradient/state_norm")
    state = out.detach().double()
    plain: nn.Module = MODELS[kind]().double()
    plain.load_state_dict(model.state_dict())
    expected = state_gradients(plain, x.double(), kind)
    assert state.shape[1] == len(shown) == 6
    np.testing.assert_allclose(shown, expected, rtol=2e-5)


def state_gradients(model: nn.Module, x: Tensor, kind: str) -> np.ndarray:
    """‖∂L/∂h_t‖ of the first sample by a plain loop whose every state is a leaf of a longer graph."""
    if isinstance(model, ByHand):
        w_ih, b_ih, w_hh, b_hh = model.inner.weight, model.inner.bias, model.outer.weight, model.outer.bias
    else:
        rnn = model.rnn
        assert isinstance(rnn, nn.RNNBase)
        w_ih, b_ih, w_hh, b_hh = rnn.weight_ih_l0, rnn.bias_ih_l0, rnn.weight_hh_l0, rnn.bias_hh_l0
    h = c = x.new_zeros(len(x), 4)
    states = []
    for t in range(x.shape[1]):
        inside = x[:, t] @ w_ih.T + b_ih + h @ w_hh.T + b_hh
        if kind == "lstm":
            i, f, g, o = inside.chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        else:
            h = torch.tanh(inside)
        h.retain_grad()
        states.append(h)
    torch.stack(states, 1).square().sum().backward()
    norms = []
    for state in states:
        assert state.grad is not None
        norms.append(float(state.grad[0].norm()))
    return np.array(norms)


@pytest.mark.parametrize("kind", MODELS)
def test_nothing_of_the_callers_changes(kind: str) -> None:
    """Outputs, gradients, random state, modes and hooks are those of the same step without observing."""
    plain, x, *_ = prepared(MODELS[kind])
    torch.manual_seed(9)
    random.seed(9)
    np.random.seed(9)
    expected = plain.train()(x)
    expected.square().sum().backward()
    after = (torch.get_rng_state(), random.getstate(), np.random.get_state()[1])

    model, x, trace, emit, _ = prepared(MODELS[kind])
    torch.manual_seed(9)
    random.seed(9)
    np.random.seed(9)
    watched = observe(model.train(), trace, emit, [PROBES[key]() for key in PROBES])
    with watched:
        out = model(x)
        out.square().sum().backward()
    assert torch.equal(out, expected) and model.training
    for (name, a), b in zip(model.named_parameters(), plain.parameters(), strict=True):
        assert a.grad is not None and b.grad is not None and torch.equal(a.grad, b.grad), name
    assert torch.equal(torch.get_rng_state(), after[0]) and random.getstate() == after[1]
    assert np.array_equal(np.random.get_state()[1], after[2])
    for module in model.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks and not module._backward_hooks
    watched.finish()
    assert trace.recurrences


def test_gradients_of_two_backward_passes_are_their_sum() -> None:
    model, x, trace, emit, kept = prepared(MODELS["rnn"])
    watched = observe(model, trace, emit, [PROBES["fused-rnn"]()])
    with watched:
        out = model(x)
        out[:, :3].square().sum().backward(retain_graph=True)
        out[:, 3:].square().sum().backward()
    watched.finish()
    analyse(trace, emit, ["gradients"])
    whole = kept.array("rnn.l0:gradient/state_norm")
    plain: nn.Module = MODELS["rnn"]().double()
    plain.load_state_dict(model.state_dict())
    np.testing.assert_allclose(whole, state_gradients(plain, x.double(), "rnn"), rtol=2e-5)


def test_a_model_that_raises_is_left_without_hooks() -> None:
    model, x, trace, emit, _ = prepared(MODELS["rnn"])
    watched = observe(model, trace, emit, [PROBES[key]() for key in PROBES])
    with pytest.raises(RuntimeError), watched:
        model(x[..., :2])
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
