"""The header of a table: which column is the step, the time, the run, and which are curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inspector.capture.layout import CaptureError
from inspector.capture.logs.roles import role_of
from inspector.capture.logs.rows import PHASES, RUN_WORDS, step_name
from inspector.records.plain_text import plain_line

MOST_COLUMNS = 10_000
DELIMITERS = ",;\t"
MOST_TOLD = 12
BETWEEN = " - "
"""W&B's CSV exports call a column `run - metric`, beside `run - metric__MIN` and `run - metric__MAX`."""
SUFFIXES = {"__MIN": "/min", "__MAX": "/max"}


@dataclass(frozen=True, slots=True)
class Columns:
    """Places of the columns, -1 for none. `curves`: ((run, name), place), the run "" where its column tells it."""

    names: tuple[str, ...]
    delimiter: str
    step: int
    time: int
    epoch: int
    tokens: int
    run: int
    phase: int
    curves: tuple[tuple[tuple[str, str], int], ...]
    along: str

    @property
    def count(self) -> int:
        """How many cells a row has."""
        return len(self.names)

    @property
    def step_name(self) -> str:
        """What the step is called."""
        return self.names[self.step]

    @property
    def runs(self) -> bool:
        """Whether the table has several runs."""
        return self.run >= 0 or any(run for (run, _), _ in self.curves)


def columns_of(line: str, file: str, split: Callable[[str, str], list[str]]) -> Columns:
    """What the columns of a header are. Raises CaptureError where there is no column of steps beside another one."""
    delimiter = max(DELIMITERS, key=line.count)
    names = [name.strip() for name in split(line, delimiter)]
    if len(names) > MOST_COLUMNS:
        raise CaptureError(f"{file} has {len(names):,} columns; at most {MOST_COLUMNS:,} are read.")
    exported = len(names) > 1 and all(BETWEEN in name for name in names[1:])
    step = 0 if exported else names.index(found) if (found := step_name(name for name in names if name)) else -1
    if step < 0 or len(names) < 2:
        listed = ", ".join(plain_line(name, 40) for name in names[:MOST_TOLD])
        more = f" and {len(names) - MOST_TOLD:,} more" if len(names) > MOST_TOLD else ""
        raise CaptureError(f"{file} has no column of steps (step, iteration, epoch, …); it has {listed}{more}.")
    time, epoch, tokens = (_place(names, role, step) for role in ("time", "epoch", "tokens"))
    run = next((names.index(word) for word in RUN_WORDS if word in names), -1)
    phase = next((names.index(word) for word in PHASES if word in names), -1)
    places = [at for at, name in enumerate(names) if name and at not in (step, time, run, phase)]
    curves = _apart([(_curve(names[at], exported), at) for at in places])
    along = "epoch" if role_of(names[step]) == "epoch" else "iteration"
    return Columns(tuple(names), delimiter, step, time, epoch, tokens, run, phase, curves, along)


def _apart(curves: Sequence[tuple[tuple[str, str], int]]) -> tuple[tuple[tuple[str, str], int], ...]:
    """Columns of one name are curves of their own: the second one says which column it is."""
    known: set[tuple[str, str]] = set()
    found = []
    for (run, name), at in curves:
        own = (run, f"{name} (column {at + 1})") if (run, name) in known else (run, name)
        known.add(own)
        found.append((own, at))
    return tuple(found)


def _place(names: Sequence[str], role: str, step: int) -> int:
    return next((at for at, name in enumerate(names) if at != step and role_of(name) == role and "/" not in name), -1)


def _curve(name: str, exported: bool) -> tuple[str, str]:
    if not exported:
        return "", name
    run, _, metric = name.partition(BETWEEN)
    for suffix, instead in SUFFIXES.items():
        if metric.endswith(suffix):
            metric = metric.removesuffix(suffix) + instead
    return run, metric
