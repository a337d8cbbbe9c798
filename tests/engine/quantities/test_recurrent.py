"""Every recurrent quantity, through a whole run, against a slow and independent implementation in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn

from inspector.engine.analyses.lag_budgets import LagBudget
from inspector.engine.analyses.lag_statistics import by_lag
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.quantities.gates.units import unit_statistics
from inspector.engine.quantities.jacobian.lags import horizon
from inspector.records import Refusal

D = torch.float64


class Net(nn.Module):
    def __init__(self, kind: str, both: bool = False) -> None:
        super().__init__()
        options = {"bidirectional": both, "batch_first": True}
        self.rnn: nn.RNNBase = {
            "rnn": lambda: nn.RNN(3, 4, **options), "gru": lambda: nn.GRU(3, 4, **options),
            "lstm": lambda: nn.LSTM(3, 4, **options),
        }[kind]()  # fmt: skip
        self.head = nn.Linear(8 if both else 4, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.rnn(x)[0])
        return out


def step_loss(out: Tensor, batch: Batch) -> Tensor:
    loss = out.square().sum(-1)
    real = torch.arange(out.shape[1]) < batch.lengths[:, None]
    return torch.where(real, loss, loss.new_full((), torch.nan))


def run(
    kind: str, steps: int = 12, both: bool = False, lengths: tuple[int, ...] = (12, 12), look_at: int = 0
) -> tuple[Net, Tensor, Kept]:
    torch.manual_seed(0)
    net = Net(kind, both).double().eval()
    x = torch.randn(len(lengths), steps, 3, dtype=D)
    kept = Kept()
    subject = Subject(model=net, kind="vectors", width=3, loss=step_loss)
    perform(subject, Batch(x, torch.tensor(lengths), look_at=look_at), kept)
    return net, x, kept


def textbook(net: Net, x: Tensor, suffix: str = "") -> tuple[list[dict[str, Tensor]], list[Tensor]]:
    """One sample, step by step, from the equations with explicit logistic functions; every state keeps its graph."""
    weights = [getattr(net.rnn, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    w, u, bw, bu = weights
    logistic = lambda a: 1 / (1 + torch.exp(-a))  # noqa: E731
    h, c = torch.zeros(4, dtype=D), torch.zeros(4, dtype=D)
    gates, states = [], [torch.cat((h, c)) if isinstance(net.rnn, nn.LSTM) else h]
    for row in x:
        a, b = w @ row + bw, u @ states[-1][:4] + bu
        if isinstance(net.rnn, nn.LSTM):
            i, f, g, o = (
                logistic(a[:4] + b[:4]),
                logistic(a[4:8] + b[4:8]),
                torch.tanh(a[8:12] + b[8:12]),
                logistic(a[12:] + b[12:]),
            )
            c = f * states[-1][4:] + i * g
            states.append(torch.cat((o * torch.tanh(c), c)))
            gates.append({"gate/input": i, "gate/forget": f, "candidate": g, "gate/output": o})
        elif isinstance(net.rnn, nn.GRU):
            r, z = logistic(a[:4] + b[:4]), logistic(a[4:8] + b[4:8])
            n = torch.tanh(a[8:] + r * b[8:])
            states.append((1 - z) * n + z * states[-1])
            gates.append({"gate/reset": r, "gate/update": z, "candidate": n})
        else:
            states.append(torch.tanh(a + b))
            gates.append({})
    return gates, states


def step_jacobians(net: Net, x: Tensor) -> list[Tensor]:
    """∂s_t/∂s_{t−1} by autograd over one step each, the other half of the state held fixed."""
    _, states = textbook(net, x)
    found = []
    for t in range(len(x)):

        def one(state: Tensor, t: int = t) -> Tensor:
            cell = {nn.LSTM: nn.LSTMCell, nn.GRU: nn.GRUCell, nn.RNN: nn.RNNCell}[type(net.rnn)](3, 4).double()
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(cell, name).data.copy_(getattr(net.rnn, f"{name}_l0").data)
            if isinstance(net.rnn, nn.LSTM):
                return torch.cat(cell(x[t][None], (state[None, :4], state[None, 4:])), 1)[0]
            return cell(x[t][None], state[None])[0]

        found.append(torch.autograd.functional.jacobian(one, states[t].detach()))
    return found


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("both", [False, True])
def test_states_and_gates_equal_the_textbook_loop_in_sequence_order(kind: str, both: bool) -> None:
    net, x, kept = run(kind, both=both, look_at=1)
    for suffix, place in (("", "rnn.l0"), ("_reverse", "rnn.l0.reverse"))[: 1 + both]:
        row = x[1].flip(0) if suffix else x[1]
        gates, states = textbook(net, row, suffix)
        order = slice(None, None, -1) if suffix else slice(None)
        stacked = torch.stack(states[1:]).detach().numpy()[order]
        np.testing.assert_allclose(kept.array(f"{place}:h"), stacked[:, :4], atol=1e-12)
        if kind == "lstm":
            np.testing.assert_allclose(kept.array(f"{place}:c"), stacked[:, 4:], atol=1e-12)
        for name in gates[0]:
            expected = torch.stack([gate[name] for gate in gates]).detach().numpy()[order]
            np.testing.assert_allclose(kept.array(f"{place}:{name}"), expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_jacobian_norms_equal_autograd_step_by_step(kind: str) -> None:
    net, x, kept = run(kind)
    jacobians = step_jacobians(net, x[0])
    size = len(jacobians[0])
    expected = {
        "frobenius_norm": [float(j.norm()) for j in jacobians],
        "frobenius_norm_scaled": [float(j.norm()) / math.sqrt(size) for j in jacobians],
        "spectral_norm": [float(torch.linalg.svdvals(j)[0]) for j in jacobians],
        "spectral_radius": [float(torch.linalg.eigvals(j).abs().max()) for j in jacobians],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(kept.array(f"rnn.l0:jacobian/{name}"), values, rtol=1e-9)
    if kind == "lstm":
        blocks = [float(torch.linalg.svdvals(j[4:, 4:])[0]) for j in jacobians]
        np.testing.assert_allclose(kept.array("rnn.l0:jacobian/carousel_norm"), blocks, rtol=1e-9)
    if kind == "rnn":
        bound = kept.array("rnn.l0:jacobian/bound")
        np.testing.assert_allclose(bound, float(torch.linalg.svdvals(net.rnn.weight_hh_l0.detach())[0]))
        assert (kept.array("rnn.l0:jacobian/spectral_norm") <= bound + 1e-12).all()
    assert not [r for r in kept.records if isinstance(r, Refusal)]


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_lags_equal_explicit_products(kind: str) -> None:
    net, x, kept = run(kind)
    jacobians = step_jacobians(net, x[0])
    shown = kept.array("rnn.l0:jacobian/lag_map")
    size, steps = len(jacobians[0]), len(jacobians)
    expected = np.full((steps - 1, steps), np.nan)
    for start in range(steps - 1):
        product = torch.eye(size, dtype=D)
        expected[start, 0] = 1.0
        for t in range(start + 1, steps):
            product = jacobians[t] @ product
            expected[start, t - start] = float(product.norm()) / math.sqrt(size)
    np.testing.assert_allclose(shown, expected, rtol=1e-9)
    median = kept.array("rnn.l0:jacobian/lag")[0]
    np.testing.assert_allclose(median, np.nanmedian(expected, axis=0), rtol=1e-9)
    told = kept.scalar("rnn.l0:jacobian/lag_horizon")
    passed = np.flatnonzero((median < 1e-3) | (median > 1e3))
    assert (math.isnan(told) and not len(passed)) or told == passed[0]


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_gradients_equal_autograd_on_the_unrolled_loop(kind: str) -> None:
    """c_t's gradient holds h_t fixed (trap 11): the unrolled graph's total derivative is another number."""
    net, x, kept = run(kind)
    _, states = textbook(net, x[0])
    free = [states[0]]
    w = dict(net.rnn.named_parameters())
    cell = {"lstm": nn.LSTMCell, "gru": nn.GRUCell, "rnn": nn.RNNCell}[kind](3, 4).double()
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(cell, name).data.copy_(w[f"{name}_l0"].data)
    total = torch.zeros((), dtype=D)
    for t in range(12):
        before = free[-1]
        if kind == "lstm":
            after = torch.cat(cell(x[0][t][None], (before[None, :4], before[None, 4:])), 1)[0]
        else:
            after = cell(x[0][t][None], before[None])[0]
        after = after * 1.0  # one tensor for the whole state: its gradient holds the other half fixed
        after.retain_grad()
        free.append(after)
        total = total + net.head(after[:4]).square().sum()
    total.backward()
    np.testing.assert_allclose(
        kept.array("rnn.l0:gradient/state_norm"), [float(s.grad[:4].norm()) for s in free[1:]], rtol=1e-9
    )
    if kind == "lstm":
        np.testing.assert_allclose(
            kept.array("rnn.l0:gradient/cell_norm"), [float(s.grad[4:].norm()) for s in free[1:]], rtol=1e-9, atol=1e-15
        )


def test_the_gradient_map_equals_one_backward_pass_a_step() -> None:
    net, x, kept = run("gru")
    shown = kept.array("rnn.l0:gradient/lag_map")
    _, states = textbook(net, x[0])
    for t in range(12):
        loss = net.head(states[t + 1]).square().sum()
        gradients = torch.autograd.grad(loss, states[1 : t + 2], retain_graph=True)
        np.testing.assert_allclose(shown[t, : t + 1], [float(g.norm()) for g in gradients], rtol=1e-9)
        assert (shown[t, t + 1 :] == 0).all()


def test_statistics_count_every_real_step_of_every_sample() -> None:
    net, x, kept = run("gru", lengths=(12, 5, 1))
    values: dict[str, list[np.ndarray]] = {"gate/reset": [], "gate/update": [], "candidate": [], "h": []}
    for sample, length in enumerate((12, 5, 1)):
        gates, states = textbook(net, x[sample, :length])
        for name in ("gate/reset", "gate/update", "candidate"):
            values[name] += [gate[name].detach().numpy() for gate in gates]
        values["h"] += [state.detach().numpy() for state in states[1:]]
    for name in ("gate/reset", "gate/update"):
        v = np.stack(values[name])
        expected = [(v < 0.1).mean(0), (v > 0.9).mean(0), (4 * v * (1 - v)).mean(0)]
        np.testing.assert_allclose(kept.array(f"rnn.l0:{name}/saturation"), expected, atol=1e-12)
    v = np.stack(values["candidate"])
    expected = [(v < -0.97).mean(0), (v > 0.97).mean(0), (1 - v**2).mean(0)]
    np.testing.assert_allclose(kept.array("rnn.l0:candidate/saturation"), expected, atol=1e-12)
    z = np.stack(values["gate/update"])
    np.testing.assert_allclose(kept.array("rnn.l0:gate/update/timescale"), -1 / np.log(z).mean(0), rtol=1e-9)
    np.testing.assert_allclose(kept.array("rnn.l0:h/units")[3], np.stack(values["h"]).var(0), rtol=1e-9)


def test_dead_constant_and_duplicate_units() -> None:
    random = torch.Generator().manual_seed(0)
    walk = torch.randn(50, generator=random, dtype=D)
    values = torch.stack(
        (
            walk,
            torch.zeros(50, dtype=D),
            -2 * walk,
            torch.ones(50, dtype=D),
            torch.randn(50, generator=random, dtype=D),
        ),
        1,
    )
    dead, constant, duplicate, _ = unit_statistics(values)
    assert dead.tolist() == [0, 1, 0, 0, 0] and constant.tolist() == [0, 0, 0, 1, 0]
    assert duplicate.tolist() == [-1, -1, 0, -1, -1]


def test_a_constant_gate_of_nine_tenths_remembers_nine_and_a_half_steps() -> None:
    """τ = −1/ln f̄: 9.49 steps for f = 0.9, not the 10 of 1/(1 − f)."""
    net, x, _ = run("gru")
    with torch.no_grad():
        for parameter in net.rnn.parameters():
            parameter.zero_()
        net.rnn.bias_ih_l0[4:8] = math.log(0.9 / 0.1)
    kept = Kept()
    perform(
        Subject(model=net, kind="vectors", width=3),
        Batch(x, torch.tensor([12, 12])),
        kept,
        RunOptions(only=("timescale",)),
    )
    np.testing.assert_allclose(kept.array("rnn.l0:gate/update/timescale"), -1 / math.log(0.9), rtol=1e-9)


def test_one_step_and_nan_are_shown_as_they_are() -> None:
    _, _, kept = run("lstm", steps=1, lengths=(1, 1))
    assert kept.array("rnn.l0:jacobian/spectral_norm").shape == (1,)
    torch.manual_seed(0)
    net = Net("lstm").double().eval()
    x = torch.randn(1, 8, 3, dtype=D)
    x[0, 5] = torch.nan
    kept = Kept()
    perform(Subject(model=net, kind="vectors", width=3), Batch(x, torch.tensor([8])), kept)
    for name in ("h", "gate/forget", "jacobian/spectral_norm", "jacobian/frobenius_norm", "jacobian/spectral_radius"):
        values = kept.array(f"rnn.l0:{name}").reshape(8, -1)
        assert np.isfinite(values[:5]).all() and np.isnan(values[5:]).all(), name


def test_thinned_and_estimated_lags_say_so_and_are_close() -> None:
    exact, thin = LagBudget(300, 20), LagBudget(2000, 600)
    assert "exact; every start" in exact.method
    assert thin.directions < 600 and "evenly spaced starts" in thin.method and "random orthonormal" in thin.method
    assert thin.starts[0] == 0 and thin.starts[-1] == 1998
    logs = torch.tensor([[math.log(4.0)], [math.log(1.0)], [math.nan]], dtype=D)
    rows = by_lag(logs, torch.tensor([[True], [True], [False]]))[:, 0]
    assert rows.tolist() == pytest.approx([2.5, 1.3, 3.7, 2.5])
    assert horizon(torch.tensor([1.0, 0.1, 1e-4])) == 2 and math.isnan(horizon(torch.tensor([1.0, 0.5])))
