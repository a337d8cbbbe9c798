"""What a W&B run says of its metrics (`define_metric`), and what it measured of the machine, in its `.wandb` file."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from inspector.capture.logs.json_values import BadJsonError, number_of, parsed
from inspector.capture.logs.wire import fields, signed, text

MOST = 1000
"""Definitions that are kept, and readings of one record."""
SYSTEM = "system"
"""What stands in front of the names of measurements of the machine, as in W&B's own pages."""


class StepMetrics:
    """By which other metric some metrics are numbered: `define_metric("val/*", step_metric="epoch")`."""

    def __init__(self) -> None:
        self._exact: dict[str, str] = {}
        self._patterns: dict[str, str] = {}
        self._last: dict[str, float] = {}

    def define(self, data: bytes, at: int, end: int) -> None:
        """A record of a definition; one without a step metric says nothing here. Raises BadMessageError."""
        words: dict[int, str] = {}
        for number, kind, first, stop in fields(data, at, end):
            if number in (1, 2, 4) and kind == 2:
                words[number] = text(data, first, stop)
        step = words.get(4, "")
        for number, known in ((1, self._exact), (2, self._patterns)):
            name = words.get(number, "")
            if name and step and not step.startswith("_") and (name in known or len(known) < MOST):
                known[name] = step

    def of(self, name: str) -> str:
        """The step metric of a metric, "" where it is numbered by W&B's own step. Exact names come before patterns."""
        exact = self._exact.get(name)
        if exact is not None:
            return exact
        return next((step for pattern, step in self._patterns.items() if fnmatchcase(name, pattern)), "")

    def row(self, values: Mapping[str, float]) -> dict[str, float]:
        """The step metrics of a row of history, by name: as they are in it, or as they were last."""
        if not self._exact and not self._patterns:
            return {}
        wanted = {step for name in values if (step := self.of(name)) and step != name}
        self._last.update({name: values[name] for name in self._steps() if name in values})
        return {name: self._last[name] for name in wanted if name in self._last}

    def _steps(self) -> set[str]:
        return {*self._exact.values(), *self._patterns.values()}


def readings(data: bytes, at: int, end: int) -> tuple[dict[str, float], float]:
    """(measurements of the machine by name, seconds since 1970 or NaN). Raises BadMessageError."""
    values: dict[str, float] = {}
    seconds = float("nan")
    for number, kind, first, stop in fields(data, at, end):
        if (number, kind) == (2, 2):
            parts = {part: signed(value) for part, inner, value, _ in fields(data, first, stop) if inner == 0}
            seconds = parts.get(1, 0) + parts.get(2, 0) / 1e9
        elif (number, kind) == (3, 2) and len(values) < MOST:
            name, known = _reading(data, first, stop)
            if name and known is not None:
                values[f"{SYSTEM}/{name}"] = known
    return values, seconds


def _reading(data: bytes, at: int, end: int) -> tuple[str, float | None]:
    name, value = "", None
    for number, kind, first, stop in fields(data, at, end):
        if (number, kind) == (1, 2):
            name = text(data, first, stop)
        elif (number, kind) == (16, 2):
            try:
                value = number_of(parsed(data[first:stop]))
            except BadJsonError:
                value = None
    return name, value
