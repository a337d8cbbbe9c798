"""Training: every curve that a run or its log has, listed by name and drawn one plot above the other; tables of
hundreds of parameters, and histograms, as maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtWidgets import QSplitter, QWidget

from inspector.capture import Capture, Curve
from inspector.capture.curves import further, is_histogram, is_series, unit_along
from inspector.gui.panel.base import Panel, measured
from inspector.gui.panel.channel_choice import distinct, offer
from inspector.gui.panel.figure import scrolled
from inspector.gui.panel.over_iterations.baseline import Baseline, SettingsTable
from inspector.gui.panel.over_iterations.cells_in_words import cells_in_words
from inspector.gui.panel.over_iterations.curve_plots import Group, first_choice, groups_of
from inspector.gui.panel.over_iterations.curve_tree import CurveTree
from inspector.gui.panel.over_iterations.iteration_maps import IterationMaps, Shown
from inspector.gui.panel.over_iterations.plot_column import PlotColumn
from inspector.gui.panel.over_iterations.training_data import CURVES, LAYERS, TrainingData
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.charts.long_series import LongSeries
from inspector.gui.widgets.charts.series_plot import Series, SeriesPlot
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.theme import Theme
from inspector.records import ITERATION_DOMAIN, Channel

Array = npt.NDArray[Any]
MOST_PLOTS, COLOURS = 12, 8
"""Plots that are drawn, and lines of a plot until colours begin again, dashed."""
SMOOTHING = {"0": "off", "5": "5 points", "20": "20 points", "100": "100 points", "500": "500 points"}
AXES = {"auto": "automatic", "log": "logarithmic", "linear": "linear"}
REDRAW_MS = 100
"""A run that grows is drawn at most so often."""
TREE_WIDTH = 210


@PANELS.register("training")
class Training(Panel):
    """Channels of kind "series", "training" and "histogram". The cursor moves along the longest axis that is drawn."""

    tab_order = 180
    menu_group = "training"
    key, title = "training", "Training"
    hint = (
        "Loss, learning rate, gradient norms and whatever else was logged, over training: of a run that "
        "inspector.watch records, of a log of another tool, or of a history.json beside the checkpoint. A dashed line "
        "marks the frame that is shown."
    )
    shows = ("training",)
    by_steps = False

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Curves, and counts by bin, over iterations."""
        return is_series(channel) or is_histogram(channel)

    def concerns(self, name: str) -> bool:
        """A training log that could not be read."""
        return name.endswith(":training")

    # -- parts

    def build(self) -> None:
        """The list beside the plots; plots are made for the curves that are drawn."""
        self.looking.axis = ITERATION_DOMAIN
        self.content = TrainingData()
        self.curves: list[Curve] = []
        self.groups_shown: list[Group] = []
        self.points: dict[str, LongSeries] = {}
        self.maps = IterationMaps(self.figure, self.theme)
        self.column = PlotColumn(self.figure, self.theme, first_row=1)
        self.view = self.add_choice("Show", "Curves, or a table as a map")
        self.of = self.add_choice("of", "Of which parameter the histograms are")
        self.of_what = self._last_controls(2)
        self.along = self.add_choice("By", "What the horizontal axis counts")
        self.baseline = Baseline(self.add_choice, lambda: self._last_controls(2))
        self.scale = self.add_choice("Axis", "Scale of the vertical axes")
        self.smooth = self.add_choice("Smooth", "Mean of so many neighbouring points; the line itself stays, pale")
        offer(self.scale, AXES)
        offer(self.smooth, SMOOTHING)
        self._soon = QTimer(self, interval=REDRAW_MS, singleShot=True)
        self._soon.timeout.connect(self._redraw_again)
        self._again = False

    def _last_controls(self, count: int) -> list[QWidget]:
        """The last of the controls that were added."""
        places = range(self.controls.count() - count, self.controls.count())
        items = (self.controls.itemAt(n) for n in places)
        return [widget for item in items if item is not None and (widget := item.widget()) is not None]

    def _page(self) -> QWidget:
        """The list of curves at the left of the scrolled figure."""
        self.tree = CurveTree()
        self.tree.changed.connect(self.redraw)
        self.tree.search.textChanged.connect(self._search)
        page = QSplitter(Qt.Orientation.Horizontal)
        self.area = scrolled(self.figure, self.needs_height)
        page.addWidget(self.tree)
        self.settings = SettingsTable()
        right = QSplitter(Qt.Orientation.Vertical)
        right.addWidget(self.area)
        right.addWidget(self.settings)
        right.setStretchFactor(0, 1)
        page.addWidget(right)
        page.setStretchFactor(1, 1)
        page.setSizes([TREE_WIDTH, 800])
        page.setChildrenCollapsible(True)
        return page

    def picture_size(self) -> QSize:
        """Of the figure alone: the list is not drawn into files."""
        return QSize(self.figure.size())

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.tree.set_theme(theme)
        self.column.set_theme(theme)
        self.maps.set_theme(theme)
        super().set_theme(theme)

    def reset(self) -> None:
        """Another capture: the whole of it; what was chosen stays where it exists there too."""
        self.curves, self.column.zoomed = [], None
        self.content.forget()
        self.maps.forget()

    def refresh(self, changed: frozenset[str]) -> None:
        """The run has grown: drawn at once, and then not more often than ten times a second."""
        if self._soon.isActive():
            self._again = True
            return
        super().refresh(changed)
        self._soon.start()

    def _redraw_again(self) -> None:
        if self._again and self.capture is not None:
            self._again = False
            self.draw_if_seen()
            self._soon.start()

    def _read_on(self) -> None:
        """A long table was read in part and what there is of it is drawn."""
        if not self.maps.complete and self.capture is not None:
            self.redraw()

    def _search(self, _text: str) -> None:
        if self.view.currentData() != CURVES:
            self.redraw()

    # -- drawing

    def prefer(self, names: Sequence[str], place: str = "") -> None:
        """Draw the curves of these channels, of which there may be many in a table by parameter: then that of a place,
        and the first."""
        self.view.setCurrentIndex(max(0, self.view.findData(CURVES)))
        if self.tree.pin_channels(names, place):
            self.redraw()

    def update_contents(self) -> None:
        """The chosen curves, or a map and the curve that is chosen in it."""
        assert self.capture is not None
        self._list_curves(self.capture)
        mode = self.view.currentData()
        maps = self._maps(self.capture, mode)
        for widget in self.of_what:
            widget.setVisible(bool(maps) and maps[0].of is not None)
        if maps:
            self.maps.show(self.capture, maps)
            if not self.maps.complete:
                QTimer.singleShot(0, self, self._read_on)
        else:
            self.maps.hide()
        self._draw_curves(self.capture, [self.tree.current] if maps else [*self.tree.pinned, self.tree.current])
        drawn = [
            (one.run, self.points[one.key].y) for one in self.curves if one.key in self.points and one.role == "loss"
        ]
        self.settings.show_capture(self.capture, {run: float(y[-1]) for run, y in reversed(drawn) if len(y)})

    def _list_curves(self, capture: Capture) -> None:
        """List every curve, and offer the maps and coordinates that exist."""
        found = self.content.curves(capture, self.frame)
        another = not self.curves
        self.curves = found
        self.tree.offer(found)
        self.baseline.offer(found)
        if another and not (self.tree.touched and self.tree.pinned):
            self.tree.pin(first_choice(found))
        offer(self.view, distinct(self.content.views(capture, self.channels())))
        words = {"": clean(capture.axis(found[0].axis).title) if found else ITERATION_DOMAIN}
        offer(self.along, {**words, **{word: word for word in further(capture)}})
        self.view.setEnabled(self.view.count() > 1)
        self.along.setEnabled(self.along.count() > 1)

    def _maps(self, capture: Capture, mode: str) -> list[Shown]:
        """What is shown as maps: one table, a histogram, or the three tables by layer."""
        by_name = {channel.name: channel for channel in self.channels()}
        names = self.content.layers(by_name) if mode == LAYERS else [mode] if mode in by_name else []
        found = [self.content.shown(capture, by_name[name], self._listed(), self.of.currentData()) for name in names]
        if found and found[0].of is not None:
            offer(self.of, {name: name for name in self.content.things(capture, found[0].channel)})
            found = [self.content.shown(capture, found[0].channel, self._listed(), self.of.currentData())]
        return found

    def _listed(self) -> set[str] | None:
        return set(self.tree.listed) if self.tree.search.text() else None

    def _draw_curves(self, capture: Capture, keys: list[str]) -> None:
        known = {curve.key: curve for curve in self.curves}
        wanted = [known[key] for key in dict.fromkeys(keys) if key in known]
        self.groups_shown = groups_of(wanted)[:MOST_PLOTS]
        along = str(self.along.currentData() or "")
        drawn = [curve for group in self.groups_shown for curve in group.curves]
        self.content.keep({curve.key for curve in drawn})
        self.points = {curve.key: self.content.points(capture, curve, along, self.frame) for curve in drawn}
        plots = [self.baseline.plotted(group, self._series(group)) for group in self.groups_shown]
        axis, smoothing = str(self.scale.currentData()), int(self.smooth.currentData() or 0)
        awaited = getattr(capture, "awaited", None) is not None
        growing = awaited or str(capture.status) in ("running", "unknown")
        self.column.draw(plots, self._word(capture, along), axis=axis, smoothing=smoothing, growing=growing)
        needed = self.column.height + (self.maps.height if self.maps.shown else 0)
        self.figure.setMinimumHeight(max(self.needs_height, needed))
        self._mark_frame(capture, along)
        self._follow_longest(drawn)

    def _word(self, capture: Capture, along: str) -> str:
        """The title of the horizontal axis, with its unit."""
        if along:
            unit = unit_along(capture, along)
            return f"{along} ({unit})" if unit else along
        first = next((group.curves[0].axis for group in self.groups_shown), ITERATION_DOMAIN)
        return clean(capture.axis(first, self.frame).title)

    def _series(self, group: Group) -> tuple[Series, ...]:
        """The lines of a plot; a run has one colour in all of them, and further curves of it are dashed."""
        found = []
        runs = list(dict.fromkeys(curve.run for curve in self.curves))
        before: list[str] = []
        for n, (curve, name) in enumerate(zip(group.curves, group.names, strict=True)):
            at = runs.index(curve.run)
            colour, dashed = (at, curve.run in before or at >= COLOURS) if curve.run else (n, n >= COLOURS)
            before.append(curve.run)
            found.append(Series(name, self.points[curve.key], colour, dashed))
        return tuple(found)

    def show_range(self, low: float, high: float) -> None:
        """A range of iterations; along another coordinate what it has there."""
        assert self.capture is not None
        along = str(self.along.currentData() or "")
        ends = [self.content.place_of(self.capture, one, along, self.frame) for one in (low, high)]
        self.column.zoomed = (ends[0], ends[1]) if ends[0] is not None and ends[1] is not None else None
        self.redraw()

    def point_at(self, iteration: float) -> None:
        """The cursor goes to the iteration that is nearest."""
        self._move_to(iteration, self.numbers)

    def show_whole(self) -> None:
        """Everything again, after zooming."""
        self.column.zoomed = None
        self.redraw()

    # -- what is drawn

    @property
    def shown_plots(self) -> list[SeriesPlot]:
        """One for each group."""
        return self.column.shown

    @property
    def shown(self) -> list[Any]:
        """Their plots."""
        return [made.plot for made in self.shown_plots]

    @property
    def legends(self) -> list[Any]:
        """Their legends."""
        return [made.legend for made in self.shown_plots]

    @property
    def groups(self) -> tuple[str, ...]:
        """Their titles."""
        return tuple(group.title for group in self.groups_shown)

    @property
    def mark(self) -> list[Any]:
        """The lines at the frame that is shown."""
        return [made.mark for made in self.shown_plots]

    def _mark_frame(self, capture: Capture, along: str) -> None:
        step = self.step()
        place = None if step is None else self.content.place_of(capture, float(step), along, self.frame)
        self.column.mark(place)

    def step(self) -> int | None:
        """The iteration of the frame that is shown, where it is known."""
        assert self.capture is not None
        frames = {frame.index: frame.step for frame in self.capture.frames}
        return frames.get(self.frame if self.frame in frames else max(frames, default=-1))

    # -- cursor

    def _follow_longest(self, drawn: list[Curve]) -> None:
        """The cursor moves along the axis of the longest curve that is drawn, or of the map."""
        assert self.capture is not None
        if not drawn:
            self.places: Array = np.zeros(0)
            self.numbers: Array = np.zeros(0)
            if self.maps.shown:
                channel, numbers = self.maps.shown[0].channel, self.maps.numbers[0]
                self.looking.axis = channel.domain(ITERATION_DOMAIN)
                count = self.capture.extent(channel.name)[0]
                self.numbers = np.arange(count, dtype=np.float64) if numbers is None else numbers
            return
        longest = max(drawn, key=lambda curve: len(self.points[curve.key].x))
        self.looking.axis = longest.axis
        along = str(self.along.currentData() or "")
        self.places, self.numbers = self.content.axes(self.capture, longest, along, self.frame)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the iteration that is nearest, in every plot."""
        entry = self.maps.at(plot, x, y)
        if entry is not None:
            number = self.maps.numbers[self.maps.number_of(plot) or 0]
            self._move_to(float(number[entry[1]]) if number is not None else float(entry[1]), self.numbers)
            self.marked.set(plot, entry[2], float(entry[1]))
        elif self.maps.number_of(plot) is None:
            self._move_to(x, self.places)

    def _move_to(self, x: float, places: Array) -> None:
        if np.isfinite(places).any() and math.isfinite(x):
            self.looking.move(step=int(np.nanargmin(np.abs(places - x))))

    def clicked(self, plot: Any, x: float, y: float) -> None:
        """A row of a map that is clicked is drawn as a curve below it."""
        self.pointed(plot, x, y)
        entry = self.maps.at(plot, x, y)
        if entry is not None and entry[0].channel.kind == "series":
            shown, _, row = entry
            key = next((c.key for c in self.curves if c.channel.name == shown.channel.name
                        and c.column == shown.rows[row]), "")  # fmt: skip
            self.tree.select(key)

    def follow(self, new: Position, old: Position) -> None:
        """The cursor's iteration is marked in every plot and map."""
        step = new.step
        place = float(self.places[step]) if step is not None and step < len(self.places) else math.nan
        self.column.show_cursor(place if math.isfinite(place) else None)
        current = next((curve for curve in self.curves if curve.key == self.tree.current), None)
        rows = self.content.rows_of(self.maps.shown, current)
        self.maps.show_cursor(self.iteration(new), rows)

    def iteration(self, position: Position) -> float | None:
        """The iteration under the cursor, or None."""
        step = position.step
        known = step is not None and step < len(self.numbers) and bool(np.isfinite(self.numbers[step]))
        return float(self.numbers[step]) if known and step is not None else None

    # -- numbers

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Every curve at the cursor's iteration, else at this frame, else at the end of training.

        For curves measured less often, the last value before it.
        """
        if self.state != "figure":
            return []
        assert self.capture is not None
        here = self.iteration(position.along(self.looking.axis))
        here = self.step() if here is None else here
        rows = cells_in_words(self.capture, self.maps, self.marked, self.content)
        for group in self.groups_shown:
            for curve, name in zip(group.curves, group.names, strict=True):
                told = self.content.told(self.capture, curve, self.frame, math.inf if here is None else here)
                if told is not None:
                    what = f"{group.title}: {name}" if name else group.title
                    word = clean(self.capture.axis(curve.axis, self.frame).title)
                    rows.append((f"{what} [{word} {told[0]:.15g}]", measured(told[1], curve.channel.unit)))
        return rows

    def data(self) -> dict[str, Array]:
        """The curves that are drawn and the iterations along them, and the tables of the maps."""
        assert self.capture is not None
        drawn = [curve for group in self.groups_shown for curve in group.curves]
        return self.content.saved(self.capture, drawn, [one.channel for one in self.maps.shown], self.frame)
