"""Attention on handwritten digits read row by row, S15: an encoder whose read-out attends to all eight rows.

Look at the attention of the last layer: which rows of a 6 or a 9 decide. The loss sits on the last step only.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sample_models.base import FOLDER, Batch, Plain, Sample, Training, seeded, vary_layers

SAMPLE = {
    "name": "digits-attention",
    "row": "S15",
    "title": "Attention encoder, digits by rows",
    "task": "which digit: 8 × 8 images read as eight rows",
    "shows": "bidirectional attention over eight steps, every head, on inputs that are vectors",
}
WIDTH, HEADS, LAYERS, ROWS = 28, 4, 2, 32


class DigitReader(nn.Module):
    """Rows (b, 8, 8) → scores (b, 1, 10): linear, learned positions, encoder layers, mean, read-out."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Linear(8, WIDTH)
        self.positions = nn.Parameter(0.1 * torch.randn(8, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        vary_layers(self.encoder)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, rows: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Scores of the ten classes after the last row; rows beyond a digit's length are neither seen nor averaged."""
        t = rows.shape[1]
        if t > 8:
            raise ValueError(f"A digit has 8 rows; given were {t}.")
        padding = None
        if lengths is not None and bool((lengths < t).any()):
            padding = torch.arange(t)[None] >= lengths[:, None]
        x = self.encoder(self.embedding(rows) + self.positions[:t], src_key_padding_mask=padding)
        if padding is not None:
            x = x.masked_fill(padding[..., None], 0.0) * (t / lengths[:, None, None])  # type: ignore[index]
        scores: Tensor = self.head(x.mean(dim=1, keepdim=True))
        return scores


@cache
def data(test: bool) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """(images (n, 8, 8) from 0 to 1, labels (n,)) of one part (see data/SOURCES.md)."""
    with np.load(FOLDER / "data" / "digits.npz", allow_pickle=False) as archive:
        part = archive["test"] == test
        return archive["images"][part].astype(np.float32) / 16.0, archive["labels"][part].astype(np.int64)


def draw(generator: torch.Generator) -> Plain:
    """A batch of training digits."""
    images, labels = data(test=False)
    chosen = torch.randint(0, len(images), (ROWS,), generator=generator).numpy()
    return Plain(torch.from_numpy(images[chosen]), torch.full((ROWS,), 8), torch.from_numpy(labels[chosen]))


def last_step_loss(scores: Tensor, batch: Batch) -> Tensor:
    """(b, t): cross-entropy in nats at the last step of each digit, NaN elsewhere, and everywhere without a label."""
    b, t = batch.inputs.shape[:2]
    loss = scores.new_full((b, t), torch.nan)
    if batch.targets is None:
        return loss
    values = nn.functional.cross_entropy(scores[:, 0], batch.targets.view(-1), reduction="none")
    return loss.index_put((torch.arange(b), batch.lengths - 1), values)


def examples() -> dict[str, Any]:
    """One test digit of each class."""
    images, labels = data(test=True)
    return {f"a {digit}": (images[labels == digit][0], digit) for digit in (3, 0, 1, 2, 4, 5, 6, 7, 8, 9)}


def build() -> Sample:
    """Two layers of four heads, untrained."""
    with seeded():
        model = DigitReader()
    return Sample(
        model=model, forward=lambda reader, rows, lengths: reader(rows, lengths),
        name="digits-attention", kind="vectors", width=8, labels=tuple("0123456789"),
        logits=lambda output: output, loss=last_step_loss, examples=examples(), training=Training(draw, rate=2e-3),
    )  # fmt: skip
