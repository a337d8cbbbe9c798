"""Encoder–decoder transformer on dates, S18: what is read attends to itself, what is said to both.

One layer on each side, four heads each; look at the cross-attention beside the alignments of dates-additive, which
solves the same task with one head and a recurrence. Reference: Vaswani et al. (2017).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sample_models import dates
from sample_models.base import Batch, Sample, Training, seeded, vary_layers
from sample_models.positions import sinusoidal
from sample_models.readers import with_lengths
from sample_models.tasks import IGNORED

SAMPLE = {
    "name": "dates-transformer",
    "row": "S18",
    "title": "Encoder–decoder transformer, dates",
    "task": "dates in written English: say them in ISO's form",
    "shows": "encoder, decoder and cross-attention of every head, causal and padding masks, the residual stream",
}
WIDTH, HEADS, WIDE = 28, 4, 56
LONGEST = 256


class DateTransformer(nn.Module):
    """ids (b, t), right-padded → scores (b, 11, 12)."""

    def __init__(self) -> None:
        super().__init__()
        self.letters, self.symbols = nn.Embedding(len(dates.LETTERS), WIDTH), nn.Embedding(len(dates.SAID), WIDTH)
        self.register_buffer("positions", sinusoidal(LONGEST, WIDTH), persistent=False)
        one = nn.TransformerEncoderLayer(WIDTH, HEADS, WIDE, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(one, 1, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        other = nn.TransformerDecoderLayer(WIDTH, HEADS, WIDE, dropout=0.0, batch_first=True, norm_first=True)
        self.decoder = nn.TransformerDecoder(other, 1, nn.LayerNorm(WIDTH))
        for part in (self.encoder, self.decoder):
            vary_layers(part)
        self.head = nn.Linear(WIDTH, len(dates.SAID))

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Scores of the symbols of the answer, each after the right ones before it, if the text is a date."""
        memory, padding = self.read(ids, lengths)
        return self.answer(memory, padding, self.completed(memory, padding, dates.wanted(ids, lengths)))

    def read(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """What the encoder gives (b, t, d), and (b, t) true at padding."""
        padding = torch.arange(ids.shape[1], device=ids.device)[None] >= lengths.to(ids.device)[:, None]
        placed = self.letters(ids) + self.get_buffer("positions")[: ids.shape[1]]
        return self.encoder(placed, src_key_padding_mask=padding), padding

    def answer(self, memory: Tensor, padding: Tensor, said: Tensor) -> Tensor:
        """Scores (b, l, 12) where the symbols said (b, l) are fed, one step late."""
        before = nn.functional.pad(said[:, :-1], (1, 0), value=dates.BORDER)
        placed = self.symbols(before) + self.get_buffer("positions")[: before.shape[1]]
        later = nn.Transformer.generate_square_subsequent_mask(before.shape[1], device=said.device, dtype=torch.bool)
        found = self.decoder(placed, memory, tgt_mask=later, tgt_is_causal=True, memory_key_padding_mask=padding)
        scores: Tensor = self.head(found)
        return scores

    def completed(self, memory: Tensor, padding: Tensor, said: Tensor) -> Tensor:
        """The symbols (b, l), those that are IGNORED replaced by the likeliest ones after what stands before them."""
        for t in range(said.shape[1] if bool((said == IGNORED).any()) else 0):
            likeliest = self.answer(memory, padding, said[:, : t + 1].clamp(min=0))[:, -1].argmax(-1)
            said = said.clone()
            said[:, t] = torch.where(said[:, t] == IGNORED, likeliest, said[:, t])
        return said


def next_logits(model: nn.Module, batch: Batch, prefixes: Tensor) -> Tensor:
    """Scores (n, l + 1, 12) after each beginning of the answers (n, l) that are tried on one text."""
    assert isinstance(model, DateTransformer)
    memory, padding = model.read(batch.inputs, batch.lengths)
    many = len(prefixes)
    said = nn.functional.pad(prefixes, (0, 1), value=dates.BORDER)
    return model.answer(memory.expand(many, -1, -1), padding.expand(many, -1), said)


def build() -> Sample:
    """One layer of four heads on each side, width 28, untrained."""
    with seeded():
        model = DateTransformer()
    return Sample(
        model=model, name="dates-transformer", kind="tokens", vocabulary=dates.LETTERS, labels=dates.SAID,
        encode=dates.encode, forward=with_lengths, loss=dates.loss, answer=dates.answer, decoder="decoder",
        next_logits=next_logits, end_token=dates.BORDER, training=Training(dates.draw, rate=5e-3, steps=1600),
        examples=dates.EXAMPLES, data=dates.unseen,
    )  # fmt: skip
