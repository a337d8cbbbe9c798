"""Keys that begin with an initial state: key k is the state after step k − 1, and distances count from that."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from written_attention import SAMPLE, D, T, inputs, plain_softmax, ran

pytestmark = pytest.mark.usefixtures("one_thread")

H = 4


class OverStates(nn.Module):
    """Step t attends to [h₀, h₁, …], h₀ the state before the first step.

    `begin`: what h₀ is. `form`: how the states are put together. `use`: how they are attended to. `loop`: the cell.
    `initial`: whether h₀ is among the keys.
    """

    def __init__(
        self, begin: str = "zeros", form: str = "stack", use: str = "sum", loop: str = "cell", initial: bool = True
    ) -> None:
        super().__init__()
        self.begin, self.form, self.use, self.initial = begin, form, use, initial
        self.cell = nn.GRUCell(D, H) if loop == "cell" else None
        self.W, self.U = nn.Linear(D, H), nn.Linear(H, H)
        self.q, self.k, self.v = nn.Linear(H, H), nn.Linear(H, H), nn.Linear(H, H)
        self.first = nn.Parameter(torch.linspace(-1, 1, H))
        self.mha = nn.MultiheadAttention(H, 1, batch_first=True)
        self.double()
        self.scores: list[Tensor] = []

    def start(self, x: Tensor) -> Tensor:
        if self.begin == "zeros":
            return x.new_zeros(len(x), H)
        return self.first.expand(len(x), H) if self.begin == "learned" else torch.tanh(self.W(x.mean(1)))

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        return self.cell(x, h) if self.cell is not None else torch.tanh(self.W(x) + self.U(h))

    def together(self, states: list[Tensor], memory: Tensor) -> Tensor:
        return memory if self.form == "cat" else torch.stack(states, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.start(x)
        states = [h] if self.initial else []
        memory = h[:, None] if self.initial else h[:, None][:, :0]
        self.scores, out = [], []
        for t in range(x.shape[1]):
            if not self.initial:
                h = self.step(x[:, t], h)
                states.append(h)
                memory = torch.cat((memory, h[:, None]), 1)
            context = self.attend(h, self.together(states, memory))
            if self.initial:
                h = self.step(x[:, t], h)
                states.append(h)
                memory = torch.cat((memory, h[:, None]), 1)
            out.append(torch.cat((h, context), -1))
        return torch.stack(out, 1)

    def attend(self, query: Tensor, past: Tensor) -> Tensor:
        q, keys = self.q(query), self.k(past)
        scores = (keys * q[:, None]).sum(-1)
        self.scores.append(scores[SAMPLE].detach())
        values = self.v(past) if "projected" in self.use else past
        if "function" in self.use:
            return F.scaled_dot_product_attention(q[:, None], keys, values, scale=1.0)[:, 0]
        if "einsum" in self.use:
            return torch.einsum("bs,bsh->bh", scores.softmax(-1), values)
        return (scores.softmax(-1)[..., None] * values).sum(1)

    def expected(self, extra: int = 0) -> Tensor:
        """(1, T, T + extra) the softmax of the scores of the run."""
        rows = torch.zeros(1, T, T + extra, dtype=torch.float64)
        for at, scores in enumerate(self.scores):
            rows[0, at, : len(scores)] = plain_softmax(scores)
        return rows


def compared(model: OverStates, before: int, expected: Tensor | None = None, place: str = "model") -> str:
    """The map and the mean distance of a run, `before` keys before the first step; its method."""
    x = inputs()
    model.eval()(x)
    expected = model.expected() if expected is None else expected
    seen = ran(model, x, place, ("attention/maps", "attention/distance", "states"))
    torch.testing.assert_close(seen.map, expected, atol=1e-6, rtol=2**-10)
    away = (torch.arange(T)[:, None] + before - torch.arange(expected.shape[-1])).abs()
    found = seen.sink.array(f"{place}:attention/distance")
    np.testing.assert_allclose(found, (expected * away).sum(-1).numpy(), rtol=1e-5, atol=1e-6)
    assert seen.domains == (("step", "position") if before else ("step", "step"))
    assert ("after step k − 1" in seen.method) == bool(before)
    return seen.method


@pytest.mark.parametrize("begin", ["zeros", "learned", "computed"])
@pytest.mark.parametrize("loop", ["cell", "written"])
@pytest.mark.parametrize("use", ["sum", "einsum projected", "function projected"])
def test_a_list_that_begins_with_the_initial_state(begin: str, loop: str, use: str) -> None:
    torch.manual_seed(3)
    compared(OverStates(begin, use=use, loop=loop), 1)


def test_a_memory_that_grows_by_concatenation() -> None:
    torch.manual_seed(3)
    compared(OverStates("learned", form="cat", use="einsum projected"), 1)


@pytest.mark.parametrize("use", ["sum", "einsum projected", "function projected"])
def test_a_list_that_begins_with_the_first_state_is_numbered_by_steps(use: str) -> None:
    torch.manual_seed(3)
    model = OverStates("zeros", use=use, initial=False)
    compared(model, 0)


class AfterTheLoop(OverStates):
    """All steps attend at once, after the loop."""

    def __init__(self, keys: Callable[[list[Tensor]], list[Tensor]], masked: bool, function: str) -> None:
        super().__init__("computed")
        self.keys, self.masked, self.function = keys, masked, function

    def forward(self, x: Tensor) -> Tensor:
        h = self.start(x)
        states = [h]
        for t in range(x.shape[1]):
            h = self.step(x[:, t], h)
            states.append(h)
        queries, keys = torch.stack(states[1:], 1), torch.stack(self.keys(states), 1)
        if self.function == "module":
            out, weights = self.mha(queries, keys, keys)
            self.scores = list(weights[SAMPLE].detach().log())
            return out
        scores = self.q(queries) @ self.k(keys).mT / math.sqrt(H)
        if self.masked:
            scores = scores.masked_fill(~torch.ones(T, keys.shape[1], dtype=torch.bool).tril(), -math.inf)
        self.scores = list(scores[SAMPLE].detach())
        return scores.softmax(-1) @ self.v(keys)


@pytest.mark.parametrize("masked", [True, False])
def test_all_steps_at_once_over_the_states_that_they_begin_with(masked: bool) -> None:
    torch.manual_seed(3)
    compared(AfterTheLoop(lambda states: states[:-1], masked, "matmul"), 1)


def test_a_module_that_is_given_other_keys_than_queries_has_states_as_keys() -> None:
    torch.manual_seed(3)
    model = AfterTheLoop(lambda states: states[:-1], False, "module").eval()
    seen = ran(model, inputs(), "mha", ("attention/maps", "attention/distance", "states"))
    assert seen.domains == ("step", "state")
    assert "key k the state after step k − 1" in seen.method
    assert "mha:attention/distance" in seen.sink.refusals()


def test_all_steps_at_once_over_one_state_more_than_steps() -> None:
    torch.manual_seed(3)
    model = AfterTheLoop(lambda states: states, False, "matmul").eval()
    model(inputs())
    compared(model, 1, model.expected(1))


def test_all_steps_at_once_over_the_states_after_them() -> None:
    torch.manual_seed(3)
    compared(AfterTheLoop(lambda states: states[1:], True, "matmul"), 0)


class FirstStepApart(nn.Module):
    """The first step is written before the loop, so the first key is step 0."""

    def __init__(self) -> None:
        super().__init__()
        self.W, self.U = nn.Linear(D, H).double(), nn.Linear(H, H).double()

    def forward(self, x: Tensor) -> Tensor:
        states = [torch.tanh(self.W(x[:, 0]))]
        for t in range(1, x.shape[1]):
            states.append(torch.tanh(self.W(x[:, t]) + self.U(states[-1])))
        keys = torch.stack(states, 1)
        return (keys @ keys.mT).softmax(-1) @ keys


def test_a_first_step_that_is_written_before_its_loop_is_step_0() -> None:
    torch.manual_seed(3)
    seen = ran(FirstStepApart().eval(), inputs(), "model", ("attention/maps", "states"))
    assert seen.domains == ("step", "step") and "after step" not in seen.method


class OverFused(nn.Module):
    """Keys are the initial state of a fused module and its outputs but the last."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.norm = nn.LSTM(D, H, batch_first=True).double(), nn.LayerNorm(H).double()

    def forward(self, x: Tensor) -> Tensor:
        first = torch.tanh(x[None, :, 0])
        out, _ = self.rnn(x, (first, torch.zeros_like(first)))
        past = self.norm(torch.cat([first[0][:, None], out[:, :-1]], 1))
        return (out @ past.mT).softmax(-1) @ past


def test_outputs_of_a_fused_module_behind_its_initial_state() -> None:
    torch.manual_seed(3)
    seen = ran(OverFused().eval(), inputs(), "model", ("attention/maps", "states"))
    assert seen.domains == ("step", "position") and "first step of rnn.l0" in seen.method


class Padded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        past = F.pad(x[:, :-1], (0, 0, 1, 0))
        return (x @ past.mT).softmax(-1) @ past


def test_padding_in_place_of_the_first_key() -> None:
    assert ran(Padded().eval(), inputs(), "model").domains == ("step", "position")


class BothShifted(nn.Module):
    """Queries and keys begin with zeros: both are moved on alike, as in a decoder that is given its target one late."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.q, self.k = way, nn.Linear(D, D).double(), nn.Linear(D, D).double()
        self.mha = nn.MultiheadAttention(D, 1, batch_first=True).double()

    def forward(self, x: Tensor) -> Tensor:
        late = torch.cat([x.new_zeros(len(x), 1, D), x[:, :-1]], 1)
        if self.way == "module":
            found: Tensor = self.mha(late, late, late)[0]
            return found
        if self.way == "function":
            return F.scaled_dot_product_attention(self.q(late), self.k(late), late)
        return (self.q(late) @ self.k(late).mT).softmax(-1) @ late


@pytest.mark.parametrize("way", ["by hand", "function", "module"])
def test_queries_that_are_moved_on_too_are_the_keys_own_steps(way: str) -> None:
    torch.manual_seed(3)
    seen = ran(BothShifted(way).eval(), inputs(), "mha" if way == "module" else "model")
    assert seen.domains == ("step", "step") and "step k − 1" not in seen.method


class Shifted(nn.Module):
    """Zeros in place of the first key, and every key moved on by one; no recurrence tells which is which."""

    def forward(self, x: Tensor) -> Tensor:
        past = torch.cat([x.new_zeros(len(x), 1, D), x[:, :-1]], 1)
        scores = (x @ past.mT).masked_fill(~torch.ones(T, T, dtype=torch.bool).tril(), -math.inf)
        return scores.softmax(-1) @ past


def test_keys_that_begin_with_zeros_are_moved_on_by_one() -> None:
    x = inputs()
    seen = ran(Shifted().eval(), x, "model", ("attention/maps", "attention/distance"))
    past = torch.cat([torch.zeros(1, D).double(), x[SAMPLE, :-1]])
    expected = plain_softmax(x[SAMPLE] @ past.T, torch.ones(T, T, dtype=torch.bool).tril())
    away = (torch.arange(T)[:, None] + 1 - torch.arange(T)).abs()
    found = seen.sink.array("model:attention/distance")
    np.testing.assert_allclose(found[0], (expected * away).sum(-1).numpy(), rtol=1e-5)
    assert seen.domains == ("step", "position")
