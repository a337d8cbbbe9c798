"""Itemised BPTT against autograd with a leaf of its own for every step's use of every parameter, in float64."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from inspector.engine.analyses import itemised_bptt as itemised
from inspector.engine.cells.function_cell import FunctionStep
from inspector.engine.cells.gru import GruStep
from inspector.engine.cells.lstm import LstmStep
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.quantities.gradient import bptt as module
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence

D = torch.float64
H = 4
GATES = {"rnn": 1, "relu": 1, "gru": 3, "lstm": 4}


class Net(nn.Module):
    """Two layers, both directions, and a read-out."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        make = {"rnn": nn.RNN, "relu": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[kind]
        options = {"nonlinearity": "relu"} if kind == "relu" else {}
        self.rnn = make(3, H, 2, bidirectional=True, batch_first=True, **options)
        self.head = nn.Linear(2 * H, 2)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out: Tensor = self.head(pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0])
        return out


def step_loss(out: Tensor, batch: Batch) -> Tensor:
    real = torch.arange(out.shape[1]) < batch.lengths[:, None]
    loss = out.square().sum(-1)
    return torch.where(real, loss, loss.new_full((), torch.nan))


LENGTHS, LOOK_AT = (9, 7, 1), 1


@cache
def run(kind: str, quantity: str = "bptt") -> tuple[Net, Tensor, Kept]:
    torch.manual_seed(0)
    net = Net(kind).double().eval()
    x = torch.randn(3, 9, 3, dtype=D)
    kept = Kept()
    subject = Subject(model=net, kind="vectors", width=3, loss=step_loss, forward=lambda model, x, n: model(x, n))
    batch = Batch(x, torch.tensor(LENGTHS), look_at=LOOK_AT)
    perform(subject, batch, kept, RunOptions(only=(quantity,)))
    return net, x, kept


def textbook(kind: str, x: Tensor, state: Tensor, weights: dict[str, Tensor]) -> Tensor:
    """One step from the equations: (h,) or (h, c) side by side."""
    logistic = lambda a: 1 / (1 + torch.exp(-a))  # noqa: E731
    a = weights["weight_ih"] @ x + weights["bias_ih"]
    b = weights["weight_hh"] @ state[:H] + weights["bias_hh"]
    if kind == "lstm":
        i, f, g, o = (a + b).chunk(4)
        c = logistic(f) * state[H:] + logistic(i) * torch.tanh(g)
        return torch.cat((logistic(o) * torch.tanh(c), c))
    if kind == "gru":
        (ar, az, an), (br, bz, bn) = a.chunk(3), b.chunk(3)
        z = logistic(az + bz)
        return (1 - z) * torch.tanh(an + logistic(ar + br) * bn) + z * state
    return torch.relu(a + b) if kind == "relu" else torch.tanh(a + b)


def contributions(net: Net, kind: str, x: Tensor, layer: int, reverse: bool) -> dict[str, Tensor]:
    """{parameter: (t, k, …)}: the gradient of step t's own loss for step k's own copy of each parameter.

    What enters a layer at step t is the gradient that its output gets from everything above it; indices are those of
    the sequence.
    """
    flows = []
    below = x[None]
    for number in range(2):
        one = type(net.rnn)(below.shape[2], H, bidirectional=True, batch_first=True,
                            **({"nonlinearity": "relu"} if kind == "relu" else {})).double()  # fmt: skip
        for name, parameter in one.named_parameters():
            parameter.data.copy_(getattr(net.rnn, name.replace("_l0", f"_l{number}")).data)
        made = one(below.detach() if number == layer else below)[0]
        flows.append((below, made))
        below = made
    out = flows[layer][1]
    loss = net.head(below).square().sum()
    arriving = torch.autograd.grad(loss, out)[0][0, :, H:] if reverse else torch.autograd.grad(loss, out)[0][0, :, :H]
    given = flows[layer][0][0].detach()
    suffix = f"_l{layer}" + ("_reverse" if reverse else "")
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    order = list(range(len(x)))[:: -1 if reverse else 1]
    leaves = [
        {name: getattr(net.rnn, name + suffix).detach().clone().requires_grad_() for name in names} for _ in order
    ]
    state = torch.zeros(2 * H if kind == "lstm" else H, dtype=D)
    found = {name: torch.zeros(len(x), len(x), *leaves[0][name].shape, dtype=D) for name in names}
    for position, t in enumerate(order):
        state = textbook(kind, given[t], state, leaves[position])
        own = (arriving[t] * state[:H]).sum()
        for name in names:
            copies = [leaf[name] for leaf in leaves[: position + 1]]
            for k, gradient in zip(order, torch.autograd.grad(own, copies, retain_graph=True), strict=False):
                found[name][t, k] = gradient
    return found


def shown_names(kind: str) -> dict[str, str]:
    """{name on screen: a parameter of torch's with the same gradient}."""
    biases = {"bias_ih": "bias_ih", "bias_hh": "bias_hh"} if kind == "gru" else {"bias": "bias_hh"}
    return {"weight_ih": "weight_ih", "weight_hh": "weight_hh", **biases}


PLACES = [(layer, reverse) for layer in (0, 1) for reverse in (False, True)]


def place_of(layer: int, reverse: bool) -> str:
    return f"rnn.l{layer}" + (".reverse" if reverse else "")


@pytest.mark.parametrize("kind", list(GATES))
@pytest.mark.parametrize(("layer", "reverse"), PLACES)
def test_every_item_equals_autograd_with_a_leaf_for_every_step(kind: str, layer: int, reverse: bool) -> None:
    net, x, kept = run(kind)
    length = LENGTHS[LOOK_AT]
    expected = contributions(net, kind, x[LOOK_AT, :length], layer, reverse)
    for name, own in shown_names(kind).items():
        items = expected[own]
        base = f"{place_of(layer, reverse)}:bptt/{name}"
        np.testing.assert_allclose(kept.array(base), items.flatten(2).norm(dim=2), rtol=1e-9, atol=1e-14)
        lag = kept.array(f"{base}/lag")
        for distance in range(length):
            pairs = [(t, t + distance if reverse else t - distance) for t in range(length)]
            own_items = torch.stack([items[t, k] for t, k in pairs if 0 <= k < length])
            np.testing.assert_allclose(lag[0, distance], float(own_items.sum(0).norm()), rtol=1e-9, atol=1e-14)
            np.testing.assert_allclose(lag[1, distance], float(own_items.flatten(1).norm(dim=1).sum()), rtol=1e-9)
        assert (lag[2] == 0).all()
        total, first = items.sum((0, 1)), torch.stack([items[t, t] for t in range(length)]).sum(0)
        assert kept.scalar(f"{base}/check_error") < 1e-12
        assert kept.scalar(f"{base}/total_norm") == pytest.approx(float(total.norm()), rel=1e-9)
        assert kept.scalar(f"{base}/immediate_norm") == pytest.approx(float(first.norm()), rel=1e-9)
        cosine = float((total * first).sum() / total.norm() / first.norm())
        assert kept.scalar(f"{base}/immediate_cosine") == pytest.approx(cosine, rel=1e-9)
    assert not kept.refusals()


@pytest.mark.parametrize("kind", list(GATES))
def test_the_sum_of_all_items_is_the_whole_models_own_gradient(kind: str) -> None:
    net, x, kept = run(kind)
    length = LENGTHS[LOOK_AT]
    loss = net(x[LOOK_AT : LOOK_AT + 1, :length], torch.tensor([length])).square().sum()
    for layer, reverse in PLACES:
        for name, own in shown_names(kind).items():
            parameter = getattr(net.rnn, f"{own}_l{layer}" + ("_reverse" if reverse else ""))
            gradient = torch.autograd.grad(loss, parameter, retain_graph=True)[0]
            found = kept.scalar(f"{place_of(layer, reverse)}:bptt/{name}/total_norm")
            assert found == pytest.approx(float(gradient.norm()), rel=1e-9)


def recurrence(cell: Any, t: int, i: int, dtype: torch.dtype = D) -> Recurrence:
    """A walk of a cell over random inputs, with random gradients arriving at every state."""
    torch.manual_seed(1)
    x, states = torch.randn(t, 1, i, dtype=dtype), [torch.zeros(1, cell.state_size, dtype=dtype)]
    for row in x:
        states.append(cell.step(row, states[-1]))
    arriving = torch.randn(t, 1, cell.state_size, dtype=dtype)
    return Recurrence("p", "Own", cell, x, torch.stack(states), torch.tensor([t]), arriving=arriving)


def own_step() -> FunctionStep:
    torch.manual_seed(2)
    given = {"U": torch.randn(5, 3, dtype=D), "W": torch.randn(5, 5, dtype=D) / 2, "gain": torch.rand((), dtype=D)}

    def function(x: Tensor, state: Tensor, U: Tensor, W: Tensor, gain: Tensor) -> Tensor:
        return gain * torch.tanh(x @ U.T + state @ W.T) + (1 - gain) * state

    return FunctionStep(function, {"h": slice(0, 5)}, parameters=given)


def test_a_step_of_ones_own_with_named_parameters_is_itemised() -> None:
    cell = own_step()
    item, kept = recurrence(cell, 12, 3), Kept()
    module.bptt.function(item, Emitter(kept), 0)
    assert item.arriving is not None
    leaves = [{name: value.clone().requires_grad_() for name, value in cell.given.items()} for _ in range(12)]
    state = item.states[0]
    for t in range(12):
        state = cell.function(item.x[t], state, **leaves[t])
        own = (item.arriving[t] * state).sum()
        for name in cell.given:
            gradients = torch.autograd.grad(own, [leaf[name] for leaf in leaves[: t + 1]], retain_graph=True)
            expected = [float(gradient.norm()) for gradient in gradients]
            np.testing.assert_allclose(kept.array(f"p:bptt/{name}")[t, : t + 1], expected, rtol=1e-9)
            assert (kept.array(f"p:bptt/{name}")[t, t + 1 :] == 0).all()
    assert {f"p:bptt/{name}" for name in ("U", "W", "gain")} < kept.names()
    assert kept.scalar("p:bptt/W/check_error") < 1e-12


def test_a_step_without_named_parameters_is_refused_with_the_reason() -> None:
    cell = FunctionStep(lambda x, state: torch.tanh(x + state), {"h": slice(0, 3)})
    with pytest.raises(itemised.Unsupported, match="names no parameters"):
        module.bptt.function(recurrence(cell, 5, 3), Emitter(Kept()), 0)


def test_a_projected_lstm_has_items_for_its_projection() -> None:
    torch.manual_seed(3)
    shapes = ((16, 3), (16, 2), (16,), (16,), (2, 4))
    cell = LstmStep(*(torch.randn(*shape, dtype=D) for shape in shapes))
    kept = Kept()
    module.bptt.function(recurrence(cell, 8, 3), Emitter(kept), 0)
    for name in ("weight_ih", "weight_hh", "bias", "weight_hr"):
        assert kept.scalar(f"p:bptt/{name}/check_error") < 1e-12


def test_a_wrong_closed_form_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    item, kept = recurrence(own_step(), 12, 3), Kept()
    right = itemised.unrolled_gradient
    monkeypatch.setattr(itemised, "unrolled_gradient", lambda *given: {n: 1.001 * v for n, v in right(*given).items()})
    module.bptt.function(item, Emitter(kept), 0)
    assert not kept.names() and all(
        "do not add up to autograd's gradient" in refusal.reason for refusal in kept.refusals()
    )


@pytest.mark.parametrize("step", [LstmStep, GruStep])
def test_norms_by_lag_beyond_the_memory_are_estimates_within_their_error(
    monkeypatch: pytest.MonkeyPatch, step: Any
) -> None:
    torch.manual_seed(4)
    g = 48 if step is LstmStep else 36
    cell = step(*(torch.randn(g, n, dtype=D) * 0.3 for n in (12, 12)), *torch.randn(2, g, dtype=D))
    item, exact, thin = recurrence(cell, 150, 12), Kept(), Kept()
    module.bptt.function(item, Emitter(exact), 0)
    monkeypatch.setattr(module, "LAG_BYTES", 1000)
    module.bptt.function(item, Emitter(thin), 0)
    for name in cell.parameters():
        truth, (norm, norms, error) = exact.array(f"p:bptt/{name}/lag"), thin.array(f"p:bptt/{name}/lag")
        assert "Gaussian projections" in thin.channel(f"p:bptt/{name}/lag").method
        assert exact.channel(f"p:bptt/{name}/lag").method == "exact"
        some = norm > 0
        assert some.sum() >= 149 and (error[some] > 0).all() and (error[some] < 0.35 * norm[some]).all()
        off = np.abs(norm - truth[0])[some] / error[some]
        assert np.mean(off) < 2 and (off < 6).all()
        np.testing.assert_allclose(norms, truth[1], rtol=1e-12)
        np.testing.assert_allclose(thin.array(f"p:bptt/{name}"), exact.array(f"p:bptt/{name}"), rtol=1e-12)


@pytest.mark.parametrize("like", [torch.float64, torch.float32])
def test_the_standard_error_is_the_spread_of_the_estimate_over_many_draws(like: torch.dtype) -> None:
    """One gradient (g, r), projected anew for each of 4000 lags: their norms scatter by the error that is told."""
    torch.manual_seed(0)
    gradient = torch.randn(20, 6, dtype=D) * torch.tensor([4.0, 1, 1, 1, 1, 1])
    lags = 4000
    sums = (torch.randn(lags * module.PROBES, 20, dtype=D) @ gradient).to(like)
    signal = module.Signal(["w"], torch.zeros(0), torch.zeros(0), sums, projected=True)
    parameter = module.Parameter(signal, slice(0, 6), torch.zeros(0), torch.zeros(lags, dtype=D))
    norm, _, error = parameter.norms()
    assert float(norm.mean()) == pytest.approx(float(gradient.norm()), rel=0.02)
    assert float(error.mean()) == pytest.approx(float(norm.std()), rel=0.05)
    within = ((norm - gradient.norm()).abs() < 2 * error).double().mean()  # the band that is drawn
    assert 0.9 < float(within) < 0.98
    exact = module.Parameter(module.Signal(["w"], sums[:0], sums[:0], sums, False), slice(0, 6), sums, signal.totals)
    assert not exact.projected and parameter.projected


def test_what_is_too_long_is_refused_with_its_cost_and_what_is_done_is_announced() -> None:
    item = recurrence(own_step(), 70, 3)
    item.lengths[0] = module.LONGEST + 1
    item.arriving = torch.zeros(module.LONGEST + 1, 1, 5, dtype=D)
    with pytest.raises(itemised.Unsupported, match="4,097"):
        module.check_size(item, 0)
    told: list[str] = []
    emit = Emitter(Kept(), progress=lambda _done, _total, text: told.append(text))
    cell = LstmStep(*(torch.zeros(4 * 64, 64) for _ in range(2)), None, None)
    long = Recurrence("p", "LSTM", cell, torch.zeros(0), torch.zeros(0), torch.tensor([100_000]))
    with pytest.raises(itemised.Unsupported, match=r"5,000,050,000 pairs of steps, about .* min on one core"):
        itemised.announce(long, 100_000, 100_000, "Itemised gradient", emit)
    assert itemised.pairs(100_000, 10) == sum(min(100_000 - k, 11) for k in range(100_000)) and not told
    module.bptt.function(recurrence(own_step(), 70, 3), emit, 0)
    assert told[0] == "Itemised gradient of p: 2,485 pairs of steps, 0.1 s at most on one core"


def test_nan_is_shown_where_it_is_and_one_step_has_a_map() -> None:
    item, kept = recurrence(own_step(), 6, 3), Kept()
    item.x[2:] = torch.nan
    item.states[3:] = torch.nan
    module.bptt.function(item, Emitter(kept), 0)
    shown = kept.array("p:bptt/W")
    assert np.isfinite(shown[:2]).all() and np.isnan(shown[2:, 2]).all()
    assert math.isnan(kept.scalar("p:bptt/W/check_error"))
    one = Kept()
    module.bptt.function(recurrence(own_step(), 1, 3), Emitter(one), 0)
    assert one.array("p:bptt/U").shape == (1, 1) and one.scalar("p:bptt/U/immediate_cosine") == pytest.approx(1)
