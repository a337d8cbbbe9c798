"""Language model of words, S12: embedding, GRU, softmax over 400 words, cross-entropy; perplexity is its measure.

The scores of the words are products of the projected state with the embeddings themselves (tied weights, Press &
Wolf 2017), so an embedding gets its gradient both where its word is read and where it is predicted.
Trained, its perplexity on held-out text is 32; counting words comes to 75.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import torch
from torch import Tensor, nn

from sample_models.base import Plain, Sample, Training, seeded
from sample_models.text import HELD_OUT, book, next_character_loss

SAMPLE = {
    "name": "word-lm",
    "row": "S12",
    "title": "Word language model, GRU",
    "task": "next word of Alice's Adventures in Wonderland, of the 400 commonest words and signs",
    "shows": "likeliest words and surprise at every word, perplexity, gradients of the embedding",
}
WORDS, EMBEDDED, HIDDEN, WINDOW, ROWS = 400, 16, 24, 32, 32
UNKNOWN = "<unk>"
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|[.,;:!?()*-]|[\"'`]")


def split(text: str) -> list[str]:
    """Words in small letters and signs, in order; whatever else there is stands for nothing."""
    return _WORD.findall(text.lower())


@cache
def vocabulary() -> tuple[str, ...]:
    """The unknown word, then the commonest words and signs of the part that is trained on."""
    counted = Counter(split(book()[: int(HELD_OUT * len(book()))]))
    ordered = sorted(counted, key=lambda word: (-counted[word], word))
    return (UNKNOWN, *ordered[: WORDS - 1])


def encode(text: str) -> Tensor:
    """Words to ids, (t,); words that are not among the 400 become <unk>. Raises ValueError where there is no word."""
    index = {word: number for number, word in enumerate(vocabulary())}
    words = split(text)
    if not words:
        raise ValueError(f"There is no word in {text[:40]!r}.")
    return torch.tensor([index.get(word, 0) for word in words])


@cache
def _ids() -> Tensor:
    return encode(book()[: int(HELD_OUT * len(book()))])


def draw(generator: torch.Generator) -> Plain:
    """A batch of random windows of the training part."""
    starts = torch.randint(0, len(_ids()) - WINDOW, (ROWS, 1), generator=generator)
    return Plain(_ids()[starts + torch.arange(WINDOW)], torch.full((ROWS,), WINDOW))


class WordModel(nn.Module):
    """ids (b, t) → logits (b, t, v), with one matrix for reading and for predicting words."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, EMBEDDED)
        self.rnn = nn.GRU(EMBEDDED, HIDDEN, batch_first=True)
        self.project = nn.Linear(HIDDEN, EMBEDDED)
        self.bias = nn.Parameter(torch.zeros(WORDS))
        nn.init.normal_(self.embedding.weight, std=0.3)

    def forward(self, ids: Tensor) -> Tensor:
        """Scores of the next word at every step."""
        states, _ = self.rnn(self.embedding(ids))
        return nn.functional.linear(self.project(states), self.embedding.weight, self.bias)


def passages() -> dict[str, str]:
    """A held-out passage of about a hundred words, a long one, two typed sentences."""
    text = book()[int(HELD_OUT * len(book())) :]
    page = text.index("\n\n") + 2
    return {
        "a passage (held out)": text[page : page + 500],
        "long passage (held out)": text[page : page + 4000],
        "a sentence": "Alice said to the Mock Turtle that she did not know what the Queen was talking about.",
        "unknown words": "The physicist said nothing, and Alice looked at her telephone.",
    }


def build() -> Sample:
    """24 units, untrained."""
    with seeded():
        model = WordModel()
    return Sample(
        model=model, name="word-lm", kind="tokens", vocabulary=vocabulary(), encode=encode, loss=next_character_loss,
        next_token=True, examples=passages(), training=Training(draw, rate=5e-3),
    )  # fmt: skip
