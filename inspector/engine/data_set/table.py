"""The numbers of every sequence as channels along the axis "sequence", written as they arrive."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.engine.analyses.unit_statistics import rests_on
from inspector.engine.data_set.numbers import DIRECTIONS, EXACT, LONGEST, WHOLE_RUN
from inspector.engine.data_set.pooled import Pooled
from inspector.engine.quantities.gates.saturation import GATE, SQUASHED
from inspector.engine.quantities.gates.units import ABOUT
from inspector.engine.trace.emitter import Emitter, Sink
from inspector.engine.trace.quantity import Describe
from inspector.records import LOSS_UNIT, PROBLEM_DOMAIN, SEQUENCE_DOMAIN, Axis, Labels, Page, Refusal, Scalar, counted

Array = npt.NDArray[np.float64]
BLOCK, SECONDS = 256, 0.5
"""Sequences of a page, and seconds between two writes."""
STATISTICS = ("count", "mean", "standard deviation", "median", "smallest", "at smallest", "largest", "at largest")
OWN = {
    "length": Describe(kind="sequences", title="length", unit="step", formula="steps of the sequence"),
    "loss": Describe(
        kind="sequences", title="mean loss", unit=LOSS_UNIT,
        formula="mean of ℓ_t over the steps of the sequence that carry a loss",
    ),
    "terms": Describe(
        kind="sequences", title="loss terms", unit="step", formula="steps of the sequence that carry a loss",
    ),
    "perplexity": Describe(kind="sequences", title="perplexity", formula="exp of the mean loss", scale="log"),
    "gradient_norm": Describe(
        kind="sequences", title="gradient norm", unit=LOSS_UNIT, scale="log",
        formula="‖∂ℓ̄/∂θ‖₂ over all parameters, ℓ̄ the mean loss of the sequence",
        source="per-example gradients: Goodfellow 2015, arXiv:1510.01799",
    ),
    "nonfinite": Describe(
        kind="sequences", title="not finite",
        formula="NaN and infinities in output, scores, states and their gradients, and in the loss where there is one",
    ),
}  # fmt: skip
OF_LAYER = {
    "gradient_first": Describe(
        kind="sequences", title="first gradient", unit=LOSS_UNIT, scale="log",
        formula="‖∂ℓ̄/∂s_1‖₂, ℓ̄ the mean loss, s the whole state, after the first step that the layer processes",
        source="Pascanu, Mikolov & Bengio 2013",
    ),
    "gradient_reach": Describe(
        kind="sequences", title="gradient reach", unit="step",
        formula="steps from the end back to the first one at which ‖∂L/∂s_t‖ is at least 10⁻³ of its largest",
    ),
    "horizon": Describe(
        kind="sequences", title="horizon", unit="step", source="Pascanu, Mikolov & Bengio 2013",
        formula="first lag ℓ at which ‖∂s_T/∂s_{T−ℓ}‖_F / √S is below 10⁻³ or above 10³, T the last step",
        method=f"exact for S ≤ {EXACT}, else estimated from {DIRECTIONS} random orthonormal directions at the "
        f"last step (the norm within about a factor of 2); lags up to {LONGEST}; NaN where no such lag was met",
    ),
    "saturated": Describe(
        kind="sequences", title="saturated", limits=(0, 1),
        formula="share of the values of gates beyond 0.1 and 0.9, and of candidates and tanh states beyond ±0.97",
    ),
}  # fmt: skip
SUMMARY = Describe(
    kind="sequences", compare="separate", title="statistics of the sequences",
    formula="over the sequences whose number is finite: count, mean, standard deviation (n − 1), median, smallest and "
    "largest with the number of that sequence (counted from 0)",
)  # fmt: skip


def describe(name: str) -> Describe:
    """The description of one number."""
    place, _, signal = name.rpartition(":")
    if place == WHOLE_RUN:
        return OWN[signal]
    about = OF_LAYER[signal.removeprefix("sequences/")]
    return replace(about, title=f"{about.title} of {place}")


@dataclass(slots=True)
class _Column:
    values: Array
    dirty: set[int]


class SequenceTable:
    """Rows by the number of the sequence; `flush` writes what is new, `finish` also the statistics over all."""

    def __init__(self, sink: Sink, emit: Emitter) -> None:
        self.sink, self.emit = sink, emit
        self.names: list[str] = []
        self.problems: dict[int, str] = {}
        self.done = 0
        self.method = ""
        self.loss_unit = "1"
        self.refused: dict[str, str] = {}
        self._columns: dict[str, _Column] = {}
        self._dirty_names: set[int] = set()
        self._declared: dict[str, tuple[int, str]] = {}
        self._written_at = 0.0

    def add(self, name: str) -> int:
        """One more sequence; its number."""
        self.names.append(name)
        self._dirty_names.add((len(self.names) - 1) // BLOCK)
        return len(self.names) - 1

    def fail(self, number: int, reason: str) -> None:
        """A sequence that could not be read or run."""
        self.problems[number] = reason
        self._dirty_names.add(number // BLOCK)
        self._put(f"{WHOLE_RUN}:length", number, math.nan)

    def fill(self, numbers: list[int], values: Mapping[str, Any], refused: Mapping[str, str]) -> None:
        """Numbers (b,) of some sequences."""
        self.done += len(numbers)
        for name, found in values.items():
            column = self._room(name, max(numbers) + 1)
            column.values[numbers] = found.numpy()
            column.dirty |= {number // BLOCK for number in numbers}
        for name, reason in refused.items():
            if name not in self.refused:
                self.refused[name] = reason
                self.sink.write(Refusal(name, reason, self.emit.frame))

    def _put(self, name: str, number: int, value: float) -> None:
        column = self._room(name, number + 1)
        column.values[number] = value
        column.dirty.add(number // BLOCK)

    def _room(self, name: str, rows: int) -> _Column:
        """A column with at least so many rows."""
        column = self._columns.setdefault(name, _Column(np.full(BLOCK, np.nan), set()))
        if rows > len(column.values):
            longer = np.full(max(rows, 2 * len(column.values)), np.nan)
            longer[: len(column.values)] = column.values
            column.values = longer
        return column

    def flush(self, *, now: bool = False) -> None:
        """Write what is new, at most twice a second unless `now`."""
        if not now and time.monotonic() - self._written_at < SECONDS:
            return
        self._written_at = time.monotonic()
        total = len(self.names)
        for block in sorted(self._dirty_names):
            first, stop = block * BLOCK, min(total, (block + 1) * BLOCK)
            problems = tuple(self.problems.get(n, "") for n in range(first, stop))
            self.sink.write(Labels(SEQUENCE_DOMAIN, tuple(self.names[first:stop]), self.emit.frame, first))
            self.sink.write(Labels(PROBLEM_DOMAIN, problems, self.emit.frame, first))
        if self._dirty_names:
            axis = Axis(name=SEQUENCE_DOMAIN, length=total, unit=SEQUENCE_DOMAIN, frame=self.emit.frame)
            self.sink.write(axis)
        self._dirty_names.clear()
        for name, column in self._columns.items():
            self._write(name, column, total)

    def _write(self, name: str, column: _Column, total: int) -> None:
        if self._declared.get(name) != (total, self.method):
            self._declared[name] = (total, self.method)
            about = describe(name)
            method = about.method if about.method != "exact" else f"exact; {self.method}" if self.method else "exact"
            unit = self.loss_unit if about.unit == LOSS_UNIT else about.unit
            self.sink.write(replace(about, method=method, unit=unit).channel(name, ("sequence",), (total,), "float64"))
        for block in sorted(column.dirty):
            first, stop = block * BLOCK, min(total, (block + 1) * BLOCK, len(column.values))
            self.sink.write(Page(name, self.emit.frame, (first,), column.values[first:stop].copy()))
        column.dirty.clear()

    def finish(self, pooled: Pooled) -> None:
        """Write everything that is known, and the statistics of numbers and of units."""
        total = len(self.names)
        for name, column in self._columns.items():
            if total:
                self._put(name, total - 1, float(column.values[total - 1]) if total <= len(column.values) else math.nan)
        self.flush(now=True)
        rows = {name: column.values[:total] for name, column in self._columns.items()}
        if rows:
            table = np.stack([statistics(values) for values in rows.values()])
            about = SUMMARY.channel(
                f"{WHOLE_RUN}:summary", ("number", "statistic"), table.shape, "float64",
                labels={"number": tuple(rows), "statistic": STATISTICS},
            )  # fmt: skip
            self.emit.array(about, table)
        for signal, value in (("count", total), ("run", self.done), ("failed", len(self.problems))):
            self.sink.write(Scalar(f"{WHOLE_RUN}:{signal}", self.emit.frame, value))
        write_pooled(pooled, self.emit)


def statistics(values: Array) -> Array:
    """(8,) of one number over the sequences, as STATISTICS names them."""
    there = np.flatnonzero(np.isfinite(values))
    found = values[there]
    if not len(found):
        return np.array([0.0, *[math.nan] * (len(STATISTICS) - 1)])
    low, high = int(found.argmin()), int(found.argmax())
    spread = float(found.std(ddof=1)) if len(found) > 1 else math.nan
    return np.array(
        [
            len(found), found.mean(), spread, np.median(found), found[low], there[low], found[high], there[high],
        ]
    )  # fmt: skip


def write_pooled(pooled: Pooled, emit: Emitter) -> None:
    """Units of every layer from all sequences, under the names that one run's have."""
    for place, layer in pooled.layers.items():
        if layer.moments is not None:
            left_out = f"; {counted(layer.lost, 'step', ',')} that are not finite are left out" if layer.lost else ""
            table = layer.moments.table()
            about = replace(ABOUT, method=f"exact; {rests_on(layer.sequences, layer.steps)}{left_out}")
            name = f"{place}:{layer.main}/units"
            emit.array(
                about.channel(name, ("statistic", "unit"), tuple(table.shape), "float64", module=layer.module), table
            )
        for signal, total in layer.saturated.items():
            about = GATE if signal.startswith("gate/") else SQUASHED
            about = replace(about, method=f"exact; {rests_on(layer.sequences, layer.saturated_steps[signal])}")
            channel = about.channel(
                f"{place}:{signal}/saturation", ("statistic", "unit"), tuple(total.shape), "float64",
                module=layer.module,
            )  # fmt: skip
            emit.array(channel, total / max(1, layer.saturated_steps[signal]))
