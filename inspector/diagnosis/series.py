"""Series over training as rules read them, of a watched run as of any log: tables by parameter, and the loss."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.loss_trend import Trend, trend_of
from inspector.capture.curves import Curve, column_dim, curves_of, names_of_columns, points_of, positions
from inspector.capture.logs.roles import Role
from inspector.diagnosis.rule import Captured

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Table:
    """A series of several columns (or one): `values` (n, m), NaN where nothing was recorded, in the precision in which
    it was stored; `iterations` (n,); the name of each column."""

    channel: str
    iterations: Floats
    names: tuple[str, ...]
    values: Array

    @property
    def points(self) -> int:
        """Of the column that has the most."""
        return int(np.isfinite(self.values).sum(axis=0).max(initial=0))


def table_of(run: Captured, name: str) -> Table | None:
    """A series by the name of its channel; None where there is none."""
    if name not in run.channels or not run.revision(name):
        return None
    channel = run.channel(name)
    values = _with_nan(run.array(name))
    names = names_of_columns(run, channel)
    values = values.reshape(len(values), -1)
    wanted = run.labels(channel.domain(column)) if (column := column_dim(channel)) is not None else ()
    if len(wanted) > len(names):  # columns at the end that never had a number
        values = np.pad(values, ((0, 0), (0, len(wanted) - len(names))), constant_values=np.nan)
        names = (*names, *wanted[len(names) :])
    at = positions(run, channel.domain("iteration"))
    iterations = np.arange(len(values), dtype=np.float64) if at is None else at[: len(values)]
    return Table(name, iterations, names or (channel.title,), values[: len(iterations)])


BLOCK = 4096
"""Rows of a large table that are copied at a time."""
GRADIENT_NORM = "training:gradient_norm"
_BY_PARAMETER = ("parameters:gradient/norm", "parameters:gradient/norm_clipped")


def norms_beside_clipping(run: Captured) -> Floats | None:
    """(n, 2): the norm of the gradient before and after clipping, of the same parameters; None where either was not
    recorded. The norm of all parameters counts those before clipping that no optimizer has, or that of another one, and
    they have none after it: where parameters were recorded one by one, those without both are left out."""
    table = table_of(run, GRADIENT_NORM)
    if table is None or table.values.shape[1] < 2:
        return None
    before, after = (table_of(run, name) for name in _BY_PARAMETER)
    if before is None or after is None or len(before.values) != len(after.values):
        return table.values[:, :2]
    columns = [before.names.index(name) for name in after.names if name in before.names]
    beside = [after.names.index(before.names[n]) for n in columns]
    norms = np.full((len(before.values), 2), np.nan)
    for first in range(0, len(norms), BLOCK):  # one after the other: copies of a large table are larger than the table
        rows = slice(first, first + BLOCK)
        both = [before.values[rows, columns].astype(np.float64), after.values[rows, beside].astype(np.float64)]
        known = np.isfinite(both[0]) & np.isfinite(both[1])
        there = known.any(axis=1)
        for side, one in enumerate(both):
            norms[rows, side][there] = _lengths(np.where(known, one, 0.0))[there]
    return norms


def _lengths(rows: Floats) -> Floats:
    """(n,) Euclidean norms of rows (n, p), by their largest entry, so that a gradient that explodes has one."""
    largest = np.abs(rows).max(axis=1, initial=0.0)
    scale = np.where(largest > 0, largest, 1.0)
    return np.asarray(scale * np.sqrt(np.square(rows / scale[:, None]).sum(axis=1)), np.float64)


def clips(norms: Floats) -> bool:
    """Whether the norm after clipping was ever smaller than the one before, of (n, 2)."""
    with np.errstate(invalid="ignore"):
        return bool((norms[:, 1] < 0.999 * norms[:, 0]).any())


def _with_nan(array: Array) -> Array:
    """Floats as they are stored: a table of a long training has millions, which are not copied without need."""
    plain = np.ma.asarray(array)
    return np.ma.filled(plain if plain.dtype.kind == "f" else plain.astype(np.float64), np.nan)


@dataclass(frozen=True, slots=True)
class Line:
    """A curve: its x and y (n,), only points that were logged (a NaN may be) and are undamaged."""

    curve: Curve
    x: Floats
    y: Floats

    @property
    def channel(self) -> str:
        """The name of the channel that has it."""
        return self.curve.channel.name


def lines_of(run: Captured, roles: Collection[str] | None = None) -> list[Line]:
    """The curves of some roles, or all that stand for themselves (columns of tables by parameter do not)."""
    found = []
    for curve in curves_of(run):
        if curve.role in roles if roles is not None else curve.column is None:
            points = points_of(run, curve)
            kept = points.known & np.isfinite(points.x)
            found.append(Line(curve, points.x[kept], points.y[kept]))
    return found


def one_a_run(run: Captured, role: Role) -> list[Line]:
    """The longest curve of a role, of each of the runs that a folder of logs holds."""
    longest: dict[str, Line] = {}
    for line in lines_of(run, (role,)):
        before = longest.get(line.curve.run)
        if before is None or len(line.x) > len(before.x):
            longest[line.curve.run] = line
    return list(longest.values())


def longest(run: Captured, role: Role) -> Line | None:
    """The longest curve of a role, of all runs; None where there is none."""
    return max(one_a_run(run, role), key=lambda line: len(line.x), default=None)


def trend_along(line: Line | None) -> Trend | None:
    """Of a curve; None without one, and of too few points (loss_trend.py)."""
    return None if line is None else trend_of(line.x, line.y)


def called(line: Line, name: str) -> str:
    """A curve in a sentence: "the loss", and of several runs "fast: the loss"."""
    return f"{line.curve.run}: {name}" if line.curve.run else name


def medians_of_weights(table: Table, skipped: int = 0) -> dict[str, float]:
    """The median over iterations of each column with a number, without the first ones; biases are left out by name."""
    values = table.values[skipped:]
    return {
        name: float(np.nanmedian(values[:, n]))
        for n, name in enumerate(table.names)
        if "bias" not in name.rpartition(".")[2] and np.isfinite(values[:, n]).any()
    }


def rates_of(run: Captured) -> Floats | None:
    """(n, groups): the learning rates of the optimizers' groups, by recorded iteration; None where not recorded."""
    table = table_of(run, "training:optimizer")
    columns = [] if table is None else [n for n, name in enumerate(table.names) if name.endswith(": lr")]
    return None if table is None or not columns else table.values[:, columns].astype(np.float64)


def the_only(names: Sequence[str]) -> str:
    """The place of a finding about some things: the one that there is; "" for several."""
    return names[0] if len(names) == 1 else ""


def listed(names: list[str] | tuple[str, ...], most: int = 4) -> str:
    """Names in a sentence: "a, b and 3 more"."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
