"""Fused modules called one step at a time, with the state changed in between: one recurrence, against autograd.

The reference runs the module with weights of its own at every step; nothing of the app is in it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from torch.func import functional_call

from inspector.engine.interventions.runs import perform_with_edits, plan_edits
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform
from inspector.records import Edit

D = torch.float64
IN, H, T = 3, 4, 9
State = tuple[Tensor, ...]
Change = Callable[["Model", Tensor, State, int], State]
KEYS = torch.randn(5, H, dtype=D, generator=torch.Generator().manual_seed(3))
MASKS = (torch.rand(T, H, dtype=D, generator=torch.Generator().manual_seed(4)) > 0.3).to(D)


def scaled(model: Model, y: Tensor, state: State, t: int) -> State:
    return (0.7 * state[0], *state[1:])


def output(model: Model, y: Tensor, state: State, t: int) -> State:
    return (0.5 * y, *state[1:])


def dropped(model: Model, y: Tensor, state: State, t: int) -> State:
    return (state[0] * MASKS[t], *state[1:])


def zoned(model: Model, y: Tensor, state: State, t: int) -> State:
    return (torch.where(MASKS[t] > 0, state[0], 0.2 * state[0]), *state[1:])


def attended(model: Model, y: Tensor, state: State, t: int) -> State:
    return (torch.tanh(model.mix(state[0] + torch.softmax(state[0] @ KEYS.T, -1) @ KEYS)), *state[1:])


def normed(model: Model, y: Tensor, state: State, t: int) -> State:
    return (model.norm(state[0]), *state[1:])


def clamped(model: Model, y: Tensor, state: State, t: int) -> State:
    return (*state[:-1], state[-1].clamp(-0.1, 0.1))


def sometimes(model: Model, y: Tensor, state: State, t: int) -> State:
    return (0.4 * state[0] if t % 3 == 2 else state[0], *state[1:])


def unchanged(change: Change, t: int) -> bool:
    """Whether h is left as the module returned it, so that its output is the state (a mask of ones makes another)."""
    return change is clamped or (change is sometimes and t % 3 != 2)


class Model(nn.Module):
    def __init__(
        self, kind: type[nn.RNNBase], change: Change, layers: int, *, batch_first: bool, **options: Any
    ) -> None:
        super().__init__()
        self.rnn = kind(IN, H, layers, batch_first=batch_first, **options)
        self.change, self.mix, self.norm = change, nn.Linear(H, H), nn.LayerNorm(H)

    def start(self, x: Tensor) -> State:
        return tuple(x.new_zeros(self.rnn.num_layers, len(x), H) for _ in range(1 + isinstance(self.rnn, nn.LSTM)))

    def step(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        given = x[:, None] if self.rnn.batch_first else x[None]
        y, last = self.rnn(given, state if len(state) > 1 else state[0])
        last = last if isinstance(last, tuple) else (last,)
        return y.reshape(len(x), -1), self.change(self, y, last, t)

    def forward(self, x: Tensor) -> Tensor:
        state, out = self.start(x), []
        for t in range(x.shape[1]):
            given = x[:, t][:, None] if self.rnn.batch_first else x[:, t][None]
            if isinstance(self.rnn, nn.LSTM):
                y, (h, c) = self.rnn(given, state)
                h, c = self.change(self, y, (h, c), t)
                state = (h, c)
            else:
                y, h = self.rnn(given, state[0])
                (h,) = self.change(self, y, (h,), t)
                state = (h,)
            out.append(h.pow(2).sum((0, 2)) + (0.3 * y.reshape(len(x), -1).sin().sum(-1) if t % 3 == 1 else 0))
        return torch.stack(out, 1)


class Reference:
    """Every step with weights and a state of its own, one sequence at a time."""

    def __init__(self, model: Model, x: Tensor) -> None:
        self.model, self.x = model, x[None]
        state, self.steps, self.losses = model.start(self.x), [], []
        for t in range(len(x)):
            weights = {name: value.detach().clone().requires_grad_() for name, value in model.named_parameters()}
            before = state
            y, state = functional_call(
                _Step(model), {f"model.{n}": w for n, w in weights.items()}, (self.x[:, t], state, t)
            )
            state = tuple(part + torch.zeros_like(part) for part in state)
            y = state[0][-1] if unchanged(model.change, t) else y
            self.steps.append(SimpleNamespace(weights=weights, before=before, after=state))
            loss = state[0].pow(2).sum() + (0.3 * y.sin().sum() if t % 3 == 1 else 0)
            self.losses.append(loss)

    def states(self) -> np.ndarray:
        return np.stack([_flat(step.after) for step in self.steps])

    def jacobian(self, t: int) -> np.ndarray:
        sizes = [part.shape for part in self.steps[t].before]

        def step(flat: Tensor) -> Tensor:
            parts = [p.view(s) for p, s in zip(flat.split([s.numel() for s in sizes]), sizes, strict=True)]
            return torch.cat([p.reshape(-1) for p in self.model.step(self.x[:, t], tuple(parts), t)[1]])

        flat = torch.cat([part.detach().reshape(-1) for part in self.steps[t].before])
        return torch.autograd.functional.jacobian(step, flat).numpy()

    def deltas(self) -> np.ndarray:
        wanted = [part for step in self.steps for part in step.after]
        found = torch.autograd.grad(sum(self.losses), wanted, retain_graph=True, allow_unused=True)
        values = [torch.zeros_like(w) if g is None else g for w, g in zip(wanted, found, strict=True)]
        return np.concatenate([_flat((value,)) for value in values]).reshape(len(self.steps), -1)

    def items(self, name: str) -> np.ndarray:
        rows = np.zeros((T, T))
        for t, loss in enumerate(self.losses):
            wanted = [step.weights[name] for step in self.steps]
            found = torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
            rows[t] = [0.0 if one is None else float(one.norm()) for one in found]
        return rows


class _Step(nn.Module):
    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, state: State, t: int) -> tuple[Tensor, State]:
        return self.model.step(x, state, t)


def _flat(parts: tuple[Tensor, ...]) -> np.ndarray:
    return torch.cat([part.detach().reshape(-1) for part in parts]).numpy()


STYLES: dict[str, tuple[type[nn.RNNBase], Change, int, bool, dict[str, Any]]] = {
    "scaled": (nn.LSTM, scaled, 1, False, {}),
    "output": (nn.LSTM, output, 1, False, {}),
    "dropout mask": (nn.LSTM, dropped, 1, True, {}),
    "zoneout": (nn.GRU, zoned, 1, True, {}),
    "attention": (nn.LSTM, attended, 1, True, {}),
    "attention, two layers": (nn.GRU, attended, 2, False, {}),
    "normalised": (nn.RNN, normed, 1, False, {"nonlinearity": "relu"}),
    "clamped memory": (nn.LSTM, clamped, 2, True, {}),
    "at some steps": (nn.LSTM, sometimes, 1, False, {}),
    "no biases": (nn.LSTM, scaled, 2, False, {"bias": False}),
    "three layers": (nn.RNN, dropped, 3, True, {}),
}


def made(style: str) -> Model:
    kind, change, layers, first, options = STYLES[style]
    torch.manual_seed(len(style))
    return Model(kind, change, layers, batch_first=first, **options).to(D)


def opened(model: Model, x: Tensor, *, sample: int = 0, also: tuple[str, ...] = ("bptt",)) -> Kept:
    sink = Kept()
    perform(
        Subject(model, loss=lambda out, batch: out),
        Batch(x, torch.full((len(x),), x.shape[1]), (), look_at=sample),
        sink,
        RunOptions(also=also),
    )
    return sink


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("style", STYLES)
def test_one_recurrence_whose_step_has_the_change(style: str, samples: int) -> None:
    model = made(style)
    x = torch.randn(samples, T, IN, dtype=D)
    sample = samples - 1
    sink, truth = opened(model, x, sample=sample), Reference(model, x[sample])
    states = [name for name in sink.names() if name.endswith((":h", ":c"))]
    place = states[0].rpartition(":")[0]
    parts = ("h", "c") if isinstance(model.rnn, nn.LSTM) else ("h",)
    assert {name.rpartition(":")[0] for name in states} == {place} and len(states) == len(parts)
    shown = np.concatenate([sink.array(f"{place}:{part}").reshape(T, -1) for part in parts], 1)
    np.testing.assert_allclose(shown, truth.states(), rtol=1e-9, atol=1e-12)
    jacobians = [truth.jacobian(t) for t in range(T)]
    norms = [np.linalg.norm(j, 2) for j in jacobians]
    np.testing.assert_allclose(sink.array(f"{place}:jacobian/spectral_norm"), norms, rtol=1e-7, atol=1e-12)
    lags = _lags(jacobians)
    np.testing.assert_allclose(sink.array(f"{place}:jacobian/lag_map"), lags, rtol=1e-6, atol=1e-12)
    half = len(truth.deltas()[0]) // len(parts)
    for n, name in enumerate(("state_norm", "cell_norm")[: len(parts)]):
        delta = truth.deltas()[:, n * half : (n + 1) * half]
        np.testing.assert_allclose(
            sink.array(f"{place}:gradient/{name}"), np.linalg.norm(delta, axis=1), rtol=1e-7, atol=1e-12
        )
    for name in (n for n, _ in model.named_parameters() if n.startswith("rnn.")):
        channel = next(
            n for n in sink.names() if n.endswith(f":bptt/{name}") or f"rnn{n.partition(':bptt/')[2]}" == name
        )
        items = np.nan_to_num(sink.array(channel))
        np.testing.assert_allclose(items, truth.items(name), rtol=1e-6, atol=1e-12)


def _lags(jacobians: list[np.ndarray]) -> np.ndarray:
    size = len(jacobians[0])
    found = np.full((T - 1, T), np.nan)
    for k in range(T - 1):
        product = np.eye(size)
        found[k, 0] = 1.0
        for lag in range(1, T - k):
            product = jacobians[k + lag] @ product
            found[k, lag] = np.linalg.norm(product) / size**0.5
    return found


def test_gates_of_every_layer() -> None:
    model = made("clamped memory")
    x = torch.randn(1, T, IN, dtype=D)
    sink, truth = opened(model, x, also=()), Reference(model, x[0])
    for layer, number in ((0, ""), (1, "#2")):
        rnn, forget = model.rnn, []
        for t, step in enumerate(truth.steps):
            below = x[0, t] if layer == 0 else rnn(x[:, t][:, None], step.before)[1][0][0, 0]
            w, u = getattr(rnn, f"weight_ih_l{layer}"), getattr(rnn, f"weight_hh_l{layer}")
            bias = getattr(rnn, f"bias_ih_l{layer}") + getattr(rnn, f"bias_hh_l{layer}")
            forget.append(torch.sigmoid(w @ below + u @ step.before[0][layer, 0] + bias)[H : 2 * H].detach())
        np.testing.assert_allclose(sink.array(f"model:gate/forget{number}"), torch.stack(forget), rtol=1e-9)


def test_many_steps_are_one_recurrence_and_nothing_is_refused() -> None:
    sink = opened(made("scaled"), torch.randn(1, 80, IN, dtype=D), also=())
    assert sink.array("model:h").shape == (80, H)
    assert not any("too often" in reason for reason in sink.reasons())


def test_dropout_between_the_layers_keeps_one_recurrence() -> None:
    """Its masks are drawn inside the kernel, so the steps are read off autograd's graph."""
    model = made("three layers")
    model.rnn.dropout = 0.5
    sink = opened(model.train(), torch.randn(1, T, IN, dtype=D), also=())
    assert [name for name in sink.names() if name.endswith(":h")] == ["model:h"]
    assert sink.array("model:h").shape == (T, 3 * H)
    assert np.isfinite(sink.array("model:jacobian/spectral_norm")[1:]).all()


@pytest.mark.parametrize(("style", "unit"), [("scaled", 1), ("clamped memory", 6), ("attention, two layers", 5)])
def test_an_edit_changes_one_unit_of_one_layer(style: str, unit: int) -> None:
    model = made(style)
    x = torch.randn(1, T, IN, dtype=D)
    subject, batch = Subject(model, loss=lambda out, b: out), Batch(x, torch.tensor([T]), ())
    place = next(n for n in opened(model, x, also=()).names() if n.endswith(":h")).rpartition(":")[0]
    sink = Kept()
    options = RunOptions(only=("states",))
    edits = [Edit(place=place, signal="h", unit=unit, value=0.3, start=3, stop=6)]
    perform_with_edits(subject, batch, sink, plan_edits(subject, batch, edits, options), options)
    state, expected = model.start(x), []
    for t in range(T):
        _, state = model.step(x[:, t], state, t)
        if 3 <= t < 6:
            h = state[0].clone()
            h.view(-1)[unit] = 0.3
            state = (h, *state[1:])
        expected.append(state[0].detach().reshape(-1))
    np.testing.assert_allclose(sink.array(f"{place}:h", frame=1), torch.stack(expected), rtol=1e-9, atol=1e-12)


class Chain(nn.Module):
    """The state is passed on as it is: the module's own layers are shown."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(IN, H, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        state, out = None, []
        for t in range(x.shape[1]):
            y, state = self.rnn(x[:, t : t + 1], state)
            out.append(y.square().sum((1, 2)))
        return torch.stack(out, 1)


def test_a_state_that_is_passed_on_unchanged_stays_with_the_module() -> None:
    sink = Kept()
    x = torch.randn(1, T, IN, dtype=D)
    perform(Subject(Chain().to(D), loss=lambda out, b: out), Batch(x, torch.tensor([T]), ()), sink, RunOptions())
    assert [name for name in sink.names() if name.endswith(":h")] == ["rnn.l0:h"] and sink.array("rnn.l0:h").shape == (
        T,
        H,
    )
