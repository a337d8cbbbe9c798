"""Numbers from 1 to 999 in English words, each with a sign that it ends: `forty-two<`."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from sample_models.base import Plain

ALPHABET = (*"abcdefghijklmnopqrstuvwxyz -<",)
END = len(ALPHABET) - 1
ROWS = 64
SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def in_words(number: int) -> str:
    """1 to 999 in English: `two hundred forty-two`."""
    if number < 20:
        return SMALL[number]
    if number < 100:
        tens, ones = TENS[number // 10 - 2], number % 10
        return f"{tens}-{SMALL[ones]}" if ones else tens
    hundreds, rest = divmod(number, 100)
    return f"{SMALL[hundreds]} hundred" + (f" {in_words(rest)}" if rest else "")


def encode(text: str) -> Tensor:
    """Letters, spaces and hyphens to ids, with the end behind them. Raises ValueError with one sentence."""
    text = text.lower().removesuffix("<")
    unknown = sorted(set(text) - set(ALPHABET[:END]))
    if unknown or not text:
        raise ValueError(f"{text!r} is no number in words: expected letters, spaces and hyphens, as `forty-two`.")
    return torch.tensor([*(ALPHABET.index(one) for one in text), END])


def batch_of(numbers: Iterable[int]) -> Plain:
    """Several numbers side by side, ids (b, t) padded with END."""
    rows = [encode(in_words(number)) for number in numbers]
    return Plain(
        torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=END),
        torch.tensor([len(row) for row in rows]),
    )


def draw(generator: torch.Generator) -> Plain:
    """A batch of numbers, each as likely."""
    return batch_of(torch.randint(1, 1000, (ROWS,), generator=generator).tolist())
