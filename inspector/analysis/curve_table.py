"""The curves over training of a capture or log as tables: a line for each, or a row for each iteration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture.curves import Curve, Points, curves_of, further, points_of
from inspector.capture.layout import CaptureError
from inspector.capture.tables import csv_bytes, parquet_bytes, write_atomically
from inspector.capture.view import View

Floats = npt.NDArray[np.float64]
ITERATION = "iteration"
MOST_CELLS = 50_000_000
"""Cells of a table: 400 MB. Counter-example: 500 curves of 200,000 iterations, each at its own; choose some of them."""


@dataclass(frozen=True, slots=True)
class Line:
    """One curve in a list: how many points, the first and last, the smallest and largest finite, how many are not."""

    name: str
    points: int
    first: float
    last: float
    smallest: float
    largest: float
    not_finite: int
    role: str


@dataclass(frozen=True, slots=True)
class CurveTable:
    """`iterations` (n,) in order; `columns` by name (n,), and `known` which of their cells were recorded."""

    iterations: Floats
    columns: Mapping[str, Floats]
    known: Mapping[str, npt.NDArray[np.bool_]]


def lines(view: View, patterns: Sequence[str] = ()) -> list[Line]:
    """A line for each curve that matches. Raises CaptureError."""
    return [_line(curve.key, points_of(view, curve), curve.role) for curve in chosen(view, patterns)]


def chosen(view: View, patterns: Sequence[str]) -> list[Curve]:
    """The curves whose names match one of the patterns ("*loss*"), all without any. Raises CaptureError for none."""
    every = curves_of(view)
    found = [curve for curve in every if not patterns or any(_matches(curve, one) for one in patterns)]
    if not every:
        raise CaptureError(f"{view.start.title} has no curves over training.")
    if not found:
        some = ", ".join(curve.key for curve in every[:8]) + (" …" if len(every) > 8 else "")
        raise CaptureError(f"No curve matches {', '.join(patterns)}; there are {some}.")
    return found


def _matches(curve: Curve, pattern: str) -> bool:
    return fnmatchcase(curve.key, pattern) or fnmatchcase(curve.name, pattern) or pattern in (curve.key, curve.name)


def _line(name: str, points: Points, role: str) -> Line:
    y = points.y[points.known]
    fine = y[np.isfinite(y)]
    first, last = (float(y[0]), float(y[-1])) if len(y) else (np.nan, np.nan)
    low, high = (float(fine.min()), float(fine.max())) if len(fine) else (np.nan, np.nan)
    return Line(name, len(y), first, last, low, high, len(y) - len(fine), role)


def table_of_curves(view: View, patterns: Sequence[str] = ()) -> CurveTable:
    """A row for each iteration at which any of the curves has a point, with time, tokens and epoch where known.

    Raises CaptureError where there are no curves, or too many cells.
    """
    curves = chosen(view, patterns)
    points = {curve.key: points_of(view, curve) for curve in curves}
    at = np.unique(np.concatenate([one.x[one.known & np.isfinite(one.x)] for one in points.values()]))
    if len(at) * len(curves) > MOST_CELLS:
        size = f"{len(curves):,} curves at {len(at):,} iterations"
        raise CaptureError(f"{size} are more than a table holds; choose some.")
    columns: dict[str, Floats] = {}
    known: dict[str, npt.NDArray[np.bool_]] = {}
    for along in further(view):
        told = [(points[curve.key], points_of(view, curve, along).x) for curve in curves]
        columns[along], known[along] = _placed(at, [(one.x, x, np.isfinite(x)) for one, x in told])
    for name, one in points.items():
        columns[name], known[name] = _placed(at, [(one.x, one.y, one.known)])
    return CurveTable(at, columns, known)


def _placed(
    at: Floats, parts: Sequence[tuple[Floats, Floats, npt.NDArray[np.bool_]]]
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Numbers at their iterations; of several points of one iteration the last."""
    values, known = np.full(len(at), np.nan), np.zeros(len(at), np.bool_)
    for x, y, told in parts:
        own = told & np.isfinite(x)
        places = np.searchsorted(at, x[own])
        inside = (places < len(at)) & (at[np.minimum(places, len(at) - 1)] == x[own])
        values[places[inside]], known[places[inside]] = y[own][inside], True
    return values, known


def export_curves(view: View, to: Path | str, patterns: Sequence[str] = ()) -> Path:
    """Write the table as .csv, .json or .parquet by the suffix; cells without a point are empty.

    Raises CaptureError.
    """
    target = Path(to)
    writer = {".csv": _csv, ".json": _json, ".parquet": _parquet}.get(target.suffix.lower())
    if writer is None:
        raise CaptureError(f"Cannot write curves as {target.suffix or target.name!r}; there are .csv, .json, .parquet.")
    write_atomically(target, writer(table_of_curves(view, patterns)))
    return target


def _csv(table: CurveTable) -> bytes:
    rows = [[ITERATION, *table.columns]]
    columns = [
        [repr(value) if told else "" for value, told in zip(values.tolist(), table.known[name].tolist(), strict=True)]
        for name, values in table.columns.items()
    ]
    rows += [[f"{at:.15g}", *row] for at, *row in zip(table.iterations.tolist(), *columns, strict=True)]
    return csv_bytes(rows)


def _json(table: CurveTable) -> bytes:
    """A list of rows with what is known of each iteration; numbers that JSON has not are text."""
    rows: list[dict[str, Any]] = [{ITERATION: at} for at in table.iterations.tolist()]
    for name, values in table.columns.items():
        for n in np.flatnonzero(table.known[name]).tolist():
            value = float(values[n])
            rows[n][name] = value if np.isfinite(value) else str(value)
    return json.dumps(rows, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def _parquet(table: CurveTable) -> bytes:
    masked = {name: np.ma.masked_array(values, ~table.known[name]) for name, values in table.columns.items()}
    columns = {name: [None if one is np.ma.masked else float(one) for one in column] for name, column in masked.items()}
    return parquet_bytes({ITERATION: table.iterations, **columns})
