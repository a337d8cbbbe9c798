"""What small pictures have in common: lines over steps and over iterations, maps over steps and units, at small size.

The numbers come the way that the panels read them: overviews, the same thinning, the same limits of colours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import Curve, curves_of, points_of
from inspector.capture.pyramid import with_nan
from inspector.gui.widgets.charts.series import thinned
from inspector.gui.widgets.images.quantise import extreme, floored
from inspector.gui.widgets.plots.source import glance, stride_of
from inspector.gui.widgets.plots.stepplot import logarithm
from inspector.gui.widgets.sketch import ACROSS, ALONG, DOWN, MOST_LINES, Cells, Line, Sketch
from inspector.gui.widgets.theme import MASKED
from inspector.records import Channel

Floats = npt.NDArray[np.float64]
Named = list[tuple[str, Floats, Floats]]


def has(kind: str, *dims: tuple[str, ...], signals: Sequence[str] = ()) -> Callable[[Any, int], list[Channel]]:
    """Finds the channels of a kind over these axes that have numbers in a frame; only of these signals, where some are
    named."""

    def find(view: Any, frame: int) -> list[Channel]:
        wanted = (one for one in view.channels.values() if one.kind == kind and one.dims in dims)
        named = [one for one in wanted if not signals or one.signal in signals]
        return [view.channel(one.name, frame) for one in named if view.revision(one.name, frame)]

    return find


def there(view: Any, name: str, frame: int) -> bool:
    """Whether a channel has numbers in a frame."""
    return name in view.channels and bool(view.revision(name, frame))


def of_longest_axis(view: Any, frame: int, channels: Sequence[Channel]) -> list[Channel]:
    """Those over the one step axis that has most of them, else the longest: two axes are never drawn as one."""
    axes: dict[str, list[Channel]] = {}
    for channel in channels:
        axes.setdefault(channel.domain(channel.dims[0]), []).append(channel)
    if not axes:
        return []
    return max(axes.values(), key=lambda some: (len(some), view.extent(some[0].name, frame)[0]))


def lines_by_step(view: Any, frame: int, channels: Sequence[Channel]) -> Named:
    """(name, steps, values) of (step,) channels: every step that was computed and is known, so that what is said of
    them is exact."""
    found = []
    for channel in channels[:MOST_LINES]:
        every = stride_of(view, channel.name, frame)
        y = with_nan(view.array(channel.name, frame)).astype(np.float64)[::every]
        x = every * np.arange(len(y), dtype=np.float64)
        known = view.known(channel.name, frame)[::every]
        found.append((channel.place or channel.title, x[known], y[known]))
    return found


def sketch_of_lines(sentence: str, lines: Named, channel: Channel, *, log: bool, word: str = "step") -> Sketch:
    """A sketch of some lines, thinned to what it can show; `channel` is the one that a click shows."""
    few = [(name, *thinned(x, y, ALONG)) for name, x, y in lines[:MOST_LINES]]
    shown = tuple(Line(name, x, _logarithm(y) if log else y) for name, x, y in few)
    x = np.concatenate([x for _, x, _ in lines]) if lines else np.zeros(0)
    x = x[np.isfinite(x)]
    ends = (float(x.min()), float(x.max())) if len(x) else (0.0, 0.0)
    return Sketch(sentence, shown, log, word=word, ends=ends, place=channel.place, channel=channel.name)


def _logarithm(y: Floats) -> Floats:
    """log₁₀; what is 0 or less has none and is a gap, so that a mark stands there."""
    found: Floats = np.asarray(logarithm(y), dtype=np.float64)
    return np.where(np.isfinite(found), found, np.nan)


def sketch_of_map(view: Any, frame: int, channel: Channel, sentence: str) -> Sketch:
    """A (step, unit) channel in the colours of the panel's map, the first unit at the top as there."""
    steps, units = view.extent(channel.name, frame)
    low, high = view.overview(channel.name, frame, size=(ACROSS, units))
    levels, _, _ = glance(view, channel, frame)
    cells = levels.index(extreme(low, high, channel.scale)).T[:: max(1, -(-units // DOWN))]
    cells = _without_holes(view, frame, channel, np.ascontiguousarray(cells), steps)
    return Sketch(
        sentence, cells=cells, scale=channel.scale, word=channel.axis_word(channel.dims[0]),
        ends=(0.0, steps - 1.0), rows=f"↓ {units:,} {channel.dims[1]}s", place=channel.place, channel=channel.name,
    )  # fmt: skip


def _without_holes(view: Any, frame: int, channel: Channel, cells: Cells, steps: int) -> Cells:
    """Nothing is drawn where a step was not captured or is damaged."""
    holes = view.holes(channel.name, frame)
    for box in (*holes.missing, *holes.damaged):
        first, stop = (round(end * cells.shape[1] / max(1, steps)) for end in box[0])
        cells[:, first : max(stop, first + 1)] = MASKED
    return cells


def cells_of(values: npt.NDArray[Any], scale: str, limits: tuple[float, float] | None = None) -> Cells:
    """(row, column) numbers as colour indices, thinned to what a picture shows by taking each n-th."""
    rows, columns = (max(1, -(-n // most)) for n, most in zip(values.shape, (DOWN, ACROSS), strict=True))
    small = values[::rows, ::columns]
    return np.ascontiguousarray(floored(small, scale, limits, masked=True, decades=8.0).index(small))


def curves_with(view: Any, roles: Sequence[str]) -> list[Curve]:
    """The curves over training that stand for one of these, the roles in their order."""
    found = curves_of(view)
    return [one for role in roles for one in found if one.role == role]


def lines_over_training(view: Any, curves: Sequence[Curve], most: int | None = MOST_LINES) -> Named:
    """(name, iterations, values) of curves, the first of them or all, only where something was logged."""
    found = []
    for curve in curves[:most]:
        points = points_of(view, curve)
        kept = points.known & np.isfinite(points.x)
        name = f"{curve.run}: {curve.name}" if curve.run else curve.name
        found.append((name, points.x[kept], points.y[kept]))
    return found
