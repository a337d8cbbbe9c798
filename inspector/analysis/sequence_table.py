"""The table of a capture of many sequences: a row each, and what is said of units from all of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import CaptureError, write_atomically
from inspector.capture.tables import csv_bytes, parquet_bytes
from inspector.capture.view import View
from inspector.records import PROBLEM_DOMAIN, SEQUENCE_DOMAIN, Channel, RunStart, command, counted

Array = npt.NDArray[Any]
KIND = "sequences"
NEUTRAL = ("length", "terms", "gradient_first", "gradient_reach")
"""Numbers of which no end is bad by itself: none is marked."""
NEVER_MISSING = ("loss", "perplexity", "gradient_norm", "gradient_first")
"""Numbers that every sequence has that was run and whose loss has a term: NaN is then what the model gave."""
LENGTH, TERMS = "sequences:length", "sequences:terms"
LOW_IS_BAD = ("horizon",)
MARKED = 3
"""Sequences that are marked as the worst ones of a number."""
FIRST = ("loss", "perplexity", "gradient_norm", "length", "nonfinite", "horizon", "gradient_reach", "gradient_first")
"""Columns in the order in which they are shown; others follow."""
LISTED = 6
"""Units that are named; the rest is counted."""


@dataclass(frozen=True, slots=True)
class SequenceTable:
    """Rows by the number of the sequence.

    Attributes:
        names, problems: of every sequence; a problem is "" where it was run.
        channels: of the columns, in order.
        columns: values of each, by channel name, as long as `names`; NaN where a number is not known.
    """

    names: tuple[str, ...]
    problems: tuple[str, ...]
    channels: tuple[Channel, ...]
    columns: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def failed(self) -> list[int]:
        """Numbers of the sequences that could not be read or run."""
        return [number for number, problem in enumerate(self.problems) if problem]

    def order(self, name: str, *, descending: bool) -> Array:
        """Numbers of the sequences by one column; those without a number last, the failed ones before those."""
        values = self._ranked(name)
        known = np.flatnonzero(~np.isnan(values))
        signed = -values[known] if descending else values[known]
        rest = np.flatnonzero(np.isnan(values))
        failed = np.array([bool(self.problems[number]) for number in rest], dtype=bool)
        return np.concatenate((known[np.argsort(signed, kind="stable")], rest[np.argsort(failed, kind="stable")]))

    def is_nan(self, name: str) -> npt.NDArray[np.bool_]:
        """Where a number came out as NaN, which is not the same as not known: a sequence without a loss has none.

        A capture of an earlier version does not say how many terms a loss has: then each is taken to have some.
        """
        values = self.columns[name]
        run = ~np.isnan(self.columns.get(LENGTH, np.zeros(len(self))))
        without: npt.NDArray[np.bool_] = self.columns.get(TERMS, np.ones(len(self))) == 0
        return np.isnan(values) & run & ~without & (signal_of(name) in NEVER_MISSING)

    def _ranked(self, name: str) -> Array:
        """A column with its NaN as the largest numbers."""
        return np.where(self.is_nan(name), np.inf, self.columns[name])

    def spread(self, name: str) -> str:
        """Mean and standard deviation of the finite numbers, smallest and largest, and how many are not finite."""
        values = self.columns[name]
        lost = int((np.isinf(values) | self.is_nan(name)).sum())
        if signal_of(name) in LOW_IS_BAD:
            met = int(np.isfinite(values).sum())
            run = len(self) - len(self.failed)
            return f"{spread(values)}, in {met:,} of {run:,}" if met else "none within a sequence"
        return spread(values) + (f", {lost:,} not finite" if lost else "")

    def worst(self, name: str) -> list[int]:
        """The few sequences with the worst numbers of a column: the largest loss, the shortest horizon."""
        signal = signal_of(name)
        if signal in NEUTRAL or name not in self.columns:
            return []
        values = self._ranked(name)
        known = np.flatnonzero(~np.isnan(values))
        if not len(known) or np.all(values[known] == values[known[0]]):
            return []
        ordered = known[np.argsort(values[known], kind="stable")]
        many = max(1, min(MARKED, len(known) // 7))
        found = ordered[:many] if signal in LOW_IS_BAD else ordered[::-1][:many]
        return [int(number) for number in found]


def is_column(channel: Channel) -> bool:
    """Whether a channel has a number of every sequence."""
    return channel.kind == KIND and channel.dims == (SEQUENCE_DOMAIN,)


def signal_of(name: str) -> str:
    """What is measured: "loss" of "sequences:loss", "horizon" of "rnn.l0:sequences/horizon"."""
    return name.rpartition(":")[2].removeprefix(f"{KIND}/")


def table_of(capture: View, frame: int = -1) -> SequenceTable | None:
    """The table of a frame; None where it has none."""
    channels = [c for c in capture.channels.values() if is_column(c) and capture.revision(c.name, frame)]
    if not channels:
        return None
    channels.sort(key=lambda c: FIRST.index(signal_of(c.name)) if signal_of(c.name) in FIRST else len(FIRST))
    names = capture.labels(SEQUENCE_DOMAIN, frame)
    columns = {channel.name: np.ma.filled(capture.array(channel.name, frame), np.nan) for channel in channels}
    rows = max(len(names), *(len(values) for values in columns.values()))
    problems = capture.labels(PROBLEM_DOMAIN, frame)
    return SequenceTable(
        names=(*names, *(f"sequence {number}" for number in range(len(names), rows))),
        problems=(*problems, *[""] * (rows - len(problems)))[:rows],
        channels=tuple(channels),
        columns={
            name: np.concatenate((values, np.full(rows - len(values), np.nan))) for name, values in columns.items()
        },
    )


def spread(values: Array) -> str:
    """Mean and standard deviation of the finite values, smallest and largest, as a text."""
    found = values[np.isfinite(values)]
    if not len(found):
        return "not known"
    if len(found) == 1:
        return f"{found[0]:.4g}"
    return f"{found.mean():.4g} ± {found.std(ddof=1):.2g} ({found.min():.4g} to {found.max():.4g})"


def unit_sentences(capture: View, frame: int = -1) -> list[str]:
    """What is said of the units of every layer, with the sequences and steps that it rests on."""
    found = []
    for channel in capture.channels.values():
        names = channel.labels.get("statistic", ())
        if channel.kind == "unit" and "dead" in names and capture.revision(channel.name, frame):
            table = np.ma.filled(np.ma.asarray(capture.array(channel.name, frame)).astype(float), np.nan)
            rows = dict(zip(names, table, strict=False))
            found.append(_sentence(channel, rows))
    return found


def _sentence(channel: Channel, rows: Mapping[str, Array]) -> str:
    dead, constant = (np.flatnonzero(rows[name] == 1) for name in ("dead", "constant"))
    same = rows["duplicate_of"]
    pairs = [f"{unit} = {int(same[unit])}" for unit in np.flatnonzero(same >= 0)]
    alike = f"repeat another: {_few(pairs)}" if pairs else "none repeats another"
    alike = "repeats were not looked for" if np.isnan(same).all() else alike
    parts = (
        f"dead: {_few(dead)}" if len(dead) else "none dead",
        f"constant: {_few(constant)}" if len(constant) else "none constant",
        alike,
    )
    part = channel.signal.partition("/")[0]
    rests = channel.method.partition("; ")[2] or "from one run"
    return f"{channel.place} {part}, {counted(len(same), 'unit')}: {', '.join(parts)} ({rests})"


def _few(units: Any) -> str:
    words = [str(unit) for unit in units]
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return f"{len(words)} ({', '.join(words[:LISTED])}{more})"


def command_for(start: RunStart, number: int) -> str:
    """What to type to run one sequence of the data set alone; "" where the model or the source has no name."""
    source = start.meta.get("data")
    if not isinstance(source, Mapping) or not source.get("value") or not start.subject:
        return ""
    options = source.get("options")
    lines = bool(isinstance(options, Mapping) and options.get("lines"))
    words = ["run", start.subject, *(["--checkpoint", start.checkpoint] if start.checkpoint else [])]
    words += ["--data", str(source["value"]), *(["--lines"] if lines else []), "--number", str(number)]
    return command(*words)


def as_records(table: SequenceTable | None) -> list[dict[str, Any]]:
    """A row each, for JSON: number, name, problem ("" where there is none), and every number by its channel; None where
    it is not known, and the words "NaN", "Infinity" for what JSON lacks."""
    if table is None:
        return []
    nan = {name: table.is_nan(name) for name in table.columns}
    return [
        {
            "sequence": number, "name": table.names[number], "problem": table.problems[number],
            **{
                name: "NaN" if nan[name][number] else _plain(float(values[number]))
                for name, values in table.columns.items()
            },
        }
        for number in range(len(table))
    ]  # fmt: skip


def _plain(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


def export_table(table: SequenceTable, to: Path | str) -> Path:
    """Write the table as .csv, .json or .parquet by the suffix. Raises CaptureError."""
    target = Path(to)
    writer = {".csv": _csv, ".json": _json, ".parquet": _parquet}.get(target.suffix.lower())
    if writer is None:
        raise CaptureError(
            f"Cannot write the sequences as {target.suffix or target.name!r}; there are .csv, .json, .parquet."
        )
    write_atomically(target, writer(table))
    return target


def _csv(table: SequenceTable) -> bytes:
    rows = [["sequence", "name", "problem", *table.columns]]
    for record in as_records(table):
        rows.append(["" if value is None else str(value) for value in record.values()])
    return csv_bytes(rows)


def _json(table: SequenceTable) -> bytes:
    return json.dumps(as_records(table), ensure_ascii=False, indent=1).encode("utf-8", "replace")


def _parquet(table: SequenceTable) -> bytes:
    columns = {
        "sequence": np.arange(len(table)), "name": list(table.names), "problem": list(table.problems), **table.columns,
    }  # fmt: skip
    return parquet_bytes(columns)
