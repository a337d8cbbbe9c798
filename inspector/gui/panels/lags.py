"""Lags: how much a change of the state changes it so many steps later, over all starts (median, band, mean, horizon,
dead starts), and the map by start."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.analysis.lag_norms import centre_of, lag_verdict
from inspector.gui.panel.arranged import Arranged
from inspector.gui.panel.base import Panel, measured, number, set_options
from inspector.gui.panel.channel_choice import chosen, offer_channels
from inspector.gui.panel.exact import exact, exact_at
from inspector.gui.panel.labelled import find_row, row_of, rows_of, scalar_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.centred import about_zero, is_centred, label_of
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.images.quantise import levels_of
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.plots.axes import LogAxis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.source import of_the_other
from inspector.gui.widgets.plots.stepplot import StepPlot, curve, logarithm
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
FLOOR = -300.0
LEAST_ROW = 200
"""Pixels of height that the plots need beside each other."""
BESIDE_ONE, LEAST_DECADES = 0.05, 0.5
"""Decades that are seen at least to both sides of the line 1, and in all."""
MOST_STARTS = 8
"""Rows of a map that are named on its axis."""
NORM = "norm of the product"
KERNEL = "scan/kernel"
"""Signal of the kernel of a long convolution: its table is over channels and has no horizon."""
TABLE, DEAD = ("statistic", "lag"), ("lag",)
"""Axes of the norms over the starts, and of the share of starts whose product is exactly 0."""


@PANELS.register("lags")
class Lags(Panel):
    """(statistic, lag) channels as lines with a band, (lag,) ones in words; two-axis channels of kind "map" below."""

    tab_order = 100
    menu_group = "gradients"
    key, title = "lags", "Lags"
    of_recurrences = True
    hint = "Norms of products of step Jacobians by lag: how far back a state has an effect. Needs a recurrent layer."
    shows = ("jacobian/lag", "gradient/lag_map", "scans")
    needs_height = 320

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Curves by lag, and maps over (start, lag) or (step, source)."""
        return (channel.kind == "lag" and channel.dims in (TABLE, DEAD)) or (
            channel.kind == "map" and len(channel.dims) == 2
        )

    def concerns(self, name: str) -> bool:
        """Products or maps that could not be computed."""
        return "jacobian/lag" in name or "gradient/lag" in name

    def build(self) -> None:
        """The curve above the map."""
        self.figure.shrinks = True
        self.where = self.add_choice("Layer", "Place in the model")
        self.which = self.add_choice("Map", "Which map")
        self.plot = StepPlot(None, self.theme, label=NORM, bottom="lag in steps")
        self.plot.setAxisItems({"left": LogAxis()})
        self.plot.getAxis("left").setWidth(58)
        self.centre, self.mean = curve(self.theme, 0, width=1.8), curve(self.theme, 1, width=1.0)
        self.low, self.high = curve(self.theme, 0, width=0.6), curve(self.theme, 0, width=0.6)
        self.band = pg.FillBetweenItem(self.low, self.high)
        self.horizon = pg.InfiniteLine(angle=90)
        self.one = pg.InfiniteLine(0, angle=0)
        for item in (self.band, self.low, self.high, self.mean, self.centre):
            self.plot.addItem(item)
        for item in (self.one, self.horizon):
            self.plot.addItem(item, ignoreBounds=True)
        self.legend = Legend(self.plot)
        self.figure.addItem(self.plot, row=0, col=0)
        self.row = MapRow(self.figure, 1, None, self.theme, label="start", bottom="lag in steps")
        self.row.map.setFlag(self.row.map.GraphicsItemFlag.ItemUsesExtendedStyleOption)
        self.plots = [self.plot, self.row.plot]
        self.arranged = Arranged(self.figure, [self.plot, self.row.plot, self.row.bar])

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.row.set_theme(theme)
        self.centre.setPen(pg.mkPen(theme.series[0], width=1.8))
        self.mean.setPen(pg.mkPen(theme.series[1], width=1.0, style=pg.QtCore.Qt.PenStyle.DashLine))
        self.legend.set_theme(theme)
        for edge in (self.low, self.high):
            edge.setPen(pg.mkPen(theme.series[0] + "60", width=0.6))
        self.band.setBrush(pg.mkBrush(theme.series[0] + "38"))
        self.horizon.setPen(pg.mkPen(theme.cursor, width=1, style=pg.QtCore.Qt.PenStyle.DashLine))
        self.one.setPen(pg.mkPen(theme.muted, width=1, style=pg.QtCore.Qt.PenStyle.DashLine))
        super().set_theme(theme)

    def of_kind(self, kind: str) -> list[Channel]:
        """Channels of the chosen place and a kind."""
        own = [c for c in self.channels() if c.kind == kind and c.place == self.where.currentText()]
        return sorted(own, key=lambda channel: channel.signal == KERNEL)  # products first, where there are both

    def tables(self) -> list[Channel]:
        """Norms over the starts, of the chosen place."""
        return [channel for channel in self.of_kind("lag") if channel.dims == TABLE]

    def dead(self) -> Channel | None:
        """The share of dead starts of the chosen place; None in a difference of runs and in older captures."""
        return next((c for c in self.of_kind("lag") if c.dims == DEAD and not self.differs), None)

    def update_contents(self) -> None:
        """Curve and map of the chosen place."""
        set_options(self.where, list(dict.fromkeys(channel.place for channel in self.channels())))
        maps = self.of_kind("map")
        offer_channels(self.which, maps)
        self._draw_curve(next(iter(self.tables()), None))
        self._draw_map(self.map_shown())
        self._arrange()

    def _arrange(self) -> None:
        """In a wide panel the map stands beside the curve."""
        curve_there, map_there = bool(self.tables()), self.map_shown() is not None
        self.arranged.place_two(
            (self.width(), self.height()), [self.plot] if curve_there else [],
            [self.row.plot, self.row.bar] if map_there else [], (LEAST_ROW, self.needs_height),
            (3, 2), named="the map",
        )  # fmt: skip

    def resizeEvent(self, event: Any) -> None:
        """Another form of the panel: another layout."""
        super().resizeEvent(event)
        if self.state == "figure" and not self.over.on:
            self._arrange()

    def _draw_curve(self, channel: Channel | None) -> None:
        assert self.capture is not None
        if channel is None:
            return
        norms = self.capture.array(channel.name, self.frame)
        values = np.clip(logarithm(norms), FLOOR, -FLOOR)
        lag = np.arange(values.shape[1])
        beyond = np.where(np.isposinf(norms), -FLOOR, values)  # infinite values leave the plot at its top
        name, what = centre_of(channel.signal, channel.labels.get("statistic", ()))
        middle = values[row_of(channel, name)]
        rows = [find_row(channel, wanted) for wanted in (name, "mean" if name != "mean" else "", "p10", "p90")]
        drawn = np.where(norms == 0, FLOOR, beyond)  # the band goes down to a quantile of 0; a line ends there
        for item, row, data in zip(
            (self.centre, self.mean, self.low, self.high), rows, (beyond, beyond, drawn, drawn), strict=True
        ):
            item.setData(*((lag, data[row]) if row is not None else ([], [])))
        edges = rows[2:]
        for item in (self.band, self.low, self.high):
            item.setVisible(not self.differs and None not in edges)  # ratios of quantiles are not a band
        over = "channels" if channel.signal == KERNEL else "starts"
        self._name_curves(f"{what} over {over}", mean=rows[1] is not None, band=not self.differs and None not in edges)
        self._fit(values, middle, centred=is_centred([channel]))
        self.plot.label_left(label_of([channel], "|k|" if channel.signal == KERNEL else NORM))
        self.plot.vb.setXRange(-0.5, max(1, values.shape[1] - 1) + 0.5, padding=0)  # as the columns of the map below
        horizon = self.horizon_of(channel)
        self.horizon.setVisible(math.isfinite(horizon))
        if math.isfinite(horizon):
            self.horizon.setPos(horizon)
        self.plot.set_title(self.sentence(channel, middle, horizon), "" if self.differs else channel.method)

    def _name_curves(self, centre: str, *, mean: bool, band: bool) -> None:
        """The legend: which line is which statistic; `centre` is that of the middle one."""
        self.legend.clear()
        shown = (
            (self.centre, centre, True),
            (self.mean, "arithmetic mean", mean),
            (self.low, "p10 to p90", band),
        )
        for item, name, there in shown:
            if there:
                self.legend.addItem(item, name, *((self.high, self.band) if item is self.low else ()))

    def _fit(self, values: Array, middle: Array, *, centred: bool) -> None:
        """All of the median in view, and its band as far as it is not far below; `centred` has 1 in the middle."""
        finite, mean = values[np.isfinite(values)], middle[np.isfinite(middle)]
        if len(finite):
            lowest = float(mean.min()) - 2 if len(mean) else -math.inf
            bottom, top = min(max(float(finite.min()), lowest), -BESIDE_ONE), max(float(finite.max()), BESIDE_ONE)
            lacking = max(0.0, LEAST_DECADES - (top - bottom)) / 2
            bottom, top = bottom - lacking, top + lacking
            self.plot.vb.setYRange(*(about_zero(bottom, top) if centred else (bottom, top)), padding=0.04)

    def horizon_of(self, channel: Channel) -> float:
        """The lag at which the median passes 10⁻³ or 10³ (in older captures the geometric mean); NaN if it does not."""
        assert self.capture is not None
        if self.differs or channel.signal == KERNEL:
            return math.nan  # a ratio of two runs has none
        wanted = f"{channel.place}:jacobian/lag_horizon"
        return scalar_of(self.capture, wanted, channel.name, self.frame)

    def sentence(self, channel: Channel, middle: Array, horizon: float) -> str:
        """A summary of the curve; `middle` are logarithms."""
        if self.differs or channel.signal == KERNEL:
            return f"{channel.place}: {channel.title}"
        assert self.capture is not None
        _, what = centre_of(channel.signal, channel.labels.get("statistic", ()))
        dead = self.dead()
        shares = None if dead is None else self.capture.array(dead.name, self.frame)
        return f"{channel.place}: {lag_verdict(middle, horizon, what, shares).sentence}"

    def _draw_map(self, channel: Channel | None) -> None:
        if channel is None:
            return
        assert self.capture is not None
        values = self.capture.array(channel.name, self.frame)
        both = np.concatenate((values.reshape(-1), of_the_other(self.capture, channel)))
        levels = replace(levels_of(both, channel.scale, channel.limits), masked=True)
        shown = np.array(values, dtype=np.float64)
        if channel.dims == ("step", "source"):
            shown[np.triu(np.ones(shown.shape, dtype=bool), 1)] = -np.inf  # later steps have no effect on earlier ones
        elif channel.dims == ("start", "lag"):
            shown[np.isnan(shown) & self._beyond(channel, shown.shape)] = -np.inf
        gaps = gaps_of(self.capture, channel.name, self.frame, x=1, y=0)
        self.row.show_array(shown.T, levels, channel.unit, gaps=gaps)
        self._name_rows(channel)
        self.row.plot.setLabel("left", channel.dims[0])
        self.row.plot.setLabel(
            "bottom", {"lag": "lag in steps", "source": "source step"}.get(channel.dims[1], channel.dims[1])
        )
        self.row.plot.set_title(channel.title)
        self.row.plot.step_axis.set_names(self.step_names() if channel.dims[1] == "source" else ())

    def _name_rows(self, channel: Channel) -> None:
        """Not every step may be a start: rows are labelled with their steps, not with their numbers."""
        starts = self._starts(channel) if channel.dims == ("start", "lag") else []
        every = max(1, -(-len(starts) // MOST_STARTS))
        ticks = [[(row, str(starts[row])) for row in range(0, len(starts), every)]]
        self.row.plot.getAxis("left").setTicks(ticks if starts else None)

    def _beyond(self, channel: Channel, shape: tuple[int, int]) -> npt.NDArray[np.bool_]:
        """(start, lag) True where the sequence ends before the lag: no value exists there, which is not a NaN."""
        starts = np.array(self._starts(channel))
        last = self.steps.length - 1
        room = starts if channel.place.endswith(".reverse") else last - starts
        return np.arange(shape[1])[None, :] > room[: shape[0], None]

    # -- cursor and readout

    def _starts(self, channel: Channel) -> list[int]:
        """The steps at which the rows of a (start, lag) map start."""
        assert self.capture is not None
        names = channel.labels.get("start", ())
        return [int(name) for name in names] or list(range(self.capture.extent(channel.name, self.frame)[0]))

    def _steps_of(self, channel: Channel, row: int, column: int) -> tuple[int, int]:
        """(step of the effect, step of the change) of an entry of a map."""
        if channel.dims != ("start", "lag"):
            return row, column
        start = self._starts(channel)[row]
        return (start - column if channel.place.endswith(".reverse") else start + column), start

    def _entry_of(self, channel: Channel, position: Position) -> tuple[int, int] | None:
        """(row, column) of a map at the step and the source step of the cursor, or None."""
        step, source = position.step, position.key
        if step is None or source is None or self.capture is None:
            return None
        row, column = step, source
        if channel.dims == ("start", "lag"):
            starts = self._starts(channel)
            row = starts.index(source) if source in starts else -1
            column = source - step if channel.place.endswith(".reverse") else step - source
        rows, columns = self.capture.extent(channel.name, self.frame)
        return (row, column) if 0 <= row < rows and 0 <= column < columns else None

    def map_shown(self) -> Channel | None:
        """The map that is drawn."""
        return chosen(self.which, self.of_kind("map"))

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """Over the curve a lag is marked; over the map the cursor goes to the step of the effect and of the change."""
        if plot is self.plot:
            self.marked.set(plot, max(0, round(x)))
            return
        channel = self.map_shown()
        if channel is None or self.capture is None:
            return
        rows, columns = self.capture.extent(channel.name, self.frame)
        step, source = self._steps_of(channel, min(max(0, round(y)), rows - 1), min(max(0, round(x)), columns - 1))
        if 0 <= step < max(1, self.steps.length):  # beyond the end of the sequence there is nothing
            self.looking.move(step=step, key=source, place=channel.place)

    def follow(self, new: Position, old: Position) -> None:
        """A chosen place follows the cursor's place; the entry of the map is marked."""
        if new.place != old.place and self.where.findText(new.place) >= 0:
            self.where.setCurrentText(new.place)
        channel = self.map_shown()
        row, column = (None if channel is None else self._entry_of(channel, new)) or (None, None)
        self.row.show_row(row)
        self.row.plot.show_cursor(column)

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The entry of the map at the cursor, the curve at the lag that is marked, and the horizon."""
        rows: list[tuple[str, str]] = []
        channel = self.map_shown()
        entry = None if channel is None else self._entry_of(channel, position)
        if channel is not None and entry is not None and self.capture is not None:
            value = exact_at(self.capture, channel.name, self.frame, *entry)
            where = f"[{position.step}, from {position.key}]"
            rows.append((f"{channel.title} {where}  {channel.place}", measured(value, channel.unit)))
        for channel in self.tables():
            rows += self._at_lag(channel)
        for channel in self.tables() if not self.differs else ():
            horizon = self.horizon_of(channel)
            name, what = centre_of(channel.signal, channel.labels.get("statistic", ()))
            told = number(horizon) if math.isfinite(horizon) else self._why_no_horizon(channel, name)
            rows.append((f"lag horizon in steps, by the {what}  {channel.place}", told))
        return rows

    def _why_no_horizon(self, channel: Channel, centre: str) -> str:
        """The median stays within its bounds at every lag, or is not known at one."""
        assert self.capture is not None
        (middle,) = rows_of(channel, self.capture.array(channel.name, self.frame), centre)
        return "not known" if np.isnan(np.ma.filled(middle.astype(np.float64), np.nan)).any() else "not reached"

    def _at_lag(self, channel: Channel) -> list[tuple[str, str]]:
        """Every statistic over the starts, and the share of dead ones, at the lag that is marked."""
        assert self.capture is not None
        lag = self.marked.at(self.plot, self.capture.extent(channel.name, self.frame)[1])
        if lag is None:
            return []
        values = exact(self.capture, channel.name, self.frame, (slice(None), slice(lag, lag + 1)))[:, 0]
        centre, what = centre_of(channel.signal, channel.labels.get("statistic", ()))
        words = {centre: what, "mean": "arithmetic mean"} if centre == "median" else {centre: what}
        rows = [
            (f"{channel.title}, {words.get(name, name)} [lag {lag}]", measured(value, channel.unit))
            for name, value in zip(channel.labels.get("statistic", ()), values, strict=False)
        ]
        dead = self.dead()
        if dead is not None:
            rows.append((f"{dead.title} [lag {lag}]", number(exact_at(self.capture, dead.name, self.frame, lag))))
        return rows

    def data(self) -> dict[str, Array]:
        """Curve and map of the chosen place."""
        assert self.capture is not None
        drawn = self.map_shown()
        shown = [*self.of_kind("lag"), *([] if drawn is None else [drawn])]
        return {channel.name: self.capture.array(channel.name, self.frame) for channel in shown}
