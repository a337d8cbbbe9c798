"""Character models on "Alice's Adventures in Wonderland": vocabulary, batches, loss, passages."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn

from sample_models.base import FOLDER, SAVED_AT, Batch, Plain, Sample, Training, seeded
from sample_models.cells import Cell, ElmanCell, MixCell, Unrolled, UnrolledWithMemory
from sample_models.readers import Recurrent, TokenTransducer

WINDOW, ROWS = 64, 32
HELD_OUT = 0.95
"""Share of the book that is trained on; passages for evaluation come from the rest."""


@cache
def book() -> str:
    """The whole text (see data/SOURCES.md)."""
    return (FOLDER / "data" / "alice.txt").read_text(encoding="utf-8")


def vocabulary() -> tuple[str, ...]:
    """Line break and printable ASCII: more than the book uses, so that any plain English text can be typed."""
    return ("\n", *map(chr, range(32, 127)))


def encode(text: str) -> Tensor:
    """Characters to ids, (t,). Raises ValueError naming the first character that the book does not have."""
    index = {character: number for number, character in enumerate(vocabulary())}
    for position, character in enumerate(text):
        if character not in index:
            known = "".join(vocabulary()).replace("\n", "⏎")
            raise ValueError(
                f"Character {character!r} at position {position} is not among the {len(index)} known: {known}"
            )
    return torch.tensor([index[character] for character in text], dtype=torch.long)


@cache
def _ids() -> Tensor:
    return encode(book())


def held_out() -> str:
    """The end of the book, never trained on."""
    return book()[int(HELD_OUT * len(book())) :]


def draw(generator: torch.Generator, window: int = WINDOW, rows: int = ROWS) -> Plain:
    """A batch of random windows of the training part."""
    starts = torch.randint(0, int(HELD_OUT * len(book())) - window, (rows, 1), generator=generator)
    return Plain(_ids()[starts + torch.arange(window)], torch.full((rows,), window))


def next_character_loss(logits: Tensor, batch: Batch) -> Tensor:
    """(b, t): −ln p(next character) in nats at each step; NaN on the last real step and on padding."""
    b, t, v = logits.shape
    loss = logits.new_full((b, t), torch.nan)
    real = torch.arange(t - 1)[None, :] < batch.lengths[:, None] - 1
    flat = nn.functional.cross_entropy(
        logits[:, :-1].reshape(-1, v), batch.inputs[:, 1:].reshape(-1), reduction="none"
    ).view(b, t - 1)
    rows, columns = torch.nonzero(real, as_tuple=True)
    return loss.index_put((rows, columns), flat[rows, columns])


def passages() -> dict[str, str]:
    """Ready passages: one of a page's length first, a long one, a short one."""
    text = held_out()
    verse = book().index("'They told me you had been to her")
    page = text.index("\n\n") + 2
    return {
        "a passage (held out)": text[page : page + 300],
        "long passage (held out)": text[page : page + 2000],
        "a verse": book()[verse : verse + 460],
        "opening": book()[33:233],
        "one word": "Alice",
    }


EMBEDDED = 16


def character_rnn(rnn: Recurrent) -> TokenTransducer:
    """Embedding, a recurrence, a linear read-out: ids (b, t) → logits (b, t, v) of the next character."""
    return TokenTransducer(rnn, EMBEDDED, len(vocabulary()), len(vocabulary()))


def character_sample(
    name: str, model: nn.Module, *, clip: float | None = 1.0, rate: float = 3e-3, steps: int = SAVED_AT[-1]
) -> Sample:
    """A character model as a Sample."""
    return Sample(
        model=model, name=name, kind="tokens", vocabulary=vocabulary(), encode=encode, loss=next_character_loss,
        next_token=True, examples=passages(), training=Training(draw, rate=rate, clip=clip, steps=steps),
    )  # fmt: skip


def elman(
    name: str, *, gain: float | None = None, hidden: int = 64, clip: float | None = 1.0, rate: float = 3e-3
) -> Sample:
    """The Elman network of four samples; `gain` sets W_hh to that multiple of a random orthogonal matrix."""
    with seeded():
        rnn = nn.RNN(EMBEDDED, hidden, batch_first=True)
        model = character_rnn(rnn)
        if gain is not None:
            nn.init.orthogonal_(rnn.get_parameter("weight_hh_l0"), gain)
    return character_sample(name, model, clip=clip, rate=rate)


def written(name: str, cell: Cell | MixCell, *, rate: float = 5e-3, steps: int = 1600) -> Sample:
    """A character model around a cell written by hand, in a loop over time."""
    rnn = UnrolledWithMemory(cell) if isinstance(cell, MixCell) else Unrolled(cell)
    return character_sample(name, character_rnn(rnn), rate=rate, steps=steps)


def activated_elman(name: str, activation: str) -> Sample:
    """The Elman network of two samples, by hand, with a chosen activation."""
    with seeded():
        return written(name, ElmanCell(EMBEDDED, 40, activation))
