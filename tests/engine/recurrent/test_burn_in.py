"""A fused module that is first run without gradients (burn-in) and then with them, against a loop over torch's cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D = torch.float64
IN, H, T = 3, 4, 12
KINDS: dict[str, tuple[type[nn.RNNBase], Any]] = {
    "rnn": (nn.RNN, nn.RNNCell), "gru": (nn.GRU, nn.GRUCell), "lstm": (nn.LSTM, nn.LSTMCell),
}  # fmt: skip


class BurnIn(nn.Module):
    """`spans`: (steps, whether autograd is on) of the calls, one after the other."""

    def __init__(self, kind: str, spans: tuple[tuple[int, bool], ...]) -> None:
        super().__init__()
        self.rnn, self.spans = KINDS[kind][0](IN, H, batch_first=True), spans

    def forward(self, x: Tensor) -> Tensor:
        state, out, start = None, [], 0
        for steps, followed in self.spans:
            with torch.set_grad_enabled(followed):
                y, state = self.rnn(x[:, start : start + steps], state)
            out.append(y)
            start += steps
        return torch.cat(out, 1)


def norms(model: BurnIn, kind: str, x: Tensor) -> np.ndarray:
    """‖∂L/∂h_t‖, 0 where autograd was off."""
    cell = KINDS[kind][1](IN, H).double()
    for name, value in cell.named_parameters():
        value.data.copy_(getattr(model.rnn, f"{name}_l0"))
    followed = [on for steps, on in model.spans for _ in range(steps)]
    state: Any = (x.new_zeros(1, H), x.new_zeros(1, H)) if kind == "lstm" else x.new_zeros(1, H)
    added, total = [], x.new_zeros(())
    for t in range(T):
        with torch.set_grad_enabled(followed[t]):
            state = cell(x[None, t], state)
        added.append(torch.zeros(1, H, dtype=D, requires_grad=True))
        if followed[t]:
            state = (state[0] + added[t], state[1]) if kind == "lstm" else state + added[t]
            h = state[0] if kind == "lstm" else state
            total = total + h.square().sum()
    found = torch.autograd.grad(total, added, allow_unused=True, materialize_grads=True)
    return torch.stack(found).flatten(1).norm(dim=1).numpy()


@pytest.mark.parametrize("spans", [
    ((4, False), (8, True)), ((4, True), (4, False), (4, True)), ((7, False), (3, True), (2, True)),
    ((2, False), (3, False), (7, True)),
])  # fmt: skip
@pytest.mark.parametrize("kind", list(KINDS))
def test_the_gradient_after_a_burn_in_belongs_to_the_steps_after_it(
    kind: str, spans: tuple[tuple[int, bool], ...]
) -> None:
    torch.manual_seed(0)
    model, x, kept = BurnIn(kind, spans).double(), torch.randn(T, IN, dtype=D), Kept()

    def loss(out: Tensor, batch: Batch) -> Tensor:
        on = torch.tensor([on for steps, on in spans for _ in range(steps)])
        return torch.where(on, out.square().sum(-1), torch.nan)

    subject = Subject(model=model, kind="vectors", width=IN, loss=loss)
    perform(subject, Batch(x[None], torch.tensor([T])), kept, RunOptions(only=("gradients",)))
    shown = kept.array("rnn.l0:gradient/state_norm")
    expected = norms(model, kind, x)
    known = ~np.isnan(shown)
    assert known[expected > 0].all()
    np.testing.assert_allclose(shown[known], expected[known], rtol=1e-9, atol=1e-12)
