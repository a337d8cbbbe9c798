"""Loops that attend to a memory of all past states: every Jacobian, gradient and item against plain autograd.

The reference is one equation of a step with all past states as its inputs, and parameters of its own at every step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import torch
from kept import Kept
from torch import Tensor, nn
from watched import seen

from inspector.engine.model.subject import Batch, Subject
from inspector.engine.pipeline import RunOptions, perform

D = torch.float64
IN, H, T = 3, 4, 6


class Attending(nn.Module):
    """h_t = tanh(W x_t + U h_{t−1} + Σ_s a_s h_s), a = softmax_s(h_s · Q x_t) over the past states (the last `window`)."""

    window = T + 1
    batches: tuple[int, ...] = (1, 2)

    def __init__(self) -> None:
        super().__init__()
        self.w, self.u, self.q = nn.Linear(IN, H), nn.Linear(H, H), nn.Linear(IN, H)
        self.start = nn.Parameter(torch.randn(H))

    def begin(self, x: Tensor) -> Tensor:
        return self.start.expand(len(x), H)

    def step(self, row: Tensor, h: Tensor, memory: Tensor) -> Tensor:
        """`memory`: (b, s, h)."""
        weights = torch.softmax((memory * self.q(row)[:, None]).sum(-1), -1)
        return torch.tanh(self.w(row) + self.u(h) + (weights[..., None] * memory).sum(1))


class Stacked(Attending):
    def forward(self, x: Tensor) -> Tensor:
        h = self.begin(x)
        memory = [h]
        for row in x.unbind(1):
            h = self.step(row, h, torch.stack(memory, 1))
            memory.append(h)
        return torch.stack(memory[1:], 1)


class OnlyTheList(Attending):
    """The newest state, too, is read from the list."""

    def forward(self, x: Tensor) -> Tensor:
        memory = [self.begin(x)]
        for row in x.unbind(1):
            memory.append(self.step(row, memory[-1], torch.stack(memory, 1)))
        return torch.stack(memory[1:], 1)


class NewestFirst(Attending):
    def forward(self, x: Tensor) -> Tensor:
        h = self.begin(x)
        memory = [h]
        for row in x.unbind(1):
            h = self.step(row, h, torch.stack(memory, 1))
            memory.insert(0, h)
        return torch.stack(memory[-2::-1], 1)


class InADict(Attending):
    def forward(self, x: Tensor) -> Tensor:
        h = self.begin(x)
        memory = {0: h}
        for t, row in enumerate(x.unbind(1)):
            h = self.step(row, h, torch.stack(list(memory.values()), 1))
            memory[t + 1] = h
        return torch.stack([memory[t + 1] for t in range(len(memory) - 1)], 1)


class Comprehension(Attending):
    """Every entry is read by a call of its own."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.begin(x)
        memory = [h]
        for row in x.unbind(1):
            h = self.step(row, h, torch.cat([one[:, None] for one in memory], 1))
            memory.append(h)
        return torch.stack(memory[1:], 1)


class OneByOne(Attending):
    def forward(self, x: Tensor) -> Tensor:
        h = self.begin(x)
        memory = [h]
        for row in x.unbind(1):
            query = self.q(row)
            weights = torch.softmax(torch.stack([(one * query).sum(-1) for one in memory], -1), -1)
            context = torch.zeros_like(h)
            for n, one in enumerate(memory):
                context = context + weights[:, n : n + 1] * one
            h = torch.tanh(self.w(row) + self.u(h) + context)
            memory.append(h)
        return torch.stack(memory[1:], 1)


class Summed(Attending):
    def forward(self, x: Tensor) -> Tensor:
        h = self.begin(x)
        memory = [h]
        for row in x.unbind(1):
            scores = [(one * self.q(row)).sum(-1, keepdim=True).exp() for one in memory]
            context = sum(a * one for a, one in zip(scores, memory, strict=True)) / sum(scores)
            h = torch.tanh(self.w(row) + self.u(h) + context)
            memory.append(h)
        return torch.stack(memory[1:], 1)


class Window(Attending):
    window = 3

    def forward(self, x: Tensor) -> Tensor:
        h = self.begin(x)
        memory = deque([h], maxlen=3)
        out = []
        for row in x.unbind(1):
            h = self.step(row, h, torch.stack(list(memory), 1))
            memory.append(h)
            out.append(h)
        return torch.stack(out, 1)


class WindowOneByOne(Attending):
    window = 2

    def forward(self, x: Tensor) -> Tensor:
        h = self.begin(x)
        memory = [h]
        for row in x.unbind(1):
            h = self.step(row, h, torch.cat([one.unsqueeze(1) for one in memory[-2:]], 1))
            memory.append(h)
        return torch.stack(memory[1:], 1)


class Concatenated(Attending):
    def forward(self, x: Tensor) -> Tensor:
        h = self.begin(x)
        memory = h[:, None]
        for row in x.unbind(1):
            h = self.step(row, h, memory)
            memory = torch.cat((memory, h[:, None]), 1)
        return memory[:, 1:]


class ConcatenatedInFront(Attending):
    def forward(self, x: Tensor) -> Tensor:
        h = self.begin(x)
        memory = h.unsqueeze(1)
        for row in x.unbind(1):
            h = self.step(row, h, memory)
            memory = torch.cat([h.unsqueeze(1), memory], dim=1)
        return memory[:, :-1].flip(1)


class ConcatenatedFromNothing(Attending):
    def forward(self, x: Tensor) -> Tensor:
        h, memory, out = self.begin(x), x.new_zeros(len(x), 0, H), []
        for row in x.unbind(1):
            memory = torch.cat([memory, h.view(len(x), 1, H)], dim=-2)
            h = self.step(row, h, memory)
            out.append(h)
        return torch.stack(out, 1)


class ListOfRows(Attending):
    """The entries have an axis more than the state."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.begin(x)
        memory = [h.unsqueeze(1)]
        for row in x.unbind(1):
            h = self.step(row, h, torch.cat(memory, 1))
            memory.append(h.unsqueeze(1))
        return torch.cat(memory[1:], 1)


class Zeros(Comprehension):
    """The first state has no gradient."""

    def begin(self, x: Tensor) -> Tensor:
        return x.new_zeros(len(x), H)


Values = Mapping[str, Tensor]


def equation(own: Values, row: Tensor, past: Sequence[Tensor], window: int) -> Tensor:
    """h_t of one sample from x_t and h_{t−1}, h_{t−2}, … h_0."""
    memory = torch.stack(list(past[:window]))
    weights = torch.softmax(memory @ (own["q.weight"] @ row + own["q.bias"]), 0)
    a = own["w.weight"] @ row + own["w.bias"] + own["u.weight"] @ past[0] + own["u.bias"]
    return torch.tanh(a + weights @ memory)


def reference(model: Attending, x: Tensor) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """Of one sample: Jacobians (t, h, lag, h), ‖∂ℓ_t/∂θ_k‖ (t, k) by parameter, ∂L/∂h_t (t, h)."""
    values = {name: value.detach() for name, value in model.named_parameters()}
    own = [{name: value.clone().requires_grad_() for name, value in values.items()} for _ in range(T)]
    states = [model.begin(x[None])[0].detach()]
    jacobians, added = torch.zeros(T, H, T, H, dtype=D), []
    for t in range(T):
        past = tuple(states[::-1])
        found = torch.autograd.functional.jacobian(
            lambda *past, t=t: equation(values, x[t], past, model.window), tuple(one.detach() for one in past)
        )
        jacobians[t, :, : len(past)] = torch.stack(found, 1)
        added.append(torch.zeros(H, dtype=D, requires_grad=True))
        states.append(equation(own[t], x[t], past, model.window) + added[-1])
    losses = [state.square().sum() for state in states[1:]]
    items = {
        name: torch.stack([
            torch.stack(torch.autograd.grad(
                loss, [one[name] for one in own], retain_graph=True, allow_unused=True, materialize_grads=True
            )) for loss in losses
        ]).flatten(2).norm(dim=2)
        for name in values if name != "start"
    }  # fmt: skip
    return jacobians, items, torch.stack(torch.autograd.grad(sum(losses, torch.zeros(())), added))


@pytest.mark.parametrize("b", [1, 2])
@pytest.mark.parametrize("kind", [*Attending.__subclasses__(), Zeros], ids=lambda kind: kind.__name__)
def test_a_memory_of_past_states_begins_with_the_first_state(kind: type[Attending], b: int) -> None:
    torch.manual_seed(b)
    model, x, kept = kind().to(D), torch.randn(b, T, IN, dtype=D), Kept()
    subject = Subject(model=model, kind="vectors", width=IN, loss=lambda out, batch: out.square().sum(-1))
    trace = perform(subject, Batch(x, torch.tensor([T] * b)), kept, RunOptions(only=("states", "gradients", "bptt")))
    (found,) = trace.recurrences
    lags = min(model.window, T)
    assert not kept.reasons() and found.check is not None and found.check.passed
    assert list(found.cell.parts) == ["h", *(f"h[t-{lag}]" for lag in range(1, lags))]
    shown = found.block(0, T).jacobian()
    for n in range(b):
        jacobians, items, delta = reference(model, x[n])
        torch.testing.assert_close(shown[:, n, :H].unflatten(2, (lags, H)), jacobians[:, :, :lags])
        assert not bool(jacobians[:, :, lags:].any())
        assert found.delta is not None
        torch.testing.assert_close(found.delta[:, n, :H], delta)
        if n == 0:
            for name, expected in items.items():
                np.testing.assert_allclose(kept.array(f"model:bptt/{name}"), expected, rtol=1e-9, atol=1e-13)


class Filled(Attending):
    """The memory is one tensor, filled place by place."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.begin(x)
        memory = x.new_zeros(len(x), T + 1, H)
        memory[:, 0] = h
        for t, row in enumerate(x.unbind(1)):
            h = self.step(row, h, memory[:, : t + 1].clone())
            memory[:, t + 1] = h
        return memory[:, 1:]


class FilledWithKeys(Attending):
    """What is written is computed from the state, and read as a whole."""

    def forward(self, x: Tensor) -> Tensor:
        h, memory, out = self.begin(x), x.new_zeros(len(x), T, H), []
        for t, row in enumerate(x.unbind(1)):
            memory[:, t] = self.u(h)
            h = torch.tanh(self.w(row) + self.u(h) + memory.sum(1))
            out.append(h)
        return torch.stack(out, 1)


@pytest.mark.parametrize("kind", [Filled, FilledWithKeys], ids=lambda kind: kind.__name__)
def test_a_memory_in_a_tensor_that_is_filled_is_refused(kind: type[Attending]) -> None:
    (*found,), kept, _ = seen(kind().to(D), torch.randn(1, T, IN, dtype=D))
    assert not found and len(kept.reasons()) == 1
    assert "its steps read what earlier steps wrote into a tensor that the loop fills" in kept.reasons()[0]


def test_an_output_that_is_only_filled_is_no_memory() -> None:
    class Collected(Attending):
        def forward(self, x: Tensor) -> Tensor:
            h, out = self.begin(x), x.new_zeros(len(x), T, H)
            for t, row in enumerate(x.unbind(1)):
                h = torch.tanh(self.w(row) + self.u(h))
                out[:, t] = h
            return out

    (found,), kept, _ = seen(Collected().to(D), torch.randn(1, T, IN, dtype=D))
    assert not kept.reasons() and list(found.cell.parts) == ["h"]


def test_keys_and_values_that_grow_apart_are_two_parts_beside_which_h_is_h() -> None:
    class Apart(Attending):
        def forward(self, x: Tensor) -> Tensor:
            h = self.begin(x)
            keys, values = self.u(h)[:, None], h[:, None]
            for row in x.unbind(1):
                weights = torch.softmax((keys * self.q(row)[:, None]).sum(-1), -1)
                h = torch.tanh(self.w(row) + self.u(h) + (weights[..., None] * values).sum(1))
                keys, values = torch.cat((keys, self.u(h)[:, None]), 1), torch.cat((values, h[:, None]), 1)
            return values[:, 1:]

    (found,), kept, _ = seen(Apart().to(D), torch.randn(1, T, IN, dtype=D))
    assert not kept.reasons() and found.check is not None and found.check.passed
    assert [name for name in found.cell.parts if "[" not in name] == ["state0", "h"]
