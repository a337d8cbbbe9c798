"""Paths: what is copied past the nonlinearities against what goes through them, by step and by lag; open ReLU units."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.lag_norms import centre_of
from inspector.gui.panel.arranged import Arranged, is_very_wide, is_wide
from inspector.gui.panel.base import Panel, caption, chooser, measured, number, set_options
from inspector.gui.panel.exact import exact_at, or_why
from inspector.gui.panel.labelled import find_row, row_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.centred import is_centred, label_of
from inspector.gui.widgets.charts.curves import Curves
from inspector.gui.widgets.charts.lagplot import LagCurve, LagPlot
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.images.quantise import LOGARITHMIC
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plots.source import glance, overview_of
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
KINDS = ("path", "mask")
BY_LAG = (("statistic", "lag"), ("lag",))
EXACT = "exact; every start"
MOST_STEPS = 1000
"""Steps from which one cell of the image may represent several."""
MOST_ROWS = 128
"""Rows of a mask that are shown separately; more units are averaged, since of many units one is always open."""
PRODUCT = "product"
SPOKEN = 20
"""The lag in the title, where the sequence is long enough."""
NAMED = (1, 10, 100)
COLOURS = {"path/lag_direct": 0, "path/lag_difference": 1, "path/lag_whole": 3, "path/retention_band": 2}
"""Colours by lag: the direct path and the others have the same colours as in the plots by step."""
ROW, LEAST_ROW = 150, 125
"""Pixels of height that a plot needs in a column, and beside others."""
LOW = 300
"""Pixels of height of a figure below which the title over the lags has no numbers."""


@PANELS.register("paths")
class Paths(Panel):
    """Channels of kind "path" and "mask": over steps, over (step, unit), over lags, over (lag, unit)."""

    tab_order = 110
    menu_group = "gradients"
    key, title = "paths", "Paths"
    of_recurrences = True
    hint = (
        "What a step copies past its nonlinearities (an LSTM's carousel, a GRU's z) against what goes through them, "
        "and which units of a ReLU layer are open. Needs a gated layer, or a ReLU layer of torch (nn.RNN, nn.RNNCell)."
    )
    shows = ("paths", "masks", "paths/lag")

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Paths and masks by step or by lag."""
        wanted = (("step",), ("step", "unit"), ("lag", "unit"), *BY_LAG)
        return channel.kind in KINDS and channel.dims in wanted

    def concerns(self, name: str) -> bool:
        """Paths or masks that could not be computed."""
        return ":path" in name or ":mask" in name

    def build(self) -> None:
        """Norms, shares and masks over the steps; the curves by lag below."""
        self.figure.shrinks = True
        self.where = chooser([], "Place in the model")
        self.controls.addWidget(caption("Layer"))
        self.controls.addWidget(self.where)
        self.where.currentTextChanged.connect(self._chosen)
        self.norms = Curves(self.steps, self.theme, label="norm", log=True, one=True)
        self.open_units = MapRow(self.figure, 1, self.steps, self.theme, label="unit")
        self.shares = Curves(self.steps, self.theme, label="share", log=False)
        self.lags = LagPlot(self.theme, label=PRODUCT)
        self.figure.removeItem(self.open_units.bar)
        self.figure.removeItem(self.open_units.plot)
        self.plots = [self.norms.plot, self.open_units.plot, self.shares.plot, self.lags.plot]
        self.arranged = Arranged(self.figure, self.plots)
        self._shown: list[tuple[Any, int]] = []
        self._wide = 1
        self.steps.changed.connect(self._in_view)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for part in (self.norms, self.open_units, self.shares, self.lags):
            part.set_theme(theme)
        super().set_theme(theme)

    def _in_view(self, _low: float, _high: float) -> None:
        if self.state == "figure" and self.in_sight():
            self._draw_curves()

    def _chosen(self, place: str) -> None:
        self.looking.move(place=place)
        self.redraw()

    def shown(self, *dims: tuple[str, ...]) -> list[Channel]:
        """The channels of the chosen place over these axes, or over any."""
        here = [channel for channel in self.channels() if channel.place == self.where.currentText()]
        return [channel for channel in here if not dims or channel.dims in dims]

    def by_step(self, *, log: bool) -> list[Channel]:
        """Lines over the steps: the norms, or the shares."""
        return [channel for channel in self.shown(("step",)) if (channel.scale in LOGARITHMIC) is log]

    def update_contents(self) -> None:
        """Every plot that the chosen place has."""
        set_options(self.where, list(dict.fromkeys(channel.place for channel in self.channels())))
        self._draw_curves()
        mask = next(iter(self.shown(("step", "unit"))), None)
        if mask is not None:
            self._draw_mask(mask)
        self._draw_lags()
        rows = (
            (self.norms.plot, 3, bool(self.by_step(log=True))), (self.open_units.plot, 4, mask is not None),
            (self.shares.plot, 2, bool(self.by_step(log=False))), (self.lags.plot, 5, bool(self.shown(*BY_LAG))),
        )  # fmt: skip
        self._shown = self._with_room([(plot, stretch) for plot, stretch, there in rows if there])
        self._arrange()

    def _with_room(self, shown: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
        """The plots that have room in a figure of a size that was asked for, in their order: what is by lag first, then
        the norms; all of them elsewhere."""
        figure = self.figure
        if not figure.fixed:
            figure.left_out = ()
            return shown
        names = {
            self.lags.plot: "what is by lag", self.norms.plot: "the norms",
            self.open_units.plot: "which units are open", self.shares.plot: "the shares",
        }  # fmt: skip
        across, down = (2, LEAST_ROW) if is_wide(self.width(), self.height()) else (1, ROW)
        fitting = max(1, across * (figure.height() // down))
        there = [plot for plot, _ in shown]
        kept = [plot for plot in names if plot in there][:fitting]
        figure.left_out = tuple(name for plot, name in names.items() if plot in there and plot not in kept)
        return [(plot, stretch) for plot, stretch in shown if plot in kept]

    def _across(self) -> int:
        """How many columns the panel has room for."""
        size = (self.width(), self.height())
        return 3 if is_very_wide(*size) else 2 if is_wide(*size) else 1

    def _arrange(self) -> None:
        """Only the plots that show something take space: beside each other in a wide panel, else in a column."""
        shown = self._shown
        columns = min(self._across(), 3 if len(shown) > 3 else 2)
        if columns > 1 and len(shown) > 1:
            cells = {plot: (at % 2, at // 2, 1, 1) for at, (plot, _) in enumerate(shown[:4])}
            if len(shown) == 3:  # what is by lag stands alone in its column
                cells[shown[-1][0]] = (0, 1, 2, 1)
            elif columns == 3:  # and so does the map
                stacked = (self.norms.plot, self.shares.plot)
                alone = [plot for plot, _ in shown if plot not in stacked]
                cells = {plot: (at, 0, 1, 1) for at, plot in enumerate(stacked)}
                cells |= {plot: (0, at, 2, 1) for at, plot in enumerate(alone, 1)}
            self.figure.setMinimumHeight(2 * (LEAST_ROW if len(shown) == 3 or columns == 3 else ROW))
            self.arranged.place(cells, (1, 1), (1,) * columns)
            return
        self.figure.setMinimumHeight(ROW * len(shown))
        self.arranged.place({plot: (at, 0, 1, 1) for at, (plot, _) in enumerate(shown)}, [share for _, share in shown])

    def resizeEvent(self, event: Any) -> None:
        """A wide panel has two columns, or three."""
        super().resizeEvent(event)
        wide, self._wide = self._wide, self._across()
        if self._shown and self.state == "figure" and not self.over.on and wide != self._wide:
            self.draw_if_seen()  # the title over the lags has one line or two

    def _draw_curves(self) -> None:
        assert self.capture is not None
        for curves, log, title in (
            (self.norms, True, "norms, step by step"),
            (self.shares, False, "shares, step by step"),
        ):
            curves.plot.step_axis.set_names(self.step_names())
            curves.show(self.capture, self.by_step(log=log), self.frame, self.steps.bounds)
            curves.plot.set_title(f"{title}, {self.where.currentText()}")
        if not self.differs:
            self.shares.plot.vb.setYRange(0, 1, padding=0.05)

    def _draw_mask(self, channel: Channel) -> None:
        assert self.capture is not None
        steps, units = self.capture.extent(channel.name, self.frame)
        levels, nan, infinite = glance(self.capture, channel, self.frame)
        look = overview_of(self.capture, channel.name, self.frame)

        def shares(cut: tuple[int, int], cells: int) -> tuple[Array, Array]:
            seen = share_open(*look(cut, cells))
            return seen, seen

        self.open_units.show(
            shares, steps, units, levels, channel.unit,
            self.capture.revision(channel.name, self.frame), nan=nan, infinite=infinite,
            gaps=gaps_of(self.capture, channel.name, self.frame),
        )  # fmt: skip
        some = "; between: some of many" if steps > MOST_STEPS or units > MOST_ROWS else ""
        what = "red: open now and not before" if self.differs else f"bright: open{some}"
        self.open_units.plot.set_title(f"{channel.title} ({what}), {channel.place}")
        self.open_units.plot.step_axis.set_names(self.step_names())

    def _draw_lags(self) -> None:
        assert self.capture is not None
        found = [(channel, self.capture.array(channel.name, self.frame)) for channel in self.shown(*BY_LAG)]
        curves = []
        for channel, values in found:
            row, what = centre_of(channel.signal, channel.labels.get("statistic", ()))
            mean = values if values.ndim == 1 else values[row_of(channel, row)]
            edges = [None if self.differs else find_row(channel, name) for name in ("p10", "p90")]
            low, high = (None if row is None else values[row] for row in edges)  # ratios of quantiles are not a band
            said = what if values.ndim > 1 else ""
            colour = COLOURS.get(channel.signal)
            curves.append(LagCurve(channel.title, mean, low, high, colour, said, channel.name))
        shown = [channel for channel, _ in found]
        self.lags.show(curves, centred=is_centred(shown))
        self.lags.plot.label_left(label_of(shown, PRODUCT))
        self._mark_unit(self.looking.position.unit)
        if curves:
            estimated = any(not channel.method.startswith("exact") for channel, _ in found)
            told = self.sentence(curves) + (" (estimated)" if estimated else "")
            if self.figure.fixed and self.height() < LOW:  # its numbers would take the height of the curves
                told = told.partition(",")[0] + (", estimated" if estimated else "")
            first, comma, second = told.partition(" on, ")
            beside = is_wide(self.width(), self.height()) and bool(comma)
            self.lags.plot.set_title(*((f"{first} on,", second) if beside else (told,)))

    def sentence(self, curves: list[LagCurve]) -> str:
        """A summary of the first curves at one lag."""
        lag = min(SPOKEN, *(len(one.mean) - 1 for one in curves))
        said = ", ".join(f"{one.title} {_in_title(one.mean[lag])}" for one in curves[:3])
        unit = ", ×" if self.differs else ""
        what = f"{curves[0].statistic} over starts, " if curves[0].statistic else ""
        return f"{self.where.currentText()}: {what}{lag} step{'' if lag == 1 else 's'} on{unit}, {said}"

    def mask_state(self, value: Any) -> str:
        """Whether a unit is open, or how an edit changed it, as text."""
        if isinstance(value, str) or np.isnan(value):
            return number(value)
        if self.differs:
            return {1.0: "opened", -1.0: "closed by the edit"}.get(float(value), "unchanged")
        return "open" if value else "closed"

    def _retention(self, unit: int | None) -> Array | None:
        """The (lag,) curve of one unit, or None."""
        channel = next(iter(self.shown(("lag", "unit"))), None)
        if channel is None or unit is None or self.capture is None:
            return None
        if unit >= self.capture.extent(channel.name, self.frame)[1]:
            return None
        return self.capture.block(channel.name, self.frame, (slice(None), slice(unit, unit + 1)))[:, 0]

    def _mark_unit(self, unit: int | None) -> None:
        self.lags.mark(self._retention(unit), f"unit {unit}")
        self.open_units.show_row(unit)

    def follow(self, new: Position, old: Position) -> None:
        """Another place shows its paths; another unit its own retention."""
        if new.place != old.place and self.where.findText(new.place) >= 0:
            self.where.setCurrentText(new.place)
        self._mark_unit(new.unit)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step and, over the mask, the unit under the mouse; over the lags one is marked."""
        if plot is self.lags.plot:
            self.marked.set(plot, max(0, round(x)))
            return
        changes: dict[str, Any] = {"step": round(x), "place": self.where.currentText()}
        mask = next(iter(self.shown(("step", "unit"))), None)
        if plot is self.open_units.plot and mask is not None and self.capture is not None:
            units = self.capture.extent(mask.name, self.frame)[1]
            changes["unit"] = min(max(0, round(y)), units - 1)
        self.looking.move(**changes)

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The paths of the step, whether the unit is open there, and what the unit retains over some lags."""
        rows = self._at_lag()
        step, unit = position.step, position.unit
        if self.capture is None or step is None:
            return rows
        for channel in self.shown(("step",), ("step", "unit")):
            extent = self.capture.extent(channel.name, self.frame)
            if step >= extent[0]:
                continue
            if len(extent) == 1:
                value = exact_at(self.capture, channel.name, self.frame, step)
                rows.append((f"{channel.title} [{step}]", measured(value, channel.unit)))
            elif unit is not None and unit < extent[1]:
                value = exact_at(self.capture, channel.name, self.frame, step, unit)
                rows.append((f"unit {unit} [{step}]", self.mask_state(value)))
        kept = next(iter(self.shown(("lag", "unit"))), None)
        if kept is not None and unit is not None and self._retention(unit) is not None:
            for lag in (lag for lag in NAMED if lag < self.capture.extent(kept.name, self.frame)[0]):
                value = exact_at(self.capture, kept.name, self.frame, lag, unit)
                rows.append((f"unit {unit} keeps over {lag} step{'' if lag == 1 else 's'}", number(value)))
        thinned = [channel for channel in self.shown(*BY_LAG) if not channel.method.startswith(EXACT)]
        return rows + [(f"{channel.title}, how", channel.method) for channel in thinned[:2]]

    def _at_lag(self) -> list[tuple[str, str]]:
        """Every curve by lag, at the lag that is marked."""
        curves = self.lags.curves
        lag = self.marked.at(self.lags.plot, max((len(one.mean) for one in curves), default=0))
        if self.capture is None or lag is None:
            return []
        there = [(one, one.mean[lag]) for one in curves if lag < len(one.mean)]
        told = [(one, or_why(value, self.capture, one.name, self.frame)) for one, value in there]
        return [
            (f"{one.title}{f', {one.statistic}' if one.statistic else ''} [lag {lag}]", number(value))
            for one, value in told
        ]

    def data(self) -> dict[str, Array]:
        """Everything of the chosen place."""
        assert self.capture is not None
        return {channel.name: self.capture.array(channel.name, self.frame) for channel in self.shown()}


def share_open(low: Array, high: Array) -> Array:
    """From minima and maxima of cells (step, unit): 0 all closed, 1 all open, between for some; NaN stays."""
    middle = (low.astype(np.float32) + high.astype(np.float32)) / 2
    units = middle.shape[1]
    if units <= MOST_ROWS:
        return middle
    edges = np.arange(MOST_ROWS + 1) * units // MOST_ROWS
    averaged: Array = np.add.reduceat(middle, edges[:-1], axis=1) / np.diff(edges)
    return averaged


def _in_title(value: float) -> str:
    """A number with two digits, or that it is not known."""
    return "not known" if np.isnan(value) else short(value, 2)
