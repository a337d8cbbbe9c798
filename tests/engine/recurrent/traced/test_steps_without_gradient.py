"""Steps that run under no_grad: some in the middle of a loop, every second one, the last ones, or a loop of their own.

The reference is the loop unrolled by hand. A state that was computed without a gradient is one that the next step
begins with: later losses have a gradient at it, and nothing flows through it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.nn.functional import linear
from unrolled import State, Tape, compare_with_unrolled

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Log

X, H, T = 3, 4, 12
D = torch.float64


class Silent(nn.Module):
    """h' = tanh(A x + B h); `off`: the steps without a gradient."""

    off: Collection[int] = ()

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(X, H), nn.Linear(H, H)

    def cell(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.a(x) + self.b(h))

    def forward(self, x: Tensor) -> Tensor:
        h, losses = x.new_zeros(len(x), H), []
        for t in range(x.shape[1]):
            with torch.set_grad_enabled(t not in self.off):
                h = self.cell(x[:, t], h)
            losses.append(h.square().sum(-1))
        return torch.stack(losses, 1)


class OnOtherLines(Silent):
    def forward(self, x: Tensor) -> Tensor:
        h, losses = x.new_zeros(len(x), H), []
        for t in range(x.shape[1]):
            if t in self.off:
                with torch.no_grad():
                    h = torch.tanh(self.a(x[:, t]) + self.b(h))
            else:
                h = torch.tanh(self.a(x[:, t]) + self.b(h))
            losses.append(h.square().sum(-1))
        return torch.stack(losses, 1)


STEPS: list[Collection[int]] = [(5, 6), (4,), range(0, T, 2), range(3), (2, 3, 7, 8, 9)]


@pytest.mark.parametrize(
    ("kind", "off"), [*((kind, off) for kind in (Silent, OnOtherLines) for off in STEPS), (Silent, (T - 1,))]
)
def test_gradients_are_those_of_the_run(kind: type[Silent], off: Collection[int]) -> None:
    torch.manual_seed(2)
    model = kind().to(D)
    model.off = off

    def unrolled(tape: Tape, x: Tensor) -> list[Tensor]:
        state: State = (x.new_zeros(H),)
        losses = []
        for t, row in enumerate(x):

            def step(p: Mapping[str, Tensor], before: State, row: Tensor = row) -> State:
                rows = linear(row, p["a.weight"], p["a.bias"])
                return (torch.tanh(rows + linear(before[0], p["b.weight"], p["b.bias"])),)

            state = tape.step(step, state, gradient=t not in off)
            losses.append((state[0].detach() if t in off else state[0]).square().sum())
        return losses

    compare_with_unrolled(model, unrolled, torch.randn(T, X, dtype=D))


class BurnIn(Silent):
    """The first steps are a loop of their own."""

    def forward(self, x: Tensor) -> Tensor:
        h, losses = x.new_zeros(len(x), H), []
        with torch.no_grad():
            for row in x[:, :4].unbind(1):
                h = torch.tanh(self.a(row) + self.b(h))
        for row in x[:, 4:].unbind(1):
            h = torch.tanh(self.a(row) + self.b(h))
            losses.append(h.square().sum(-1))
        return torch.stack([torch.zeros_like(losses[0])] * 4 + losses, 1)


def test_a_burn_in_of_its_own_is_refused_with_the_true_reason() -> None:
    torch.manual_seed(2)
    kept = Kept()
    subject = Subject(model=BurnIn().to(D), kind="vectors", width=X, loss=lambda losses, _: losses)
    perform(
        subject, Batch(torch.randn(1, T, X, dtype=D), torch.tensor([T])), kept,
        RunOptions(only=("states", "bptt", "gradient/state_derivatives")),
    )  # fmt: skip
    reasons = kept.reasons()
    assert not any("no parameter of the model" in one for one in reasons)
    assert any("ran without gradients (torch.no_grad)" in one for one in reasons)


class ReadThroughAView(nn.Module):
    """The state of a fused module, without its axis of layers, is read by a trained layer after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.out = nn.GRU(X, H, batch_first=True), nn.Linear(H, 1)

    def forward(self, x: Tensor) -> Tensor:
        h, losses = x.new_zeros(1, len(x), H), []
        for t in range(x.shape[1]):
            with torch.set_grad_enabled(not 4 <= t < 7):
                _, h = self.rnn(x[:, t : t + 1], h)
                h = 0.9 * h
            losses.append(self.out(h[0])[..., 0].square())
        return torch.stack(losses, 1)


def test_a_state_that_autograd_has_not_followed_is_left_out_everywhere_and_that_is_said() -> None:
    """Of the others the gradient is that of the run with a cut before the steps without one."""
    torch.manual_seed(2)
    model, x, kept = ReadThroughAView().to(D), torch.randn(1, T, X, dtype=D), Kept()
    perform(
        Subject(model=model, kind="vectors", width=X, loss=lambda losses, _: losses), Batch(x, torch.tensor([T])), kept,
        RunOptions(only=("states", "gradients", "gradient/vectors")),
    )  # fmt: skip
    shown, sizes = torch.tensor(kept.array("model:gradient/h")), torch.tensor(kept.array("model:gradient/state_norm"))
    h, states, loss = torch.zeros(1, 1, H, dtype=D), [], torch.zeros((), dtype=D)
    for t in range(T):
        h = 0.9 * model.rnn(x[:, t : t + 1], h)[1]
        h = h.detach().requires_grad_() if 4 <= t < 7 else h
        states.append(h)
        loss = loss + model.out(h[0]).square().sum()
    for t, gradient in enumerate(torch.autograd.grad(loss, states)):
        if 4 <= t < 7:
            assert shown[t].isnan().all() and sizes[t].isnan()
        else:
            torch.testing.assert_close(shown[t].flatten().double(), gradient.flatten(), rtol=1e-6, atol=1e-9)
            torch.testing.assert_close(sizes[t].double(), gradient.norm(), rtol=1e-6, atol=1e-9)
    assert any("autograd has not followed them" in log.text for log in kept.of(Log))
