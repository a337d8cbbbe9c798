"""What a capture has of the gates of one place in one frame: tables of what opens them, memory, timescales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.gate_summary import gate_sentence, timescale_sentence
from inspector.analysis.retention import at_step
from inspector.gui.panel.exact import or_why
from inspector.gui.panel.labelled import rows_of
from inspector.gui.panel.memory_words import memory_words
from inspector.gui.widgets.controls import number
from inspector.records import Channel

Array = npt.NDArray[Any]
TABLES = (("token", "unit"), ("feature", "unit"))


class GatesOfPlace:
    """The channels of one place, and the numbers and sentences that the panel Openers makes of them.

    capture: a capture or a comparison of two; frame: -1 for the newest; channels: those of the place.
    """

    def __init__(self, capture: Any, frame: int, channels: Sequence[Channel]) -> None:
        self.capture, self.frame, self.channels = capture, frame, channels

    def of(self, kind: str, *dims: tuple[str, ...]) -> list[Channel]:
        """Channels by kind and axes."""
        return [channel for channel in self.channels if channel.kind == kind and channel.dims in dims]

    def tables(self) -> list[Channel]:
        """The (token, unit) and (feature, unit) tables."""
        return self.of("opener", *TABLES)

    def counts(self) -> Array | None:
        """(token,) occurrences of the tokens, or None."""
        return self.values(next(iter(self.of("opener", ("token",))), None))

    def memory_gate(self) -> tuple[Channel, bool] | None:
        """(gate that carries the state over, True if 1 keeps it), as the capture has it, or None."""
        for gate in self.of("gate", ("step", "unit")):
            frame = self.capture.frame_of(gate.name, self.frame)
            for scalar in self.capture.scalars:
                if scalar.name == f"{gate.name}/keeps" and scalar.frame == frame:
                    return gate, bool(scalar.value)
        return None

    def runs_of_memory(self) -> Channel | None:
        """The (statistic, unit) table of runs of long-term memory, or None."""
        return next(iter(self.of("memory", ("statistic", "unit"))), None)

    def scale_channel(self) -> Channel | None:
        """The channel of the memory timescales, or None."""
        return next((c for c in self.of("unit", ("unit",)) if c.unit == "step"), None)

    def timescales(self) -> Array | None:
        """(unit,) τ in steps, or None."""
        return self.values(self.scale_channel())

    def values(self, channel: Channel | None) -> Array | None:
        """The whole array of a channel, or None."""
        return None if channel is None else self.capture.array(channel.name, self.frame)

    def told_of(self, value: Any, channel: Channel | None) -> str:
        """A number computed from a channel, or the word where it is NaN since something of the channel is not known."""
        if channel is None:
            return number(value)
        return number(or_why(value, self.capture, channel.name, self.frame))

    def rows_named(self, table: Channel, count: int) -> list[str]:
        """The tokens or features of a table; numbers where they are not known."""
        axis = table.dims[0]
        names = self.capture.labels(table.domain(axis), self.frame) or table.labels.get(axis, ())
        return list(names) if len(names) == count else [str(i) for i in range(count)]

    def sorted_table(
        self, table: Channel | None, unit: int | None, least: int
    ) -> tuple[list[str], Array, list[int], float]:
        """(names, values sorted from the most opening, occurrences, mean over all steps) of a table.

        Of one unit, or the mean of all where `unit` is None; of tokens only those that occur `least` times, unless none
        does.
        """
        values = self.values(table)
        if table is None or values is None:
            return [], np.zeros(0), [], np.nan
        column = column_of(values, unit, signed=table.dims[0] == "token")
        names, counts = self.rows_named(table, len(column)), self.counts()
        if table.dims[0] != "token" or counts is None or len(counts) != len(column) or np.ma.is_masked(counts):
            order = np.argsort(-np.nan_to_num(column, nan=-np.inf), kind="stable")
            return [names[i] for i in order], column[order], [], np.nan
        mean = float((column * counts).sum() / counts.sum())
        enough = np.flatnonzero(counts >= least)
        enough = enough if len(enough) else np.arange(len(counts))
        order = enough[np.argsort(-np.nan_to_num(column[enough], nan=-np.inf), kind="stable")]
        return [names[i] for i in order], column[order], [int(counts[i]) for i in order], mean

    def retention_at(self, step: int, unit: int, span: int) -> float | None:
        """The share of a unit's state that is left at a step from `span` steps before.

        None where the span leaves the sequence, or no gate carries the state over.
        """
        found = self.memory_gate()
        if found is None:
            return None
        gate, high = found
        steps, units = self.capture.extent(gate.name, self.frame)
        if step >= steps or unit >= units:
            return None

        def read(first: int, stop: int) -> Array:
            cut: Array = self.capture.block(gate.name, self.frame, (slice(first, stop), slice(unit, unit + 1)))
            return cut

        backward = gate.place.endswith(".reverse")
        value = float(at_step(read, steps, step, span, 1, high=high, backward=backward)[0])
        return None if value == -np.inf else value

    def summary_lines(self, unit: int | None, length: int) -> list[str]:
        """A summary of the numbers of one unit, or of the place as a whole, over a sequence of some length."""
        return [*self._saturation_lines(unit), *self._memory_lines(unit), *self._timescale_lines(unit, length)]

    def _saturation_lines(self, unit: int | None) -> list[str]:
        keeping, lines = self.memory_gate(), []
        tables = {table.name: table for table in self.of("unit", ("statistic", "unit"))}
        for gate in self.of("gate", ("step", "unit")):
            table = tables.get(f"{gate.name}/saturation")
            shares = self.values(table)
            if table is None or shares is None or gate.limits == (-1, 1) or not _has(shares.shape[1], unit):
                continue
            both = rows_of(table, shares, "left", "right")
            left, right = (row.mean() if unit is None else row[unit] for row in both)
            keeps = float(keeping[1]) if keeping is not None and keeping[0].name == gate.name else None
            said = gate_sentence(gate.signal, float(left), float(right), keeps)
            lines.append(said.replace("NaN", self.told_of(np.nan, table)))
        return lines

    def _memory_lines(self, unit: int | None) -> list[str]:
        memory = self.runs_of_memory()
        values = self.values(memory)
        if memory is None or values is None:
            return []
        return memory_words(memory, values, unit, self.told_of(np.nan, memory))

    def _timescale_lines(self, unit: int | None, length: int) -> list[str]:
        scales = self.timescales()
        if scales is None or not len(scales) or not _has(len(scales), unit):
            return []
        tau = float(np.median(scales)) if unit is None else float(scales[unit])
        said = timescale_sentence(tau, length).replace("NaN", self.told_of(np.nan, self.scale_channel()))
        return [said if unit is not None else f"median unit: {said}"]


def _has(units: int, unit: int | None) -> bool:
    return unit is None or unit < units


def column_of(values: Array, unit: int | None, *, signed: bool) -> Array:
    """(row,) one unit's column of a (row, unit) table, or the mean of all known units; of sizes unless `signed`:
    correlations of units would cancel."""
    if unit is not None:
        one: Array = values[:, min(unit, values.shape[1] - 1)]
        return one
    seen = ~np.isnan(values)
    sized = values if signed else np.abs(values)
    mean: Array = np.where(seen, sized, 0).sum(1) / np.where(seen.any(1), seen.sum(1), np.nan)
    return mean
