"""Causal transformer on text, S18: masked self-attention, residuals, layer norm; position i sees positions ≤ i.

Trained on windows of 320 characters; beyond that it has to extrapolate, and its examples stay near that length.
Look at the attention maps: heads that watch the character just before, heads that look back to the start of the
word, and how the entropy of each head falls over training.
"""

from __future__ import annotations

from torch import Tensor, nn

from sample_models.base import Sample, Training, seeded, vary_layers
from sample_models.positions import sinusoidal
from sample_models.text import character_sample, draw, vocabulary

SAMPLE = {
    "name": "char-transformer",
    "row": "S18",
    "title": "Causal transformer, characters",
    "task": "next character of Alice's Adventures in Wonderland",
    "shows": "causal attention of every head, its entropy and distance, surprise along the text",
}
WIDTH, HEADS, LAYERS = 28, 4, 2
WINDOW, ROWS = 320, 8
LONGEST = 4096


class CausalTransformer(nn.Module):
    """Embedding with positions, encoder layers under a causal mask, read-out: ids (b, t) → logits (b, t, v)."""

    def __init__(self) -> None:
        super().__init__()
        size = len(vocabulary())
        self.embedding = nn.Embedding(size, WIDTH)
        self.register_buffer("positions", sinusoidal(LONGEST, WIDTH), persistent=False)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        vary_layers(self.encoder)
        self.head = nn.Linear(WIDTH, size)

    def forward(self, ids: Tensor) -> Tensor:
        """Scores of the next character at every position."""
        t = ids.shape[1]
        if t > LONGEST:
            raise ValueError(f"The transformer has positions for {LONGEST} characters; given were {t}.")
        x = self.embedding(ids) + self.get_buffer("positions")[:t]
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        logits: Tensor = self.head(self.encoder(x, mask=mask, is_causal=True))
        return logits


def build() -> Sample:
    """Two layers of four heads, width 32, untrained."""
    with seeded():
        model = CausalTransformer()
    sample = character_sample("char-transformer", model)
    sample.examples = {name: text for name, text in sample.examples.items() if len(text) <= WINDOW * 3 // 2}
    sample.training = Training(lambda generator: draw(generator, WINDOW, ROWS), rate=5e-3)
    return sample
