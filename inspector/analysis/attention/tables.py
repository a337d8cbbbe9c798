"""What is known of attention as tables: one row for each head, or one for each attention and part of its cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.attention.head_table import head_table, of_heads
from inspector.capture.pyramid import with_nan
from inspector.capture.view import View
from inspector.records import Channel

Array = npt.NDArray[Any]
COST = "attention_cost"
REDUNDANCY, PAIRS = "attention/redundancy", ("head", "other")
COSTS = (("part",), ("part", "length"), ("statistic", "length"))
SCORE, TYPES = "attention/head_type_score", "attention/head_types/"
FIRST = (SCORE, "attention/importance")
"""Signals whose numbers stand before the others."""
ENTROPY, NORMALISED, MARGIN = "attention/entropy", "attention/entropy_normalised", "attention/mask_margin"
HEADS, MOST_ALIKE, DIVERGENCE = "heads", "most alike", "divergence from it"


@dataclass(frozen=True, slots=True)
class Line:
    """One row: its name, the attention and the head that it is about (None: all heads), a cell for each column."""

    name: str
    place: str
    head: int | None
    cells: tuple[float | str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with a heading for each column, and what is said of each column."""

    lines: tuple[Line, ...]
    headings: tuple[str, ...]
    tips: tuple[str, ...]


def is_of_pairs(channel: Channel) -> bool:
    """Whether a channel has the divergence of every pair of heads."""
    return channel.signal == REDUNDANCY and channel.dims == PAIRS


def table_of_heads(view: View, frame: int, channels: Sequence[Channel]) -> Table:
    """A row for each head of each attention: its type, the head that attends most like it, every number of it.

    Heads alike are those with the least mean Jensen–Shannon divergence (nat). Where nothing computes a number of a head
    its cell is empty; what was computed may be NaN.
    """
    own = [one for one in channels if of_heads(one) or is_of_pairs(one)]
    counts: dict[str, int] = {}
    for one in own:
        counts.setdefault(one.place, int(view.extent(one.name, frame)[one.dims.index("head")]))
    table = head_table(view, frame, list(counts.items()), own)
    alike = {one.place: most_alike(with_nan(view.array(one.name, frame))) for one in own if is_of_pairs(one)}
    words, keys = list(table.words), sorted(table.keys, key=_rank)
    lines = []
    for head in table.heads:
        pairs: tuple[float | str, ...] = alike[head.place][head.head] if head.place in alike else ("", "")
        said = [head.words.get(word, "") for word in words]
        cells = (*said, *(pairs if alike else ()), *(number_of(head.numbers, key) for key in keys))
        lines.append(Line(f"{head.place}, head {head.head}", head.place, head.head, cells))
    about = {one.signal: one.formula for one in own}
    headings = [*table.words.values(), *((MOST_ALIKE, DIVERGENCE) if alike else ()), *(table.keys[key] for key in keys)]
    signals = [*words, *((REDUNDANCY,) * 2 if alike else ()), *keys]
    return Table(tuple(lines), tuple(headings), tuple(_formula(about, one) for one in signals))


def number_of(numbers: Mapping[str, float], key: str) -> float | str:
    """A number of a head; "" where nothing computes it, or it is not defined: the entropy of one key as a share of
    ln 1, the margin of a mask where there is none, the score of the type of a head that is of none though it has scores
    of each (with NaN in its weights it has none)."""
    value = numbers.get(key, "")
    if isinstance(value, str) or not math.isnan(value):
        return value
    one_key = key == NORMALISED and math.isfinite(numbers.get(ENTROPY, math.nan))
    scored = (math.isfinite(score) for name, score in numbers.items() if name.startswith(TYPES))
    return "" if one_key or key == MARGIN or (key == SCORE and any(scored)) else value


def _rank(key: str) -> int:
    """Where a number stands: those of `FIRST` before the others."""
    return next((place for place, one in enumerate(FIRST) if f"{key}/".startswith(f"{one}/")), len(FIRST))


def _formula(about: dict[str, str], key: str) -> str:
    """Of a signal, or of one name along another axis of it ("attention/head_types/induction")."""
    return about.get(key) or about.get(key.rpartition("/")[0], "")


def most_alike(divergences: Array) -> list[tuple[str, float | str]]:
    """(the other head with the least divergence, its divergence) of each head; ("", "") where none is known."""
    apart = np.array(divergences, dtype=np.float64)
    np.fill_diagonal(apart, np.nan)
    found: list[tuple[str, float | str]] = []
    for row in apart:
        known = np.isfinite(row).any()
        found.append((f"head {int(np.nanargmin(row))}", float(np.nanmin(row))) if known else ("", ""))
    return found


def table_of_cost(view: View, frame: int, channels: Sequence[Channel]) -> Table:
    """A row for each attention (and part), a column for each length (or part), of the channels of one cost."""
    first = channels[0]
    columns = first.labels.get(first.dims[-1], ())
    lines = []
    for one in channels:
        values = with_nan(view.array(one.name, frame)).astype(np.float64)
        parts = one.labels.get(one.dims[0], ()) if len(one.dims) == 2 else ("",)
        for part, row in zip(parts, np.atleast_2d(values), strict=False):
            name = f"{one.place}, {part}" if part else one.place
            lines.append(Line(name, one.place, None, tuple(float(value) for value in row)))
    return Table(tuple(lines), tuple(columns), (first.formula,) * len(columns))
