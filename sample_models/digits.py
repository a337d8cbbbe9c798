"""Handwritten digits, 8 × 8 pixels, read as one vector, row by row or pixel by pixel: data, batches, loss, examples."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sample_models.base import FOLDER, SAVED_AT, Batch, Plain, Sample, Training

ROWS = 32
Shape = tuple[int, int]
"""How an image is read: (steps, numbers a step): (1, 64) whole, (8, 8) by rows, (64, 1) by pixels."""
NAMES = tuple("0123456789")


@cache
def data(test: bool) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """(images (n, 8, 8) from 0 to 1, labels (n,)) of one part (see data/SOURCES.md)."""
    with np.load(FOLDER / "data" / "digits.npz", allow_pickle=False) as archive:
        part = archive["test"] == test
        return archive["images"][part].astype(np.float32) / 16.0, archive["labels"][part].astype(np.int64)


def draw(generator: torch.Generator, shape: Shape = (8, 8)) -> Plain:
    """A batch of training digits."""
    images, labels = data(test=False)
    chosen = torch.randint(0, len(images), (ROWS,), generator=generator).numpy()
    inputs = torch.from_numpy(images[chosen]).view(ROWS, *shape)
    return Plain(inputs, torch.full((ROWS,), shape[0]), torch.from_numpy(labels[chosen]))


def last_step_loss(scores: Tensor, batch: Batch) -> Tensor:
    """(b, t): cross-entropy in nats at the last step of each digit, NaN elsewhere, and everywhere without a label.

    The scores are those of the last step, (b, 1, 10).
    """
    b, t = batch.inputs.shape[:2]
    loss = scores.new_full((b, t), torch.nan)
    if batch.targets is None:
        return loss
    values = nn.functional.cross_entropy(scores[:, 0], batch.targets.view(-1), reduction="none")
    return loss.index_put((torch.arange(b), batch.lengths - 1), values)


def examples(shape: Shape = (8, 8)) -> dict[str, Any]:
    """One test digit of each class."""
    images, labels = data(test=True)
    first = {digit: images[labels == digit][0].reshape(shape) for digit in range(10)}
    return {f"a {digit}": (first[digit], digit) for digit in (3, 0, 1, 2, 4, 5, 6, 7, 8, 9)}


def held_out(shape: Shape = (8, 8)) -> dict[str, Any]:
    """Every test digit with its label, by its number."""
    pairs = zip(*data(test=True), strict=True)
    return {f"digit {n}, a {label}": (image.reshape(shape), int(label)) for n, (image, label) in enumerate(pairs)}


def digits_sample(
    name: str, model: nn.Module, shape: Shape, *, rate: float = 3e-3, steps: int = SAVED_AT[-1],
    forward: Callable[[nn.Module, Tensor, Tensor], Any] | None = None,
) -> Sample:  # fmt: skip
    """A classifier of digits as a Sample; its model answers once a digit, (b, 1, 10)."""
    return Sample(
        model=model, forward=forward, name=name, kind="vectors", width=shape[1], picture=(8, 8), labels=NAMES,
        logits=lambda output: output, loss=last_step_loss, examples=examples(shape),
        training=Training(lambda generator: draw(generator, shape), rate=rate, steps=steps),
        data=lambda: held_out(shape),
    )  # fmt: skip
