"""A language whose likeliest letter leads away from its likeliest word, S19: greedy decoding against beam search.

Two words in five are "along"; three in five begin with b, and these are "back", "bend", "birth" and "bold" in turn. So
b is the likeliest first letter (0.6), and the word that greedy decoding ends up with has 0.15, while "along" has 0.4.
A beam of two finds it: `inspector decode garden-path-gru --text "<" --how beam --width 2`.
"""

from __future__ import annotations

import torch
from torch import nn

from sample_models.base import Plain, Sample, Training, seeded
from sample_models.readers import TokenTransducer
from sample_models.text import next_character_loss

SAMPLE = {
    "name": "garden-path-gru",
    "row": "S19",
    "title": "GRU on five words, decoding",
    "task": "next letter of one of five words",
    "shows": "greedy decoding, sampling and beam search on a language whose probabilities are known",
}
LETTERS = ("<", *"abcdefghijklmnopqrstuvwxyz")
"""The sign that starts and ends a word, and letters."""
WORDS = {"along": 0.4, "back": 0.15, "bend": 0.15, "birth": 0.15, "bold": 0.15}
ROWS = 32


def draw(generator: torch.Generator) -> Plain:
    """A batch of words, each between two signs."""
    names = [f"<{word}<" for word in WORDS]
    chosen = torch.multinomial(torch.tensor([*WORDS.values()]), ROWS, replacement=True, generator=generator).tolist()
    rows = [torch.tensor([LETTERS.index(letter) for letter in names[i]]) for i in chosen]
    return Plain(nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.tensor([len(row) for row in rows]))


def build() -> Sample:
    """16 units, untrained."""
    with seeded():
        model = TokenTransducer(nn.GRU(8, 16, batch_first=True), 8, len(LETTERS), len(LETTERS))
    return Sample(
        model=model, name="garden-path-gru", kind="tokens", vocabulary=LETTERS, loss=next_character_loss,
        next_token=True, end_token=0, training=Training(draw, rate=1e-2, steps=1600),
        examples={"the likeliest word": "<along<", "another word": "<birth<", "the start": "<"},
    )  # fmt: skip
