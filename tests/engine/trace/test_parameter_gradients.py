"""The gradients of the parameters are stored once, and computed only where something that is asked for needs them."""

from __future__ import annotations

import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.trace.trace import Trace

D, STEPS = torch.float64, 6


class Net(nn.Module):
    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.rnn, self.head = kind(3, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        if isinstance(self.rnn, nn.RNNBase):
            return self.head(self.rnn(x.transpose(0, 1))[0].transpose(0, 1))
        h, out = x.new_zeros(len(x), 4), []
        for row in x.unbind(1):
            h = self.rnn(row, h)
            out.append(self.head(h))
        return torch.stack(out, 1)


class Own(nn.Module):
    """A step written by hand."""

    def __init__(self, given: int, units: int) -> None:
        super().__init__()
        self.w, self.u = nn.Linear(given, units), nn.Linear(units, units)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.w(x) + self.u(h))


def run(kind: type[nn.Module], *only: str) -> tuple[Trace, list[str]]:
    """The trace, and the parameters of which the backward pass computed a gradient."""
    torch.manual_seed(0)
    net, reached = Net(kind).to(D), []
    for name, parameter in net.named_parameters():
        parameter.register_hook(lambda _, name=name: reached.append(name))  # type: ignore[misc]
    subject = Subject(model=net, kind="vectors", width=3, loss=lambda out, _batch: out.square().sum(-1))
    x = torch.randn(1, STEPS, 3, dtype=D)
    return perform(subject, Batch(x, torch.tensor([STEPS])), Kept(), RunOptions(only=only)), reached


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRUCell, Own])
def test_they_are_not_computed_where_nothing_needs_them(kind: type[nn.Module]) -> None:
    trace, reached = run(kind, "states", "gradients", "gradient/lag_map")
    assert trace.recurrences[0].delta is not None and not reached
    assert trace.parameter_gradients.every == {}


@pytest.mark.parametrize("key", ["clipping", "bptt", "truncation"])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRUCell, Own])
def test_they_are_autograds_where_something_does(kind: type[nn.Module], key: str) -> None:
    trace, reached = run(kind, key)
    net = trace.subject.model
    net.zero_grad()
    net(trace.batch.inputs).square().sum().backward()
    found = trace.parameter_gradients.every
    assert set(reached) == set(found) == {name for name, _ in net.named_parameters()}
    for name, parameter in net.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad)
        own = trace.parameter_gradients.of(parameter)
        assert own is not None and own.data_ptr() == found[name].data_ptr(), "stored once"
