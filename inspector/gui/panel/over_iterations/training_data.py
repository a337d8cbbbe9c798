"""What the Training panel reads of a capture: its list of curves, its tables and histograms, single numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.capture import Capture, Curve, curves_of, points_of
from inspector.capture.curves import (
    AS_LOGGED,
    ITERATION,
    TABLE,
    column_dim,
    frame_for,
    is_histogram,
    names_of_columns,
    positions,
)  # fmt: skip
from inspector.gui.panel.exact import exact_at, why_not_known
from inspector.gui.panel.labelled import coordinates
from inspector.gui.panel.over_iterations.curve_plots import in_order
from inspector.gui.panel.over_iterations.iteration_maps import Shown
from inspector.gui.panel.over_iterations.same_loss import SameLoss
from inspector.gui.widgets.charts.long_series import LongSeries
from inspector.records import Channel

Array = npt.NDArray[Any]
CURVES, LAYERS = "curves", "layers"
BY_LAYER = ("update/ratio", "gradient/norm", "weight/norm")
"""Tables by parameter that are shown side by side: what an update changes of a weight, and why."""
LEAST_ROWS = 2
"""Columns from which a table can be shown as a map."""


class TrainingData:
    """Keeps the list of curves while no channel and no column is new: a long list takes longer than a frame."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Another capture."""
        self._key: object = None
        self._curves: list[Curve] = []
        self._points: dict[tuple[str, str, int], LongSeries] = {}
        self._same = SameLoss()

    def points(self, capture: Capture, curve: Curve, along: str, frame: int) -> LongSeries:
        """The points of a curve, of which only those are read that are new."""
        key = (curve.key, f"{curve.channel.name} {along}", frame_for(curve.channel, frame))
        found = self._points.get(key)
        if found is None or curve.channel.kind == TABLE or curve.channel.method == AS_LOGGED:
            found = self._points[key] = LongSeries()  # a log may have gone back; its numbers are in memory
        points = points_of(capture, curve, along, frame, found.rows)
        kept = points.known | points.damaged
        apart = self._same.apart.get(curve.key)
        if apart is not None:
            first = found.rows
            kept[: max(0, len(apart) - first)] &= apart[first : first + len(kept)]
        found.update(points.x, points.y, points.known, kept)
        return found

    @staticmethod
    def axis(capture: Capture, curve: Curve, along: str, frame: int) -> Array:
        """(n,) the place of every position of a curve's axis."""
        found = positions(capture, curve.axis, along, frame_for(curve.channel, frame))
        return points_of(capture, curve, along, frame).x if found is None else found

    def axes(self, capture: Capture, curve: Curve, along: str, frame: int) -> tuple[Array, Array]:
        """(the places along what is chosen, the iterations) of every position; one array where they are the same."""
        numbers = self.axis(capture, curve, "", frame)
        return (self.axis(capture, curve, along, frame) if along else numbers), numbers

    def keep(self, keys: Collection[str]) -> None:
        """Forget the points of curves that are not drawn any more."""
        self._points = {key: points for key, points in self._points.items() if key[0] in keys}

    def curves(self, capture: Capture, frame: int) -> list[Curve]:
        """All curves."""
        key = (frame, tuple(_size(capture, channel, frame) for channel in capture.channels.values()))
        if key != self._key:
            self._key, self._curves = key, in_order(curves_of(capture, frame))
        return self._same.settled(capture, self._curves)

    def views(self, capture: Capture, channels: Sequence[Channel]) -> dict[str, str]:
        """What can be shown, by key: curves, tables as maps, the tables by layer, histograms."""
        tables = [c for c in channels if c.kind == "series" and column_dim(c) is not None
                  and capture.extent(c.name)[1] >= LEAST_ROWS and _is_one_quantity(c)]  # fmt: skip
        histograms = [channel for channel in channels if is_histogram(channel)]
        layers = self.layers({channel.name: channel for channel in channels})
        found = {CURVES: "curves"}
        if len(layers) > 1:
            found[LAYERS] = "by layer: update, gradient, weight"
        found.update({channel.name: f"map of {channel.title}" for channel in tables})
        found.update({channel.name: f"histograms of {channel.title}" for channel in histograms})
        return found

    def layers(self, channels: Mapping[str, Channel]) -> list[str]:
        """The tables that are shown side by side."""
        by_signal = {c.signal: name for name, c in channels.items() if c.dims == (ITERATION, "parameter")}
        return [by_signal[signal] for signal in BY_LAYER if signal in by_signal]

    def things(self, capture: Capture, channel: Channel) -> tuple[str, ...]:
        """Of what the histograms of a channel are, where they are of several things."""
        return names_of_columns(capture, channel) if len(channel.dims) == 3 else ()

    def shown(self, capture: Capture, channel: Channel, listed: set[str] | None, of: object) -> Shown:
        """A channel as a map: its rows are the columns in their order, without those that are not `listed`."""
        if is_histogram(channel):
            bins = capture.extent(channel.name)[-1]
            things = self.things(capture, channel)
            at = things.index(str(of)) if of in things else 0 if things else None
            return Shown(channel, tuple(range(bins)), channel.labels.get(channel.dims[-1], ()), at)
        names = names_of_columns(capture, channel)
        rows = tuple(n for n, name in enumerate(names) if listed is None or f"{channel.name}[{name}]" in listed)
        return Shown(channel, rows, tuple(names[n] for n in rows))

    @staticmethod
    def rows_of(shown: Sequence[Shown], curve: Curve | None) -> dict[str, int]:
        """The row of a curve's column in every map that has a row of that name."""
        if curve is None:
            return {}
        return {one.channel.name: one.names.index(curve.name) for one in shown if curve.name in one.names}

    @staticmethod
    def place_of(capture: Capture, iteration: float, along: str, frame: int) -> float | None:
        """Where an iteration lies when curves are drawn along another coordinate; None where that is not known."""
        if not along:
            return iteration
        for axis in capture.axes:
            own, other = positions(capture, axis, "", frame), positions(capture, axis, along, frame)
            if own is None or other is None:
                continue
            fine = np.isfinite(own) & np.isfinite(other)
            if fine.any() and own[fine].min() <= iteration <= own[fine].max():
                return float(np.interp(iteration, own[fine], other[fine]))
        return None

    @staticmethod
    def told(capture: Capture, curve: Curve, frame: int, here: float) -> tuple[float, Any] | None:
        """(iteration, value) of a curve at an iteration: the last one that was logged until then; None before all."""
        points = points_of(capture, curve, "", frame)
        with np.errstate(invalid="ignore"):
            before = np.flatnonzero((points.x <= here) & points.known)
        at = frame_for(curve.channel, frame)
        if not len(before):
            lost = np.flatnonzero(points.x <= here)
            why = why_not_known(capture, curve.channel.name, at) if len(lost) else ""
            return (float(points.x[lost[-1]]), why) if why else None
        last = int(before[-1])
        return float(points.x[last]), points.y[last]

    @staticmethod
    def cell(capture: Capture, shown: Shown, position: int, row: int) -> Any:
        """The number of a map at a position along its axis and a row."""
        inner = () if shown.of is None else (shown.of,)
        return exact_at(capture, shown.channel.name, -1, position, *inner, shown.rows[row])

    @staticmethod
    def saved(capture: Capture, curves: Sequence[Curve], maps: Sequence[Channel], frame: int) -> dict[str, Array]:
        """Numbers by name: whole tables of an older history, columns of others, whole maps; what is not known is
        masked. With the coordinates along them."""
        found: dict[str, Array] = {}
        for curve in curves:
            channel = curve.channel
            if channel.kind == TABLE:
                found[channel.name] = capture.array(channel.name, frame)
            else:
                points = points_of(capture, curve, "", frame)
                found[curve.key] = (
                    np.ma.MaskedArray(points.y, mask=~points.known) if not points.known.all() else points.y
                )
        for channel in maps:
            found[channel.name] = _masked(capture.array(channel.name, -1), capture.known(channel.name, -1))
        channels = [*dict.fromkeys(curve.channel.name for curve in curves), *(one.name for one in maps)]
        shown = [capture.channels[name] for name in channels]
        return {**found, **coordinates(capture, shown, ITERATION, frame_for(shown[0], frame) if shown else -1)}


def _masked(values: Array, known: npt.NDArray[np.bool_]) -> Array:
    """The values, masked where they are not known."""
    return values if known.all() else np.ma.MaskedArray(np.ma.getdata(values), mask=~known)


def _is_one_quantity(channel: Channel) -> bool:
    """Whether all columns of a table are on one scale: by parameter, module, head; not by statistic."""
    return column_dim(channel) != "statistic"


def _size(capture: Capture, channel: Channel, frame: int) -> object:
    """What of a channel decides which curves it has."""
    if channel.kind not in ("series", TABLE):
        return None
    at = frame_for(channel, frame)
    return channel.name, bool(capture.revision(channel.name, at)), *capture.extent(channel.name, at)[1:]
