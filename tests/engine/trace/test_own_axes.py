"""Loops that do not take the input step by step: their axis, its labels, and what their units are correlated with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from listed import Listed
from torch import Tensor, nn

from inspector.engine.model.subject import Batch, adopt
from inspector.engine.pipeline import DEFAULTS, RunOptions, perform
from inspector.engine.trace.trace import Trace
from inspector.records import Channel

LETTERS = "abcdefghijkl"
LENGTH = len(LETTERS)
Run = Callable[["Model", Tensor, Tensor], Tensor]


class Model(nn.Module):
    """ids (b, t) → scores of the last state; `run` is the loop."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.run = run
        self.embedding, self.gate = nn.Embedding(9, 5), nn.Linear(9, 4)
        self.x, self.h, self.second, self.back = nn.Linear(5, 4), nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.pair, self.cell = nn.Linear(10, 4), nn.GRUCell(5, 4)
        self.rnn, self.out = nn.GRU(5, 4, batch_first=True), nn.Linear(4, 9)

    def step(self, x: Tensor, h: Tensor) -> Tensor:
        z = torch.sigmoid(self.gate(torch.cat([x, h], -1)))
        return z * h + (1 - z) * torch.tanh(self.x(x) + self.h(h))

    def forward(self, ids: Tensor) -> Tensor:
        x: Tensor = self.embedding(ids)
        found: Tensor = self.out(self.run(self, ids, x))
        return found


def start(x: Tensor) -> Tensor:
    return x.new_zeros(len(x), 4)


def forward(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h = start(x)
    for t in range(x.shape[1]):
        h = model.step(x[:, t], h)
    return h


def backward(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h = start(x)
    for t in reversed(range(x.shape[1])):
        h = model.step(x[:, t], h)
    return h


def flipped(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h = start(x)
    for row in x.transpose(0, 1).flip(0):
        h = model.step(row, h)
    return h


def counting_down(model: Model, ids: Tensor, x: Tensor) -> Tensor:
    h, t = start(x), x.shape[1]
    while t > 0:
        t -= 1
        h = model.step(model.embedding(ids[:, t]), h)
    return h


def of_a_cell(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h = start(x)
    for t in range(x.shape[1] - 1, -1, -1):
        h = model.cell(x[:, t], h)
    return h


def fused(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    return model.rnn(x.flip(1))[0][:, -1]


def listed(model: Model, ids: Tensor, x: Tensor) -> Tensor:
    h, rows = start(x), [model.embedding(ids[:, t]) for t in range(ids.shape[1])]
    for row in rows[::-1]:
        h = model.step(row, h)
    return h


def strided(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h = start(x)
    for t in range(0, x.shape[1], 2):
        h = model.step(x[:, t], h)
    return h


def strided_fused(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    return model.rnn(x[:, ::2])[0][:, -1]


def shuffled(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h = start(x)
    for row in x[:, torch.tensor([3, 1, 0, 2, 4, 5, 7, 6, 8, 9, 11, 10])].unbind(1):
        h = model.step(row, h)
    return h


def several_iterations(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h = start(x)
    for t in range(x.shape[1]):
        for _ in range(2):
            h = model.step(x[:, t], h)
    return h


def two_at_once(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h = start(x)
    for t in range(0, x.shape[1], 2):
        h = torch.tanh(model.pair(torch.cat([x[:, t], x[:, t + 1]], -1)) + model.h(h))
    return h


def unrolled(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h = start(x)
    for t in range(0, x.shape[1], 2):
        h = torch.tanh(model.x(x[:, t]) + model.h(h))
        h = torch.tanh(model.x(x[:, t + 1]) + model.second(h))
    return h


def in_chunks(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h = start(x)
    for part in x.split(3, 1):
        h = model.step(part.mean(1), h)
    return h


def refining(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h, mean = start(x), x.mean(1)
    for _ in range(x.shape[1]):
        h = model.step(mean, h)
    return h


def two_layers(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h, states = start(x), []
    for t in range(x.shape[1]):
        h = model.step(x[:, t], h)
        states.append(h)
    rows, h = torch.stack(states, 1), start(x)
    for t in range(x.shape[1] - 1, -1, -1):
        h = torch.tanh(model.second(rows[:, t]) + model.back(h))
    return h


def two_layers_in_a_buffer(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h, rows = start(x), x.new_zeros(*x.shape[:2], 4)
    for t in range(x.shape[1]):
        h = model.step(x[:, t], h)
        rows[:, t] = h
    h = start(x)
    for t in range(x.shape[1] - 1, -1, -1):
        h = torch.tanh(model.second(rows[:, t]) + model.back(h))
    return h


def window(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h, padded = start(x), torch.cat([torch.zeros_like(x[:, :1]), x], 1)
    for t in range(x.shape[1]):
        h = torch.tanh(model.pair(torch.cat([padded[:, t], padded[:, t + 1]], -1)) + model.h(h))
    return h


def attending(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    h, keys = start(x), model.x(x)
    for t in range(x.shape[1]):
        weights = torch.softmax((keys @ h[:, :, None])[:, :, 0], -1)
        h = model.step(x[:, t] + (weights[:, :, None] * x).sum(1), h)
    return h


def unrecorded(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    return forward(model, _ids, torch.from_numpy(x.detach().numpy().copy()))


def convolved(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    kernel = torch.ones(5, 5, 3) / 15
    return forward(model, _ids, nn.functional.conv1d(x.mT, kernel, stride=3).mT)


def convolved_fused(model: Model, _ids: Tensor, x: Tensor) -> Tensor:
    kernel = torch.ones(5, 5, 3) / 15
    return model.rnn(nn.functional.conv1d(x.mT, kernel, stride=3).mT)[0][:, -1]


def run(
    loop: Run, batch: int = 1, lengths: list[int] | None = None, options: RunOptions = DEFAULTS
) -> tuple[Trace, Listed]:
    ids = torch.arange(batch * LENGTH).remainder(9).view(batch, LENGTH)
    names = tuple(tuple(LETTERS) for _ in range(batch))
    sink = Listed()
    given = Batch(ids, torch.tensor(lengths or [LENGTH] * batch), names)
    return perform(adopt(Model(loop)), given, sink, options), sink


def domain(sink: Listed, place: str) -> str:
    """The step axis of the states of a place, as described last (they may be written while the model runs)."""
    return [one for one in sink.of(Channel) if one.name == f"{place}:h"][-1].domain("step")


BACK = LETTERS[::-1]
ORDERS = [
    (backward, "model", BACK), (flipped, "model", BACK), (counting_down, "model", BACK), (of_a_cell, "cell", BACK),
    (fused, "rnn.l0", BACK), (listed, "model", BACK), (strided, "model", LETTERS[::2]),
    (strided_fused, "rnn.l0", LETTERS[::2]), (shuffled, "model", "dbacefhgijlk"),
    (several_iterations, "model", "".join(letter * 2 for letter in LETTERS)),
    (two_at_once, "model", ["ab", "cd", "ef", "gh", "ij", "kl"]),
    (unrolled, "model", ["ab", "cd", "ef", "gh", "ij", "kl"]), (in_chunks, "model", ["abc", "def", "ghi", "jkl"]),
    (two_layers, "model#2", BACK), (two_layers_in_a_buffer, "model#2", BACK),
]  # fmt: skip


@pytest.mark.parametrize("batch", [1, 3, LENGTH])
@pytest.mark.parametrize(("loop", "place", "read"), ORDERS)
def test_another_order_has_an_axis_that_names_what_was_read(
    loop: Run, place: str, read: str | list[str], batch: int
) -> None:
    _, sink = run(loop, batch, options=RunOptions(only=("states",)))
    assert domain(sink, place) == f"iteration of {place}"
    assert sink.labels(f"iteration of {place}") == tuple(read)
    assert sink.array(f"{place}:h").shape[0] == len(read)
    assert not sink.refusals()


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("loop", [forward, window, attending, unrecorded])
def test_the_order_of_the_input_is_its_axis(loop: Run, batch: int) -> None:
    trace, sink = run(loop, batch, options=RunOptions(only=("states",)))
    assert domain(sink, "model") == "step" and trace.recurrences[0].domain == "step"


@pytest.mark.parametrize("loop", [refining, convolved, convolved_fused])
def test_iterations_that_read_no_step_have_their_own_axis_without_labels(loop: Run) -> None:
    trace, sink = run(loop, options=RunOptions(only=("states",)))
    (recurrence,) = trace.recurrences
    assert recurrence.domain in (f"iteration of {recurrence.place}", "position")
    assert domain(sink, recurrence.place) == recurrence.domain and not sink.labels(recurrence.domain)


def test_the_first_layer_of_two_stays_on_the_input() -> None:
    _, sink = run(two_layers, options=RunOptions(only=("states",)))
    assert (domain(sink, "model"), domain(sink, "model#2")) == ("step", "iteration of model#2")


@pytest.mark.parametrize(("loop", "order"), [(backward, range(LENGTH - 1, -1, -1)), (strided, range(0, LENGTH, 2))])
def test_units_are_correlated_with_the_tokens_that_were_read(loop: Run, order: range) -> None:
    trace, sink = run(loop, 2, options=RunOptions(only=("openers",)))
    (recurrence,) = trace.recurrences
    model = trace.subject.model
    h, by_token = torch.zeros(2, 4), {}
    for t in order:  # the gate's mean by token, computed step by step
        ids = trace.batch.inputs[:, t]
        x = model.embedding(ids)
        z = torch.sigmoid(model.gate(torch.cat([x, h], -1))).detach()
        h = (z * h + (1 - z) * torch.tanh(model.x(x) + model.h(h))).detach()
        for b in range(2):
            by_token.setdefault(int(ids[b]), []).append(z[b].numpy())
    expected = [np.mean(by_token[token], axis=0) for token in sorted(by_token)]
    assert recurrence.reads is not None and recurrence.reads.low.tolist() == list(order)
    np.testing.assert_allclose(sink.array("model:gate/z/by_token"), expected, atol=1e-6)


def test_several_steps_an_iteration_are_not_correlated() -> None:
    _, sink = run(in_chunks, options=RunOptions(only=("openers",)))
    assert "reads several steps of the input" in sink.refusals()["model:gate/openers"]


def test_padding_that_is_read_first_is_not_correlated() -> None:
    trace, sink = run(backward, 2, [LENGTH, 7], RunOptions(only=("openers",)))
    assert trace.recurrences[0].lengths.tolist() == [LENGTH, LENGTH]
    assert "reads padding too" in sink.refusals()["model:gate/openers"]


def test_padding_that_is_read_last_is_left_out() -> None:
    trace, sink = run(strided, 2, [LENGTH, 7], RunOptions(only=("openers",)))
    assert trace.recurrences[0].lengths.tolist() == [6, 4] and not sink.refusals()
