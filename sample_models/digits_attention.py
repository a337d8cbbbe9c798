"""Multi-head attention on handwritten digits read row by row, S16: an encoder whose read-out attends to all eight rows.

Look at the attention of the last layer: which rows of a 6 or a 9 decide. The loss sits on the last step only.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sample_models.base import Sample, seeded, vary_layers
from sample_models.digits import digits_sample
from sample_models.readers import with_lengths

SAMPLE = {
    "name": "digits-attention",
    "row": "S16",
    "title": "Multi-head attention, digits by rows",
    "task": "which digit: 8 × 8 images read as eight rows",
    "shows": "bidirectional attention over eight steps, every head, on inputs that are vectors",
}
WIDTH, HEADS, LAYERS = 28, 4, 2


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


def build() -> Sample:
    """Two layers of four heads, untrained."""
    with seeded():
        model = DigitReader()
    return digits_sample("digits-attention", model, (8, 8), forward=with_lengths, rate=2e-3)
