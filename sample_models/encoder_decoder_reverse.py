"""Encoder and decoder with T_x ≠ T_y, S11: letters are read, then said backwards without the fillers between them.

A GRU reads the question; its last state starts another that says the answer, one letter a step, fed with the letter
before (the right one: teacher forcing, Williams & Zipser 1989). The output, and so the loss, has the answer's steps;
shorter questions and answers of a batch are padded. Reference: Sutskever, Vinyals & Le (2014), Cho et al. (2014).
Trained, it says 639 of 640 new words right by itself, each letter chosen by its own scores.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sample_models.base import Batch, Sample, Training, seeded
from sample_models.readers import with_lengths
from sample_models.tasks import BORDER, IGNORED, LETTERS, reversed_letters, reversing, step_loss

SAMPLE = {
    "name": "encoder-decoder-reverse",
    "row": "S11",
    "title": "Encoder and decoder: say it backwards",
    "task": "three to eight letters and fillers: say the letters backwards, without the fillers, and end",
    "shows": "two recurrences of different lengths joined by one state, padding on both sides",
}
EMBEDDED, HIDDEN = 8, 40


class EncoderDecoder(nn.Module):
    """ids (b, t), right-padded → scores (b, l, 8) of the answer's l steps, `<` at its end included."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), EMBEDDED)
        self.encoder = nn.GRU(EMBEDDED, HIDDEN, batch_first=True)
        self.decoder = nn.GRU(EMBEDDED, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, len(LETTERS))

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Scores of the letters of the answer, each after the right letters before it."""
        return self.answer(self.read(ids, lengths), reversed_letters(ids, lengths))

    def read(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """(1, b, h): the encoder's state after the last real step of each question."""
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(ids), lengths, batch_first=True, enforce_sorted=False)
        context: Tensor = self.encoder(packed)[1]
        return context

    def answer(self, context: Tensor, wanted: Tensor) -> Tensor:
        """Scores (b, l, 8) where the letters wanted (b, l) are fed, one step late, after the border sign."""
        before = torch.cat((wanted.new_full((len(wanted), 1), BORDER), wanted[:, :-1]), dim=1)
        states, _ = self.decoder(self.embedding(before.masked_fill(before == IGNORED, BORDER)), context)
        scores: Tensor = self.head(states)
        return scores

    @torch.no_grad()
    def say(self, ids: Tensor, lengths: Tensor, longest: int = 20) -> list[list[int]]:
        """The answers that the model gives by itself, the likeliest letter at every step, without the border."""
        state = self.read(ids, lengths)
        letters = ids.new_full((len(ids), 1), BORDER)
        said = []
        for _ in range(longest):
            states, state = self.decoder(self.embedding(letters), state)
            letters = self.head(states).argmax(-1)
            said.append(letters)
        rows = torch.cat(said, dim=1).tolist()
        return [row[: row.index(BORDER)] if BORDER in row else row for row in rows]


def answer_loss(scores: Tensor, batch: Batch) -> Tensor:
    """(b, l): −ln p(letter) at every step of the answer; NaN on its padding."""
    return step_loss(scores, wanted(scores, batch))


def wanted(_scores: Tensor, batch: Batch) -> Tensor:
    """(b, l): the right answer, its end included, and IGNORED on its padding."""
    return reversed_letters(batch.inputs, batch.lengths)


def build() -> Sample:
    """40 units on each side, untrained."""
    with seeded():
        model = EncoderDecoder()
    return Sample(
        model=model, name="encoder-decoder-reverse", kind="tokens", vocabulary=LETTERS, forward=with_lengths,
        loss=answer_loss, answer=wanted, decoder="decoder", training=Training(reversing, rate=5e-3),
        examples={"with fillers": "ab·c·de", "letters only": "facade", "mostly fillers": "···d··", "one letter": "f"},
    )  # fmt: skip
