"""Ratios, not seconds: two ways of doing one thing, in turns, in one process; the median over rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `ratio` is what the aim speaks of; `ours` and `other` are seconds (or MB/s) of this run."""

    name: str
    ours: float
    other: float
    ratio: float
    aim: str = ""
    note: str = ""


TURN = 0.02
"""Seconds that a turn lasts at least: a short call is repeated, as it is in a run, so that caches are as they are there."""


def interleave(
    functions: dict[str, Callable[[], object]], rounds: int = 7, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Median seconds of each function over rounds in which all take turns; one round before that does not count."""
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(rounds + 1):
        for name, function in functions.items():
            seconds = _turn(function, clock)
            if number:
                taken[name].append(seconds)
    return {name: statistics.median(values) for name, values in taken.items()}


def _turn(function: Callable[[], object], clock: Callable[[], float]) -> float:
    began, calls = clock(), 0
    while True:
        function()
        calls += 1
        seconds = clock() - began
        if seconds >= TURN:
            return seconds / calls


def markdown(rows: list[Row]) -> str:
    """The rows as a table."""
    lines = ["| what | ours | the other way | ratio | aim | note |", "|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(
            f"| {row.name} | {_short(row.ours)} | {_short(row.other)} | {row.ratio:.3g} | {row.aim} | {row.note} |"
        )
    return "\n".join(lines)


def _short(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 10 else f"{seconds:.3g}"
