"""Influence by lag against plain loops in float64, and models made so that the answer is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.analyses import rerun as copies
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.quantities.gradient import influence as module
from inspector.engine.quantities.gradient.influence import (
    InfluenceSamples,
    by_lag,
    divergence,
    reach,
    reference,
    replacements,
)
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Trace
from inspector.records import Channel

D = torch.float64


class Tokens(nn.Module):
    """Embedding, two layers, read-out; or vectors without the embedding."""

    def __init__(self, kind: str, both: bool, tokens: bool) -> None:
        super().__init__()
        make = {"tanh": nn.RNN, "relu": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[kind]
        more = {"nonlinearity": kind} if kind in ("tanh", "relu") else {}
        self.embedding = nn.Embedding(6, 3) if tokens else nn.Identity()
        self.rnn = make(3, 4, 2, bidirectional=both, batch_first=True, **more)
        self.head = nn.Linear(8 if both else 4, 6)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.rnn(self.embedding(x))[0])
        return out


def next_loss(out: Tensor, batch: Batch) -> Tensor:
    """−ln p(next token), NaN at the last real step and on padding."""
    logs = out.log_softmax(-1)
    found = -logs[:, :-1].gather(2, batch.inputs[:, 1:, None])[..., 0]
    real = torch.arange(out.shape[1] - 1) < batch.lengths[:, None] - 1
    return nn.functional.pad(torch.where(real, found, torch.nan), (0, 1), value=torch.nan)


def square_loss(out: Tensor, batch: Batch) -> Tensor:
    real = torch.arange(out.shape[1]) < batch.lengths[:, None]
    return torch.where(real, out.square().sum(-1), torch.nan)


def measured(model: nn.Module, x: Tensor, lengths: list[int], look_at: int = 0, **more: Any) -> tuple[Trace, Kept]:
    kept = Kept()
    kind = "vectors" if x.is_floating_point() else "tokens"
    subject = Subject(model=model.double().eval(), kind=kind, **more)
    trace = perform(subject, Batch(x, torch.tensor(lengths), look_at=look_at), kept, RunOptions(only=("influence",)))
    return trace, kept


@pytest.mark.parametrize("tokens", [True, False], ids=["tokens", "vectors"])
@pytest.mark.parametrize("both", [False, True], ids=["forward", "both"])
@pytest.mark.parametrize("kind", ["tanh", "relu", "gru", "lstm"])
def test_both_curves_equal_plain_loops(kind: str, both: bool, tokens: bool) -> None:
    torch.manual_seed(0)
    model = Tokens(kind, both, tokens)
    x = torch.randint(0, 6, (3, 13)) if tokens else torch.randn(3, 13, 3, dtype=D)
    loss = next_loss if tokens else square_loss
    trace, kept = measured(model, x, [13, 10, 4], 1, loss=loss, vocabulary=list("abcdef"), next_token=tokens)
    assert not kept.reasons()
    last = 8 if tokens else 9
    row, lengths = x[1:2], torch.tensor([10])

    def losses(inputs: Tensor) -> tuple[Tensor, Tensor]:
        out = model(inputs)
        return loss(out, Batch(row, lengths))[0], out[0].log_softmax(-1)

    by: dict[str, dict[int, list[float]]] = {name: {} for name in ("loss", "divergence", "gradient")}
    with torch.no_grad():
        plain, logs = losses(row)
        for k in range(last + 1):
            sums: dict[tuple[str, int], float] = {}
            for value in replacements(trace.batch, k, 4, seed=11):
                assert not torch.equal(value, row[0, k])
                other = row.clone()
                other[0, k] = value
                moved, q = losses(other)
                for t in range(k, last + 1):
                    kl = sum(float(logs[t, v].exp() * (logs[t, v] - q[t, v])) for v in range(6))
                    for name, found in (("loss", abs(float(moved[t] - plain[t]))), ("divergence", kl)):
                        sums[name, t - k] = sums.get((name, t - k), 0.0) + found / 4
            for (name, lag), found in sums.items():
                by[name].setdefault(lag, []).append(found)
    for t in range(last + 1):
        entered = (model.embedding(row) if tokens else row).detach().requires_grad_()
        out = model.head(model.rnn(entered)[0])
        found = torch.autograd.grad(loss(out, Batch(row, lengths))[0, t], entered)[0][0]
        for k in range(t + 1):
            by["gradient"].setdefault(t - k, []).append(float(found[k].norm()))
    for name, channel in (
        ("loss", "input:influence/loss"), ("divergence", "input:influence/divergence"), ("gradient", "input:gradient/lag"),
    ):  # fmt: skip
        mean, error, count = kept.array(channel)
        assert len(mean) == last + 1
        for lag, values in by[name].items():
            assert mean[lag] == pytest.approx(np.mean(values), rel=1e-7, abs=1e-13), (name, lag)
            assert count[lag] == len(values) == last + 1 - lag
            if len(values) > 1:
                assert error[lag] == pytest.approx(np.std(values, ddof=1) / math.sqrt(len(values)), rel=1e-6, abs=1e-13)
            else:
                assert math.isnan(error[lag])


class Linear(nn.Module):
    """h_t = a h_{t−1} + x_t, written by hand; the answer is h."""

    def __init__(self, a: float) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor(a, dtype=D))

    def forward(self, x: Tensor) -> Tensor:
        h, out = torch.zeros_like(x[:, 0]), []
        for step in x.unbind(1):
            h = self.a * h + step
            out.append(h)
        return torch.stack(out, 1)


def test_a_fading_memory_is_natural() -> None:
    """|Δℓ| and the gradient both fall as a^lag: 5 % after ln 0.05 / ln a, 10⁻³ after ln 10⁻³ / ln a steps."""
    torch.manual_seed(0)
    x = torch.randn(1, 80, 1, dtype=D)
    _, kept = measured(Linear(0.8), x, [80], width=1, loss=lambda out, batch: out.sum(-1))
    moved, flowing = kept.array("input:influence/loss"), kept.array("input:gradient/lag")[0]
    lag = np.arange(len(flowing))
    np.testing.assert_allclose(flowing, 0.8**lag, rtol=1e-9)
    assert moved[0, 20] / moved[0, 0] == pytest.approx(0.8**20, rel=0.5)
    assert kept.scalar("input:gradient/reach") == math.floor(math.log(1e-3) / math.log(0.8))
    assert kept.scalar("input:influence/reach") < kept.scalar("input:gradient/reach")


def test_a_cell_that_never_forgets_reaches_to_the_end() -> None:
    lstm = nn.LSTM(1, 1, batch_first=True).double()
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.zero_()
        lstm.bias_ih_l0[:] = torch.tensor([9.0, 60.0, 0.0, 9.0])  # input open, forget one, output open
        lstm.weight_ih_l0[2] = 0.05

    class Cell(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = lstm

        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self.rnn(x)[0]
            return out

    torch.manual_seed(0)
    x = torch.randn(1, 60, 1, dtype=D)
    _, kept = measured(Cell(), x, [60], width=1, loss=lambda out, batch: out.sum(-1))
    for name in ("input:influence/loss", "input:gradient/lag"):
        mean = kept.array(name)[0]
        assert 0.5 < mean[50] / mean[0] < 2, name
    assert kept.scalar("input:gradient/reach") == 59 and kept.scalar("input:influence/reach") >= 50


class Latch(nn.Module):
    """h_t = tanh(w h_{t−1} + u x_t), saturated: ±1 sets it, 0 holds it; hardly any gradient passes."""

    def forward(self, x: Tensor) -> Tensor:
        h, out = torch.full_like(x[:, 0], 0.99), []
        for step in x.unbind(1):
            h = torch.tanh(3 * h + 8 * step)
            out.append(h)
        return torch.stack(out, 1)


def test_a_saturated_latch_has_influence_where_its_gradient_has_vanished() -> None:
    random = torch.Generator().manual_seed(3)
    drawn = torch.rand(1, 150, 1, generator=random, dtype=D)
    x = torch.where(drawn < 0.03, -1.0, torch.where(drawn > 0.97, 1.0, 0.0)).double()
    model = Latch()
    _, kept = measured(model, x, [150], width=1, loss=lambda out, batch: (out - 1).square().sum(-1))
    moved, flowing = kept.array("input:influence/loss")[0], kept.array("input:gradient/lag")[0]
    assert moved[10] > 0.3 * moved[0] and flowing[10] < 1e-9 * flowing[0]
    assert kept.scalar("input:influence/reach") >= 10 > kept.scalar("input:gradient/reach")


def test_a_loss_at_the_end_only_has_a_value_at_the_lags_that_were_tried() -> None:
    torch.manual_seed(0)
    last = torch.full((1, 20), torch.nan, dtype=D)

    def loss(out: Tensor, batch: Batch) -> Tensor:
        at_end = torch.arange(20)[None] == batch.lengths[:, None] - 1
        return torch.where(at_end, out.sum(-1), torch.nan)

    _, kept = measured(Linear(0.5), torch.randn(1, 20, 1, dtype=D), [20], width=1, loss=loss)
    mean, error, count = kept.array("input:influence/loss")
    assert (count == 1).all() and np.isnan(error).all() and np.isfinite(mean).all() and len(mean) == 20
    assert kept.scalar("input:influence/reach") >= 3
    del last


def test_what_is_read_late_is_referred_to_its_own_lag() -> None:
    """A model that repeats its input ten steps later has no influence at lag 0 and all of it at lag 10."""
    assert reference(torch.tensor([0.0, 0.0, 3.0, 1.0])) == 2 and reference(torch.tensor([0.4, 3.0])) == 0
    assert reach(torch.tensor([1.0, 0.2, 0.06, 0.01]), torch.tensor(1.0), 0.05) == 2
    assert math.isnan(reach(torch.tensor([0.0, 0.0]), torch.tensor(0.0), 0.05))

    class Delay(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.pad(x, (0, 0, 10, 0))[:, : x.shape[1]]

    _, kept = measured(Delay(), torch.randn(1, 30, 1, dtype=D), [30], width=1, loss=lambda o, b: o.square().sum(-1))
    assert kept.scalar("input:influence/reference_lag") == 10
    assert kept.scalar("input:influence/reach") == kept.scalar("input:gradient/reach") == 10


def judged(mean: list[float], error: list[float], count: list[float], flowing: list[float] | None = None) -> Kept:
    kept = Kept()
    curves = {"influence/loss": torch.tensor([mean, error, count], dtype=D)}
    if flowing is not None:
        curves["gradient/lag"] = torch.tensor([flowing, error, count], dtype=D)
    module._judge(curves, Emitter(kept))
    return kept


def test_the_reach_takes_two_standard_errors_off() -> None:
    """5 % of lag 0 is 0.05. At lag 3, 0.09 − 2 · 0.019 is above it; at lag 4, 0.09 − 2 · 0.021 is not, − 0.021 is."""
    enough = [9.0] * 6
    mean, error = [1.0, 0.5, 0.2, 0.09, 0.09, 0.01], [0.3, 0.1, 0.01, 0.019, 0.021, 0.0]
    kept = judged(mean, error, enough, [1.0, 0.1, 0.01, 0.002, 0.0011, 0.0009])
    assert kept.scalar("input:influence/reach") == 3 and kept.scalar("input:gradient/reach") == 4
    assert kept.scalar("input:influence/reference_lag") == 0
    error[4] = 0.0199  # the reference itself is a mean: its own error is not taken off
    assert judged(mean, error, enough).scalar("input:influence/reach") == 4
    mean[5] = 0.05
    assert judged(mean, error, enough).scalar("input:influence/reach") == 5, "5 % itself counts"


def test_lags_of_too_few_positions_do_not_count_unless_no_lag_has_more() -> None:
    mean, error = [1.0, 0.9, 0.9, 0.9, 0.9], [0.0] * 5
    assert judged(mean, error, [9.0, 5.0, 4.0, 3.0, 1.0]).scalar("input:influence/reach") == 2
    assert judged(mean, error, [3.0, 3.0, 3.0, 3.0, 1.0]).scalar("input:influence/reach") == 3
    assert judged(mean, [math.nan] * 5, [1.0] * 5).scalar("input:influence/reach") == 4


def test_the_reference_is_another_lag_below_a_tenth_of_the_largest() -> None:
    for first, lag in ((0.11, 0.0), (0.1, 0.0), (0.09, 2.0), (math.nan, 2.0)):
        kept = judged([first, 0.0, 1.0, 0.06], [0.0] * 4, [9.0] * 4, [5.0, 0.0, 1.0, 0.002])
        assert kept.scalar("input:influence/reference_lag") == lag
        assert kept.scalar("input:gradient/reach") == (3 if lag else 2)
        assert kept.scalar("input:influence/reach") == 3


class Carrying(nn.Module):
    """Keeps its last state as an attribute and a running buffer, and draws random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(2, 3, batch_first=True)
        self.register_buffer("seen", torch.zeros(()))
        self.last: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        torch.rand(1)
        out, self.last = self.rnn(x)
        self.seen += 1
        return out  # type: ignore[no-any-return]


def test_nothing_of_the_run_is_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "ENTRIES", 2000)  # many small calls
    torch.manual_seed(5)
    model = Carrying()
    state = torch.get_rng_state()
    _, kept = measured(model, torch.randn(2, 9, 2, dtype=D), [9, 7], width=2, loss=lambda o, b: o.square().sum(-1))
    assert not kept.reasons()
    assert model.last is not None and model.last.shape[1] == 2 and float(model.seen) == 0
    assert all(p.grad is None for p in model.parameters()) and not model.rnn._forward_pre_hooks
    random = torch.randn(2, 9, 2, dtype=D)
    torch.set_rng_state(state)
    assert not torch.equal(random, torch.randn(2, 9, 2, dtype=D))


@pytest.mark.parametrize("fault", ["batch", "dropout", "same", "targets", "once", "detached"])
def test_what_cannot_be_asked_is_refused_in_a_sentence(fault: str) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Parameter(torch.ones(2))

        def forward(self, x: Tensor) -> Tensor:
            if fault == "batch" and len(x) > 1:
                raise ValueError("one sequence at a time")
            if fault == "dropout":
                x = nn.functional.dropout(x, 0.5, training=True)
            y = (x * self.a).cumsum(1)
            return y.detach() if fault == "detached" else y

    x = torch.zeros(1, 8, 2, dtype=D) if fault == "same" else torch.randn(1, 8, 2, dtype=D)
    kept = Kept()
    subject = Subject(model=Odd().double(), kind="vectors", width=2, loss=lambda out, batch: out.square().sum(-1))
    batch = Batch(x, torch.tensor([8]), targets=["a"] if fault == "targets" else None)
    if fault == "once":
        batch = Batch(x[:, :1], torch.tensor([1]))
    perform(subject, batch, kept, RunOptions(only=("influence",)))
    wanted = {
        "batch": "one sequence at a time", "dropout": "dropout", "same": "same input", "targets": "targets",
        "once": "two steps", "detached": "autograd",
    }[fault]  # fmt: skip
    told = [one.reason for one in kept.refusals() if one.channel.startswith("input:")]  # the sum over steps has others
    assert len(told) == 1 and wanted in told[0], kept.reasons()
    assert "failed with" not in told[0]
    written = {r.name for r in kept.records if isinstance(r, Channel)}
    assert written == ({"input:influence/loss"} if fault == "detached" else set())


def test_long_sequences_are_thinned_and_longer_ones_refused() -> None:
    def plan(steps: int) -> InfluenceSamples:
        trace = Trace(Subject(nn.Identity()), Batch(torch.zeros(1, steps, 1), torch.tensor([steps])))
        return InfluenceSamples(trace)

    short, long = plan(20), plan(100_000)
    assert short.positions == list(range(20)) and "every step of 20" in short.method
    assert long.positions[0] == 0 and long.positions[-1] == 99_999 and long.lags == 512
    assert len(long.positions) * long.draws * 100_000 <= module.MOST_STEPS and "evenly spaced" in long.method
    with pytest.raises(module.Unsupported, match="shorter sequence"):
        plan(400_000)


def test_divergence_and_statistics_by_hand() -> None:
    p, q = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]).log()
    expected = 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1)
    assert float(divergence(p, q)) == pytest.approx(expected, rel=1e-6)
    assert float(divergence(torch.tensor([[0.0, -math.inf]]), torch.tensor([[0.0, 0.0]]))) == pytest.approx(math.log(2))
    values = torch.tensor([[1.0, 5.0], [3.0, 0.0], [math.nan, 0.0]], dtype=D)
    there = torch.tensor([[True, True], [True, False], [False, False]])
    mean, error, count = by_lag(values, there)
    assert mean.tolist() == [2.0, 5.0] and count.tolist() == [2.0, 1.0]
    assert float(error[0]) == pytest.approx(1.0) and math.isnan(float(error[1]))
    assert math.isnan(float(by_lag(values, torch.ones(3, 2).bool())[0, 0]))  # a NaN that was measured is shown


@pytest.mark.parametrize("layout", ["time first", "one-hot", "one-hot, time first"])
def test_the_gradient_is_taken_where_the_tokens_enter(layout: str) -> None:
    """Embedded in another order of axes, or one-hot without an embedding: then at the recurrent layer's input."""

    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(6, 6)
            self.rnn = nn.GRU(6, 4, batch_first=layout == "one-hot")
            self.head = nn.Linear(4, 6)

        def enter(self, ids: Tensor) -> Tensor:
            ids = ids if layout == "one-hot" else ids.T
            return self.embedding(ids) if layout == "time first" else nn.functional.one_hot(ids, 6).double()  # type: ignore[no-any-return]

        def leave(self, entered: Tensor) -> Tensor:
            out = self.rnn(entered)[0]
            y: Tensor = self.head(out if layout == "one-hot" else out.transpose(0, 1))
            return y

        def forward(self, ids: Tensor) -> Tensor:
            return self.leave(self.enter(ids))

    torch.manual_seed(0)
    model, x = Odd(), torch.randint(0, 6, (1, 7))
    _, kept = measured(model, x, [7], loss=next_loss, vocabulary=list("abcdef"), next_token=True)
    assert not kept.reasons()
    by: dict[int, list[float]] = {}
    for t in range(6):
        entered = model.enter(x).detach().requires_grad_()
        loss = next_loss(model.leave(entered), Batch(x, torch.tensor([7])))[0, t]
        found = torch.autograd.grad(loss, entered)[0]
        rows = found[0] if layout == "one-hot" else found[:, 0]
        for k in range(t + 1):
            by.setdefault(t - k, []).append(float(rows[k].norm()))
    np.testing.assert_allclose(kept.array("input:gradient/lag")[0], [np.mean(by[lag]) for lag in range(6)], rtol=1e-9)


def test_tokens_that_nothing_known_reads_have_influence_and_no_gradient() -> None:
    class Table(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(6, 6))

        def forward(self, ids: Tensor) -> Tensor:
            return self.table[ids].cumsum(1)

    torch.manual_seed(0)
    _, kept = measured(Table(), torch.randint(0, 6, (1, 9)), [9], loss=next_loss, vocabulary=list("abcdef"))
    assert "No nn.Embedding" in kept.reasons()[0] and np.isfinite(kept.array("input:influence/loss")[0]).all()
