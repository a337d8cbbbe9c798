"""The curves over training that a view has: of a watched run, of a log of another tool, of a history beside a
checkpoint.

A curve is a channel of kind "series" along ("iteration",), a column of one along ("iteration", X), or a row of a table
of the older kind "training" (statistic, iteration). Listing them reads no numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from inspector.capture.coordinates import COORDINATE, STEP, coordinate_of, numbers_along
from inspector.capture.damage import Box
from inspector.capture.logs.parts import BY
from inspector.capture.logs.roles import Role, role_of
from inspector.capture.logs.view import PLACE as LOG
from inspector.capture.view import View
from inspector.records import Channel

Floats = npt.NDArray[np.float64]
SERIES, TABLE, HISTOGRAM = "series", "training", "histogram"
ITERATION = "iteration"
AS_LOGGED = "as logged"
"""The method of the curves of logs (capture/logs/parts.py), of which the place is the run where there are several."""
FURTHER = ("tokens", "epoch", "time")
"""Titles of coordinates that an axis may have besides its iterations, and by which curves can be drawn."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One curve.

    Attributes:
        key: its name among all curves of a view: that of its channel, and that of its column in brackets.
        name: as it is listed; group: under which heading ("" for none).
        channel: where its numbers are; column: which of a table's, None where the channel is the curve.
        axis: the label domain of its positions.
        role: what it stands for ("loss", "learning rate", …), "" where that is not known.
        shared: whether the table has one quantity by column (the gradient norm of each parameter).
        run: the run that it is of, where a log has several; "" otherwise.
    """

    key: str
    name: str
    group: str
    channel: Channel
    column: int | None
    axis: str
    role: Role = ""
    shared: bool = False
    run: str = ""


@dataclass(frozen=True, slots=True)
class Points:
    """x and y (n,) of a curve; NaN in x where that is not known. `known`: which y were logged (a NaN may be);
    `damaged`: which were logged and are lost."""

    x: Floats
    y: Floats
    known: npt.NDArray[np.bool_]
    damaged: npt.NDArray[np.bool_]


def is_series(channel: Channel) -> bool:
    """Whether a channel holds curves."""
    if channel.kind == TABLE:
        return channel.dims == ("statistic", ITERATION)
    return channel.kind == SERIES and channel.dims[:1] == (ITERATION,) and len(channel.dims) <= 2


def is_histogram(channel: Channel) -> bool:
    """Whether a channel holds counts by bin over iterations, of one thing or of several (iteration, X, bin)."""
    return channel.kind == HISTOGRAM and channel.dims[:1] == (ITERATION,) and channel.dims[-1] != "edge"


def curves_of(view: View, frame: int = -1) -> list[Curve]:
    """All curves of a view that have numbers, in the order of its channels."""
    found: list[Curve] = []
    for name, channel in view.channels.items():
        if is_series(channel) and view.revision(name, frame_for(channel, frame)):
            found += _of_channel(view, view.channel(name, frame_for(channel, frame)), frame)
    run_of: Callable[[str], str] | None = getattr(view, "run_of", None)
    if run_of is not None:  # several runs as one view: each is a group
        found = [_of_run(curve, run_of(curve.channel.name)) for curve in found]
    return found


def _of_run(curve: Curve, run: str) -> Curve:
    """A curve of one of several runs. A column is called with its table, which is no heading any more."""
    name = f"{curve.group}: {curve.name}" if curve.column is not None else curve.name
    return replace(curve, run=run, group=run, name=name)


def frame_for(channel: Channel, frame: int) -> int:
    """The frame in which a channel's curves are: series belong to no frame, a history to that of its run."""
    return frame if channel.kind == TABLE else -1


def names_of_columns(view: View, channel: Channel, frame: int = -1) -> tuple[str, ...]:
    """The name of each column that a table has so far; "parameter 3" where it has none."""
    dim = column_dim(channel)
    if dim is None:
        return ()
    at = frame_for(channel, frame)
    count = view.extent(channel.name, at)[channel.dims.index(dim)]
    known = channel.labels.get(dim) or view.labels(channel.domain(dim), at)
    return tuple(known[n] if n < len(known) and known[n] else f"{dim} {n}" for n in range(count))


def column_dim(channel: Channel) -> str | None:
    """The dim of a table that is not the iteration; None for a single curve."""
    return next((dim for dim in channel.dims if dim != ITERATION), None)


def _of_channel(view: View, channel: Channel, frame: int) -> Iterator[Curve]:
    axis, dim = channel.domain(ITERATION), column_dim(channel)
    if dim is None:
        group, name = _place(channel)
        run = group if channel.place != LOG and channel.method == AS_LOGGED else ""
        yield Curve(channel.name, name, group, channel, None, axis, role_of(channel.title), run=run)
        return
    numbered = channel.kind == TABLE and coordinate_of(view, axis, frame) is None
    own = channel.kind == TABLE or (dim == "statistic" and not _one_quantity(channel))
    for n, name in enumerate(names_of_columns(view, channel, frame)):
        if not (numbered and name == STEP):
            role = (role_of(name) or role_of(channel.signal)) if dim == "statistic" else ""
            yield Curve(f"{channel.name}[{name}]", name, channel.title, channel, n, axis, role, not own)


def _place(channel: Channel) -> tuple[str, str]:
    """(heading, name) of a channel that is one curve; a log names its curves with slashes."""
    if channel.place != LOG:
        return channel.place, channel.title
    group, _, _ = channel.title.rpartition("/")
    return group, channel.title


def _one_quantity(channel: Channel) -> bool:
    """Whether a table by statistic has one quantity with a formula or unit for all columns, so that they belong on one
    axis. Counter-example: columns that a user logged, or settings of an optimizer: 1e-4 beside 0.9."""
    return channel.unit not in ("", "1") or channel.scale == "log" or channel.limits is not None


def points_of(view: View, curve: Curve, along: str = "", frame: int = -1, first: int = 0) -> Points:
    """The numbers of a curve, over its iterations or over another coordinate of FURTHER; from position `first` on.

    Raises CaptureError.
    """
    at = frame_for(curve.channel, frame)
    table = view.array(curve.channel.name, at)
    transposed = curve.channel.kind == TABLE
    rows = table[curve.column] if transposed else table if curve.column is None else table[:, curve.column]
    y: Floats = np.ma.filled(rows[first:].astype(np.float64, copy=False), np.nan)
    column = None if curve.column is None else (0 if transposed else 1, curve.column)
    holes = view.holes(curve.channel.name, at)  # by the checks of the pages that were just read
    missing, damaged = (_inside(boxes, len(rows), column)[first:] for boxes in (holes.missing, holes.damaged))
    x = positions(view, curve.axis, along, at)
    if x is None:
        x = _steps(view, curve, at)
    x = x[first:]
    count = min(len(x), len(y))
    return Points(x[:count], y[:count], ~(missing | damaged)[:count], damaged[:count])


def _inside(boxes: Sequence[Box], count: int, column: tuple[int, int] | None) -> npt.NDArray[np.bool_]:
    """(count,) which positions of a column (its dim and number) some boxes of a table cover."""
    found = np.zeros(count, np.bool_)
    dim, number = (None, 0) if column is None else column
    for box in boxes:
        if dim is None or box[dim][0] <= number < box[dim][1]:
            found[slice(*box[0 if dim != 0 else 1])] = True
    return found


def _steps(view: View, curve: Curve, frame: int) -> Floats:
    """Where an axis has no numbers: those of the column "step" of an older table, else the positions themselves."""
    channel = curve.channel
    names = channel.labels.get("statistic", ())
    if channel.kind == TABLE and STEP in names:
        steps: Floats = np.ma.filled(
            view.array(channel.name, frame)[names.index(STEP)].astype(np.float64), np.nan
        )  # fmt: skip
        return steps
    return np.arange(view.extent(channel.name, frame)[channel.dims.index(ITERATION)], dtype=np.float64)


# -- coordinates


def further(view: View, frame: int = -1) -> tuple[str, ...]:
    """By what curves can be drawn besides their iterations: those of FURTHER that some axis has, and what a log says
    that some of its curves are numbered by."""
    known = [c for c in view.channels.values() if c.kind == COORDINATE and view.revision(c.name, frame)]
    titles = {c.title for c in known}
    others = [c.title for c in known if c.signal.startswith(BY)]
    return (*(word for word in FURTHER if word in titles), *dict.fromkeys(others))


def unit_along(view: View, along: str) -> str:
    """The unit of such a coordinate, "" where its title says it."""
    found = next((c.unit for c in view.channels.values() if c.kind == COORDINATE and c.title == along), "")
    return "" if found.rstrip("s") == along.rstrip("s") else found


def positions(view: View, axis: str, along: str = "", frame: int = -1) -> Floats | None:
    """(n,) the place of each position of an axis, NaN where it is not known; None where positions are merely counted.

    Where the axis itself lacks a coordinate and another one has it, it is interpolated between the iterations there:
    exact where both recorded the same iterations.
    """
    own = numbers_along(view, axis, frame)
    if not along or own is None:
        return own
    by_axis = _with_title(view, along, frame)
    if axis in by_axis:
        return _padded(_numbers(view, by_axis[axis], frame), len(own))
    pairs = [(numbers_along(view, other, frame), _numbers(view, c, frame)) for other, c in by_axis.items()]
    best = max(((a, b) for a, b in pairs if a is not None), key=lambda pair: len(pair[1]), default=None)
    if best is None:
        return np.full(len(own), np.nan)
    count = min(map(len, best))
    here, there = best[0][:count], best[1][:count]
    fine = np.isfinite(here) & np.isfinite(there)
    if not fine.any():
        return np.full(len(own), np.nan)
    return np.interp(own, here[fine], there[fine], left=np.nan, right=np.nan)


def _with_title(view: View, title: str, frame: int) -> Mapping[str, Channel]:
    """The coordinates of that title by their axes."""
    return {
        c.domain(c.dims[0]): c for c in view.channels.values()
        if c.kind == COORDINATE and c.title == title and len(c.dims) == 1 and view.revision(c.name, frame)
    }  # fmt: skip


def _numbers(view: View, channel: Channel, frame: int) -> Floats:
    found: Floats = np.ma.filled(view.array(channel.name, frame).astype(np.float64), np.nan)
    return found


def _padded(values: Floats, count: int) -> Floats:
    return np.concatenate((values[:count], np.full(max(0, count - len(values)), np.nan)))
