"""What carries something from step to step is shown, or it is said where it is and why it is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, adopt
from inspector.engine.pipeline import RunOptions, perform

STEPS = 7
Run = Callable[["Model", Tensor], Tensor]


class Model(nn.Module):
    def __init__(self, run: Run) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.run = run
        self.x, self.h, self.out = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        self.rnn = nn.LSTM(3, 4, batch_first=True)
        self.layers = nn.ModuleList(nn.Linear(STEPS, STEPS) for _ in range(5))

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.x(x) + self.h(h))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.out(self.run(self, x))
        return found


def complex_states(model: Model, x: Tensor) -> Tensor:
    turn = torch.exp(1j * torch.linspace(0, 1, 4))
    h = torch.zeros(len(x), 4, dtype=torch.cfloat)
    for t in range(x.shape[1]):
        h = torch.tanh(turn * h + model.x(x[:, t]))
    return h.real


def downwards(model: Model, x: Tensor) -> Tensor:
    def state(t: int) -> Tensor:
        return model.step(x[:, t], state(t - 1)) if t >= 0 else x.new_zeros(len(x), 4)

    return state(x.shape[1] - 1)


def upwards(model: Model, x: Tensor) -> Tensor:
    def after(t: int, h: Tensor) -> Tensor:
        return h if t == x.shape[1] else after(t + 1, model.step(x[:, t], h))

    return after(0, x.new_zeros(len(x), 4))


def again_and_again(model: Model, x: Tensor) -> Tensor:
    h = x.new_zeros(len(x), 4)
    for _ in range(4):
        h = torch.zeros_like(h)
        for t in range(x.shape[1]):
            h = model.step(x[:, t], h)
    return h


def older_only(model: Model, x: Tensor) -> Tensor:
    older, h = x.new_zeros(len(x), 4), x.new_zeros(len(x), 4)
    for t in range(x.shape[1]):
        older, h = h, model.step(x[:, t], older)
    return h


def in_place(model: Model, x: Tensor) -> Tensor:
    h = x.new_zeros(len(x), 4)
    for t in range(x.shape[1]):
        h.mul_(0.5).add_(model.x(x[:, t]))
    return h


def filled(model: Model, x: Tensor) -> Tensor:
    h = x.new_zeros(len(x), 4)
    for t in range(x.shape[1]):
        h[:] = model.step(x[:, t], h.clone())
    return h


SEEN = [complex_states, downwards, upwards, again_and_again, older_only, in_place, filled]


def run(loop: Run) -> Listed:
    torch.manual_seed(1)
    sink = Listed()
    perform(
        adopt(Model(loop)), Batch(torch.randn(1, STEPS, 3), torch.tensor([STEPS])), sink, RunOptions(only=("states",))
    )
    return sink


@pytest.mark.parametrize("loop", SEEN)
def test_nothing_that_carries_a_state_goes_without_a_word(loop: Run) -> None:
    sink = run(loop)
    states = [name for name in sink.names() if name.rpartition(":")[0] == "model"]
    reasons = [reason for name, reason in sink.refusals().items() if name.startswith("model")]
    assert bool(states) is not bool(reasons)


def test_a_loop_is_named_with_its_iterations_its_function_and_its_line() -> None:
    line = complex_states.__code__.co_firstlineno + 3
    assert run(complex_states).refusals() == {
        "model:h": f"A loop of {STEPS} iterations in complex_states(), line {line}, is not shown: its state is complex and "
        "its step is not h = a h + b; derivatives of other complex steps are not computed."
    }  # fmt: skip


@pytest.mark.parametrize(("loop", "name", "calls"), [(downwards, "state", STEPS), (upwards, "after", STEPS)])
def test_a_recursion_is_named_with_its_calls(loop: Run, name: str, calls: int) -> None:
    (reason,) = run(loop).refusals().values()
    assert reason.startswith(
        f"A recursion of {calls} calls of {name}(), line {loop.__code__.co_firstlineno + 1}, is not"
    )


def plain(model: Model, x: Tensor) -> Tensor:
    h = x.new_zeros(len(x), 4)
    for t in range(x.shape[1]):
        h = model.step(x[:, t], h)
    return h


def by_comprehension(model: Model, x: Tensor) -> Tensor:
    return torch.stack([torch.tanh(model.x(x[:, t])) for t in range(x.shape[1])], 1)


def running_sum(model: Model, x: Tensor) -> Tensor:
    total = x.new_zeros(len(x), 4)
    for t in range(x.shape[1]):
        total = total + torch.tanh(model.x(x[:, t]))
    return total


def growing(model: Model, x: Tensor) -> Tensor:
    rows = model.x(x[:, :1])
    for t in range(1, x.shape[1]):
        rows = torch.cat([rows, model.x(x[:, t : t + 1])], 1)
    return rows


def stack_of_layers(model: Model, x: Tensor) -> Tensor:
    rows = x.mT
    for layer in model.layers:
        rows = rows + torch.tanh(layer(rows))
    return torch.as_tensor(model.x(rows.mT))


def of_heads(model: Model, x: Tensor) -> Tensor:
    found = []
    for weight in model.h.weight.split(1):
        scores = torch.softmax(model.x(x) @ weight.T, 1)
        found.append((scores * model.x(x)).sum(1))
    return torch.stack(found).sum(0)


def attending(model: Model, x: Tensor) -> Tensor:
    rows = model.x(x)
    torch.manual_seed(0)
    layer = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0), 4)
    return torch.as_tensor(layer(rows))


def chunks_of_a_module(model: Model, x: Tensor) -> Tensor:
    state, found = None, []
    for chunk in x.split(2, 1):
        y, state = model.rnn(chunk, state)
        found.append(y)
    return torch.cat(found, 1)


SHOWN = [
    plain, by_comprehension, running_sum, growing, stack_of_layers, of_heads, attending, chunks_of_a_module,
]  # fmt: skip


@pytest.mark.parametrize("loop", SHOWN)
def test_what_carries_no_state_is_not_listed(loop: Run) -> None:
    assert not run(loop).refusals()
