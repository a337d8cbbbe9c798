"""Hand-written recurrences, captured unmodified, against torch's own modules, closed forms and autograd, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kept import Kept
from models import GruByHand, OnlyOutput, Squash
from torch import Tensor, nn
from watched import seen

from inspector.engine.cells.lstm import LstmStep
from inspector.engine.errors import CancelledError
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D = torch.float64


class LstmByHand(nn.Module):
    """The usual way: one linear map, four chunks, a Python loop in forward."""

    def __init__(self, i: int = 3, h: int = 4) -> None:
        super().__init__()
        self.map, self.h = nn.Linear(i + h, 4 * h), h

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], self.h)
        c = x.new_zeros(x.shape[0], self.h)
        out = []
        for t in range(x.shape[1]):
            i, f, g, o = self.map(torch.cat((x[:, t], h), -1)).chunk(4, -1)
            i = torch.sigmoid(i)
            f = torch.sigmoid(f)
            g = torch.tanh(g)
            o = torch.sigmoid(o)
            c = f * c + i * g
            h = o * torch.tanh(c)
            out.append(h)
        return torch.stack(out, 1)


class Loop(nn.Module):
    """A loop over cells, one above the other."""

    def __init__(self, *cells: nn.Module, h: int = 4) -> None:
        super().__init__()
        self.cells, self.h = nn.ModuleList(cells), h

    def forward(self, x: Tensor) -> Tensor:
        states = [x.new_zeros(x.shape[0], self.h) for _ in self.cells]
        out = []
        for x_t in x.unbind(1):
            for n, cell in enumerate(self.cells):
                states[n] = x_t = cell(x_t, states[n])
            out.append(x_t)
        return torch.stack(out, 1)


def lstm_pair() -> tuple[LstmByHand, nn.LSTM]:
    torch.manual_seed(0)
    ours, theirs = LstmByHand().double(), nn.LSTM(3, 4, batch_first=True).double()
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(ours.map.weight[:, :3])
        theirs.weight_hh_l0.copy_(ours.map.weight[:, 3:])
        theirs.bias_ih_l0.copy_(ours.map.bias)
        theirs.bias_hh_l0.zero_()
    return ours, theirs


@pytest.mark.parametrize("b", [1, 3])
def test_an_lstm_in_an_inline_loop_equals_the_fused_one(b: int) -> None:
    ours, theirs = lstm_pair()
    x = torch.randn(b, 9, 3, dtype=D)
    (a,), kept, _ = seen(ours, x)
    (e,), _, _ = seen(OnlyOutput(theirs), x)
    assert a.place == "model" and list(a.cell.parts) == ["h", "c"] and not kept.reasons()
    assert a.check is not None and a.check.passed
    torch.testing.assert_close(a.states, e.states)
    block, other = a.block(0, 9), e.block(0, 9)
    torch.testing.assert_close(block.jacobian(), other.jacobian(), rtol=1e-9, atol=1e-12)
    assert a.cell.gate_names == ("gate/i", "gate/f", "g", "gate/o")
    for mine, built_in in zip(a.cell.gate_names, LstmStep.gate_names, strict=True):
        torch.testing.assert_close(block.gates[mine], other.gates[built_in])
    torch.testing.assert_close(a.arriving, e.arriving, rtol=1e-8, atol=1e-10)
    from inspector.engine.cells.bptt_sweep import sweep

    assert e.arriving is not None
    expected = sweep(e.block(0, e.steps), e.arriving)[0]
    torch.testing.assert_close(a.delta, expected, rtol=1e-8, atol=1e-10)  # ∂L/∂c_t with h_t held fixed (trap 11)


def test_stacked_cells_are_told_apart_and_equal_the_fused_layers() -> None:
    torch.manual_seed(1)
    ours = Loop(GruByHand(3), GruByHand(4)).double()
    theirs = nn.GRU(3, 4, 2, batch_first=True).double()
    for n, cell in enumerate(ours.cells):
        for kind, linear in (("ih", cell.w), ("hh", cell.u)):
            getattr(theirs, f"weight_{kind}_l{n}").data.copy_(linear.weight)
            getattr(theirs, f"bias_{kind}_l{n}").data.copy_(linear.bias)
    x = torch.randn(2, 8, 3, dtype=D)
    found, kept, _ = seen(ours, x)
    expected, _, _ = seen(OnlyOutput(theirs), x)
    assert [item.place for item in found] == ["cells.0", "cells.1"] and not kept.reasons()
    for a, e in zip(found, expected, strict=True):
        torch.testing.assert_close(a.states, e.states)
        torch.testing.assert_close(a.block(0, 8).jacobian(), e.block(0, 8).jacobian(), rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(a.arriving, e.arriving, rtol=1e-8, atol=1e-10)
        torch.testing.assert_close(a.block(0, 8).gates["gate/z"], e.block(0, 8).gates["gate/update"])
        assert a.cell.gate_names == ("gate/r", "gate/z", "n")


def by_autograd(step: Callable[[Tensor], Tensor], state: Tensor) -> Tensor:
    found: Tensor = torch.autograd.functional.jacobian(step, state)
    return found


class TextbookGru(nn.Module):
    """Cho et al.: the reset gate before the product, so it is not PyTorch's (trap 12)."""

    def __init__(self) -> None:
        super().__init__()
        self.r, self.z, self.n = (nn.Linear(7, 4) for _ in range(3))

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        both = torch.cat((x, h), -1)
        r = torch.sigmoid(self.r(both))
        z = torch.sigmoid(self.z(both))
        candidate = torch.tanh(self.n(torch.cat((x, r * h), -1)))
        return z * h + (1 - z) * candidate

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.zeros(x.shape[0], 4, dtype=x.dtype)
        out = []
        for t in range(x.shape[1]):
            hidden = self.step(x[:, t], hidden)
            out.append(hidden)
        return torch.stack(out, 1)


def test_a_function_called_in_the_loop_with_gates_by_name() -> None:
    torch.manual_seed(2)
    model = TextbookGru().double()
    x = torch.randn(2, 7, 3, dtype=D)
    (found,), kept, _ = seen(model, x)
    assert not kept.reasons() and found.cell.gate_names == ("gate/r", "gate/z", "candidate")
    matrices = found.block(0, 7).jacobian()
    for t in range(7):
        for n in range(2):
            exact = by_autograd(lambda h, t=t, n=n: model.step(x[n, t], h), found.states[t, n])
            torch.testing.assert_close(matrices[t, n], exact)


class Skip(nn.Module):
    """h_t also receives h_{t−3} (S7)."""

    def __init__(self) -> None:
        super().__init__()
        self.u, self.w, self.v = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 4, bias=False)

    def step(self, x: Tensor, before: Tensor, old: Tensor | None) -> Tensor:
        a = self.u(x) + self.w(before)
        return torch.tanh(a if old is None else a + self.v(old))

    def forward(self, x: Tensor) -> Tensor:
        states = [x.new_zeros(x.shape[0], 4)]
        for t in range(x.shape[1]):
            old = states[t - 2] if t >= 2 else None
            states.append(self.step(x[:, t], states[-1], old))
        return torch.stack(states[1:], 1)


def test_skip_connections_through_time_have_the_augmented_state() -> None:
    torch.manual_seed(3)
    model = Skip().double()
    x = torch.randn(1, 9, 3, dtype=D)
    (found,), kept, _ = seen(model, x)
    assert not kept.reasons() and list(found.cell.parts) == ["h", "h[t-1]", "h[t-2]"]
    matrices = found.block(0, 9).jacobian()[:, 0]

    def step(state: Tensor, t: int) -> Tensor:
        h, h1, h2 = state.chunk(3)
        return torch.cat((model.step(x[0, t], h, h2), h, h1))

    for t in range(2, 9):
        torch.testing.assert_close(matrices[t], by_autograd(lambda s, t=t: step(s, t), found.states[t, 0]))
    graph = [x.new_zeros(4)]
    for t in range(9):
        graph.append(model.step(x[0, t], graph[-1], graph[t - 2] if t >= 2 else None))
    total = torch.autograd.grad(sum(h.square().sum() for h in graph[1:]), graph[1:])
    torch.testing.assert_close(found.delta[:, 0, :4], torch.stack(total))


class Branches(nn.Module):
    """Control flow that depends on the data, a mask, and a state in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(7, 4), nn.Linear(7, 4)

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        both = torch.cat((x, h), -1)
        new = torch.tanh(self.a(both)) if float(x.sum()) > 0 else torch.relu(self.b(both))
        return torch.where(x[..., :1] > -1, new, h)

    def forward(self, x: Tensor) -> Tensor:
        memory = {"h": x.new_zeros(x.shape[0], 4)}
        out = []
        for t in range(x.shape[1]):
            memory["h"] = self.step(x[:, t], memory["h"])
            out.append(memory["h"])
        return torch.stack(out, 1)


def test_branches_that_depend_on_the_data() -> None:
    torch.manual_seed(4)
    model = Branches().double()
    x = torch.randn(1, 12, 3, dtype=D)
    (found,), kept, _ = seen(model, x)
    assert not kept.reasons() and len(found.cell.groups) == 2
    matrices = found.block(0, 12).jacobian()[:, 0]
    for t in range(12):
        exact = by_autograd(lambda h, t=t: model.step(x[0, t], h), found.states[t, 0])
        torch.testing.assert_close(matrices[t], exact)


class Dropping(nn.Module):
    """Dropout inside the step, in training."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.drop = nn.Linear(7, 4), nn.Dropout(0.4)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], 4)
        out = []
        for t in range(x.shape[1]):
            h = torch.tanh(self.w(torch.cat((x[:, t], self.drop(h)), -1)))
            out.append(h)
        return torch.stack(out, 1)


def test_dropout_inside_the_step_is_what_it_was() -> None:
    torch.manual_seed(5)
    model = Dropping().double().train()
    (found,), kept, trace = seen(model, torch.randn(2, 8, 3, dtype=D))
    assert not kept.reasons() and found.check is not None and found.check.passed
    torch.testing.assert_close(found.states[1:].transpose(0, 1), trace.output.detach())


class InPlace(nn.Module):
    """Gates squashed in place in one buffer, outputs written into another."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(7, 8)

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        a = self.w(torch.cat((x, h), -1))
        z, n = a[..., :4].sigmoid(), a[..., 4:].tanh()
        new = z * h
        new += (1 - z) * n
        return new

    def forward(self, x: Tensor) -> Tensor:
        out = x.new_zeros(x.shape[0], x.shape[1], 4)
        h = x.new_zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            h = self.step(x[:, t], h)
            out[:, t] = h
        return out


def test_in_place_operations_and_an_output_buffer() -> None:
    torch.manual_seed(6)
    model = InPlace().double()
    x = torch.randn(2, 6, 3, dtype=D)
    (found,), kept, _ = seen(model, x)
    assert not kept.reasons() and found.cell.gate_names == ("gate/z", "n")
    matrices = found.block(0, 6).jacobian()
    for t in range(6):
        exact = by_autograd(lambda h, t=t: model.step(x[1, t], h), found.states[t, 1])
        torch.testing.assert_close(matrices[t, 1], exact)


class Overwritten(nn.Module):
    """A state that is a buffer, changed in place: its earlier values are gone."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(4, 4)
        self.register_buffer("h", torch.zeros(1, 4))

    def forward(self, x: Tensor) -> Tensor:
        out = []
        for t in range(x.shape[1]):
            with torch.no_grad():
                self.h.copy_(torch.tanh(self.w(self.h) + x[:, t]))
            out.append(self.h.clone())
        return torch.stack(out, 1)


def test_a_state_changed_in_place_is_refused() -> None:
    found, kept, _ = seen(Overwritten().double(), torch.randn(1, 6, 4, dtype=D))
    assert not found and any("in place" in reason for reason in kept.reasons())


class Truncated(TextbookGru):
    """Detached every third step, as truncated backpropagation does."""

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.zeros(x.shape[0], 4, dtype=x.dtype)
        out = []
        for t in range(x.shape[1]):
            if t % 3 == 0:
                hidden = hidden.detach()
            hidden = self.step(x[:, t], hidden)
            out.append(hidden)
        return torch.stack(out, 1)


def test_detaching_does_not_hide_the_dynamics() -> None:
    torch.manual_seed(7)
    x = torch.randn(1, 9, 3, dtype=D)
    (cut,), _, _ = seen(Truncated().double(), x)
    assert bool((cut.block(0, 9).jacobian().flatten(1).norm(dim=1) > 0.1).all())
    assert cut.arriving is None and cut.delta is not None


class Deep(nn.Module):
    """Layers of equal width one after the other (S8): depth is the step axis."""

    def __init__(self, width: int = 5, layers: int = 6) -> None:
        super().__init__()
        self.first = nn.Linear(3, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.gates = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.first(x[:, 0]))
        for layer, gate in zip(self.layers, self.gates, strict=True):
            t = torch.sigmoid(gate(h))
            h = t * torch.tanh(layer(h)) + (1 - t) * h
        return h[:, None]


def test_a_highway_net_is_a_recurrence_over_depth() -> None:
    torch.manual_seed(8)
    model = Deep().double()
    x = torch.randn(2, 1, 3, dtype=D)
    (found,), kept, _ = seen(model, x)
    assert not kept.reasons() and found.steps == 6 and found.cell.gate_names[0] == "gate/t"
    matrices = found.block(0, 6).jacobian()
    for n, (layer, gate) in enumerate(zip(model.layers, model.gates, strict=True)):

        def step(h: Tensor, layer: nn.Module = layer, gate: nn.Module = gate) -> Tensor:
            t = torch.sigmoid(gate(h))
            return t * torch.tanh(layer(h)) + (1 - t) * h

        torch.testing.assert_close(matrices[n, 1], by_autograd(step, found.states[n, 1]))


def test_a_sequential_stack_is_one_too() -> None:
    torch.manual_seed(9)
    layers = [module for _ in range(5) for module in (nn.Linear(3, 3), nn.Tanh())]
    model = nn.Sequential(*layers).double()
    subject = nn.Sequential(model)
    (found,), _, _ = seen(subject, torch.randn(1, 1, 3, dtype=D))
    assert found.steps in (4, 5) and found.check is not None and found.check.passed


def test_a_running_sum_is_no_recurrent_state() -> None:
    class Sums(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            total = torch.zeros_like(x[:, 0])
            out = []
            for t in range(x.shape[1]):
                total = total + torch.tanh(x[:, t])
                out.append(total)
            return torch.stack(out, 1)

    found, kept, _ = seen(Sums(), torch.randn(1, 6, 3))
    assert not found and not kept.reasons()


@pytest.mark.parametrize("cell", [nn.RNNCell, nn.GRUCell, nn.LSTMCell])
def test_torchs_own_cells_are_left_to_their_probe(cell: Any) -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = cell(3, 4)

        def forward(self, x: Tensor) -> Tensor:
            state = None
            out = []
            for t in range(x.shape[1]):
                state = self.cell(x[:, t], state)
                out.append(state[0] if isinstance(state, tuple) else state)
            return torch.stack(out, 1)

    found, _, _ = seen(Own(), torch.randn(1, 6, 3))
    assert [item.place for item in found] == ["cell"] and type(found[0].cell).__name__ != "ReplayStep"


def test_nothing_changes_for_the_model() -> None:
    model = LstmByHand()
    x = torch.randn(2, 6, 3)
    plain = model(x)
    _, _, trace = seen(model, x)
    assert torch.equal(plain, trace.output) and not torch._C._is_torch_function_mode_enabled()


class LstmWithOwnFunction(LstmByHand):
    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], self.h)
        c = x.new_zeros(x.shape[0], self.h)
        out = []
        for t in range(x.shape[1]):
            i, f, g, o = self.map(torch.cat((x[:, t], h), -1)).chunk(4, -1)
            i, f, o = torch.sigmoid(i), torch.sigmoid(f), torch.sigmoid(o)
            g = Squash.apply(g)
            c = f * c + i * g
            h = o * torch.tanh(c)
            out.append(h)
        return torch.stack(out, 1)


@pytest.mark.parametrize("b", [1, 2])
def test_a_function_that_is_not_seen_is_followed_through_the_graph(b: int) -> None:
    ours, _ = lstm_pair()
    hidden = LstmWithOwnFunction().double()
    hidden.load_state_dict(ours.state_dict())
    x = torch.randn(b, 7, 3, dtype=D)
    (a,), kept, _ = seen(hidden, x)
    (e,), _, _ = seen(ours, x)
    assert type(a.cell).__name__ == "GraphStep" and not kept.reasons()
    torch.testing.assert_close(a.block(1, 7).jacobian(), e.block(1, 7).jacobian())
    assert bool(a.block(0, 1).jacobian().isnan().all()), "the initial zeros have no gradient: refused, not guessed"
    torch.testing.assert_close(a.delta, e.delta)
    torch.testing.assert_close(a.arriving, e.arriving, rtol=1e-7, atol=1e-9)


def test_without_a_graph_its_forward_is_run_again() -> None:
    ours, _ = lstm_pair()
    hidden = LstmWithOwnFunction().double()
    hidden.load_state_dict(ours.state_dict())
    x = torch.randn(1, 6, 3, dtype=D)
    subject = Subject(model=hidden, kind="vectors", width=3)
    trace = perform(subject, Batch(x, torch.tensor([6])), Kept(), RunOptions(only=("states",)))
    (e,), _, _ = seen(ours, x)
    torch.testing.assert_close(trace.recurrences[0].block(0, 6).jacobian(), e.block(0, 6).jacobian())


def test_the_user_may_correct_what_the_state_is() -> None:
    ours, _ = lstm_pair()
    x = torch.randn(1, 7, 3, dtype=D)
    (whole,), kept, _ = seen(ours, x)
    labels = {record.domain: record.names for record in kept.records if type(record).__name__ == "Labels"}
    assert set(labels["carried:model"]) == set(labels["state:model"]) == {"h", "c"}
    subject = Subject(model=ours, kind="vectors", width=3)
    batch = Batch(x, torch.tensor([7]))
    trace = perform(subject, batch, Kept(), RunOptions(only=("states",), states={"model": ("c",)}))
    (only,) = trace.recurrences
    cell = whole.cell.parts["c"]
    torch.testing.assert_close(only.block(0, 7).jacobian(), whole.block(0, 7).jacobian()[..., cell, cell])


def test_the_direct_path_is_that_of_the_built_in_modules() -> None:
    ours, theirs = lstm_pair()
    x = torch.randn(2, 6, 3, dtype=D)
    (a,), _, _ = seen(ours, x)
    (e,), _, _ = seen(OnlyOutput(theirs), x)
    torch.testing.assert_close(a.block(0, 6).direct(), e.block(0, 6).direct())
    torch.testing.assert_close(a.block(0, 6).through_frobenius(), e.block(0, 6).through_frobenius())
    (gru,), _, _ = seen(TextbookGru().double(), x)
    block = gru.block(0, 6)
    torch.testing.assert_close(block.direct(), block.gates["gate/z"])
    (plain,), _, _ = seen(Dropping().double().eval(), x)
    assert plain.block(0, 6).direct() is None, "an Elman network carries nothing past its nonlinearity"


def test_wide_states_go_through_the_same_norms() -> None:
    """More than 48 entries: Lanczos, with single steps going on alone."""
    torch.manual_seed(10)
    model = GruByHand(3, 60)
    loop = Loop(model, h=60).double()
    (found,), _, _ = seen(loop, torch.randn(1, 9, 3, dtype=D))
    from inspector.engine.cells.spectral import spectral_norms

    block = found.block(0, 9)
    exact = torch.linalg.svdvals(block.jacobian())[..., 0]
    torch.testing.assert_close(spectral_norms(block)[0], exact, rtol=1e-6, atol=0)
    some = block.only(torch.tensor([2, 5]))
    torch.testing.assert_close(some.jacobian(), block.jacobian()[[2, 5]])


@settings(max_examples=25, deadline=None)
@given(i=st.integers(1, 5), h=st.integers(1, 6), t=st.integers(3, 9), b=st.integers(1, 4), layers=st.integers(1, 3))
def test_any_shape_equals_the_fused_module(i: int, h: int, t: int, b: int, layers: int) -> None:
    torch.manual_seed(i + 10 * h + 100 * t + 1000 * b)
    ours = Loop(*(GruByHand(i if n == 0 else h, h) for n in range(layers)), h=h).double()
    theirs = nn.GRU(i, h, layers, batch_first=True).double()
    for n, cell in enumerate(ours.cells):
        for kind, linear in (("ih", cell.w), ("hh", cell.u)):
            getattr(theirs, f"weight_{kind}_l{n}").data.copy_(linear.weight)
            getattr(theirs, f"bias_{kind}_l{n}").data.copy_(linear.bias)
    x = torch.randn(b, t, i, dtype=D)
    found, kept, _ = seen(ours, x)
    expected, _, _ = seen(OnlyOutput(theirs), x)
    assert len(found) == layers and not kept.reasons()
    for a, e in zip(found, expected, strict=True):
        torch.testing.assert_close(a.states, e.states)
        torch.testing.assert_close(a.block(0, t).jacobian(), e.block(0, t).jacobian(), rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(a.arriving, e.arriving, rtol=1e-8, atol=1e-10)


def test_a_cancel_is_noticed_while_a_long_loop_is_worked_on() -> None:
    asked: list[int] = []

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) > 3

    subject = Subject(model=LstmByHand(), kind="vectors", width=3)
    batch = Batch(torch.randn(1, 1200, 3), torch.tensor([1200]))
    with pytest.raises(CancelledError):
        perform(subject, batch, Kept(), RunOptions(only=("states",), cancelled=cancelled))


def test_a_model_without_loops_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.engine.probes import handwritten

    looks: list[int] = []
    find = handwritten.find_loops

    def counted(ops: Any, *rest: Any) -> Any:
        looks.append(len(ops))
        return find(ops, *rest)

    monkeypatch.setattr(handwritten, "find_loops", counted)
    seen(OnlyOutput(nn.GRU(3, 4, batch_first=True)), torch.randn(1, 6, 3))
    assert len(looks) == 1


def test_a_gate_that_is_not_assigned_is_called_by_what_it_is_written_on() -> None:
    class Chunked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.Linear(7, 16)

        def forward(self, x: Tensor) -> Tensor:
            h = c = x.new_zeros(x.shape[0], 4)
            out = []
            for row in x.unbind(1):
                i, f, g, o = self.map(torch.cat((row, h), -1)).chunk(4, -1)
                c = torch.sigmoid(f + 1) * c + i.sigmoid() * torch.tanh(input=g)
                h = torch.sigmoid(2 * o - 1) * torch.tanh(c)
                out.append(h)
            return torch.stack(out, 1)

    (found,), _, _ = seen(Chunked(), torch.randn(1, 6, 3))
    assert found.cell.gate_names == ("gate/f", "gate/i", "tanh(g)", "gate/o")
