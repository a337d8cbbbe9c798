"""A conclusion: one word for a rule, one sentence for the user, and the numbers behind both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Verdict:
    """A conclusion from arrays of a capture.

    Attributes:
        word: for rules and tests, for example "vanished", "exploded", "natural", "unknown".
        sentence: for the user; it contains the numbers on which it is based and has no full stop.
        numbers: those numbers by name.
    """

    word: str
    sentence: str
    numbers: Mapping[str, float] = field(default_factory=dict)
