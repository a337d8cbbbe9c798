"""Dynamics: Lyapunov exponents as they converge, and the trajectory of the state with its fixed points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.lyapunov import lyapunov_verdict
from inspector.gui.panel.arranged import LEAST_BESIDE, Arranged, is_very_wide
from inspector.gui.panel.base import Panel, caption, chooser, measured, number, set_options
from inspector.gui.panel.exact import exact_at, or_why
from inspector.gui.panel.labelled import find_row, scalar_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.charts.fan import Fan, subscript
from inspector.gui.widgets.charts.plane import WAY_COLOURS, Plane
from inspector.gui.widgets.charts.rankplot import RankPlot
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.maps.colourbar import ColourBar
from inspector.gui.widgets.plain_text import token
from inspector.gui.widgets.summary_text import SummaryText
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
AXES = {
    "lyapunov": (("step", "exponent"), ("exponent",), ("statistic", "exponent")),
    "trajectory": (("step", "component"), ("component",), ("step",)),
    "fixed_point": (("point", "component"), ("statistic", "point"), ("input",)),
}
NUMBERS = {"kaplan_yorke": "Kaplan–Yorke dimension", "entropy_rate": "entropy rate in nats a step"}


@PANELS.register("dynamics")
class Dynamics(Panel):
    """Channels of kinds "lyapunov", "trajectory" and "fixed_point"."""

    tab_order, tab_row = 50, "upper"
    menu_group = "inside"
    key, title = "dynamics", "Dynamics"
    of_recurrences = True
    hint = (
        "Lyapunov exponents and the trajectory of the state in its principal components, with its fixed points "
        "where they are computed. Needs a recurrent layer."
    )
    shows = ("trajectory", "lyapunov")
    extra = ("fixed_points",)
    needs_height = 320

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Exponents, trajectories and fixed points."""
        return channel.dims in AXES.get(channel.kind, ())

    def concerns(self, name: str) -> bool:
        """Exponents, trajectories or fixed points that could not be computed."""
        return any(word in name for word in (":lyapunov", ":trajectory", ":fixed_points"))

    def build(self) -> None:
        """Convergence above the final spectrum, the plane of two components on the right, text below."""
        self.figure.shrinks = True
        self.where = chooser([], "Place in the model")
        self.across, self.up = chooser([], "Component across"), chooser([], "Component up")
        for text, box in (("Layer", self.where), ("Across", self.across), ("Up", self.up)):
            self.controls.addWidget(caption(text))
            self.controls.addWidget(box)
            box.currentTextChanged.connect(self._chosen if box is self.where else self.redraw)
        self.held_input, self.held_caption = (
            chooser([], "Constant input at the fixed points"),
            caption("Held input"),
        )
        for widget in (self.held_caption, self.held_input):
            self.controls.addWidget(widget)
        self.held_input.currentTextChanged.connect(self.redraw)
        self.running = Fan(self.steps, self.theme, label="nats a step", symbol="λ", log=False, level=0.0)
        self.ranks = RankPlot(self.theme, label="nats a step", bottom="exponent", log=False, level=0.0)
        self.plane = Plane(self.theme)
        self.bar, self.summary = ColourBar(self.theme), SummaryText(self.theme)
        self.bar.lie_beside(self.plane)
        self.arranged = Arranged(self.figure, [self.running.plot, self.ranks, self.plane, self.bar, self.summary])
        self._very = False
        self._arrange()
        self.plots = [self.running.plot, self.ranks]
        self.way: Array = np.zeros((0, 2))
        self.outside = 0
        self.steps.changed.connect(self._in_view)

    def _arrange(self) -> None:
        size, plots = (self.width(), self.height()), (self.running.plot, self.ranks)
        beside = [self.plane, self.bar]
        named = ("the exponents over the steps", "the exponents by rank", "the trajectory")
        self.arranged.place_three(
            size, plots, beside, self.summary, (LEAST_BESIDE, self.needs_height), named,
            filled=self.of("lyapunov", "step", "exponent") is not None,
        )  # fmt: skip

    def resizeEvent(self, event: Any) -> None:
        """A very wide panel has the three plots beside each other."""
        super().resizeEvent(event)
        very, self._very = self._very, is_very_wide(self.width(), self.height())
        if self.state == "figure" and not self.over.on and very != self._very:
            self.draw_if_seen()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for part in (self.running, self.plane, self.summary):
            part.set_theme(theme)
        self.bar.theme = theme
        super().set_theme(theme)

    def _chosen(self, place: str) -> None:
        self.looking.move(place=place)
        self.redraw()

    def _in_view(self, _low: float, _high: float) -> None:
        if self.state == "figure" and self.in_sight():
            self._draw_running()

    def of(self, kind: str, *dims: str) -> Channel | None:
        """The channel of the chosen place of a kind and axes, or None."""
        place = self.where.currentText()
        return next((c for c in self.channels() if c.kind == kind and c.dims == dims and c.place == place), None)

    def values(self, kind: str, *dims: str) -> Array | None:
        """Its numbers, whole."""
        channel = self.of(kind, *dims)
        return None if channel is None or self.capture is None else self.capture.array(channel.name, self.frame)

    def update_contents(self) -> None:
        """Everything of the chosen place."""
        set_options(self.where, list(dict.fromkeys(channel.place for channel in self.channels())))
        self._offer_inputs()
        self.running.plot.step_axis.set_names(self.step_names())
        self._arrange()
        self._draw_running()
        self._draw_spectrum()
        self._draw_plane()
        self.summary.set_text(self.sentence())

    def _draw_running(self) -> None:
        channel = self.of("lyapunov", "step", "exponent")
        self.running.plot.setVisible(channel is not None and self.arranged.has(self.running.plot))
        if channel is not None and self.capture is not None:
            self.running.show(self.capture, channel, self.frame, self.steps.bounds)
            self.running.plot.set_title(f"Lyapunov exponents up to each step, {channel.place}")

    def _draw_spectrum(self) -> None:
        channel, values = self.of("lyapunov", "exponent"), self.values("lyapunov", "exponent")
        self.ranks.setVisible(values is not None and self.arranged.has(self.ranks))
        if values is not None and channel is not None:
            self.ranks.show_values(values)
            gone = int(np.isneginf(values).sum())
            self.ranks.set_title(f"{len(values)} exponents" + (f", {gone} of them −∞" if gone else ""))

    def _draw_plane(self) -> None:
        channel, points = self.of("trajectory", "step", "component"), self.values("trajectory", "step", "component")
        for part in (self.plane, self.bar):
            part.setVisible(points is not None and self.arranged.has(part))
        if channel is None or points is None:
            self.way, self.outside = np.zeros((0, 2)), 0
            return
        across, up = self._components(points.shape[1])
        self.way = points[:, [across, up]]
        self.plane.set_labels(self._axis(across), self._axis(up))
        self.plane.set_title(f"{channel.title}, {channel.place}")
        self.bar.set_levels(Levels(0.0, float(max(1, len(points) - 1)), WAY_COLOURS), "step")
        self.bar.count_from(self._steps_drawn, len(points))
        self.plane.show_way(self.way[:, 0], self.way[:, 1], self.bar.levels)
        marks, stable = self.marks()
        if marks.shape[1] <= max(across, up):
            marks, stable = np.zeros((0, points.shape[1])), stable[:0]
        self.outside = self.plane.show_marks(marks[:, across], marks[:, up], stable)

    def _steps_drawn(self, cut: tuple[int, int], _cells: int) -> tuple[Array, Array]:
        """Numbers of the steps whose point is known, as a column."""
        points = self.way[slice(*cut)]
        steps = np.arange(cut[0], cut[0] + len(points), dtype=np.float64)
        steps[~np.isfinite(points).all(axis=1)] = np.nan
        return steps[:, None], steps[:, None]

    def marks(self) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Components (point, component) and stability (point,) of the fixed points at the input that is chosen."""
        marks, numbers = (
            self.values("fixed_point", "point", "component"),
            self.values("fixed_point", "statistic", "point"),
        )
        if marks is None or numbers is None or len(marks) != numbers.shape[1]:
            return np.zeros((0, 0)), np.zeros(0, bool)
        held = self._statistic("input", numbers)
        own = np.ones(len(marks), bool)
        if held is not None and self.held_input.count():
            own = np.asarray(held == self.held_input.currentIndex(), bool)
        stable = self._statistic("stable", numbers)
        return marks[own], np.zeros(int(own.sum()), bool) if stable is None else stable[own] > 0

    def _statistic(self, name: str, numbers: Array) -> Array | None:
        channel = self.of("fixed_point", "statistic", "point")
        names = channel.labels.get("statistic", ()) if channel is not None else ()
        return numbers[names.index(name)] if name in names else None

    def _offer_inputs(self) -> None:
        """The inputs at which fixed points were sought."""
        channel = self.of("fixed_point", "input")
        names = channel.labels.get("input", ()) if channel is not None else ()
        set_options(self.held_input, list(map(token, names)))
        for widget in (self.held_caption, self.held_input):
            widget.setVisible(self.held_input.count() > 0)

    def _components(self, count: int) -> tuple[int, int]:
        """The two components that are drawn: the chosen ones, at first the first two."""
        names = [str(i + 1) for i in range(count)]
        fresh = self.up.count() == 0
        for box in (self.across, self.up):
            set_options(box, names)
        if fresh and count > 1:
            self.up.blockSignals(True)
            self.up.setCurrentIndex(1)
            self.up.blockSignals(False)
        return self.across.currentIndex(), self.up.currentIndex()

    def _axis(self, component: int) -> str:
        shares = self.values("trajectory", "component")
        share = shares[component] if shares is not None and component < len(shares) else math.nan
        return f"component {component + 1}" + ("" if math.isnan(share) else f" ({100 * share:.3g} %)")

    def scalar(self, name: str) -> float:
        """A scalar beside the exponents of the chosen place; NaN where there is none."""
        channel = self.of("lyapunov", "exponent")
        if channel is None or self.capture is None:
            return math.nan
        return scalar_of(self.capture, f"{channel.name.rpartition('/')[0]}/{name}", channel.name, self.frame)

    def sentence(self) -> str:
        """A summary of the exponents and the fixed points."""
        parts = []
        values, channel = self.values("lyapunov", "exponent"), self.of("lyapunov", "exponent")
        if values is not None and channel is not None and len(values):
            said = lyapunov_verdict(float(values[0]), self.steps.length, self.scalar("largest_error")).sentence
            parts.append(f"{channel.place}: {said}")
            dimension = self.scalar("kaplan_yorke")
            low, high = self.scalar("kaplan_yorke_low"), self.scalar("kaplan_yorke_high")
            if (values[0] > 0 or high > 0) and not math.isnan(dimension):
                between = "" if math.isnan(low) else f" (between {low:.3g} and {high:.3g})"
                parts.append(f"Kaplan–Yorke dimension {dimension:.3g}{between}")
        if self.of("fixed_point", "statistic", "point") is not None:
            parts.append(self._points_summary())
        refused = f"{self.where.currentText()}:fixed_points"
        reasons = [r.reason for r in self.capture.refusals if r.channel == refused] if self.capture is not None else []
        parts += [reason.removesuffix(".") for reason in reasons[-1:]]
        shown = (channel, self.of("trajectory", "step", "component"))
        parts += [c.method for c in shown if c is not None and c.method != "exact"]
        return "; ".join(parts) + ("." if parts else "")

    def _points_summary(self) -> str:
        stable = self.marks()[1]
        held = f", constant input: {self.held_input.currentText()}" if self.held_input.count() else ""
        if not len(stable):
            return f"no fixed or slow point was found{held}"
        far = f", {self.outside} of them outside the view" if self.outside else ""
        far += "" if len(self.way) else ", shown where the trajectory is computed too"
        count = int(stable.sum())
        return f"{count} stable (filled) and {len(stable) - count} unstable (open) fixed or slow points{held}{far}"

    def follow(self, new: Position, old: Position) -> None:
        """Another place shows its dynamics; the step gets a ring in the plane."""
        if new.place != old.place and self.where.findText(new.place) >= 0:
            self.where.setCurrentText(new.place)
        step = new.step
        x, y = self.way[step] if step is not None and step < len(self.way) else (math.nan, math.nan)
        self.plane.show_here(float(x), float(y))

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step under the mouse, or to that of the nearest point of the trajectory.

        In the spectrum an exponent is marked.
        """
        if plot is self.ranks:
            self.marked.set(plot, max(0, round(x) - 1), max(1, round(x)))
            return
        step = round(x) if plot is self.running.plot else self.plane.nearest(x, y) if plot is self.plane else None
        if step is not None:
            self.looking.move(step=step, place=self.where.currentText())

    def told_of(self, values: Array, at: int) -> str:
        """An exponent with its standard error, or why it is not known."""
        channel = self.of("lyapunov", "exponent")
        if channel is None or self.capture is None:
            return number(values[at])
        table, errors = self.of("lyapunov", "statistic", "exponent"), self.values("lyapunov", "statistic", "exponent")
        row = None if table is None else find_row(table, "standard error")
        error = math.nan if errors is None or row is None or at >= errors.shape[1] else float(errors[row, at])
        told = number(or_why(values[at], self.capture, channel.name, self.frame))
        return f"{told} ± {error:.2g}" if math.isfinite(error) and math.isfinite(values[at]) else told

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Exponents, dimension and entropy; position and speed at the step."""
        rows: list[tuple[str, str]] = []
        step, values = position.step, self.values("lyapunov", "exponent")
        at = self.marked.at(self.ranks, 0 if values is None else len(values))
        if values is not None and at is not None and (at > 0 or step is None):
            rows.append(
                (f"λ{subscript(str(at + 1))} in nats a step  {self.where.currentText()}", self.told_of(values, at))
            )
        if step is None:
            return rows
        if values is not None and len(values):
            rows.append((f"λ₁ in nats a step  {self.where.currentText()}", self.told_of(values, 0)))
        for name, words in NUMBERS.items():
            if not math.isnan(self.scalar(name)):
                rows.append((words, number(self.scalar(name))))
        speed = self.of("trajectory", "step")
        if speed is not None and self.capture is not None:
            if step < self.capture.extent(speed.name, self.frame)[0]:
                value = exact_at(self.capture, speed.name, self.frame, step)
                rows.append((f"{speed.title} [{step}]  {speed.place}", measured(value, speed.unit)))
            if step < len(self.way):
                way = self.of("trajectory", "step", "component") or speed
                known = [or_why(v, self.capture, way.name, self.frame) for v in self.way[step]]
                rows.append((f"components [{step}]", ", ".join(dict.fromkeys(number(v) for v in known))))
        return rows

    def data(self) -> dict[str, Array]:
        """All channels of the chosen place."""
        assert self.capture is not None
        shown = [channel for channel in self.channels() if channel.place == self.where.currentText()]
        return {channel.name: self.capture.array(channel.name, self.frame) for channel in shown}
