"""Dates in many written English forms, and what is said of them: the same day in ISO's form (2026-03-01).

    date    = [weekday (", " | " ")] written
    written = one of FORMS, the month as a name, as the first three letters of one, or (between slashes) as a number

Weekdays are right and say nothing that the rest does not. The day stands before the month between slashes. Every
form can be read back, so a loss needs no targets: whatever date is typed can be run. Years are 1950 to 2049; days whose
number (counted from 1 January of year 1) is 7 more than a multiple of ten are never drawn for training.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor, nn

from sample_models.base import Batch, Plain
from sample_models.tasks import IGNORED, step_loss

LETTERS = tuple(" ,./0123456789abcdefghijklmnopqrstuvwxyz")
"""Of the dates that are read."""
SAID = tuple("0123456789-<")
"""Of the dates that are said, and the sign that starts and ends them."""
BORDER = SAID.index("<")
LONGEST = 11
"""Steps of a date that is said, its end included."""
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
FORMS = (
    "{day} {month} {year}", "{ordinal} {month} {year}", "the {ordinal} of {month} {year}", "{month} {day}, {year}",
    "{month} {ordinal}, {year}", "{month} the {ordinal} {year}", "{day}/{number}/{year}", "{year} {month} {day}",
)  # fmt: skip
FIRST, LAST = datetime.date(1950, 1, 1).toordinal(), datetime.date(2049, 12, 31).toordinal()
_PARTS = {
    "day": r"(?P<day>\d{1,2})", "ordinal": r"(?P<day>\d{1,2})(?:st|nd|rd|th)", "month": r"(?P<month>[a-z]{3,9})",
    "number": r"(?P<number>\d{1,2})", "year": r"(?P<year>\d{4})",
}  # fmt: skip


def held_out(day: datetime.date) -> bool:
    """Whether a day is kept from training."""
    return day.toordinal() % 10 == 7


def drawn_day(generator: torch.Generator, kept: bool = False) -> datetime.date:
    """A random day that is trained on, or one that is kept from it."""
    while True:
        day = datetime.date.fromordinal(_number(LAST - FIRST + 1, generator) + FIRST)
        if held_out(day) == kept:
            return day


def written(day: datetime.date, generator: torch.Generator, forms: Sequence[str] = FORMS) -> str:
    """A day in one of some forms, drawn by chance."""
    form = forms[_number(len(forms), generator)]
    before = ""
    if _number(3, generator) == 0:
        before = WEEKDAYS[day.weekday()] + (", ", " ")[_number(2, generator)]
    return before + form.format(**parts(day, generator))


def parts(day: datetime.date, generator: torch.Generator) -> dict[str, str]:
    """What the fields of a form are filled with."""
    name = MONTHS[day.month - 1]
    return {
        "day": (f"{day.day}", f"{day.day:02d}")[_number(2, generator)],
        "ordinal": ordinal(day.day),
        "month": (name, name[:3])[_number(2, generator)],
        "number": f"{day.month}",
        "year": f"{day.year}",
    }


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th … 11th, 12th, 13th … 21st."""
    ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


@cache
def _patterns(forms: tuple[str, ...]) -> list[re.Pattern[str]]:
    return [re.compile(rf"(?:[a-z]+day,? )?{form.format(**_PARTS)}") for form in forms]


def read(text: str, forms: tuple[str, ...] = FORMS) -> datetime.date | None:
    """The day that a text says; None where it is no date in one of some forms."""
    for pattern in _patterns(forms):
        found = pattern.fullmatch(text.strip())
        if found is None:
            continue
        said = found.groupdict()
        month = int(said["number"]) if "number" in said else _month(said["month"])
        try:
            return datetime.date(int(said["year"]), month, int(said["day"]))
        except ValueError:  # 30 February, month 13 or 0
            return None
    return None


def _month(name: str) -> int:
    return next((i for i, full in enumerate(MONTHS, 1) if name in (full, full[:3])), 0)


def _number(below: int, generator: torch.Generator) -> int:
    return int(torch.randint(below, (1,), generator=generator))


def encode(text: str) -> Tensor:
    """Characters to ids (t,), capital letters as small ones. Raises ValueError for one that dates do not have."""
    for position, character in enumerate(text.lower()):
        if character not in LETTERS:
            raise ValueError(f"Character {character!r} at position {position} is not among {''.join(LETTERS)!r}.")
    return torch.tensor([LETTERS.index(character) for character in text.lower()], dtype=torch.long)


def texts(ids: Tensor, lengths: Tensor) -> list[str]:
    """What rows (b, t) of ids say, padding left out."""
    return ["".join(LETTERS[i] for i in row[:n]) for row, n in zip(ids.tolist(), lengths.tolist(), strict=True)]


def said_of(days: Sequence[datetime.date | None], like: Tensor) -> Tensor:
    """(b, 11): each day in ISO's form, ended by `<`; IGNORED where there is none, for a model to go on by itself."""
    rows = [[SAID.index(c) for c in f"{day:%Y-%m-%d}<"] if day else [IGNORED] * LONGEST for day in days]
    return torch.tensor(rows, dtype=torch.long, device=like.device)


def wanted(ids: Tensor, lengths: Tensor) -> Tensor:
    """(b, 11): what is to be said of each row of ids (b, t), IGNORED where it is no date."""
    return said_of([read(text) for text in texts(ids, lengths)], ids)


def answer(scores: Tensor, batch: Batch) -> Tensor:
    """(b, l): the right answer; where the text is no date, what the model says."""
    return heard(scores, wanted(batch.inputs, batch.lengths))


def heard(scores: Tensor, right: Tensor) -> Tensor:
    """The right answers (b, l), and the likeliest symbols of scores (b, l, 12) where there is none."""
    return torch.where(right == IGNORED, scores.argmax(-1), right)


def loss(scores: Tensor, batch: Batch) -> Tensor:
    """(b, l): −ln p(symbol) at every step of the answer; NaN where the text is no date."""
    return step_loss(scores, wanted(batch.inputs, batch.lengths))


def padded(rows: Sequence[str]) -> Plain:
    """Texts as a batch, shorter ones filled up with 0."""
    ids = [encode(row) for row in rows]
    return Plain(nn.utils.rnn.pad_sequence(ids, batch_first=True), torch.tensor([len(row) for row in ids]))


def draw(generator: torch.Generator, rows: int = 48, kept: bool = False) -> Plain:
    """A batch of dates that are trained on, or of others (`kept`)."""
    return padded([written(drawn_day(generator, kept), generator) for _ in range(rows)])


def unseen(many: int = 40) -> dict[str, str]:
    """Dates that no training saw, by what is to be said of them."""
    generator = torch.Generator().manual_seed(7)
    days = [drawn_day(generator, kept=True) for _ in range(many)]
    return {f"{day:%Y-%m-%d}": written(day, generator) for day in days}


EXAMPLES = {
    "a date": "tuesday, the 23rd of september 2025",
    "month first": "december 9th, 1999",
    "numbers only": "05/4/2031",
    "year first": "2008 feb 25",
}
