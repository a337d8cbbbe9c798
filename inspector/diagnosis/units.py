"""Tables of the units and gates of a recurrent layer, as rules read them, with how much their statistics are of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.diagnosis.rule import Run
from inspector.records import Channel, counted

Array = npt.NDArray[Any]
RESTS_ON = re.compile(r"from ([\d,]+) sequences?, ([\d,]+) steps?")
ROWS = 8192
"""Steps that are in memory at a time."""


@dataclass(frozen=True, slots=True)
class UnitTable:
    """A (statistic, unit) table: its rows by name, (unit,) each, and of how many sequences and steps they are.

    Numbers of sequences and steps are 0 where the capture does not say them.
    """

    channel: Channel
    rows: Mapping[str, Array]
    sequences: int
    steps: int

    @property
    def units(self) -> int:
        """How many units the layer has."""
        return int(self.channel.shape[-1] or 0)

    @property
    def sure(self) -> str:
        """Of what the numbers are, in words."""
        return f"counted over {_of_how_many(self.sequences, self.steps)}"


def rests_on(channel: Channel) -> tuple[int, int]:
    """Of how many sequences and steps the numbers of a channel are, as its method says; zeros where it does not."""
    said = RESTS_ON.search(channel.method)
    sequences, steps = (int(one.replace(",", "")) for one in said.groups()) if said else (0, 0)
    return sequences, steps


def of_how_many(channel: Channel) -> str:
    """Of how many steps and sequences the numbers of a channel are, in words; of one it says that it saw only one."""
    return _of_how_many(*rests_on(channel))


def _of_how_many(sequences: int, steps: int) -> str:
    if not sequences:
        return "the steps of this run; of how many sequences they are was not recorded"
    if sequences == 1:
        return f"{counted(steps, 'step', ',')} of one sequence; this run saw only one"
    return f"{counted(steps, 'step', ',')} of {counted(sequences, 'sequence', ',')}"


def unit_tables(run: Run, frame: int, ending: str) -> Iterator[UnitTable]:
    """The tables whose signal ends so; cells that are damaged or were not computed are NaN."""
    for name, known in run.channels.items():
        if known.kind != "unit" or known.dims != ("statistic", "unit") or not known.signal.endswith(ending):
            continue
        if not run.revision(name, frame):
            continue
        channel, values = run.channel(name, frame), np.ma.filled(run.array(name, frame).astype(np.float64), np.nan)
        rows = dict(zip(channel.labels["statistic"], values, strict=False))
        sequences, steps = rests_on(channel)
        if values.size and len(rows) == len(channel.labels["statistic"]):
            yield UnitTable(channel, rows, sequences, steps)


def gate_rows(run: Run, name: str, frame: int) -> Iterator[Array]:
    """(step, unit) a gate of the selected sequence in blocks of steps; nothing unless every step is there."""
    shape, there = run.channel(name, frame).shape, run.extent(name, frame)
    if not run.revision(name, frame) or tuple(there) != tuple(shape):
        return
    for first in range(0, there[0], ROWS):
        block = run.block(name, frame, (slice(first, min(there[0], first + ROWS)), slice(0, there[1])))
        yield np.ma.filled(np.ma.asarray(block, np.float64), np.nan)


def numbers(units: Array, most: int = 8) -> str:
    """Unit numbers for a message: "3, 5 and 9 more"."""
    listed = ", ".join(str(int(one)) for one in units[:most])
    return listed if len(units) <= most else f"{listed} and {len(units) - most} more"
