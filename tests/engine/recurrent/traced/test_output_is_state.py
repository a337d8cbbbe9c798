"""Fused modules called step by step in a hand-written loop whose loss reads the output y: it is the state h_n.

The reference is a loop over torch's own cells that adds a zero of its own to every new state; nothing of the app is in
it.
"""

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
IN, H, T = 3, 4, 8
KINDS: dict[str, tuple[type[nn.RNNBase], Any]] = {
    "rnn": (nn.RNN, nn.RNNCell), "gru": (nn.GRU, nn.GRUCell), "lstm": (nn.LSTM, nn.LSTMCell),
}  # fmt: skip
READS = ("y", "h", "both", "bare")


class Masked(nn.Module):
    """The state is multiplied by a mask before the call (episodes that end); `read`: what the loss reads.

    `bare`: the loop carries the state of the one layer without its axis of layers.
    """

    def __init__(self, kind: str, layers: int, batch_first: bool, read: str) -> None:
        super().__init__()
        self.rnn = KINDS[kind][0](IN, H, layers, batch_first=batch_first)
        self.kind, self.read = kind, read

    def forward(self, x: Tensor) -> Tensor:
        layers, axis = self.rnn.num_layers, 1 if self.rnn.batch_first else 0
        zero = x.new_zeros(*((len(x), H) if self.read == "bare" else (layers, len(x), H)))
        state: Any = (zero, zero) if self.kind == "lstm" else zero
        out = []
        for row in x.unbind(1):
            keep = (row[:, 0] < 1).to(x.dtype)[:, None]
            parts = [part * keep for part in (state if self.kind == "lstm" else (state,))]
            parts = [part[None] for part in parts] if self.read == "bare" else parts
            y, state = self.rnn(row.unsqueeze(axis), tuple(parts) if self.kind == "lstm" else parts[0])
            if self.read == "bare":
                state = tuple(part[0] for part in state) if self.kind == "lstm" else state[0]
            h = state[0] if self.kind == "lstm" else state
            top = h if self.read == "bare" else h[-1]
            seen = y.squeeze(axis)
            value = {"y": seen.square(), "h": top.square(), "both": seen.sin() + top.square(), "bare": seen.square()}
            out.append(value[self.read].sum(-1))
        return torch.stack(out, 1)


def reference(model: Masked, x: Tensor) -> tuple[Tensor, Tensor]:
    """(∂L/∂h_t of the first sequence (t, layers · h), ‖∂ℓ_t/∂s_k‖ over all parts of the state (t, t))."""
    lstm, layers = model.kind == "lstm", model.rnn.num_layers
    cells = []
    for n in range(layers):
        cell = KINDS[model.kind][1](IN if n == 0 else H, H).double()
        for name, value in cell.named_parameters():
            value.data.copy_(getattr(model.rnn, f"{name}_l{n}"))
        cells.append(cell)
    states = [[x.new_zeros(1, H)] * (2 if lstm else 1) for _ in cells]
    added: list[Tensor] = []
    losses = []
    for row in x[0]:
        keep = float(row[0] < 1)
        below = row[None]
        for n, cell in enumerate(cells):
            given = [part * keep for part in states[n]]
            made = cell(below, tuple(given) if lstm else given[0])
            below = made[0] if lstm else made
            states[n] = list(made) if lstm else [made]
        for n in range(layers):  # the state after the step: what the step computed from it within is not changed
            for k, part in enumerate(states[n]):
                added.append(torch.zeros_like(part, requires_grad=True))
                states[n][k] = part + added[-1]
        top = states[-1][0]
        losses.append((top.sin() + top.square() if model.read == "both" else top.square()).sum())
    width = layers * (2 if lstm else 1)
    rows = torch.stack([
        torch.cat(torch.autograd.grad(one, added, retain_graph=True, allow_unused=True, materialize_grads=True))
        for one in losses
    ]).view(T, T, width, H)  # fmt: skip
    hidden = rows[:, :, :: 2 if lstm else 1].flatten(2)
    return hidden.sum(0), rows.flatten(2).norm(dim=2)


CASES = [(layers, first, read) for layers in (1, 2) for first in (True, False) for read in READS
         if read != "bare" or layers == 1]  # fmt: skip


@pytest.mark.parametrize(("layers", "first", "read"), CASES)
@pytest.mark.parametrize("kind", list(KINDS))
def test_what_reads_the_output_reads_the_state(kind: str, layers: int, first: bool, read: str) -> None:
    torch.manual_seed(5)
    model, x, kept = Masked(kind, layers, first, read).double(), torch.randn(2, T, IN, dtype=D), Kept()
    subject = Subject(model=model, kind="vectors", width=IN, loss=lambda out, batch: out)
    keys = ("gradients", "gradient/vectors", "gradient/lag_map")
    perform(subject, Batch(x, torch.tensor([T, T])), kept, RunOptions(only=keys))
    total, by_loss = reference(model, x)
    place = next(name.partition(":")[0] for name in kept.names() if name.endswith("gradient/lag_map"))
    hidden = next(name for name in kept.names() if name.startswith(f"{place}:gradient/") and name.endswith(("/h",)))
    np.testing.assert_allclose(kept.array(hidden).reshape(T, -1), total, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kept.array(f"{place}:gradient/lag_map"), by_loss, rtol=1e-9, atol=1e-12)


class Feedback(nn.Module):
    """Two fused modules; the second reads the first one's output, and the first one the second's last state."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.GRU(IN + 3, H, batch_first=True), nn.LSTM(H, 3, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        ha = x.new_zeros(1, len(x), H)
        hb, cb = x.new_zeros(1, len(x), 3), x.new_zeros(1, len(x), 3)
        out = []
        for t in range(x.shape[1]):
            ya, ha = self.a(torch.cat((x[:, t : t + 1], hb.transpose(0, 1)), -1), ha)
            yb, (hb, cb) = self.b(ya, (hb, cb))
            out.append((yb.square().sum(-1) + ya.sin().sum(-1))[:, 0])
        return torch.stack(out, 1)


def test_an_output_that_another_module_reads_in_the_same_step() -> None:
    torch.manual_seed(5)
    model, x, kept = Feedback().double(), torch.randn(1, T, IN, dtype=D), Kept()
    subject = Subject(model=model, kind="vectors", width=IN, loss=lambda out, batch: out)
    perform(subject, Batch(x, torch.tensor([T])), kept, RunOptions(only=("gradient/vectors",)))
    a, b = nn.GRUCell(IN + 3, H).double(), nn.LSTMCell(H, 3).double()
    for cell, rnn in ((a, model.a), (b, model.b)):
        for name, value in cell.named_parameters():
            value.data.copy_(getattr(rnn, f"{name}_l0"))
    ha, hb, cb = x.new_zeros(1, H), x.new_zeros(1, 3), x.new_zeros(1, 3)
    added: list[list[Tensor]] = []
    total = x.new_zeros(())
    for row in x[0]:
        ha = a(torch.cat((row[None], hb), -1), ha)
        hb, cb = b(ha, (hb, cb))
        added.append([torch.zeros_like(part, requires_grad=True) for part in (ha, hb, cb)])
        ha, hb, cb = (part + one for part, one in zip((ha, hb, cb), added[-1], strict=True))
        total = total + hb.square().sum() + ha.sin().sum()
    for n, name in enumerate(("ha", "hb", "cb")):
        expected = torch.autograd.grad(
            total, [one[n] for one in added], retain_graph=True, allow_unused=True, materialize_grads=True
        )
        found = next(one for one in kept.names() if one.endswith(f":gradient/{name}"))
        np.testing.assert_allclose(kept.array(found).reshape(T, -1), torch.cat(expected), rtol=1e-9, atol=1e-12)
