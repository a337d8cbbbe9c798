"""Which inputs open the gates of loops that read another input, pause, or read several steps at once."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch
from several_inputs import run
from torch import Tensor, nn
from watched import seen

from inspector.engine.pipeline import RunOptions

D, IN, H, T = torch.float64, 3, 4, 12


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(IN + H, 2 * H)
        self.open: list[Tensor] = []

    def advance(self, x: Tensor, h: Tensor) -> Tensor:
        g, a = self.map(torch.cat((x, h), -1)).chunk(2, -1)
        g = torch.sigmoid(g)
        self.open.append(g.detach())
        return g * h + (1 - g) * torch.tanh(a)


def correlated(x: Tensor, gates: Tensor) -> np.ndarray:
    """(feature, unit) numpy's correlation of features (n, i) with gates (n, h)."""
    return np.corrcoef(x.T.numpy(), gates.T.numpy())[: x.shape[1], x.shape[1] :]


class Second(Gated):
    """A loop over each of two inputs; the gates of the second are opened by its own input."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        h = g = a.new_zeros(len(a), H)
        out = []
        for row in a.unbind(1):
            h = self.advance(row, h)
            out.append(h)
        self.open.clear()
        for row in b.unbind(1):
            g = self.advance(row, g)
        return torch.stack(out, 1) + g[:, None]


def test_a_loop_over_another_input_is_correlated_with_that_one() -> None:
    torch.manual_seed(0)
    model, vectors = Second().to(D).eval(), {"kind": "vectors", "width": IN}
    a, b = torch.randn(T, IN, dtype=D), torch.randn(T - 3, IN, dtype=D)
    subject = SimpleNamespace(model=model, inputs={"a": vectors, "b": vectors})
    _, sink = run(subject, {"a": a, "b": b}, options=RunOptions(only=["openers"]))
    assert not [name for name in sink.refusals() if "openers" in name]
    found = sink.array("model#2:gate/g/by_feature")
    np.testing.assert_allclose(found, correlated(b, torch.cat(model.open)), rtol=1e-9)


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.source, self.target, self.cell = nn.Embedding(3, IN), nn.Embedding(4, IN), Gated()

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        h = self.source(a).new_zeros(len(a), H)
        for row in self.source(a).unbind(1):
            h = self.cell.advance(row, h)
        self.cell.open.clear()
        g, out = h, []
        for row in self.target(b).unbind(1):
            g = self.cell.advance(row, g)
            out.append(g)
        return torch.stack(out, 1)


def test_the_tokens_of_another_input_have_its_vocabulary() -> None:
    torch.manual_seed(0)
    model = Words().to(D).eval()
    inputs = {"a": {"kind": "tokens", "vocabulary": "xyz"}, "b": {"kind": "tokens", "vocabulary": "ABCD"}}
    subject = SimpleNamespace(model=model, inputs=inputs)
    _, sink = run(subject, {"a": "xyzzy", "b": "ABBADA"}, options=RunOptions(only=["openers"]))
    channel = next(name for name in sink.names() if name.endswith("#2:gate/g/by_token"))
    assert tuple(sink.channel(channel).labels["token"]) == ("A", "B", "D")
    gates = torch.cat(model.cell.open)
    expected = [gates[[0, 3, 5]].mean(0), gates[[1, 2]].mean(0), gates[4]]
    np.testing.assert_allclose(sink.array(channel), torch.stack(expected), rtol=1e-9)


class Pausing(Gated):
    """The gate is computed at every third step, from the input there and what was collected before."""

    def forward(self, x: Tensor) -> Tensor:
        h, collected, out = x.new_zeros(len(x), H), x.new_zeros(len(x), IN), []
        for t in range(x.shape[1]):
            collected = collected + 0.1 * x[:, t]
            if t % 3 == 2:
                h = self.advance(collected, h)
                collected = x.new_zeros(len(x), IN)
            out.append(h)
        return torch.stack(out, 1)


def test_steps_that_compute_no_gate_need_no_input() -> None:
    torch.manual_seed(0)
    model, x = Pausing().to(D), torch.randn(1, T, IN, dtype=D)
    _, kept, _ = seen(model, x, quantities=("openers",))
    assert not [one.reason for one in kept.refusals() if "openers" in one.channel]
    found = kept.array("model:gate/g/by_feature")
    np.testing.assert_allclose(found, correlated(x[0, 2::3], torch.cat(model.open)[-T // 3 :]), rtol=1e-9)


class Windows(Gated):
    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), H), [x.new_zeros(len(x), H)]
        for t in range(1, x.shape[1]):
            h = self.advance(x[:, t] + x[:, t - 1], h)
            out.append(h)
        return torch.stack(out, 1)


def test_several_steps_at_once_are_the_reason_that_is_given() -> None:
    _, kept, _ = seen(Windows().to(D), torch.randn(1, T, IN, dtype=D), quantities=("openers",))
    reasons = [one.reason for one in kept.refusals() if "openers" in one.channel]
    assert reasons == ["A step of model reads several steps of the input (0 to 1), so none of them is its own input."]
