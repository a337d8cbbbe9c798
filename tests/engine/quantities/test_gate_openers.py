"""What opens a gate, which gate keeps, and where memory is held: against loops over steps, units and tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kept import Kept
from models import OnlyOutput
from torch import Tensor, nn

from inspector.engine.analyses.memory_gate import memory_gate_of
from inspector.engine.cells.function_cell import FunctionStep
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.quantities.gates import openers as openers_file
from inspector.engine.quantities.gates.memory import HELD, runs
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence, Trace
from inspector.records import Channel

D = torch.float64
LENGTHS = torch.tensor([14, 9])
VOCABULARY = ("a", "b", "<s>", " ", "\n", "e")


class Net(nn.Module):
    """Packed, so that each direction begins at each sample's own end; token ids are embedded, vectors are not."""

    def __init__(self, kind: str, tokens: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(6, 3) if tokens else nn.Identity()
        make = {"gru": nn.GRU, "lstm": nn.LSTM}[kind]
        self.rnn = make(3, 4, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(x), LENGTHS, batch_first=True)
        out: Tensor = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]
        return out


def run(kind: str, tokens: bool, quantities: tuple[str, ...], **more: Any) -> tuple[Trace, Kept, Tensor]:
    torch.manual_seed(0)
    net, kept = Net(kind, tokens).double().eval(), Kept()
    x = torch.randint(0, 6, (2, 14)) if tokens else torch.randn(2, 14, 3, dtype=D)
    subject = Subject(model=net, kind="tokens" if tokens else "vectors", vocabulary=VOCABULARY if tokens else None)
    trace = perform(subject, Batch(x, LENGTHS), kept, RunOptions(only=tuple(quantities), **more))
    return trace, kept, x


def rows(item: Recurrence) -> list[tuple[int, int, dict[str, Tensor]]]:
    """(sample, sequence step, gates) of every real step, one step at a time through Cell.gates."""
    found = []
    for b in range(item.states.shape[1]):
        length = item.length(b + item.base)
        for j in range(length):
            gates = item.cell.gates(item.x[j : j + 1, b : b + 1], item.states[j : j + 1, b : b + 1])
            step = length - 1 - j if item.reverse else j
            found.append((b + item.base, step, {name: v[0, 0] for name, v in gates.items()}))
    return found


@pytest.mark.parametrize("kind", ["gru", "lstm"])
@pytest.mark.parametrize("alone", [False, True])
def test_means_by_token_equal_a_loop_over_all_steps(kind: str, alone: bool) -> None:
    trace, kept, ids = run(kind, True, ("openers",), only_selected=alone)
    assert not kept.refusals() and len(trace.recurrences) == 4
    for item in trace.recurrences:
        collected: dict[str, dict[int, list[np.ndarray]]] = {}
        for b, step, gates in rows(item):
            for name, value in gates.items():
                collected.setdefault(name, {}).setdefault(int(ids[b, step]), []).append(value.detach().numpy())
        tokens = sorted(next(iter(collected.values())))
        counts = [len(next(iter(collected.values()))[token]) for token in tokens]
        assert sum(counts) == (14 if alone else 23)
        np.testing.assert_array_equal(kept.array(f"{item.place}:gate/tokens"), counts)
        for name, by_token in collected.items():
            channel = kept.channel(f"{item.place}:{name}/by_token")
            assert channel.labels["token"] == tuple(VOCABULARY[i] for i in tokens) and channel.kind == "opener"
            expected = np.stack([np.mean(by_token[token], axis=0) for token in tokens])
            np.testing.assert_allclose(kept.array(channel.name), expected, rtol=1e-10)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_correlations_with_features_equal_numpys(kind: str) -> None:
    trace, kept, x = run(kind, False, ("openers",))
    for item in trace.recurrences:
        found = rows(item)
        features = np.stack([x[b, step].numpy() for b, step, _ in found])
        for name in found[0][2]:
            gate = np.stack([gates[name].detach().numpy() for _, _, gates in found])
            expected = np.corrcoef(features.T, gate.T)[:3, 3:]
            np.testing.assert_allclose(kept.array(f"{item.place}:{name}/by_feature"), expected, atol=1e-12)


def test_a_constant_feature_correlates_with_nothing_and_a_nearly_constant_gate_still_does() -> None:
    net = nn.GRU(2, 3, batch_first=True).double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
        net.weight_ih_l0[3, 0] = 1e-9  # z of unit 0 follows feature 0, by a billionth; the other units do not move
    x = torch.randn(1, 30, 2, dtype=D)
    x[..., 1] = 7.0
    kept = Kept()
    perform(
        Subject(model=OnlyOutput(net), kind="vectors", width=2),
        Batch(x, torch.tensor([30])),
        kept,
        RunOptions(only=("openers",)),
    )
    found = kept.array("rnn.l0:gate/update/by_feature")
    assert found[0, 0] == pytest.approx(1.0, abs=1e-6)
    assert np.isnan(found[1]).all() and np.isnan(found[0, 1:]).all()


def test_only_the_most_frequent_tokens_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openers_file, "MOST_TOKENS", 3)
    trace, kept, ids = run("gru", True, ("openers",))
    every = torch.cat([ids[b, :length] for b, length in enumerate(LENGTHS.tolist())])
    counts = torch.bincount(every, minlength=6)
    shown = kept.array("rnn.l0:gate/tokens")
    assert sorted(shown.tolist()) == sorted(counts.tolist())[-3:]
    assert "3 most frequent" in kept.channel("rnn.l0:gate/tokens").method
    name = kept.channel("rnn.l0:gate/update/by_token").labels["token"][0]
    expected = [
        g["gate/update"].detach().numpy() for b, s, g in rows(trace.recurrences[0]) if VOCABULARY[ids[b, s]] == name
    ]
    np.testing.assert_allclose(kept.array("rnn.l0:gate/update/by_token")[0], np.mean(expected, axis=0), rtol=1e-10)


class Halved(OnlyOutput):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x[:, ::2])


class Averaged(OnlyOutput):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.unflatten(1, (-1, 2)).mean(2))


def test_a_layer_that_skips_steps_is_correlated_with_those_that_it_read() -> None:
    x, kept = torch.randn(1, 10, 2), Kept()
    trace = perform(Subject(model=Halved(nn.GRU(2, 3, batch_first=True)), kind="vectors", width=2),
                    Batch(x, torch.tensor([10])), kept, RunOptions(only=("openers",)))  # fmt: skip
    gate = trace.recurrences[0].block(0, 5).gates["gate/update"][:, 0]
    expected = np.corrcoef(x[0, ::2].T, gate.numpy().T)[:2, 2:]
    np.testing.assert_allclose(kept.array("rnn.l0:gate/update/by_feature"), expected, atol=1e-5)


def test_a_layer_that_runs_over_other_steps_is_refused_with_the_reason() -> None:
    kept = Kept()
    perform(Subject(model=Averaged(nn.GRU(2, 3, batch_first=True)), kind="vectors", width=2),
            Batch(torch.randn(1, 10, 2), torch.tensor([10])), kept, RunOptions(only=("openers",)))  # fmt: skip
    assert [r.channel for r in kept.refusals()] == ["rnn.l0:gate/openers"]
    assert "other steps than the input" in kept.refusals()[0].reason


# -- memory


def by_loop(condition: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Runs of one unit at a time, with a counter."""
    marked, statistics = np.zeros_like(condition), []
    for u in range(condition.shape[1]):
        found, begin = [], None
        for t, holds in enumerate([*condition[:, u], False]):
            if holds and begin is None:
                begin = t
            if not holds and begin is not None:
                found.append((t - begin, begin))
                begin = None
        long = [(n, b) for n, b in found if n >= HELD]
        for n, b in long:
            marked[b : b + n, u] = True
        longest = max((n for n, _ in found), default=0)
        start = next((b for n, b in found if n == longest), -1)
        statistics.append((longest, start, len(long), sum(n for n, _ in long) / len(condition)))
    return marked, np.array(statistics, dtype=float).T


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.integers(1, 5), st.integers(0, 1000), st.sampled_from([0.0, 0.5, 0.9, 0.97, 1.0]))
def test_runs_equal_a_counter(steps: int, units: int, seed: int, share: float) -> None:
    condition = np.random.default_rng(seed).random((steps, units)) < share
    marked, statistics = runs(torch.from_numpy(condition))
    expected_marked, expected = by_loop(condition)
    np.testing.assert_array_equal(marked, expected_marked)
    np.testing.assert_allclose(statistics, expected)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_memory_is_where_the_keeping_gate_is_open_and_the_writing_gate_shut(kind: str) -> None:
    """Unit 0 keeps for 34 steps while the input is 0 and writes where it is 1; the others never keep."""
    net = nn.LSTM(1, 2, batch_first=True) if kind == "lstm" else nn.GRU(1, 2, batch_first=True)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
        bias, weight = net.bias_ih_l0, net.weight_ih_l0
        keeps = 2  # first row of f (after i), and of z (after r): two units a gate
        bias[keeps], weight[keeps] = 4.0, -8.0
        if kind == "lstm":
            bias[0], weight[0] = -4.0, 8.0
    x = torch.zeros(1, 50, 1)
    x[0, [5, 40]] = 1.0
    kept = Kept()
    perform(
        Subject(model=OnlyOutput(net), kind="vectors", width=1),
        Batch(x, torch.tensor([50])),
        kept,
        RunOptions(only=("memory",)),
    )
    longest, start, count, share = kept.array("rnn.l0:gate/memory/runs").T[0]
    assert (longest, start, count, share) == (34, 6, 1, 34 / 50)
    marked = kept.array("rnn.l0:gate/memory")
    assert marked[6:40, 0].all() and marked.sum() == 34
    said = kept.channel("rnn.l0:gate/memory").title
    assert said == "long-term memory (" + ("f > 0.9 and i < 0.1)" if kind == "lstm" else "z > 0.9)")
    assert kept.scalar("rnn.l0:gate/forget/keeps" if kind == "lstm" else "rnn.l0:gate/update/keeps") == 1.0


def test_an_open_input_gate_is_no_memory() -> None:
    """f = 1 alone is not enough: with i = 1 the cell is overwritten at every step."""
    net = nn.LSTM(1, 2, batch_first=True)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
        net.bias_ih_l0[:4] = 4.0
    kept = Kept()
    perform(Subject(model=OnlyOutput(net), kind="vectors", width=1), Batch(torch.zeros(1, 30, 1), torch.tensor([30])), kept,
            RunOptions(only=("memory",)))  # fmt: skip
    assert not kept.array("rnn.l0:gate/memory").any()


# -- hand-written gates


def mine(equation: str, named: tuple[str, ...]) -> Trace:
    """A hand-written gated step over 80 random inputs. Textbook GRU: the reset acts before the product (trap 12)."""
    torch.manual_seed(11)
    u, wz, wn = (torch.randn(5, 5, dtype=D) for _ in range(3))

    def values(x: Tensor, h: Tensor) -> dict[str, Tensor]:
        z = torch.sigmoid(2 * x + h @ wz.T)
        return {"z": z, "r": torch.sigmoid(x @ u.T), "candidate": torch.tanh(x + (torch.sigmoid(x @ u.T) * h) @ wn.T)}

    new: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
        "one keeps": lambda z, n, h: z * h + (1 - z) * n,
        "zero keeps": lambda z, n, h: (1 - z) * h + z * n,
        "neither": lambda z, n, h: n,
    }
    names = {"z": "gate/z", "r": "gate/r", "t": "gate/t", "candidate": "candidate"}

    def step(x: Tensor, h: Tensor) -> Tensor:
        found = values(x, h)
        return new[equation](found["z"], found["candidate"], h)

    def gates(x: Tensor, h: Tensor) -> dict[str, Tensor]:
        found = values(x, h)
        return {names[name]: found[name] for name in named}

    cell = FunctionStep(step, {"h": slice(0, 5)}, gates, tuple(names[name] for name in named))
    x, states = torch.randn(80, 1, 5, dtype=D), [torch.zeros(1, 5, dtype=D)]
    for row in x:
        states.append(cell.step(row, states[-1]))
    length = torch.tensor([80])
    item = Recurrence("mine", "Mine", cell, x, torch.stack(states), length)
    return Trace(Subject(model=nn.Identity(), kind="vectors"), Batch(x.transpose(0, 1), length), recurrences=[item])


@pytest.mark.parametrize(("equation", "high"), [("one keeps", True), ("zero keeps", False)])
def test_the_direction_of_a_hand_written_gate_is_found_from_its_equation(equation: str, high: bool) -> None:
    """Cho et al. write z the other way round than PyTorch: the name alone would be wrong half of the time."""
    trace = mine(equation, ("z", "r", "candidate"))
    found = memory_gate_of(trace.recurrences[0])
    assert found is not None and (found.signal, found.high, found.method) == ("gate/z", high, "exact")
    assert found.letter == ("z" if high else "(1 − z)")
    alone = memory_gate_of(mine(equation, ("z",)).recurrences[0])
    assert alone is None, "without what is written the equation cannot be tested, and a correlation proves nothing"


def test_a_gate_that_keeps_nothing_is_not_called_memory() -> None:
    assert memory_gate_of(mine("neither", ("r", "candidate")).recurrences[0]) is None
    kept = Kept()
    for key in ("memory", "timescale"):
        QUANTITIES[key].run(mine("neither", ()), Emitter(kept))
    assert not kept.records


@pytest.mark.parametrize("equation", ["one keeps", "zero keeps"])
def test_every_gate_quantity_takes_hand_written_gates(equation: str) -> None:
    trace, kept = mine(equation, ("z", "r", "candidate")), Kept()
    for key in ("memory", "timescale", "openers"):
        QUANTITIES[key].run(trace, Emitter(kept))
    item = trace.recurrences[0]
    z = item.cell.gates(item.x, item.states[:-1])["gate/z"][:, 0]
    factor = z if equation == "one keeps" else 1 - z
    np.testing.assert_allclose(kept.array("mine:gate/z/timescale"), -1 / np.log(factor.numpy()).mean(0), rtol=1e-9)
    marked, statistics = by_loop((factor > 0.9).numpy())
    np.testing.assert_array_equal(kept.array("mine:gate/memory"), marked)
    np.testing.assert_allclose(kept.array("mine:gate/memory/runs"), statistics)
    assert kept.scalar("mine:gate/z/keeps") == float(equation == "one keeps")
    expected = np.corrcoef(item.x[:, 0].numpy().T, z.numpy().T)[:5, 5:]
    np.testing.assert_allclose(kept.array("mine:gate/z/by_feature"), expected, atol=1e-12)
    assert {"mine:gate/r/by_feature", "mine:candidate/by_feature"} <= {
        r.name for r in kept.records if isinstance(r, Channel)
    }


def test_runs_of_a_backward_direction_stand_in_sequence_order() -> None:
    torch.manual_seed(4)
    net = nn.LSTM(1, 3, bidirectional=True, batch_first=True)
    with torch.no_grad():
        for suffix in ("", "_reverse"):
            getattr(net, f"bias_ih_l0{suffix}")[:6] = torch.tensor([-4.0, -4.0, -4.0, 4.0, 4.0, 4.0])
            getattr(net, f"weight_ih_l0{suffix}")[3:6] = -8.0
    x, kept = torch.zeros(1, 40, 1), Kept()
    x[0, 25] = 1.0  # closes f: 25 steps before, 14 after
    trace = perform(Subject(model=OnlyOutput(net), kind="vectors", width=1), Batch(x, torch.tensor([40])), kept,
                    RunOptions(only=("memory",)))  # fmt: skip
    assert [item.reverse for item in trace.recurrences] == [False, True]
    for item in trace.recurrences:
        np.testing.assert_array_equal(kept.array(f"{item.place}:gate/memory/runs")[:3].T, [[25, 0, 2]] * 3)
        assert (kept.array(f"{item.place}:gate/memory").sum(1) == np.where(np.arange(40) == 25, 0, 3)).all()
