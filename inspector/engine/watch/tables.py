"""Series as tables that grow: rows are buffered, and written a page a table at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.engine.trace.emitter import Sink
from inspector.records import ITERATION_DOMAIN, Axis, Channel, Labels, Page

PLACE = "training"
FRAME = 0
"""Series do not belong to a frame of the run; their pages are in this one."""
Cells = Mapping[int, Any]
"""Column → number, or the numbers along further dims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """A series: one curve, or with `column` a table of curves, as `Channel` describes it.

    `column`: (dim, label domain) of the columns; `bins`: labels of a third dim "exponent", for histograms.
    """

    name: str
    title: str
    unit: str = "1"
    formula: str = ""
    source: str = ""
    method: str = "exact"
    scale: Any = "sequential"
    limits: tuple[float, float] | None = None
    dtype: str = "float32"
    kind: str = "series"
    column: tuple[str, str] | None = None
    bins: tuple[str, ...] = ()
    axis: str = ITERATION_DOMAIN

    def channel(self) -> Channel:
        """Its description in the capture."""
        dims = ("iteration", *((self.column[0],) if self.column else ()), *(("exponent",) if self.bins else ()))
        domains = {"iteration": self.axis, **({self.column[0]: self.column[1]} if self.column else {})}
        return Channel(
            name=self.name, kind=self.kind, dims=dims, dtype=self.dtype, unit=self.unit, title=self.title,
            shape=tuple(len(self.bins) if dim == "exponent" else None for dim in dims), formula=self.formula,
            source=self.source, method=self.method, scale=self.scale, limits=self.limits, domains=domains,
            labels={"exponent": self.bins} if self.bins else {},
            compare="ratio" if self.scale == "log" else "difference",
        )  # fmt: skip


@dataclass(slots=True)
class Track:
    """The rows of one axis: which iterations they are of, and the cells of each table."""

    axis: str
    rows: int = 0
    written: int = 0
    pending: list[dict[str, Cells]] = field(default_factory=list)


class Tables:
    """All series of a run. `sink` takes the records; `names` are the columns of each label domain."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._tracks: dict[str, Track] = {}
        self._about: dict[str, About] = {}
        self._names: dict[str, dict[str, int]] = {}
        """By label domain, the names of the columns in their order, with their numbers."""
        self._told: dict[str, int] = {}

    def declare(self, about: About) -> None:
        """Describe a series; written with its first numbers."""
        self._about.setdefault(about.name, about)

    def axis(self, name: str) -> str:
        """The axis of a series."""
        return self._about[name].axis

    def column(self, domain: str, name: str) -> int:
        """The number of a column of that name, a new one at the end where there is none."""
        names = self._names.setdefault(domain, {})
        return names.setdefault(name, len(names))

    @property
    def known(self) -> list[str]:
        """The names of all series."""
        return list(self._about)

    def names_of(self, name: str) -> list[str]:
        """The names of a series' columns; none of one that has no columns, or that there is not."""
        column = self._about[name].column if name in self._about else None
        return list(self._names.get(column[1], ())) if column is not None else []

    def columns(self, domain: str, names: Sequence[str]) -> None:
        """The names of all columns of a domain."""
        self._names[domain] = {name: n for n, name in enumerate(names)}

    def row(self, axis: str, iteration: float, seconds: float, cells: Mapping[str, Cells]) -> int:
        """Add a row; cells of tables that are left out stay unknown. Returns its position."""
        track = self._tracks.setdefault(axis, Track(axis))
        known = {name: one for name, one in cells.items() if one}
        known[coordinate(axis)] = {0: iteration}
        known[times(axis)] = {0: seconds}
        track.pending.append(known)
        track.rows += 1
        return track.rows - 1

    def rows(self, iteration: float, seconds: float, cells: Mapping[str, Cells], *, main: bool = True) -> None:
        """Add a row to every axis that has cells, and one to that of iterations, unless `main` is false."""
        by_axis: dict[str, dict[str, Cells]] = {}
        for name, values in cells.items():
            by_axis.setdefault(self.axis(name), {})[name] = values
        for axis, part in by_axis.items():
            if main if axis == ITERATION_DOMAIN else any(part.values()):
                self.row(axis, iteration, seconds, part)

    def flush(self) -> None:
        """Write all buffered rows. Raises CaptureError where writing has failed."""
        for track in self._tracks.values():
            rows, track.pending = track.pending, []
            if not rows:
                continue
            if not track.written:
                self._describe(track.axis)
            for name in sorted({name for row in rows for name in row}, key=_order(track.axis)):
                self._write(name, track.written, [row.get(name, {}) for row in rows])
            track.written += len(rows)

    def _describe(self, axis: str) -> None:
        self._sink.write(Axis(name=axis, title=ITERATION_DOMAIN, unit=ITERATION_DOMAIN))
        for name, title, unit, formula in (
            (coordinate(axis), ITERATION_DOMAIN, ITERATION_DOMAIN, "steps that the optimizer has made"),
            (times(axis), "time", "s", "seconds since the run was first watched"),
        ):
            self.declare(
                About(name=name, title=title, unit=unit, formula=formula, kind="coordinate", dtype="float64", axis=axis)
            )

    def _write(self, name: str, first: int, rows: Sequence[Cells]) -> None:
        about = self._about[name]
        self._tell(about)
        for n, values in blocks(rows):
            array = values[:, 0] if about.column is None else values
            start = (first + n[0], *(n[1:] if about.column else ()), *((0,) if about.bins else ()))
            self._sink.write(Page(name, FRAME, start, np.ascontiguousarray(array, dtype=about.dtype)))

    def _tell(self, about: About) -> None:
        """Write the description of a series, and the names of its columns, where they are new."""
        if about.column is not None:
            domain = about.column[1]
            names, told = list(self._names.get(domain, ())), self._told.get(domain, 0)
            for start in range(told, len(names), 4096):
                self._sink.write(Labels(domain, tuple(names[start : min(start + 4096, len(names))]), -1, start))
            self._told[domain] = len(names)
        if about.name not in self._told:
            self._told[about.name] = 1
            self._sink.write(about.channel())


def coordinate(axis: str) -> str:
    """The channel with the iteration of each row of an axis."""
    return f"{PLACE}:{axis}"


def times(axis: str) -> str:
    """The channel with the time of each row of an axis."""
    return f"{PLACE}:time{axis.removeprefix(ITERATION_DOMAIN)}"


def _order(axis: str) -> Any:
    """Coordinates first: the iteration is the one that a reader finds."""
    return lambda name: (name != coordinate(axis), name != times(axis), name)


def blocks(rows: Sequence[Cells]) -> Iterator[tuple[tuple[int, int], npt.NDArray[np.float64]]]:
    """((first row, first column), values (n, m, …)) of rectangles that together hold every cell, few of them.

    Rows with the same columns one after another go together, and so do neighbouring columns.
    """
    first = 0
    while first < len(rows):
        columns = sorted(rows[first])
        last = first
        while last + 1 < len(rows) and rows[last + 1].keys() == rows[first].keys():
            last += 1
        for start, stop in _runs(columns):
            here = columns[start:stop]
            yield (first, here[0]), np.array([[row[c] for c in here] for row in rows[first : last + 1]], dtype=float)
        first = last + 1


def _runs(columns: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for n in range(1, len(columns) + 1):
        if n == len(columns) or columns[n] != columns[n - 1] + 1:
            if n > start:
                yield start, n
            start = n


def on_axis(about: About, name: str) -> About:
    """The same series over an axis of its own, for what is recorded less often."""
    return replace(about, axis=f"{ITERATION_DOMAIN}/{name}")
