"""When a watched training is to wait: a norm over a limit, something not finite, a spike, an iteration; any of several.

A condition is text that is read here, never code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from inspector.records.plain_text import shortened

MOST_CLAUSES, MOST_CHARACTERS = 16, 500
NON_FINITE, SPIKE = "non-finite", "spike"
FORM = "non-finite, spike, iteration N, or NAME > NUMBER (loss, gradient norm, weight/norm[rnn.weight_hh_l0] …)"
_ITERATION = re.compile(r"iteration\s*(?:>=|=|==)?\s*(\d{1,15})\Z")
_LIMIT = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9 _/.-]{0,79}?)\s*(?:\[(?P<column>[^\[\]]{1,300})\])?\s*(?P<sign>[<>])=?\s*"
    r"(?P<limit>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\Z"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """One of the conditions.

    Attributes:
        kind: "non-finite", "spike", "iteration" or "limit".
        name, column: of a limit, which series and which of its columns ("": any of them).
        above: whether numbers above the limit count, else those below; limit: the number, or the iteration.
        text: as it is written.
    """

    kind: str
    text: str
    name: str = ""
    column: str = ""
    above: bool = True
    limit: float = 0.0

    def exceeded_by(self, values: Iterable[float]) -> float | None:
        """The number farthest beyond the limit; None where none is. NaN is beyond no limit."""
        beyond = [one for one in values if (one > self.limit if self.above else one < self.limit)]
        return None if not beyond else (max if self.above else min)(beyond)


@dataclass(frozen=True, slots=True)
class BreakCondition:
    """Clauses of which any one is enough."""

    clauses: tuple[Clause, ...]

    def __str__(self) -> str:
        return ", ".join(one.text for one in self.clauses)

    @property
    def of_numbers(self) -> bool:
        """Whether recorded numbers decide, and not the iteration alone."""
        return any(one.kind != "iteration" for one in self.clauses)

    def iterations(self) -> list[int]:
        """The iterations that are named."""
        return [round(one.limit) for one in self.clauses if one.kind == "iteration"]

    def unknown(self, known: Callable[[str, str], bool]) -> list[str]:
        """Names of series, with their columns, that nothing is recorded under."""
        limits = [one for one in self.clauses if one.kind == "limit" and not known(one.name, one.column)]
        return [f"{one.name}[{one.column}]" if one.column else one.name for one in limits]


def parse_condition(text: str) -> BreakCondition:
    """The condition in a text such as "non-finite, gradient norm > 10, iteration 500". Raises ValueError."""
    parts = [part.strip() for part in re.split(r"[,;\n]", text) if part.strip()]
    if not parts or len(parts) > MOST_CLAUSES or len(text) > MOST_CHARACTERS:
        raise ValueError(f"{shortened(text, 80)!r} is no condition to break on; expected one or several of: {FORM}.")
    return BreakCondition(tuple(_clause(part) for part in parts))


def _clause(text: str) -> Clause:
    plain = " ".join(text.split())
    if plain.lower() in (NON_FINITE, SPIKE):
        return Clause(plain.lower(), plain.lower())
    if found := _ITERATION.match(plain.lower()):
        return Clause("iteration", f"iteration {int(found[1])}", limit=float(found[1]))
    if (found := _LIMIT.match(plain)) and math.isfinite(float(found["limit"])):
        name, column = found["name"].strip(), found["column"] or ""
        name = name.lower() if name.lower() in ("loss", "gradient norm") else name
        shown = f"{name}[{column}]" if column else name
        return Clause(
            "limit", f"{shown} {found['sign']} {found['limit']}", name, column, found["sign"] == ">",
            float(found["limit"]),
        )  # fmt: skip
    raise ValueError(f"{shortened(plain, 80)!r} is no condition to break on; expected one of: {FORM}.")
