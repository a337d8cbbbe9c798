"""2,000 short sequences: their numbers and the statistics of units, against the bare forward and backward passes of the
same batches. The constant, what the first batch and its check cost, is a line of its own."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import torch
from harness import Row, interleave
from torch import Tensor, nn

from inspector.engine.data_set import run_data_set
from inspector.engine.data_set.run import CHECKED
from inspector.engine.model.joining import MOST_TOGETHER
from inspector.engine.model.subject import adopt
from inspector.engine.pipeline import RunOptions
from inspector.records import Frame, data_spec

COUNT, STEPS, WIDTH, HIDDEN = 2000, 32, 16, 64


class Nothing:
    """A sink that drops everything: the benchmark is about the numbers, not about the disk."""

    def write(self, record: Any) -> None:
        """Drop it."""


class Model(nn.Module):
    """One recurrent layer and a head."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.rnn, self.head = kind(WIDTH, HIDDEN, batch_first=True), nn.Linear(HIDDEN, 4)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(self.rnn(x)[0])
        return found


def loss(output: Tensor, _batch: Any) -> Tensor:
    """One number a step."""
    return output.square().sum(-1)


def bare(model: nn.Module, x: Tensor) -> None:
    """Forward and backward passes of the same batches."""
    parameters = list(model.parameters())
    for part in x.split(MOST_TOGETHER):
        torch.autograd.grad(loss(model(part), None).sum(), parameters)


def ours(model: nn.Module, x: Tensor) -> None:
    """Every number of every sequence."""
    subject = adopt(_Given(model, list(x)))
    run_data_set(subject, data_spec("subject"), Nothing(), RunOptions(), Frame(index=0))


class _Given:
    def __init__(self, model: nn.Module, data: list[Tensor]) -> None:
        self.model, self.data, self.loss, self.width = model, data, loss, WIDTH


def products(kind: type[nn.RNNBase]) -> float:
    """Multiplications that the numbers of a sequence cannot do without, over those of a forward and backward pass.

    A step: the forward pass and the gradients at the gates as in a bare pass; the gates once more, the step back with
    one gradient and with two directions; products of steps × steps for the norm of each weight's gradient; covariances
    of the units in float64, which count twice.
    """
    gates = {nn.RNN: 1, nn.GRU: 3, nn.LSTM: 4}[kind]
    fed, given = gates * HIDDEN**2, gates * HIDDEN * WIDTH
    bare = 3 * (fed + given)
    norms = STEPS * (gates * HIDDEN + HIDDEN) + min(STEPS * (gates * HIDDEN + WIDTH), given)
    return ((fed + given) + fed + (fed + given) + 3 * fed + norms + 2 * HIDDEN**2) / bare


def rows() -> list[Row]:
    """float32, one thread; CPU time."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = []
    x = torch.randn(COUNT, STEPS, WIDTH)
    for kind in (nn.RNN, nn.GRU, nn.LSTM):
        model = Model(kind).eval()
        few = x[: 2 * CHECKED]
        times = interleave(
            {
                "ours": partial(ours, model, x), "bare": partial(bare, model, x), "few": partial(ours, model, few),
                "bare few": partial(bare, model, few),
            },
            3, time.process_time,
        )  # fmt: skip
        constant = times["few"] - times["bare few"]
        name = f"{COUNT:,} sequences of {STEPS} steps, {kind.__name__} of {HIDDEN}"
        found.append(
            Row(
                f"{name}: all numbers, less the constant / forward and backward of the same batches",
                times["ours"] - constant,
                times["bare"],
                (times["ours"] - constant) / times["bare"],
                "≤ 2",
                f"constant: {constant * 1000:.0f} ms; products alone: {products(kind):.1f}",
            )
        )
    return found


if __name__ == "__main__":
    began = time.perf_counter()
    for row in rows():
        print(row, time.perf_counter() - began)
