"""Clipping: the gradient of every parameter, and the effect of a threshold that can be dragged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import Qt

from inspector.analysis.clipping import clipped_steps, clipping_verdict
from inspector.capture import series
from inspector.gui.panel.arranged import LEAST_BESIDE, Arranged, is_very_wide
from inspector.gui.panel.base import Panel, measured, number
from inspector.gui.panel.clipping_words import effect_in_words, not_finite_in_words
from inspector.gui.panel.exact import or_why
from inspector.gui.panel.labelled import coordinates, rows_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.plots.axes import LogAxis, StepAxis, style_axis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve, decimated, logarithm
from inspector.gui.widgets.theme import Theme
from inspector.records import ITERATION_DOMAIN, Channel

Array = npt.NDArray[Any]
NORMS, BY_VALUE, HISTORY = ("statistic", "parameter"), ("statistic", "bin"), ("statistic", "iteration")
ROWS: dict[tuple[str, ...], tuple[str, ...]] = {
    NORMS: ("norm", "largest"), BY_VALUE: ("threshold", "share cut", "cosine"),
}  # fmt: skip
"""The statistics that are read of each table, in the order in which they are used here."""
SHOWN = ("factor min(1, c / ‖g‖)", "cosine, cut by value", "share cut by value")
CELLS = 1200
EDGE, UNLIMITED = 4, 16_777_215.0
"""Pixels around a figure; a height that does not bound."""
NAME, ABOVE_NAMES, MOST_NAMES = 14, 120, 60
"""Pixels for a parameter's name and for all the rest; the number of names above which they become numbers."""
LEAST_WIDTH, LEAST_HEIGHT = 480, 270
"""Pixels of a figure that cannot scroll in which there is room for the parameters, and for the training."""
FARTHEST = 30.0
"""Decades from 1 to which a threshold can be dragged."""


@PANELS.register("clipping")
class Clipping(Panel):
    """Channels of kind "clipping": norms by parameter, the table by threshold, and the norms of training."""

    tab_order = 170
    menu_group = "gradients"
    key, title = "clipping", "Clipping"
    hint = (
        "The gradient of every parameter and the effect of clipping it, by norm or by value, in this run. The model "
        "needs a loss for it; the share of clipped training steps needs a history.json beside the checkpoint."
    )
    shows = ("clipping",)
    needs_height = 280

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Norms, thresholds and history."""
        return channel.kind == "clipping" and channel.dims in (NORMS, BY_VALUE, HISTORY)

    def concerns(self, name: str) -> bool:
        """Gradients of parameters that could not be computed."""
        return ":clipping" in name

    def build(self) -> None:
        """The effect of a threshold; the norms of training; the parameters."""
        self.threshold = math.nan
        self._make_plots()
        self._make_marks()
        self.legends = [
            Legend(self.effect, self.lines, SHOWN),
            Legend(self.parameters, [*self.dots, self.dash], ("norm", "largest entry", "norm of all")),
        ]
        self.arranged = Arranged(self.figure, [self.effect, self.history, self.parameters])
        self._very = False
        self.plots = [self.effect, self.history, self.parameters]

    def _arrange(self, noted: bool, by_parameter: bool) -> None:
        """The two on the left above each other, or, in a very wide panel, beside each other."""
        self._very = is_very_wide(self.width(), self.height())
        cells = {self.effect: (0, 0, 1, 1)}
        if noted:
            cells[self.history] = (0, 1, 1, 1) if self._very else (1, 0, 1, 1)
        beside = self._very and noted
        if by_parameter:
            cells[self.parameters] = (0, 2, 1, 1) if beside else (0, 1, 2 if noted else 1, 1)
        columns = (4, 4, 5) if beside else (3, 2 if by_parameter else 0, 0)
        if self.arranged.place(cells, (1,) if beside or not noted else (1, 1), columns):
            for column, share in enumerate(columns):
                self.figure.ci.layout.setColumnPreferredWidth(column, 100 * share)
        self._keep_in_sight()

    def _keep_in_sight(self) -> None:
        """Many parameters make the figure higher than the panel: what stands beside them is not, and is not scrolled
        away with its axis."""
        room = float(max(LEAST_BESIDE, self.height() - 2 * EDGE))
        for plot in (self.effect, self.history):
            plot.setMaximumHeight(room if self._very else UNLIMITED)
            self.figure.ci.layout.setAlignment(plot, Qt.AlignmentFlag.AlignTop)

    def resizeEvent(self, event: Any) -> None:
        """Another form of the panel: another layout."""
        super().resizeEvent(event)
        if self.state == "figure" and not self.over.on:
            if self._very != is_very_wide(self.width(), self.height()):
                self.draw_if_seen()
            else:
                self._keep_in_sight()

    def _make_plots(self) -> None:
        """The three plots and their curves and dots."""
        self.effect = StepPlot(None, self.theme, label="after clipping", bottom="threshold c (drag the line)", log=True)
        self.history = StepPlot(None, self.theme, label="‖g‖", bottom=ITERATION_DOMAIN)
        self.history.setAxisItems({"left": LogAxis()})
        self.history.getAxis("left").setWidth(58)
        self.parameters = StepPlot(None, self.theme, bottom="gradient", log=True)
        self.name_axis = StepAxis("left")
        self.name_axis.longest = 30
        self.parameters.setAxisItems({"left": self.name_axis})
        self.parameters.invertY(True)
        self.lines = [curve(self.theme, n, width=1.8) for n in range(3)]
        self.noted = curve(self.theme, 0, width=1.0)
        self.dots = [pg.ScatterPlotItem(size=8, symbol=symbol, pen=None) for symbol in ("o", "t")]
        self.broken = pg.ScatterPlotItem(size=11, symbol="x", pen=None)
        drawn = ((self.effect, self.lines), (self.history, [self.noted]), (self.parameters, [*self.dots, self.broken]))
        for plot, items in drawn:
            for item in items:
                plot.addItem(item)

    def _make_marks(self) -> None:
        """The threshold in two plots, where it can be dragged, and the norm of all gradients together."""
        self.line = pg.InfiniteLine(angle=90, movable=True)
        self.level = pg.InfiniteLine(angle=0, movable=True)
        self.global_norm, self.dash = pg.InfiniteLine(angle=90), pg.PlotDataItem()
        self.row_line = pg.InfiniteLine(angle=0)
        self.row_line.hide()
        self.parameters.addItem(self.row_line, ignoreBounds=True)
        for plot, mark in ((self.effect, self.line), (self.history, self.level), (self.parameters, self.global_norm)):
            mark.setZValue(60)
            plot.addItem(mark, ignoreBounds=True)
        for mark in (self.line, self.level):
            mark.setCursor(Qt.CursorShape.SizeHorCursor if mark is self.line else Qt.CursorShape.SizeVerCursor)
            mark.sigPositionChanged.connect(self._dragged)
            mark.sigPositionChangeFinished.connect(self.redraw)

    def reset(self) -> None:
        """Another model has another threshold."""
        self.row_line.hide()
        if not self.same_model:
            self.threshold = math.nan

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        super().set_theme(theme)
        style_axis(self.history.getAxis("left"), theme, "‖g‖")
        style_axis(self.name_axis, theme)
        for n, line in enumerate(self.lines):
            line.setPen(pg.mkPen(theme.series[n], width=1.8))
        self.noted.setPen(pg.mkPen(theme.series[3], width=1.0))
        for dots, colour in zip(self.dots, (theme.series[0], theme.series[1]), strict=True):
            dots.setBrush(pg.mkBrush(colour))
        self.broken.setBrush(pg.mkBrush(theme.error))
        for mark in (self.line, self.level):
            mark.setPen(pg.mkPen(theme.cursor, width=2))
            mark.setHoverPen(pg.mkPen(theme.cursor, width=4))
        self.row_line.setPen(pg.mkPen(theme.cursor, width=1))
        for dashed in (self.global_norm, self.dash):
            dashed.setPen(pg.mkPen(theme.muted, width=1, style=Qt.PenStyle.DashLine))
        for legend in self.legends:
            legend.set_theme(theme)

    def of_dims(self, dims: tuple[str, ...]) -> Channel | None:
        """The channel with these dims."""
        return next((channel for channel in self.channels() if channel.dims == dims), None)

    def values(self, dims: tuple[str, ...]) -> Array | None:
        """The rows of `ROWS` of its numbers in the frame that is shown, or None."""
        channel = self.of_dims(dims)
        if channel is None or self.capture is None:
            return None
        return np.stack(rows_of(channel, self.capture.array(channel.name, self.frame), *ROWS[dims]))

    def scalar(self, signal: str) -> float:
        """A number of this frame, "gradient_norm" for example; NaN where there is none."""
        assert self.capture is not None
        frame = max((self.capture.frame_of(c.name, self.frame) for c in self.channels()), default=-1)
        wanted = f"clipping/{signal}"
        return next((s.value for s in self.capture.scalars if s.name.endswith(wanted) and s.frame == frame), math.nan)

    def noted_norms(self) -> Array | None:
        """(2, n) iteration and gradient norm: of training itself, else of the frames of this capture."""
        channel = self.of_dims(HISTORY)
        if channel is not None and self.capture is not None:
            numbers, found = series(self.capture, channel, self.frame)
            return np.stack((numbers, found["gradient norm"]))
        if self.capture is None:
            return None
        steps = {frame.index: frame.step if frame.step is not None else frame.index for frame in self.capture.frames}
        by_frame = [
            (steps[s.frame], s.value)
            for s in self.capture.scalars
            if s.name.endswith("/gradient_norm") and s.frame in steps
        ]
        return np.array(sorted(by_frame)).T if len(by_frame) > 1 else None

    def update_contents(self) -> None:
        """Everything, with the threshold that training used, or 1, at first."""
        if not math.isfinite(self.threshold):
            used = self.scalar("used")
            self.threshold = used if math.isfinite(used) and used > 0 else 1.0
        table, noted, norms = self.values(BY_VALUE), self.noted_norms(), self.values(NORMS)
        lost = table is None and bool(self.not_finite())
        noted, norms = self._with_room(noted, norms)
        self._arrange(noted is not None, norms is not None)
        for plot, shown in ((self.effect, table is not None or lost), (self.history, noted), (self.parameters, norms)):
            plot.setVisible(shown is not None and shown is not False)
        if lost:
            for line in self.lines:
                line.setData([], [])
        if table is not None:
            self._draw_effect(table)
        if noted is not None:
            self._draw_history(noted)
        if norms is not None:
            self._draw_parameters(norms)
        self.set_threshold(self.threshold)

    def _with_room(self, noted: Array | None, norms: Array | None) -> tuple[Array | None, Array | None]:
        """The norms of training and of parameters, without those that have no room in a figure of a size that was
        asked for."""
        low, slim = self.height() < LEAST_HEIGHT, self.width() < LEAST_WIDTH
        lacking = {
            "the norms of the training": low and noted is not None,
            "the gradient by parameter": (low or slim) and norms is not None,
        }
        out = self.figure.left_out = tuple(what for what, gone in lacking.items() if gone and self.figure.fixed)
        history, parameters = (what in out for what in lacking)
        return (None if history else noted), (None if parameters else norms)

    def _draw_effect(self, table: Array) -> None:
        norm = self.scalar("gradient_norm")
        known = table[0][np.isfinite(table[0]) & (table[0] > 0)]
        high = math.log10(max(norm if math.isfinite(norm) else 0.0, self.threshold)) + 0.5
        low = min(*(math.log10(value) - 4 for value in known[-1:]), math.log10(self.threshold) - 0.5, high - 1)
        x = np.linspace(low, high, 400)
        self.lines[0].setData(x, np.minimum(1.0, 10**x / norm) if norm > 0 else np.ones_like(x))
        thresholds = logarithm(table[0])
        for line, row, end in ((self.lines[1], table[2], 1.0), (self.lines[2], table[1], 0.0)):
            line.setData(np.append(thresholds, high), np.append(row, end))
        self.effect.vb.setXRange(low, high, padding=0)
        self.effect.vb.setYRange(-0.04, 1.06, padding=0)

    def _draw_history(self, noted: Array) -> None:
        noted = noted[:, np.isfinite(noted[0])]
        if not noted.size:
            self.noted.setData([], [])
            return
        y = logarithm(noted[1])
        if noted.shape[1] > 2 * CELLS:
            starts = np.linspace(0, noted.shape[1], CELLS, endpoint=False).astype(int)
            low, high = (how.reduceat(y, starts) for how in (np.fmin, np.fmax))
            width = (noted[0, -1] - noted[0, 0]) / CELLS
            self.noted.setData(*decimated(low, high, float(noted[0, 0]), width))
        else:
            self.noted.setData(noted[0], y)
        finite = np.append(y[np.isfinite(y)], math.log10(self.threshold))
        self.history.vb.setYRange(float(finite.min()) - 0.2, float(finite.max()) + 0.2, padding=0)
        self.history.vb.setXRange(float(noted[0, 0]), max(float(noted[0, -1]), float(noted[0, 0]) + 1), padding=0.01)

    def _draw_parameters(self, norms: Array) -> None:
        place = np.arange(norms.shape[1])
        sizes = [logarithm(row) for row in norms]
        for dots, x in zip(self.dots, sizes, strict=True):
            seen = np.isfinite(x)
            dots.setData(x=x[seen], y=place[seen])
        broken = self.not_finite()
        norm = self.scalar("gradient_norm")
        whole = logarithm(np.array([norm]))[0]
        self.global_norm.setVisible(bool(np.isfinite(whole)))
        self.global_norm.setPos(whole if np.isfinite(whole) else 0.0)
        every = np.concatenate((*sizes, [whole]))
        every = every[np.isfinite(every)]
        low, high = (float(every.min()), float(every.max())) if len(every) else (-1.0, 0.0)
        self.parameters.vb.setXRange(low - 0.3, high + 0.3, padding=0)
        self.broken.setData(x=np.full(len(broken), high + 0.15), y=np.array(broken, dtype=float))
        self.parameters.vb.setYRange(-0.6, max(1, len(place)) - 0.4, padding=0)
        names = self.names()
        self.name_axis.set_names(names)
        needed = max(self.needs_height, ABOVE_NAMES + NAME * min(MOST_NAMES, len(names)))
        self.figure.setMinimumHeight(needed)
        shown = max((min(len(name), self.name_axis.longest) for name in names), default=4)
        self.name_axis.setWidth(20 + 6.5 * shown)
        terms = self.scalar("loss_terms")
        over = f"mean over {terms:,.0f} loss{'' if terms == 1 else 'es'}" if math.isfinite(terms) else "mean loss"
        lost = f"× NaN or infinite: {len(broken)} of {len(place)}; " if broken else ""
        self.parameters.set_title("gradient by parameter", f"{lost}{over}")

    def not_finite(self) -> list[int]:
        """The parameters, by number, whose gradient has NaN or infinity in this run; not those that are unknown."""
        channel = self.of_dims(NORMS)
        if channel is None or self.capture is None:
            return []
        (row,) = rows_of(channel, self.capture.array(channel.name, self.frame), "norm")
        (known,) = rows_of(channel, self.capture.known(channel.name, self.frame), "norm")
        return [int(n) for n in np.flatnonzero(known & ~np.isfinite(row))]

    def names(self) -> tuple[str, ...]:
        """The parameters' names."""
        channel = self.of_dims(NORMS)
        known = channel is not None and self.capture is not None
        return self.capture.labels(channel.domain("parameter"), self.frame) if known else ()  # type: ignore[union-attr]

    # -- the threshold

    def _dragged(self, mark: Any) -> None:
        self.set_threshold(10 ** min(FARTHEST, max(-FARTHEST, float(mark.value()))))

    def set_threshold(self, threshold: float) -> None:
        """Show the effect of another threshold c > 0, as text and with both lines at it."""
        self.threshold = threshold
        for mark in (self.line, self.level):
            mark.blockSignals(True)
            mark.setPos(math.log10(threshold))
            mark.blockSignals(False)
        self.effect.set_title(*self.on_this_run())
        self.history.set_title(self.on_training())

    def by_value(self) -> tuple[float, float]:
        """(share of entries that the threshold cuts, cosine afterwards), at the next threshold of the table."""
        table = self.values(BY_VALUE)
        assert table is not None
        if self.threshold >= table[0, -1]:
            return 0.0, 1.0
        at = int(np.argmin(np.abs(np.log(table[0]) - math.log(self.threshold))))
        return float(table[1, at]), float(table[2, at])

    def on_this_run(self) -> tuple[str, str]:
        """The effect of the threshold on the gradient of this run, in two lines."""
        norm = self.scalar("gradient_norm")
        if not math.isfinite(norm) or self.values(BY_VALUE) is None:
            return not_finite_in_words(self.threshold, self.not_finite(), self.names())
        return effect_in_words(self.threshold, norm, *self.by_value())

    def clipped(self) -> tuple[int, int] | None:
        """(training steps with a norm above the threshold or not finite, all of them)."""
        noted = self.noted_norms()
        return None if noted is None else clipped_steps(noted[1], self.threshold)

    def on_training(self) -> str:
        """The effect that the threshold would have had during training."""
        noted = self.noted_norms()
        return "" if noted is None else clipping_verdict(noted[1], self.threshold, self.scalar("used")).sentence

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """A parameter is marked."""
        if plot is self.parameters and 0 <= round(y) < len(self.names()):
            self.marked.set(self.name_axis, round(y))
            self.row_line.setPos(round(y))
            self.row_line.show()

    def _marked_rows(self) -> list[tuple[str, str]]:
        """Norm and largest entry of the gradient of the parameter that is marked."""
        norms, names, channel = self.values(NORMS), self.names(), self.of_dims(NORMS)
        at = self.marked.at(self.name_axis, len(names))
        if norms is None or at is None or channel is None or self.capture is None:
            return []
        capture, name, frame = self.capture, channel.name, self.frame
        return [
            (f"{what}, gradient of {names[at]}", measured(or_why(row[at], capture, name, frame), self.unit()))
            for row, what in zip(norms, ("norm", "largest entry"), strict=True)
        ]

    def unit(self) -> str:
        """The unit of the gradients, which are those of the loss."""
        channel = self.of_dims(NORMS)
        return "1" if channel is None else channel.unit

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The parameter that is marked, the threshold and its effect."""
        if self.state != "figure":
            return []
        rows = [
            *self._marked_rows(),
            ("clipping threshold", number(self.threshold)),
            ("gradient norm", measured(self.scalar("gradient_norm"), self.unit())),
        ]
        counts = self.clipped()
        if counts is not None:
            rows.append(("training steps above the threshold", f"{counts[0]:,} of {counts[1]:,}"))
        return rows

    def data(self) -> dict[str, Array]:
        """All that is shown, and the iterations of the training log."""
        assert self.capture is not None
        found = {channel.name: self.capture.array(channel.name, self.frame) for channel in self.channels()}
        return {**found, **coordinates(self.capture, self.channels(), "iteration", self.frame)}
