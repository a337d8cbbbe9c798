"""Two attended encoders at once, S14: one reads the day, another the month and the year, and each is looked at apart.

At each step the decoder's state is the query of both: two alignments, one over each input's own steps. Both contexts
enter the step. Trained with the additive score of dates-additive.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from sample_models import dates
from sample_models.base import Plain, Sample, Training, seeded
from sample_models.date_decoders import Additive, Decoder, Encoder, Source
from sample_models.tasks import step_loss

SAMPLE = {
    "name": "dates-two-encoders",
    "row": "S14",
    "title": "Attention over two encoders at once",
    "task": "a day in one text, its month and year in another: say the date in ISO's form",
    "shows": "two alignments of one decoder, each over the steps of an input of its own",
}
WIDTH = 28
FORMS = (
    "{day};{month} {year}", "{ordinal};{month} {year}", "the {ordinal};of {month} {year}", "{day};{year} {month}",
    "{ordinal};{number}/{year}",
)  # fmt: skip
"""What stands left of the semicolon is the first input, what stands right of it the second one."""
Both = tuple[Source, Source]


class TwoReads(Decoder[Both]):
    """c and d from s_{t-1}, one of each encoder, s_t = GRU([y_{t-1}; c; d], s_{t-1}), scores of [s_t; c; d]."""

    def __init__(self) -> None:
        super().__init__(2 * WIDTH, WIDTH, 3 * WIDTH)
        self.day, self.month = Additive(WIDTH), Additive(WIDTH)

    def begin(self, source: Both) -> Tensor:
        """Zeros: everything is looked up."""
        return torch.zeros_like(source[0].last)

    def step(self, source: Both, symbol: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Look twice, then move."""
        day, month = self.day(state, source[0]), self.month(state, source[1])
        state = self.cell(torch.cat((symbol, day, month), dim=-1), state)
        return self.head(torch.cat((state, day, month), dim=-1)), state


class TwoReaders(nn.Module):
    """Two encoders and a decoder: two inputs of ids (b, t) and (b, u) → scores (b, 11, 12)."""

    def __init__(self) -> None:
        super().__init__()
        self.day, self.month = Encoder(WIDTH), Encoder(WIDTH)
        self.decoder = TwoReads()

    def read(self, batch: Any) -> Both:
        """What both encoders give."""
        day, month = (batch.named[name].lengths for name in ("day", "month"))
        return self.day(batch["day"], day), self.month(batch["month"], month)

    def forward(self, batch: Any) -> Tensor:
        """Scores of the symbols of the answer, each after the right ones before it, if the texts are a date."""
        scores: Tensor = self.decoder(self.read(batch), wanted(batch))
        return scores


def wanted(batch: Any) -> Tensor:
    """(b, 11): what is to be said, IGNORED where the two texts are no date together."""
    days, months = (dates.texts(batch[name], batch.named[name].lengths) for name in ("day", "month"))
    found = [dates.read(f"{day};{month}", FORMS) for day, month in zip(days, months, strict=True)]
    return dates.said_of(found, batch["day"])


def answer(scores: Tensor, batch: Any) -> Tensor:
    """(b, 11): the right answer; where the texts are no date, what the model says."""
    return dates.heard(scores, wanted(batch))


def loss(scores: Tensor, batch: Any) -> Tensor:
    """(b, 11): −ln p(symbol) at every step; NaN where the texts are no date."""
    return step_loss(scores, wanted(batch))


def next_logits(model: nn.Module, batch: Any, prefixes: Tensor) -> Tensor:
    """Scores (n, l + 1, 12) after each beginning of the answers (n, l) that are tried on one pair of texts."""
    assert isinstance(model, TwoReaders)
    day, month = model.read(batch)
    many = len(prefixes)
    said = nn.functional.pad(prefixes, (0, 1), value=dates.BORDER)
    scores: Tensor = model.decoder((day.repeated(many), month.repeated(many)), said)
    return scores


def draw(generator: torch.Generator, rows: int = 48) -> Plain:
    """A batch of dates that are trained on, each cut in two."""
    cut = [dates.written(dates.drawn_day(generator), generator, FORMS).split(";") for _ in range(rows)]
    day, month = (dates.padded(texts) for texts in zip(*cut, strict=True))
    return Plain(day.inputs, day.lengths, named={"day": day, "month": month})


def call(model: nn.Module, batch: Any) -> Tensor:
    """The model on a batch that has its inputs by name."""
    scores: Tensor = model(batch)
    return scores


def build() -> Sample:
    """14 units in each direction of both encoders, 28 in the decoder, untrained."""
    with seeded():
        model = TwoReaders()
    text = {"kind": "tokens", "vocabulary": dates.LETTERS, "encode": dates.encode}
    return Sample(
        model=model, name="dates-two-encoders", kind="tokens", vocabulary=dates.LETTERS, labels=dates.SAID,
        inputs={"day": {**text, "modules": "day"}, "month": {**text, "modules": "month"}}, forward=call, loss=loss,
        answer=answer, decoder="decoder", next_logits=next_logits, end_token=dates.BORDER,
        training=Training(draw, rate=5e-3, steps=1600),
        examples={
            "a date": ("tuesday, the 23rd", "of september 2025"), "a number": ("9", "1999 december"),
            "numbers": ("5th", "4/2031"),
        },
    )  # fmt: skip
