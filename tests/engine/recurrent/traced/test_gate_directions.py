"""Which gate keeps the state, by the derivative of plain loops: never by the variable's name or a correlation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.analyses.memory_gate import memory_gate_of
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.trace.trace import Recurrence

D, T, X, H = torch.float64, 14, 3, 4
KEYS = ("gates", "states", "memory", "timescale", "saturation", "paths", "jacobian/carousel_norm")


class Pair(NamedTuple):
    out: Tensor
    memory: Tensor


class Own(nn.Module):
    """A cell of one's own: `advance(self, x, state)` gives the new state; the state is what `start` makes."""

    def __init__(
        self, advance: Callable[..., Any], start: Callable[[Tensor], Any], read: Callable[[Any], Tensor]
    ) -> None:
        super().__init__()
        self.a, self.b, self.d, self.e = (nn.Linear(X + H, H) for _ in range(4))
        self.lstm, self.gru = nn.LSTMCell(X, H), nn.GRUCell(X, H)
        self.advance, self.start, self.read = advance, start, read

    def forward(self, x: Tensor) -> Tensor:
        state, out = self.start(x.new_zeros(len(x), H)), []
        for t in range(x.shape[1]):
            state = self.advance(self, x[:, t], state)
            out.append(self.read(state))
        return torch.stack(out, 1)


def i_forgets(m: Own, x: Tensor, s: Any) -> Any:
    h, c = s
    both = torch.cat((x, h), -1)
    i = torch.sigmoid(m.a(both))
    f = torch.sigmoid(m.b(both))
    g = torch.tanh(m.d(both))
    c = i * c + f * g
    return torch.tanh(c) * torch.sigmoid(m.e(both)), c


def zero_keeps(m: Own, x: Tensor, h: Tensor) -> Tensor:
    both = torch.cat((x, h), -1)
    z = torch.sigmoid(m.a(both))
    n = torch.tanh(m.b(both))
    return (1 - z) * h + z * n


def rectified(m: Own, x: Tensor, h: Tensor) -> Tensor:
    both = torch.cat((x, h), -1)
    z = torch.sigmoid(m.a(both))
    n = torch.relu(m.b(both))
    return z * h + (1 - z) * n


def no_memory(m: Own, x: Tensor, h: Tensor) -> Tensor:
    both = torch.cat((x, h), -1)
    f = torch.sigmoid(m.a(both))
    return torch.tanh(m.b(both)) * f


def masked_lstm(m: Own, x: Tensor, s: Any) -> Any:
    h, c = m.lstm(x, s)
    return h * 0.9 + 0.1 * s[0], c


def zoneout_lstm(m: Own, x: Tensor, s: Any) -> Any:
    h, c = m.lstm(x, s)
    return 0.9 * h + 0.1 * s[0], 0.7 * c + 0.3 * s[1]


def residual_gru(m: Own, x: Tensor, h: Tensor) -> Tensor:
    return m.gru(x, h) * 1.0 + 0.0 * h.tanh()


def named_pair(m: Own, x: Tensor, s: Pair) -> Pair:
    both = torch.cat((x, s.out), -1)
    keep = torch.sigmoid(m.a(both))
    memory = keep * s.memory + torch.sigmoid(m.b(both)) * torch.tanh(m.d(both))
    return Pair(torch.tanh(memory), memory)


TWO = (lambda z: (z, z + 0.1), lambda s: s[0])
ONE = (lambda z: z, lambda s: s)


def run(
    advance: Callable[..., Any], start: Callable[[Tensor], Any], read: Callable[[Any], Tensor]
) -> tuple[Own, Tensor, Recurrence, Kept]:
    torch.manual_seed(0)
    model, x, kept = Own(advance, start, read).to(D), torch.randn(1, T, X, dtype=D), Kept()
    trace = perform(
        Subject(model=model, kind="vectors", width=X), Batch(x, torch.tensor([T])), kept, RunOptions(only=KEYS)
    )
    (found,) = trace.recurrences
    return model, x, found, kept


@pytest.mark.parametrize(
    ("advance", "made", "signal", "high", "writes"),
    [
        (i_forgets, TWO, "gate/i", True, "gate/f"),
        (zero_keeps, ONE, "gate/z", False, ""),
        (rectified, ONE, "gate/z", True, ""),
        (masked_lstm, TWO, "gate/forget", True, "gate/input"),
        (residual_gru, ONE, "gate/update", True, ""),
    ],
)
def test_the_gate_that_multiplies_the_old_state_keeps_it(
    advance: Any, made: Any, signal: str, high: bool, writes: str
) -> None:
    _, _, found, _ = run(advance, *made)
    gate = memory_gate_of(found)
    assert gate is not None
    assert (gate.signal, gate.high, gate.writes, gate.method) == (signal, high, writes, "exact")


def test_a_gate_of_the_output_keeps_nothing() -> None:
    _, _, found, kept = run(no_memory, *ONE)
    assert found.cell.gate_names and memory_gate_of(found) is None
    assert not any("timescale" in name or "memory" in name for name in kept.names())


def test_a_torch_cell_inside_a_step_that_mixes_the_memory_keeps_its_direction_and_says_so() -> None:
    _, _, found, _ = run(zoneout_lstm, *TWO)
    gate = memory_gate_of(found)
    assert gate is not None and (gate.signal, gate.high) == ("gate/forget", True)
    assert gate.method.startswith("the direction is that of torch's own cell")


@pytest.mark.parametrize("advance", [masked_lstm, zoneout_lstm])
def test_the_forget_gate_of_torchs_cell_is_on_the_direct_path(advance: Any) -> None:
    """By plain float64 loops: the factor on c with everything else held fixed; h is kept by 0.1."""
    model, x, _, kept = run(advance, *TWO)
    h, c = torch.zeros(1, H, dtype=D), torch.full((1, H), 0.1, dtype=D)
    expected = []
    with torch.no_grad():
        for t in range(T):
            a = x[:, t] @ model.lstm.weight_ih.T + model.lstm.bias_ih + h @ model.lstm.weight_hh.T + model.lstm.bias_hh
            f = 1 / (1 + torch.exp(-a[:, H : 2 * H]))
            on_c = f if advance is masked_lstm else 0.7 * f + 0.3
            expected.append(float(torch.cat((torch.full_like(f, 0.1), on_c)).norm()) / (2 * H) ** 0.5)
            h, c = advance(model, x[:, t], (h, c))
    (name,) = [one for one in kept.names() if one.endswith("path/direct_norm")]
    np.testing.assert_allclose(kept.array(name), expected, rtol=1e-9)
    (name,) = [one for one in kept.names() if one.endswith("jacobian/carousel_norm")]
    assert len(kept.array(name)) == T


def test_a_rectified_candidate_is_neither_a_gate_nor_saturated() -> None:
    _, _, found, kept = run(rectified, *ONE)
    names = {name.partition(":")[2] for name in kept.names()}
    assert "activation/n" in names and "activation/n/saturation" not in names and "gate/z/saturation" in names
    assert kept.channel(f"{found.place}:activation/n").kind == "state"


@pytest.mark.parametrize(
    ("advance", "made", "parts"),
    [
        (named_pair, (lambda z: Pair(z, z + 0.1), lambda s: s.out), ["memory", "out"]),
        (i_forgets, TWO, None),
    ],
)
def test_parts_of_a_named_tuple_are_called_by_its_fields(advance: Any, made: Any, parts: list[str] | None) -> None:
    _, _, found, kept = run(advance, *made)
    shown = sorted(name.partition(":")[2] for name in kept.names() if kept.channel(name).kind == "state")
    if parts is not None:
        assert sorted(found.cell.parts) == parts and shown == parts
    assert sum(name.endswith("jacobian/carousel_norm") for name in kept.names()) == 1


def test_one_state_keeps_its_variables_name() -> None:
    class Integrator(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Linear(X, H)

        def forward(self, x: Tensor) -> Tensor:
            c, out = x.new_zeros(len(x), H), []
            for t in range(x.shape[1]):
                c = 0.9 * c + torch.tanh(self.w(x[:, t]) + c)
                out.append(c)
            return torch.stack(out, 1)

    torch.manual_seed(0)
    kept = Kept()
    perform(Subject(model=Integrator().to(D), kind="vectors", width=X), Batch(torch.randn(1, T, X, dtype=D), torch.tensor([T])),
            kept, RunOptions(only=("states",)))  # fmt: skip
    assert [name.partition(":")[2] for name in kept.names()] == ["c"]
