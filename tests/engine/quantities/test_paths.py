"""The two paths of a step, their products and the masks of ReLU, against autograd and explicit products in float64."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from kept import Kept
from models import OnlyOutput
from path_runs import KEYS, KINDS, D, run
from torch import Tensor, nn

from inspector.engine.analyses import lag_budgets
from inspector.engine.analyses import path_products as path_walk
from inspector.engine.cells.function_cell import FunctionStep
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.registries import QUANTITIES
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence, Trace


def jacobians(item: Recurrence, sample: int) -> list[Tensor]:
    """∂s_t/∂s_{t−1} by autograd over one call of torch's own cell each, from the states that were walked through."""
    found = []
    for t in range(item.length(sample)):
        x, state = item.x[t, sample], item.states[t, sample]

        def one(s: Tensor, x: Tensor = x) -> Tensor:
            return item.cell.step(x[None], s[None])[0]

        found.append(torch.autograd.functional.jacobian(one, state))
    return found


def direct(item: Recurrence, sample: int) -> list[Tensor]:
    """The direct path by autograd: the textbook step with gates and candidate detached."""
    found = []
    for t in range(item.length(sample)):
        x, state = item.x[t, sample], item.states[t, sample]

        def one(s: Tensor, x: Tensor = x) -> Tensor:
            with torch.no_grad():
                gates = item.cell.gates(x[None, None], s[None, None])
            values = {name: value[0, 0] for name, value in gates.items()}
            if "gate/forget" in values:
                c = values["gate/forget"] * s[4:] + values["gate/input"] * values["candidate"]
                return torch.cat((0.0 * s[:4], c))
            return values["gate/update"] * s + (1 - values["gate/update"]) * values["candidate"]

        found.append(torch.autograd.functional.jacobian(one, state))
    return found


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_both_paths_of_every_step_equal_autograd(kind: str) -> None:
    trace, kept = run(kind)
    assert len(trace.recurrences) == 4 and not kept.refusals()
    for item in trace.recurrences:
        whole, straight = jacobians(item, 1), direct(item, 1)
        order = slice(None, None, -1) if item.reverse else slice(None)
        root = math.sqrt(item.cell.state_size)
        a = np.array([float(d.norm()) for d in straight])[order] / root
        b = np.array([float((j - d).norm()) for j, d in zip(whole, straight, strict=True)])[order] / root
        np.testing.assert_allclose(kept.array(f"{item.place}:path/direct_norm"), a, rtol=1e-10)
        np.testing.assert_allclose(kept.array(f"{item.place}:path/through_norm"), b, rtol=1e-9)
        np.testing.assert_allclose(kept.array(f"{item.place}:path/direct_share"), a**2 / (a**2 + b**2), rtol=1e-9)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_products_by_lag_equal_explicit_products(kind: str) -> None:
    trace, kept = run(kind)
    for item in trace.recurrences:
        whole, straight = jacobians(item, 1), direct(item, 1)
        size, steps = len(whole[0]), len(whole)
        keeps = slice(4, 8) if kind == "lstm" else slice(0, 4)
        logs = {name: np.full((steps - 1, steps), np.nan) for name in ("whole", "direct", "difference")}
        retention = np.full((steps - 1, steps, 4), np.nan)
        for k in range(steps - 1):
            j = d = torch.eye(size, dtype=D)
            retention[k, 0] = 1.0
            for t in range(k + 1, steps):
                j, d = whole[t] @ j, straight[t] @ d
                for name, matrix in (("whole", j), ("direct", d), ("difference", j - d)):
                    logs[name][k, t - k] = math.log(float(matrix.norm()) / math.sqrt(size))
                retention[k, t - k] = d.diagonal()[keeps].numpy()
        for name, values in logs.items():
            shown = kept.array(f"{item.place}:path/lag_{name}")[:, 1:]
            for row, level in ((0, 0.5), (1, 0.1), (2, 0.9)):
                np.testing.assert_allclose(shown[row], np.nanquantile(np.exp(values[:, 1:]), level, axis=0), rtol=1e-9)
            np.testing.assert_allclose(shown[3], np.nanmean(np.exp(values[:, 1:]), axis=0), rtol=1e-9)
        by_unit = np.nanmean(retention, axis=0)
        np.testing.assert_allclose(kept.array(f"{item.place}:path/retention"), by_unit, rtol=1e-10)
        band = np.stack((by_unit.mean(1), *np.quantile(by_unit, (0.1, 0.9), axis=1)))
        np.testing.assert_allclose(kept.array(f"{item.place}:path/retention_band"), band, rtol=1e-10)
        assert (kept.array(f"{item.place}:path/lag_difference")[:, 0] == 0).all()


def test_an_lstm_whose_state_is_multiplied_by_a_half_and_a_third_retains_a_sixth() -> None:
    """A gate known beforehand: f is ½ at odd steps and ⅓ at even ones, whatever h is."""
    net = nn.LSTM(1, 2, batch_first=True).double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
        net.weight_ih_l0[2:4] = -math.log(2.0)  # σ(−ln 2) = ⅓
    kept, x = Kept(), torch.tensor([0.0, 1.0] * 4, dtype=D)[None, :, None]
    perform(
        Subject(model=OnlyOutput(net), kind="vectors", width=1),
        Batch(x, torch.tensor([8])),
        kept,
        RunOptions(only=tuple(KEYS)),
    )
    np.testing.assert_allclose(kept.array("rnn.l0:path/retention")[2], [1 / 6, 1 / 6], rtol=1e-12)
    np.testing.assert_allclose(kept.array("rnn.l0:path/lag_direct")[:, 2], math.sqrt(2 / 36 / 4), rtol=1e-12)


def shut(kind: str, weights: float = 0.3, steps: int = 40) -> tuple[Trace, Kept]:
    """A layer whose forget or update gate is exactly 0 at every step: nothing goes the direct path."""
    torch.manual_seed(0)
    net = KINDS[kind](batch_first=True).double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(weights)
        net.bias_ih_l0[4:8] = -1000.0  # forget of an LSTM (i, f, g, o), update of a GRU (r, z, n)
    kept, x = Kept(), torch.randn(1, steps, 3, dtype=D)
    subject = Subject(model=OnlyOutput(net), kind="vectors", width=3)
    return perform(subject, Batch(x, torch.tensor([steps])), kept, RunOptions(only=tuple(KEYS))), kept


@pytest.mark.parametrize("weights", [0.3, 1e-20])
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_with_shut_gates_the_difference_is_all_that_arrives(kind: str, weights: float) -> None:
    """However little that is: over 40 steps at 10⁻²⁰ it is far below the smallest float, and its logarithm is known."""
    trace, kept = shut(kind, weights)
    shown = {name: kept.array(f"rnn.l0:path/lag_{name}") for name in ("direct", "whole", "difference")}
    assert (shown["direct"][:, 0] == 1).all() and (shown["direct"][:, 1:] == 0).all()
    np.testing.assert_allclose(shown["difference"][:, 1:], shown["whole"][:, 1:], rtol=1e-12)
    found = path_walk.path_products(trace.recurrences[0], 0, Emitter(Kept()))
    assert found is not None
    there = torch.isfinite(found.logs["whole"][:, 1:])
    assert there[0].all() and (float(found.logs["whole"][0, -1]) < -745) is (weights < 0.1)
    torch.testing.assert_close(
        found.logs["difference"][:, 1:][there], found.logs["whole"][:, 1:][there], rtol=1e-12, atol=1e-9
    )
    np.testing.assert_array_equal(kept.array("rnn.l0:path/direct_share"), 0)
    np.testing.assert_array_equal(kept.array("rnn.l0:path/retention")[1:], 0)


class Swinging(nn.Module):
    """h' = −0.9 h + tanh(W x + U h), written by hand: what is carried over changes its sign at every step."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.u = nn.Linear(3, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(len(x), 4), []
        for step in x.unbind(1):
            h = -0.9 * h + torch.tanh(self.w(step) + self.u(h))
            out.append(h)
        return torch.stack(out, 1)


def test_a_carry_below_zero_has_a_difference_too() -> None:
    torch.manual_seed(0)
    kept, steps = Kept(), 8
    subject = Subject(model=Swinging().double(), kind="vectors", width=3)
    x = torch.randn(1, steps, 3, dtype=D)
    trace = perform(subject, Batch(x, torch.tensor([steps])), kept, RunOptions(only=("paths/lag",)))
    (item,) = trace.recurrences
    straight = [torch.full((4,), -0.9, dtype=D).diag()] * steps
    whole = []
    for t in range(steps):
        state = item.states[t, 0]
        h = torch.tanh(subject.model.w(x[0, t]) + subject.model.u(state))
        whole.append(straight[t] + torch.diag(1 - h**2) @ subject.model.u.weight)
    logs = np.full((steps - 1, steps), np.nan)
    for k in range(steps - 1):
        j = d = torch.eye(4, dtype=D)
        for t in range(k + 1, steps):
            j, d = whole[t] @ j, straight[t] @ d
            logs[k, t - k] = math.log(float((j - d).detach().norm()) / 2)
    shown = kept.array(f"{item.place}:path/lag_difference")[0, 1:]
    np.testing.assert_allclose(shown, np.nanmedian(np.exp(logs[:, 1:]), axis=0), rtol=1e-9)
    np.testing.assert_allclose(kept.array(f"{item.place}:path/retention")[:, 0], (-0.9) ** np.arange(steps))


def test_with_all_paths_shut_the_difference_is_nothing() -> None:
    """Forget gate at 0 and no recurrent weights: neither path carries anything."""
    _, kept = shut("lstm", 0.0)
    for name in ("direct", "whole", "difference"):
        assert (kept.array(f"rnn.l0:path/lag_{name}")[:, 1:] == 0).all(), name


@pytest.mark.parametrize("kind", ["tanh", "relu"])
def test_a_step_without_a_carry_has_no_direct_path_and_nothing_is_refused(kind: str) -> None:
    _, kept = run(kind, ("paths", "paths/lag"))
    assert not kept.names() and not kept.refusals()


def generic(steps: int = 6) -> Trace:
    """A hand-written tanh step as a FunctionStep."""
    torch.manual_seed(0)
    w = torch.randn(3, 3, dtype=D)
    cell = FunctionStep(lambda x, s: torch.tanh(x + s @ w.T), {"h": slice(0, 3)})
    x, states = torch.randn(steps, 1, 3, dtype=D), [torch.zeros(1, 3, dtype=D)]
    for row in x:
        states.append(cell.step(row, states[-1]))
    length = torch.tensor([steps])
    item = Recurrence("mine", "Mine", cell, x, torch.stack(states), length)
    batch = Batch(x.transpose(0, 1), length)
    return Trace(Subject(model=nn.Identity(), kind="vectors"), batch, recurrences=[item])


def test_a_pure_function_has_no_direct_path_in_closed_form() -> None:
    kept = Kept()
    for key in KEYS:
        QUANTITIES[key].run(generic(), Emitter(kept))
    assert not kept.records
    block = generic().recurrences[0].block(0, 6)
    torch.testing.assert_close(block.through_frobenius(), block.frobenius())


@pytest.mark.parametrize("budget", [None, 1.0])
@pytest.mark.parametrize("kind", ["tanh", "lstm"])
def test_starts_of_a_backward_layer_are_named_by_their_step_of_the_sequence(
    kind: str, budget: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The backward direction walks from the sample's own end: its first start is the last real step, 8 of 0 … 8."""
    if budget is not None:  # only so many starts as there must be
        monkeypatch.setattr(lag_budgets, "LAG_BUDGET", budget)
        monkeypatch.setattr(lag_budgets, "FEWEST", 3)
    trace, kept = run(kind, ("jacobian/lag",))
    for item in trace.recurrences:
        length, step = 9, -1 if item.reverse else 1
        matrices = dict(zip(range(length)[::step], jacobians(item, 1), strict=True))  # by step of the sequence
        channel = kept.channel(f"{item.place}:jacobian/lag_map")
        starts = [int(label) for label in channel.labels["start"]]
        some = [0, 4, 7] if budget is not None else list(range(8))  # the last one has no step after it
        assert starts == (sorted(8 - k for k in some) if item.reverse else some)
        assert channel.domains["start"] == "start"
        if budget is not None:
            continue  # products are estimates then
        shown = kept.array(f"{item.place}:jacobian/lag_map")
        for row, start in zip(shown, starts, strict=True):
            product = torch.eye(item.cell.state_size, dtype=D)
            for lag in range(1, 9):
                t = start + step * lag
                if t not in matrices:
                    assert np.isnan(row[lag])
                    continue
                product = matrices[t] @ product
                assert row[lag] == pytest.approx(float(product.norm()) / math.sqrt(len(product)), rel=1e-9)


def test_estimates_are_close_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(5)
    net = OnlyOutput(nn.LSTM(3, 24, batch_first=True)).double().eval()
    subject, batch = (
        Subject(model=net, kind="vectors", width=3),
        Batch(torch.randn(1, 40, 3, dtype=D), torch.tensor([40])),
    )
    exact, rough = Kept(), Kept()
    perform(subject, batch, exact, RunOptions(only=("paths/lag", "jacobian/lag")))
    for name in ("LAG_BUDGET", "PATH_BUDGET"):
        monkeypatch.setattr(lag_budgets, name, 2.0 * 48 * 48 * 8 * 39 * 20)
    perform(subject, batch, rough, RunOptions(only=("paths/lag", "jacobian/lag")))
    for name in ("path/lag_whole", "jacobian/lag"):
        told = rough.channel(f"rnn.l0:{name}").method
        found = re.fullmatch(
            r"estimated from 8 random orthonormal directions of 48 \(relative standard error seen between them: (\d+) % in "
            r"the median over starts and lags, (\d+) % at p90\); 20 evenly spaced starts of 39; lags up to 39", told,
        )  # fmt: skip
        assert found is not None, told
        middle, high = map(int, found.groups())
        if name == "jacobian/lag":  # each start and lag that both have, against the exact norm
            rows = [exact.channel("rnn.l0:jacobian/lag_map").labels["start"].index(one)
                    for one in rough.channel("rnn.l0:jacobian/lag_map").labels["start"]]  # fmt: skip
            truth, seen = exact.array("rnn.l0:jacobian/lag_map")[rows], rough.array("rnn.l0:jacobian/lag_map")
            off = 100 * np.abs(seen / truth - 1)[:, 1:]
            off = off[np.isfinite(off)]
            assert np.quantile(off, 0.9) < 2 * high and 0.3 * np.median(off) < middle < 6 * np.median(off)
    a, b = (kept.array("rnn.l0:jacobian/lag")[0, 1:15] for kept in (exact, rough))
    np.testing.assert_allclose(b, a, rtol=0.35)
    assert not np.array_equal(a, b)
    assert exact.channel("rnn.l0:path/lag_whole").method == "exact; every start; lags up to 39"
    assert rough.channel("rnn.l0:path/lag_direct").method.startswith("exact; 20 evenly")
    for name in ("whole", "difference"):
        a, b = (kept.array(f"rnn.l0:path/lag_{name}")[0, 1:15] for kept in (exact, rough))
        np.testing.assert_allclose(b, a, rtol=0.35)


def test_states_too_large_for_products_still_show_what_the_carousel_carries() -> None:
    net = OnlyOutput(nn.LSTM(2, 520, batch_first=True)).eval()
    kept = Kept()
    perform(Subject(model=net, kind="vectors", width=2), Batch(torch.randn(1, 4, 2), torch.tensor([4])), kept,
            RunOptions(only=("paths/lag",)))  # fmt: skip
    assert {r.channel for r in kept.refusals()} == {"rnn.l0:path/lag_whole", "rnn.l0:path/lag_difference"}
    assert "1040 × 1040" in kept.refusals()[0].reason
    assert kept.array("rnn.l0:path/lag_direct").shape == (4, 4) and kept.array("rnn.l0:path/retention").shape == (
        4,
        520,
    )


def test_nan_is_shown_where_it_is() -> None:
    for kind, name in (("lstm", "path/direct_norm"), ("relu", "mask/open_share")):
        net = OnlyOutput(KINDS[kind](batch_first=True)).double().eval()
        x = torch.randn(1, 8, 3, dtype=D)
        x[0, 5] = torch.nan
        kept = Kept()
        perform(
            Subject(model=net, kind="vectors", width=3), Batch(x, torch.tensor([8])), kept, RunOptions(only=tuple(KEYS))
        )
        values = kept.array(f"rnn.l0:{name}")
        assert np.isfinite(values[:5]).all() and np.isnan(values[5:]).all(), name
        if kind == "relu":
            assert np.isnan(kept.array("rnn.l0:mask")[5:]).all()
