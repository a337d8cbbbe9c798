"""Typed numbers for a model that reads vectors: a semicolon ends a step, spaces or commas separate its numbers."""

from __future__ import annotations

import re

import torch

from inspector.engine.errors import InputError
from inspector.engine.model.batching import ALLOW_NONFINITE, allows_nonfinite, check_vectors, pad
from inspector.engine.model.subject import Batch, Subject
from inspector.engine.model.typed_number import as_number
from inspector.engine.registries import INPUTS
from inspector.records import InputSpec, counted
from inspector.records.plain_text import shortened

_DECIMAL_COMMA = re.compile(r"\d,\d")


class Vectors:
    """`0.1 0.5; 0.2 0.4` are two steps of two numbers. Without semicolons the numbers fill one step after the other."""

    title = "Numbers"
    summary = "Numbers, typed."
    form = "line"
    order = 20
    prompt = "the numbers of a step, then ; and those of the next: 0.1 0.5; 0.2 0.4"
    reads = ("vectors",)
    options = (ALLOW_NONFINITE,)

    def make(self, subject: Subject, spec: InputSpec, seed: int) -> Batch:
        """One sequence (steps, width)."""
        if subject.kind == "tokens":
            raise InputError(f"{subject.name} reads tokens, not vectors of numbers; type text or ids.")
        values = torch.tensor(parse_vectors(spec.value, subject.width), dtype=torch.float64)
        row = check_vectors(subject, values, allow_nonfinite=allows_nonfinite(spec))
        return pad(subject, [row], targets=[None], title="typed numbers")


def parse_vectors(text: str, width: int | None) -> list[list[float]]:
    """The numbers of each step. Raises InputError naming the first item that is no number, or the wrong step."""
    parts = [_numbers(part) for part in text.split(";")]
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    if not any(parts):
        raise InputError(f"The sequence is empty; expected numbers such as {_sample(width)}.")
    if len(parts) == 1:
        numbers, size = parts[0], width or 1
        if len(numbers) % size:
            count, do = counted(len(numbers), "number"), "does" if len(numbers) == 1 else "do"
            raise InputError(
                f"{count} {do} not fill steps of {size}; expected a multiple of {size}, for example {_sample(width)}."
            )
        return [numbers[start : start + size] for start in range(0, len(numbers), size)]
    size = width or len(parts[0])
    for step, numbers in enumerate(parts):
        if len(numbers) != size:
            raise InputError(
                f"Step {step} has {counted(len(numbers), 'number')}; expected {size}, for example {_sample(size)}."
            )
    return parts


def _sample(width: int | None) -> str:
    """Two steps as they would be typed."""
    count = min(width or 1, 4)
    more = " …" if (width or 1) > count else ""
    return "; ".join(" ".join(f"0.{step + n + 1}" for n in range(count)) + more for step in range(2))


def _numbers(part: str) -> list[float]:
    words = part.split()
    if len(words) > 1 and (odd := next((word for word in words if _DECIMAL_COMMA.search(word)), "")):
        raise InputError(
            f"{shortened(odd, 40)!r} may be one number or two; write a decimal point, or a space behind a comma."
        )
    numbers = []
    for word in part.replace(",", " ").split():
        number = as_number(word)
        if number is None:
            raise InputError(
                f"{shortened(word, 40)!r} is not a number; expected numbers with spaces between, and ; behind a step."
            )
        numbers.append(number)
    return numbers


INPUTS.register("vectors")(Vectors())
