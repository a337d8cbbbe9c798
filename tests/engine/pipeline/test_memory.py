"""A run whose trace nobody keeps leaves no tensor behind: what autograd's graph and its hooks hold is let go."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.errors import CancelledError, InputError
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, observe, perform
from inspector.engine.registries import PROBES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace


class ByHand(nn.Module):
    """A loop of its own; told to, it raises what a run passes on."""

    fault: Exception | None = None

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(len(x), 4)
        out = []
        for t in range(x.shape[1]):
            h = torch.tanh(self.inner(x[:, t]) + self.outer(h))
            out.append(h)
        if self.fault is not None:
            raise self.fault
        return torch.stack(out, 1)


class Fused(nn.Module):
    fault: Exception | None = None

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.rnn(x)[0]
        if self.fault is not None:
            raise self.fault
        return out


def tensors() -> int:
    """How many there are, garbage not counted."""
    gc.collect()
    return sum(type(thing) is torch.Tensor for thing in gc.get_objects())


def ran(subject: Subject, batch: Batch) -> None:
    perform(subject, batch, Kept(), RunOptions(only=("states", "gradients", "jacobian/frobenius_norm")))


def refused(subject: Subject, batch: Batch) -> None:
    subject.model.fault = InputError("no")  # type: ignore[assignment]
    with pytest.raises(InputError):
        ran(subject, batch)
    subject.model.fault = None  # type: ignore[assignment]


def cancelled(subject: Subject, batch: Batch) -> None:
    asked = iter(range(10**6))
    with pytest.raises(CancelledError):
        perform(subject, batch, Kept(), RunOptions(cancelled=lambda: next(asked) > 2))


def left_by_the_caller(subject: Subject, batch: Batch) -> None:
    """The program is ended within somebody's own loop."""
    probes = [PROBES[key]() for key in PROBES]
    with pytest.raises(KeyboardInterrupt), observe(subject.model, Trace(subject, batch), Emitter(Kept()), probes):
        subject.model(batch.inputs)
        raise KeyboardInterrupt


@pytest.mark.parametrize("how", [ran, refused, cancelled, left_by_the_caller], ids=lambda how: how.__name__)
@pytest.mark.parametrize("make", [ByHand, Fused])
def test_nothing_is_left_of_a_run(make: Callable[[], nn.Module], how: Callable[[Subject, Batch], None]) -> None:
    subject = Subject(model=make(), kind="vectors", width=3, loss=lambda output, batch: output.square().sum(-1))
    batch = Batch(torch.randn(2, 6, 3), torch.tensor([6, 6]))
    how(subject, batch)  # what is made once and kept for all runs
    before = tensors()
    how(subject, batch)
    assert tensors() == before
