"""One to many, S11: a GRU is told a digit once and paints it, row by row.

Its sequence is the digit at the first step and `·` (nothing more to read) at the other seven; typing `3` is enough.
The output of a step is the ink of the eight pixels of a row. Trained on real images, it paints their mean.
Its loss on held-out digits is 2.81 nat a row; the means of the classes themselves come to 2.74.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sample_models.base import Batch, Plain, Sample, Training, seeded
from sample_models.digits import NAMES, ROWS, data
from sample_models.readers import TokenTransducer

SAMPLE = {
    "name": "generator-digits",
    "row": "S11",
    "title": "One to many: a digit, painted by rows",
    "task": "paint a handwritten digit of 8 × 8 pixels, of which only the class is told",
    "shows": "eight steps that live on one input: states that run on their own, a loss at every step",
}
VOCABULARY = (*NAMES, "·")
NOTHING, HEIGHT = 10, 8


def encode(text: str) -> Tensor:
    """`3` or `3·······` to ids: a digit and then nothing, eight steps unless more are typed. Raises ValueError."""
    if not text or text[0] not in NAMES or set(text[1:]) - {"·"}:
        raise ValueError(f"{text!r} is no digit from 0 to 9 with nothing (·) behind it.")
    return torch.tensor([int(text[0]), *[NOTHING] * max(len(text) - 1, HEIGHT - 1)])


def painting_loss(ink: Tensor, batch: Batch) -> Tensor:
    """(b, t): −ln p in nats of each row's pixels, independent and each black with the probability that it is grey.

    `ink` (b, t, 8) are the logits; targets (b, 8, 8) an image from 0 to 1. NaN below it, and everywhere without one.
    """
    b, t = batch.inputs.shape
    loss = ink.new_full((b, t), torch.nan)
    if batch.targets is None:
        return loss
    height = min(t, HEIGHT)
    wanted = batch.targets.to(ink.dtype)[:, :height]
    values = nn.functional.binary_cross_entropy_with_logits(ink[:, :height], wanted, reduction="none").sum(-1)
    return torch.cat((values, loss[:, height:]), dim=1)


def rows(ink: Tensor, _batch: Batch) -> list[list[str]]:
    """The names of the answer's steps: a step paints a row."""
    return [[f"row {n + 1}" for n in range(ink.shape[1])] for _ in range(len(ink))]


def draw(generator: torch.Generator) -> Plain:
    """A batch of classes, each with one training image of it."""
    images, labels = data(test=False)
    chosen = torch.randint(0, len(images), (ROWS,), generator=generator).numpy()
    inputs = torch.full((ROWS, HEIGHT), NOTHING)
    inputs[:, 0] = torch.from_numpy(labels[chosen])
    return Plain(inputs, torch.full((ROWS,), HEIGHT), torch.from_numpy(images[chosen]))


def examples() -> dict[str, Any]:
    """Every class, with one test image of it."""
    images, labels = data(test=True)
    ids = {digit: np.array([digit] + [NOTHING] * (HEIGHT - 1)) for digit in range(10)}
    return {f"a {digit}": (ids[digit], images[labels == digit][0]) for digit in (3, 0, 1, 2, 4, 5, 6, 7, 8, 9)}


def build() -> Sample:
    """24 units, untrained."""
    with seeded():
        model = TokenTransducer(nn.GRU(8, 24, batch_first=True), 8, len(VOCABULARY), 8)
    return Sample(
        model=model, name="generator-digits", kind="tokens", vocabulary=VOCABULARY, encode=encode, loss=painting_loss,
        answer=rows, decoder="rnn", examples=examples(), training=Training(draw, rate=1e-2, steps=1600),
    )  # fmt: skip
