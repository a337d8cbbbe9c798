"""Itemised and truncated BPTT of hand-written recurrences against autograd with a leaf for every step, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.func import functional_call

from inspector.engine.analyses import itemised_bptt as itemised
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.engine.recurrent.traced.cells.replayed import ReplayStep
from inspector.engine.recurrent.traced.program import parameter_use as trained
from inspector.engine.trace.emitter import Emitter
from inspector.engine.trace.trace import Recurrence, Trace
from sample_models import cells

D = torch.float64
IN, H, T = 3, 4, 9


class Bare(nn.Module):
    """Parameters that no F.linear reads: two products, a gain, a table of which one row is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.state_size = self.hidden_size = H
        self.u, self.w = nn.Parameter(torch.randn(IN, H)), nn.Parameter(torch.randn(H, H) / 2)
        self.gain, self.rows = nn.Parameter(torch.rand(())), nn.Parameter(torch.randn(2, H))

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return self.gain * torch.tanh(x @ self.u + h @ self.w.T + self.rows[1]) + (1 - self.gain) * h


class Branching(nn.Module):
    """One weight or the other, as the input says; `both` is multiplied twice in a step, and its bias with it."""

    def __init__(self) -> None:
        super().__init__()
        self.state_size = self.hidden_size = H
        self.a, self.b, self.both = nn.Linear(IN + H, H), nn.Linear(IN + H, H), nn.Linear(H, H)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        one = self.a if float(x.sum()) > 0 else self.b
        return torch.tanh(self.both(torch.tanh(self.both(h))) + one(torch.cat((x, h), -1)))


class WithReadOut(nn.Module):
    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.rnn, self.head = rnn, nn.Linear(H, 2)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.rnn(x)[0])
        return out


class InlineLstm(nn.Module):
    """One linear map, four chunks, a loop in forward."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(IN + H, 4 * H)

    def forward(self, x: Tensor) -> Tensor:
        h, c = x.new_zeros(x.shape[0], H), x.new_zeros(x.shape[0], H)
        out = []
        for t in range(x.shape[1]):
            i, f, g, o = self.map(torch.cat((x[:, t], h), -1)).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            out.append(h)
        return torch.stack(out, 1)


class InlineSkip(nn.Module):
    """h_t also receives h_{t−3}, as an older value of a list."""

    def __init__(self) -> None:
        super().__init__()
        self.u, self.w, self.v = nn.Linear(IN, H), nn.Linear(H, H), nn.Linear(H, H, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        states = [x.new_zeros(x.shape[0], H)]
        for t in range(x.shape[1]):
            a = self.u(x[:, t]) + self.w(states[-1])
            states.append(torch.tanh(a + self.v(states[t - 2]) if t >= 2 else a))
        return torch.stack(states[1:], 1)


class InPlace(nn.Module):
    """The new state is written into in place."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(IN + H, 2 * H)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(x.shape[0], H), []
        for t in range(x.shape[1]):
            a = self.w(torch.cat((x[:, t], h), -1))
            z = torch.sigmoid(a[..., :H])
            new = z * h
            new += (1 - z) * torch.tanh(a[..., H:])
            h = new
            out.append(h)
        return torch.stack(out, 1)


class Stacked(nn.Module):
    """Two cells in one loop; the first feeds the second through a map of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.below, self.above = cells.TextbookGruCell(IN, H), cells.ElmanCell(H, H)

    def forward(self, x: Tensor) -> Tensor:
        low, high, out = x.new_zeros(x.shape[0], H), x.new_zeros(x.shape[0], H), []
        for x_t in x.unbind(1):
            low = self.below(x_t, low)
            high = self.above(low, high)
            out.append(high)
        return torch.stack(out, 1)


def seen(model: nn.Module, b: int, *keys: str, look_at: int = 0) -> tuple[Trace, Kept, Tensor]:
    torch.manual_seed(7)
    x = torch.randn(b, T, IN, dtype=D)
    subject = Subject(model=model, kind="vectors", width=IN, loss=lambda out, batch: out.square().sum(-1))
    kept = Kept()
    batch = Batch(x, torch.tensor([T] * b), look_at=look_at)
    return perform(subject, batch, kept, RunOptions(only=tuple(keys or ("states",)))), kept, x


def total(recurrence: Recurrence, sample: int) -> dict[str, Tensor]:
    """The sum of all items of a sweep, each in the parameter's shape."""
    found: dict[str, Tensor] = {}
    for source in itemised.sweep(recurrence, sample, Emitter(Kept()), ""):
        for name, (signal, factor) in source.factors.items():
            item = torch.outer(source.rows[signal].sum(0), factor)
            found[name] = found.get(name, torch.zeros_like(item)) + item
    return {name: found[name].reshape(value.shape) for name, value in recurrence.cell.parameters().items()}


def models() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    found: dict[str, nn.Module] = {
        "textbook gru": WithReadOut(cells.Unrolled(cells.TextbookGruCell(IN, H))),
        "lstm by hand": WithReadOut(cells.UnrolledWithMemory(cells.TextbookLstmCell(IN, H))),
        "augmented skip": WithReadOut(cells.Unrolled(cells.SkipThroughTime(IN, H, 3))),
        "inline lstm": InlineLstm(),
        "inline skip": InlineSkip(),
        "in place": InPlace(),
        "bare parameters": WithReadOut(cells.Unrolled(Bare())),  # type: ignore[arg-type]
    }
    return {name: model.double() for name, model in found.items()}


@pytest.mark.parametrize("name", models())
@pytest.mark.parametrize("b", [1, 2])
def test_the_items_add_up_to_the_gradient_of_the_whole_models_loss(name: str, b: int) -> None:
    model = models()[name]
    trace, _, x = seen(model, b)
    (found,) = trace.recurrences
    wanted = {n: p for n, p in model.named_parameters() if not n.startswith("head")}
    for sample in range(b):
        sums = total(found, sample)
        assert set(sums) == set(wanted)
        loss = model(x[sample : sample + 1]).square().sum()
        expected = dict(zip(wanted, torch.autograd.grad(loss, list(wanted.values())), strict=True))
        again = itemised.unrolled_gradient(found, sample, Emitter(Kept()))
        for parameter, value in sums.items():
            torch.testing.assert_close(value, expected[parameter], rtol=1e-9, atol=1e-11)
            torch.testing.assert_close(again[parameter], expected[parameter], rtol=1e-9, atol=1e-11)


def test_branches_share_their_parameters_and_one_that_is_read_twice_is_pulled_whole() -> None:
    torch.manual_seed(1)
    model = WithReadOut(cells.Unrolled(Branching())).double()  # type: ignore[arg-type]
    trace, _, x = seen(model, 1)
    (found,) = trace.recurrences
    assert isinstance(found.cell, ReplayStep) and found.cell.use is not None and len(found.cell.use.groups) == 2
    assert found.cell.use.whole == ["rnn.cell.both.weight", "rnn.cell.both.bias"]
    assert found.cell.use.signals["rnn.cell.a.bias"] == "rnn.cell.a.weight"
    wanted = {n: p for n, p in model.named_parameters() if not n.startswith("head")}
    expected = torch.autograd.grad(model(x).square().sum(), list(wanted.values()))
    for (name, value), gradient in zip(total(found, 0).items(), expected, strict=True):
        assert name in wanted
        torch.testing.assert_close(value, gradient, rtol=1e-9, atol=1e-11)


def test_every_state_of_one_loop_has_its_own_parameters() -> None:
    torch.manual_seed(2)
    model = Stacked().double()
    trace, _, x = seen(model, 2)
    loss = model(x[1:]).square().sum()
    assert [item.place for item in trace.recurrences] == ["below", "above"]
    for item in trace.recurrences:
        wanted = {n: p for n, p in model.named_parameters() if n.startswith(f"{item.place}.")}
        sums = total(item, 1)
        assert list(sums) == list(wanted)
        for name, gradient in zip(
            wanted, torch.autograd.grad(loss, list(wanted.values()), retain_graph=True), strict=True
        ):
            torch.testing.assert_close(sums[name], gradient, rtol=1e-9, atol=1e-11)


def contributions(model: WithReadOut, x: Tensor) -> dict[str, Tensor]:
    """{parameter: (t, k, …)}: the gradient of step t's loss for step k's own copy of the cell's parameters."""
    cell = model.rnn.cell
    assert isinstance(cell, nn.Module)
    leaves = [{n: p.detach().clone().requires_grad_() for n, p in cell.named_parameters()} for _ in range(T)]
    memory = isinstance(model.rnn, cells.UnrolledWithMemory)
    state: Any = (torch.zeros(1, H, dtype=D),) * 2 if memory else torch.zeros(1, cell.state_size, dtype=D)
    found = {n: torch.zeros(T, T, *p.shape, dtype=D) for n, p in cell.named_parameters()}
    for t in range(T):
        state = functional_call(cell, leaves[t], (x[None, t], state))
        loss = model.head((state[0] if memory else state)[:, :H]).square().sum()
        for n in found:
            grads = torch.autograd.grad(
                loss, [leaf[n] for leaf in leaves[: t + 1]], retain_graph=True, materialize_grads=True,
                allow_unused=True,
            )  # fmt: skip
            found[n][t, : t + 1] = torch.stack(grads)
    return found


KINDS = ("textbook gru", "lstm by hand", "augmented skip", "bare parameters")


@pytest.mark.parametrize("kind", KINDS)
def test_every_item_of_the_map_is_the_gradient_of_one_step_for_anothers_copy(kind: str) -> None:
    model = models()[kind]
    _, kept, x = seen(model, 2, "bptt", look_at=1)
    assert isinstance(model, WithReadOut) and not kept.reasons()
    for name, items in contributions(model, x[1]).items():
        base = f"rnn.cell:bptt/rnn.cell.{name}"
        np.testing.assert_allclose(kept.array(base), items.reshape(T, T, -1).norm(dim=2), rtol=1e-9, atol=1e-13)
        lags = [torch.stack([items[t, t - lag] for t in range(lag, T)]).sum(0) for lag in range(T)]
        np.testing.assert_allclose(kept.array(f"{base}/lag")[0], [float(g.norm()) for g in lags], rtol=1e-8)
        assert kept.scalar(f"{base}/check_error") < 1e-12
        assert kept.scalar(f"{base}/total_norm") == pytest.approx(float(items.sum((0, 1)).norm()), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_truncation_is_the_sum_over_short_lags(kind: str) -> None:
    model = models()[kind]
    _, kept, x = seen(model, 1, "truncation")
    assert isinstance(model, WithReadOut) and not kept.reasons()
    items = contributions(model, x[0])
    lag = torch.arange(T)[:, None] - torch.arange(T)
    whole = torch.cat([value.sum((0, 1)).flatten() for value in items.values()])
    found = kept.array("rnn.cell:truncation/all")
    assert found[0].tolist() == list(range(1, T + 1))
    for k in range(1, T + 1):
        near = ((lag >= 0) & (lag < k)).double()
        cut = torch.cat([torch.einsum("tk,tk...->...", near, value).flatten() for value in items.values()])
        assert found[1, k - 1] == pytest.approx(float((cut - whole).norm() / whole.norm()), rel=1e-7, abs=1e-12)
        assert found[2, k - 1] == pytest.approx(float(cut @ whole / cut.norm() / whole.norm()), rel=1e-9)


def test_what_does_not_fit_the_memory_is_refused_with_its_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "WHOLE_BYTES", 1000)
    _, kept, _ = seen(models()["bare parameters"], 1, "bptt")
    (reason,) = kept.reasons()
    assert reason.startswith(
        "The gradients of rnn.cell.u, rnn.cell.w, rnn.cell.gain and others at each of 9 steps take"
    )


def test_a_step_that_is_wrong_by_little_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    right = trained.ParameterUse.sensitivities
    monkeypatch.setattr(
        trained.ParameterUse, "sensitivities", lambda *given: {n: 1.001 * v for n, v in right(*given).items()}
    )
    _, kept, _ = seen(models()["inline lstm"], 1, "bptt")
    assert any("do not add up to autograd's gradient" in reason for reason in kept.reasons())
    assert "model:bptt/map.weight" not in kept.names()


def test_layers_that_differ_have_no_parameter_of_a_step() -> None:
    torch.manual_seed(3)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(IN, IN), nn.Tanh()) for _ in range(6))).double()
    subject = Subject(model=model, kind="vectors", width=IN, loss=lambda out, batch: out.square().sum(-1))
    kept = Kept()
    x = torch.randn(1, 1, IN, dtype=D)
    trace = perform(subject, Batch(x, torch.tensor([1])), kept, RunOptions(only=("states", "bptt")))
    assert len(trace.recurrences) == 1 and not trace.recurrences[0].cell.parameters()
    (reason,) = kept.reasons()
    assert "Every layer has parameters of its own" in reason and "depth/parameters" in reason


class Encoded(nn.Module):
    """Every frame goes through a net of its own before the cell; a scale from outside the cell meets the state."""

    def __init__(self) -> None:
        super().__init__()
        self.frames, self.cell = nn.Sequential(nn.Linear(IN, 5), nn.Tanh(), nn.Linear(5, IN)), Scaled()
        self.scale = nn.Parameter(torch.rand(H) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        h, out = x.new_zeros(x.shape[0], H), []
        for x_t in x.unbind(1):
            h = self.cell(self.frames(x_t), h, self.scale)
            out.append(h)
        return torch.stack(out, 1)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(IN + H, H)

    def forward(self, x: Tensor, h: Tensor, scale: Tensor) -> Tensor:
        return torch.tanh(self.map(torch.cat((x, h * scale), -1)))


def test_parameters_are_those_of_the_cell_and_those_that_the_state_meets() -> None:
    torch.manual_seed(4)
    model = Encoded().double()
    trace, _, x = seen(model, 1)
    (found,) = trace.recurrences
    wanted = {n: p for n, p in model.named_parameters() if not n.startswith("frames")}
    sums = total(found, 0)
    assert found.place == "cell" and set(sums) == set(wanted) == {"scale", "cell.map.weight", "cell.map.bias"}
    expected = torch.autograd.grad(model(x).square().sum(), list(wanted.values()))
    for name, gradient in zip(wanted, expected, strict=True):
        torch.testing.assert_close(sums[name], gradient, rtol=1e-9, atol=1e-11)
