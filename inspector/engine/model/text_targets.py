"""What a typed text is to be judged by: the tokens of it that are masked, or the class that it has."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from torch import Tensor

from inspector.engine.errors import InputError
from inspector.engine.model.batching import ask, check_ids, tensor_of
from inspector.engine.model.subject import Subject
from inspector.records import Option, counted
from inspector.records.plain_text import shortened

IGNORED = -100
"""The target of a step that carries no loss, as in torch's losses."""
MASK = Option(
    name="mask", type="text", default=None,
    help="Masked language models: the numbers of the tokens to mask, from 0: 3, or 3 5.",
)  # fmt: skip
LABEL = Option(
    name="label", type="text", default=None,
    help="Classifiers: the class of the text, or of each token; of answers within a text its first and last token.",
)  # fmt: skip
PAIR = Option(name="pair", type="text", default=None, help="Models of two sentences: the second one.")


def masked(subject: Subject, rows: list[Tensor], given: str) -> tuple[list[Tensor], list[list[int]]]:
    """The rows with these tokens masked, and (b, t) the tokens that stood there, IGNORED elsewhere.

    Raises InputError for a model without a mask, and for numbers that are none of a text's tokens.
    """
    if subject.mask_token is None:
        raise InputError(f"{subject.name} has no token for a mask, so no token can be masked.")
    words = re.split(r"[\s,;]+", given.strip())
    shortest, longest = min(map(len, rows)), max(map(len, rows))
    if not all(word.isascii() and word.isdigit() and len(word) < 9 and int(word) < shortest for word in words):
        raise InputError(
            f"Option mask is {shortened(given, 40)!r}; expected numbers of tokens from 0 to {shortest - 1}, as "
            "the text has "
            f"{counted(shortest, 'token')}."
        )
    hidden, targets = [row.clone() for row in rows], [[IGNORED] * longest for _ in rows]
    for row, new, target in zip(rows, hidden, targets, strict=True):
        for number in map(int, words):
            target[number] = int(row[number])
            new[number] = subject.mask_token
    return hidden, targets


def class_of(subject: Subject, given: str) -> int:
    """The number of a class by its name or its number. Raises InputError naming those that exist."""
    names = subject.labels
    if names is None:
        raise InputError(f"{subject.name} is no classifier with named classes, so a text has no label.")
    if given in names:
        return list(names).index(given)
    if given.isascii() and given.isdigit() and len(given) < 9 and int(given) < len(names):
        return int(given)
    known = ", ".join(names[:12]) + (" …" if len(names) > 12 else "")
    raise InputError(
        f"Option label is {shortened(given, 40)!r}; expected one of {known}, or a number below {len(names)}."
    )


def judged(subject: Subject, rows: list[Tensor], mask: str | None, label: str | None) -> tuple[list[Tensor], list[Any]]:
    """Rows and the target of each, as the options of a text say. Raises InputError."""
    if mask is not None and label is not None:
        raise InputError("Options mask and label exclude each other: a text is completed or has a class.")
    if mask is not None:
        hidden, targets = masked(subject, rows, mask)
        return hidden, list(targets)
    if label is not None and subject.label_of is not None:
        return rows, list(_by_step(subject, subject.label_of, rows, label))
    return rows, [None if label is None else class_of(subject, label)] * len(rows)


def _by_step(
    subject: Subject, label_of: Callable[[str, Tensor], list[int]], rows: list[Tensor], label: str
) -> list[list[int]]:
    longest = max(map(len, rows))
    try:
        found = [label_of(label, row) for row in rows]
    except ValueError as problem:
        raise InputError(f"Option label is {shortened(label, 40)!r}; {subject.name} expects {problem}.") from None
    return [[*target, *[IGNORED] * (longest - len(target))] for target in found]


def with_pair(subject: Subject, text: str, pair: str) -> Tensor:
    """The ids of two texts as one sequence. Raises InputError where the model has no way to read two."""
    if subject.encode_pair is None:
        raise InputError(f"{subject.name} reads one text, so option pair cannot be given.")
    return check_ids(subject, tensor_of(ask(subject, "encode_pair", subject.encode_pair, text, pair)))
