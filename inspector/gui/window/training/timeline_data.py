"""What the timeline draws of a capture: lanes of a few curves, frames, events, all along one axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from inspector.capture import Capture, Curve, curves_of, notes, points_of
from inspector.capture.curves import SERIES
from inspector.gui.state.placed_frames import placed
from inspector.gui.widgets.numbers import round_numbers
from inspector.records import Event, Frame
from inspector.records.plain_text import shortened

Floats = npt.NDArray[np.float64]
LANE_ROLES = ("loss", "gradient norm", "learning rate")
MOST_LANES = 3
COUNTED = ("frame", "iteration")
"""Axes on which there is nothing between two whole numbers."""

SQUEEZED = 8.0
"""A lane of 14 pixels whose greatest number is so many times beyond the last percentile would be flat, within two
pixels, but for its spike. Counter-example: a loss that begins far above its end for less than a hundredth of its points
is marked there, though it is no spike."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One curve: its name, and its points in order of x, logarithms where `log`."""

    name: str
    x: Floats
    y: Floats


@dataclass(frozen=True, slots=True)
class TimelineData:
    """Along x: iterations, or where frames have none their numbers (`counted`)."""

    frames: tuple[tuple[Frame, float], ...] = ()
    events: tuple[Event, ...] = ()
    lanes: tuple[Lane, ...] = ()
    word: str = "frame"
    low: float = 0.0
    high: float = 1.0
    offered: tuple[tuple[str, str], ...] = field(default=())
    """(key, name) of every curve that may be a lane."""
    source: tuple[Frame, ...] = ()
    """The frames as the capture has them."""
    by_iteration: bool = False
    at: Floats = field(default_factory=lambda: np.zeros(0))
    """The places of the frames."""

    def places(self, room: float) -> list[float]:
        """Round numbers along the axis, at most about `room` of them; whole ones where frames or iterations are
        counted."""
        found = round_numbers(self.low, self.high, room)
        return [one for one in found if one == round(one)] if self.word in COUNTED else found

    @property
    def empty(self) -> bool:
        """Whether there is nothing to choose from: one frame, and no series."""
        return len(self.frames) < 2 and not self.lanes and not self.offered


def read(capture: Capture, chosen: Sequence[str] | None = None) -> TimelineData:
    """The timeline of a capture. `chosen`: keys of the curves that are lanes; None for loss, gradient norm and learning
    rate, as far as there are any."""
    curves = [c for c in curves_of(capture) if c.channel.kind == SERIES]
    wanted = [c for c in curves if c.key in chosen] if chosen is not None else first_lanes(curves)
    places: dict[str, Floats] = {}
    lanes = tuple(_lane(capture, curve, places) for curve in wanted[:MOST_LANES])
    source, frames, at, by_iteration = placed(capture, has_curves=bool(curves))
    events = tuple(one for one in capture.events if np.isfinite(one.iteration)) if by_iteration else ()
    events += tuple(noted_events(capture, at))
    ends = [lane.x for lane in lanes] + [at, np.array([one.iteration for one in events])]
    known = np.concatenate([x[np.isfinite(x)] for x in ends])
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    word = capture.axis(wanted[0].axis).title if wanted else "iteration" if by_iteration else "frame"
    return TimelineData(
        frames, events, lanes, word, low, max(high, low + 1e-9),
        tuple((curve.key, _named(curve)) for curve in curves), source, by_iteration, at,
    )  # fmt: skip


def first_lanes(curves: Sequence[Curve]) -> list[Curve]:
    """One curve of each of some roles; the first one where none has any."""
    by_role = [next((c for c in curves if c.role == role), None) for role in LANE_ROLES]
    found = [curve for curve in by_role if curve is not None]
    return found or list(curves[:1])


def _named(curve: Curve) -> str:
    lead = curve.run or (curve.group if curve.column is not None else "")
    return f"{lead}: {curve.name}" if lead else curve.name


def _lane(capture: Capture, curve: Curve, places: dict[str, Floats]) -> Lane:
    """`places`: of the axes of other lanes; a long training's are in memory once, and not once for each lane."""
    points = points_of(capture, curve)
    x, y, placed = points.x, points.y, np.isfinite(points.x)
    if not placed.all():
        x, y = x[placed], y[placed]
    known = places.setdefault(curve.axis, x)
    if np.array_equal(known, x):
        x = known
    return Lane(_named(curve) if curve.shared or curve.run else curve.name, x, y)


@dataclass(frozen=True, slots=True)
class Columns:
    """A lane by columns of one pixel: (least, greatest) from 0 to 1, NaN where a column has no point; `above` and
    `below`: where the lane goes beyond what is drawn."""

    least: Floats
    greatest: Floats
    above: npt.NDArray[np.bool_]
    below: npt.NDArray[np.bool_]


def columns(lane: Lane, low: float, high: float, width: int) -> Columns:
    """A lane in so many columns, with every spike: least and greatest of each column, over all finite numbers.

    Positive numbers over more than two decades are drawn by their logarithms. Where the rest would be flat beside one
    spike (SQUEEZED), the lane goes half as far again as the first and last percentile, and what goes beyond is marked.
    """
    least, greatest = _extremes(lane, low, high, width)
    empty, nowhere = np.isnan(least), np.zeros(width, bool)
    if empty.all():
        return Columns(least, greatest, nowhere, nowhere)
    bottom, top = float(np.nanmin(least)), float(np.nanmax(greatest))
    inner = np.percentile(np.concatenate((least[~empty], greatest[~empty])), (1, 99))
    span = float(inner[1] - inner[0])
    if 0 < SQUEEZED * span < top - bottom:
        bottom, top = max(bottom, float(inner[0]) - span / 2), min(top, float(inner[1]) + span / 2)
    if top <= bottom:
        middle = np.where(empty, np.nan, 0.5)
        return Columns(middle, middle, nowhere, nowhere)
    with np.errstate(invalid="ignore"):
        above, below = greatest > top, least < bottom
    scaled = [np.where(empty, np.nan, np.clip((one - bottom) / (top - bottom), 0, 1)) for one in (least, greatest)]
    return Columns(scaled[0], scaled[1], above, below)


def _extremes(lane: Lane, low: float, high: float, width: int) -> tuple[Floats, Floats]:
    """(least, greatest) of the finite numbers in each column, or of their logarithms; NaN where there are none."""
    x, y = lane.x, lane.y
    if (y[np.isfinite(y)] > 0).all() and _decades(y) > 2:
        with np.errstate(divide="ignore", invalid="ignore"):
            y = np.log10(y)
    if len(x) > 1 and not (x[1:] >= x[:-1]).all():
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
    y = np.where(np.isfinite(y), y, np.nan)
    edges = low + np.arange(width) / max(1, width - 1) * (high - low)
    first = np.searchsorted(x, edges - 0.5 * (high - low) / max(1, width - 1), "left")
    least, greatest = np.full(width, np.nan), np.full(width, np.nan)
    stop = np.append(first[1:], np.searchsorted(x, high, "right"))
    filled = first < stop
    if filled.any():
        cut = y[: stop[filled][-1]]
        least[filled], greatest[filled] = (how.reduceat(cut, first[filled]) for how in (np.fmin, np.fmax))
    return least, greatest


def _decades(y: Floats) -> float:
    finite = y[np.isfinite(y)]
    return float(np.log10(finite.max() / finite.min())) if len(finite) and finite.min() > 0 else 0.0


def noted_events(capture: Capture, places: Floats) -> Iterator[Event]:
    """Notes on iterations, and on frames, where those lie along the timeline, as events of the kind "note"."""
    found = notes(capture)
    of_frames = any(note.where.iteration < 0 for note in found)
    at = {one.index: place for one, place in zip(capture.frames, places.tolist(), strict=True)} if of_frames else {}
    for note in found:
        place = float(note.where.iteration) if note.where.iteration >= 0 else at.get(note.where.frame)
        if place is not None:
            yield Event(place, "note", shortened(" ".join(note.text.split()), 200), note.where.frame)
