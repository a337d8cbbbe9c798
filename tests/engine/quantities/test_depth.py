"""Quantities by depth against autograd through a stack of cells, step by step, in float64."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.cells.check import Check
from inspector.engine.cells.function_cell import FunctionStep
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.quantities.gradient.depth import depth
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.records import Refusal

D = torch.float64
LENGTHS = (9, 6, 2)


class Stack(nn.Module):
    """Two fused layers packed (so that lengths are respected), then a third module of one layer."""

    def __init__(self, kind: str, both: bool) -> None:
        super().__init__()
        make = {"tanh": nn.RNN, "relu": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[kind]
        more: dict[str, Any] = {"nonlinearity": kind} if kind in ("tanh", "relu") else {}
        more |= {"batch_first": True, "bidirectional": both}
        width = 8 if both else 4
        self.lower, self.upper = make(3, 4, 2, **more), make(width, 4, **more)
        self.head = nn.Linear(width, 1)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        out = self.upper(self.lower(packed)[0])[0]
        padded = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)[0]
        y: Tensor = self.head(padded)
        return y


def loss(out: Tensor, batch: Batch) -> Tensor:
    real = torch.arange(out.shape[1]) < batch.lengths[:, None]
    return torch.where(real, out[..., 0].square(), torch.nan)


def unrolled(net: Stack, x: Tensor) -> list[list[Tensor]]:
    """[layer][step] of h (both directions side by side) of one sample through cells, each with its gradient."""
    cells = {nn.RNN: nn.RNNCell, nn.GRU: nn.GRUCell, nn.LSTM: nn.LSTMCell}[type(net.lower)]
    found, rows = [], list(x[:, None])
    for module, layer in ((net.lower, 0), (net.lower, 1), (net.upper, 0)):
        sides = []
        for suffix in ("", "_reverse")[: 1 + module.bidirectional]:
            more = {"nonlinearity": module.nonlinearity} if cells is nn.RNNCell else {}
            cell = cells(rows[0].shape[1], 4, **more).double()
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(cell, name).data.copy_(getattr(module, f"{name}_l{layer}{suffix}").data)
            state: Any = None
            side = []
            for row in reversed(rows) if suffix else rows:
                state = cell(row, state)
                h = (state[0] if isinstance(state, tuple) else state) * 1.0
                h.retain_grad()
                state = (h, state[1]) if isinstance(state, tuple) else h
                side.append(h)
            sides.append(side[::-1] if suffix else side)
        found.append([list(step) for step in zip(*sides, strict=True)])
        rows = [torch.cat(step, 1) for step in zip(*sides, strict=True)]
    sum(net.head(row).square().sum() for row in rows).backward()  # type: ignore[union-attr]
    return [[torch.cat([h.grad for h in step], 1)[0] for step in layer] for layer in found]  # type: ignore[misc]


@pytest.mark.parametrize("both", [False, True], ids=["forward", "both"])
@pytest.mark.parametrize("kind", ["tanh", "relu", "gru", "lstm"])
def test_gradients_by_layer_equal_autograd_through_cells(kind: str, both: bool) -> None:
    torch.manual_seed(0)
    net = Stack(kind, both).double().eval()
    x = torch.randn(3, 9, 3, dtype=D)
    kept = Kept()
    subject = Subject(model=net, kind="vectors", width=3, loss=loss, forward=lambda m, i, n: m(i, n))
    perform(subject, Batch(x, torch.tensor(LENGTHS), look_at=1), kept, RunOptions(only=("depth",)))
    assert not [r for r in kept.records if isinstance(r, Refusal)]
    expected = [
        [
            [float(g.norm()) for g in layer]
            for layer in unrolled(net, x[i, :n])
        ]
        for i, n in enumerate(LENGTHS)
    ]  # fmt: skip
    names = ("lower.l0", "lower.l1", "upper.l0")
    channels = kept.channels()
    assert channels["layers:gradient/depth_map"].labels["layer"] == names
    np.testing.assert_allclose(kept.array("layers:gradient/depth_map"), np.array(expected[1]).T, rtol=1e-9, atol=1e-15)
    pooled = [np.concatenate([np.array(sample[i]) for sample in expected]) for i in range(3)]
    means, low, high = kept.array("layers:gradient/depth")
    np.testing.assert_allclose(means, [v.mean() for v in pooled], rtol=1e-9)
    np.testing.assert_allclose(low, [np.percentile(v, 10) for v in pooled], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(high, [np.percentile(v, 90) for v in pooled], rtol=1e-9)
    ratios = [float(np.mean(a**2) / np.mean(b**2)) for a, b in pairwise(pooled)]
    np.testing.assert_allclose(kept.array("layers:gradient/depth_ratio"), ratios, rtol=1e-9)
    assert channels["layers:gradient/depth_ratio"].labels["layer"][1] == "lower.l1 / upper.l0"
    out, _ = net.lower(nn.utils.rnn.pack_padded_sequence(x, torch.tensor(LENGTHS), batch_first=True))
    assert kept.array("layers:h/depth_rms")[1] == pytest.approx(
        float(out.data.detach().square().mean().sqrt()), rel=1e-9
    )


def test_a_backward_direction_that_runs_over_the_padding_counts_at_real_steps_only() -> None:
    torch.manual_seed(1)
    net = nn.GRU(3, 4, 2, batch_first=True, bidirectional=True).double()
    x, lengths, kept = torch.randn(3, 9, 3, dtype=D), torch.tensor(LENGTHS), Kept()
    subject = Subject(model=net, kind="vectors", width=3, loss=lambda out, batch: out[0].square().sum(-1))
    perform(subject, Batch(x, lengths, look_at=1), kept, RunOptions(only=("depth",)))
    assert not kept.refusals() and kept.array("layers:gradient/depth_map").shape == (6, 2)
    real = net(x)[0][torch.arange(9) < lengths[:, None]].detach()
    assert kept.array("layers:h/depth_rms")[1] == pytest.approx(float(real.square().mean().sqrt()), rel=1e-12)


def generic(place: str, steps: int, delta: Tensor | None, check: Check | None = None) -> Recurrence:
    states = torch.randn(steps + 1, 1, 2, dtype=D)
    cell = FunctionStep(lambda x, s: torch.tanh(x + s), {"h": slice(0, 2)})
    lengths = torch.tensor([steps])
    return Recurrence(
        place, "Own", cell, torch.zeros(steps, 1, 2, dtype=D), states, lengths, delta=delta, check=check
    )  # fmt: skip


def written(recurrences: list[Recurrence]) -> Kept:
    kept = Kept()
    trace = Trace(Subject(nn.Identity()), Batch(torch.zeros(1, 5, 2), torch.tensor([5])))
    trace.recurrences = recurrences
    depth.run(trace, Emitter(kept))
    return kept


def test_written_by_hand_steps_and_layers_of_another_length() -> None:
    delta = torch.full((5, 1, 2), 3.0, dtype=D)
    kept = written([generic("a", 5, delta), generic("other", 7, None), generic("b", 5, delta * 2)])
    np.testing.assert_allclose(kept.array("layers:gradient/depth_ratio"), [0.25])
    assert kept.channels()["layers:gradient/depth"].labels["layer"] == ("a", "b")
    np.testing.assert_allclose(kept.array("layers:gradient/depth")[0], [np.sqrt(18), np.sqrt(72)])


def test_one_layer_no_loss_and_a_failed_check() -> None:
    delta = torch.ones(5, 1, 2, dtype=D)
    assert not written([generic("a", 5, delta)]).records
    assert set(written([generic("a", 5, None), generic("b", 5, None)]).channels()) == {"layers:h/depth_rms"}
    wrong = written([generic("a", 5, delta, Check(1.0, 0.1)), generic("b", 5, delta)])
    assert not wrong.channels() and "differ" in next(r.reason for r in wrong.records if isinstance(r, Refusal))


def test_a_layer_without_gradient_is_an_infinite_step() -> None:
    zero, one = torch.zeros(5, 1, 2, dtype=D), torch.ones(5, 1, 2, dtype=D)
    ratio = written([generic("a", 5, one), generic("b", 5, zero), generic("c", 5, zero)]).array(
        "layers:gradient/depth_ratio"
    )
    assert np.isinf(ratio[0]) and np.isnan(ratio[1])
