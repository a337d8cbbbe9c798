"""Input: what the model reads, as curves with marks, as a map, as a picture, as sound, or as tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtWidgets import QSpinBox

from inspector.gui.panel.arranged import Arranged, Cell, is_wide
from inspector.gui.panel.base import Panel, caption, chooser, measured
from inspector.gui.panel.channel_choice import offer
from inspector.gui.panel.exact import exact_at
from inspector.gui.panel.inputs.marks import MarkRow, is_mark
from inspector.gui.panel.inputs.pixels import COLOURS, Pixels, boxes_of
from inspector.gui.panel.inputs.sound import Sound
from inspector.gui.panel.inputs.tokens import TokenRows, called, rows_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.charts.banded_lines import CROWD, BandedLines
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.plots.source import changes_of, drawable, glance, overview_of
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
CURVES, MAP, PICTURE, TOKENS = "curves", "map", "picture", "tokens"
SERIES, OF_PICTURE, WAVEFORM = ("step", "feature"), ("row", "column"), ("sample",)
FORMS = (
    ("step",), SERIES, OF_PICTURE, ("channel", "row", "column"), ("layer", "unit"), ("unit",), ("feature",), WAVEFORM,
)  # fmt: skip
"""Axes of what is drawn: ids and masks, vectors, pictures, states, other arrays, sound."""
MOST = 8
"""Features that are drawn as curves at a time: as many colours are told apart."""
MARKS_HIGH = 0.09
"""Height of a row of marks, as a part of the height of the curves."""
NAMED = 90
"""Pixels for the names of tokens beside their rows."""
LEAST_ROWS, MOST_ROWS, AROUND_ROWS = 6, 60, 110
"""Rows of tokens, and the pixels of title, axis and controls around them."""


@PANELS.register("inputs")
class Inputs(Panel):
    """Every channel of kind "input": (step,) ids and masks, (step, feature) vectors, pictures, states, arrays."""

    tab_order, tab_row = 15, "upper"
    menu_group = "sequence"
    forward_last = True
    key, title = "inputs", "Input"
    hint = "What the model reads: tokens, series, pictures, sound. Every run of a model has it."
    shows = ("input",)
    needs_height = 220

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Inputs of any form."""
        return channel.kind == "input" and channel.dims in FORMS

    def concerns(self, name: str) -> bool:
        """Pictures and recordings that could not be kept."""
        return name.startswith("input") and name.endswith((":picture", ":waveform"))

    def build(self) -> None:
        """The choices, and a plot for each way of drawing."""
        self.where = self.add_choice("Input", "Which input of the model")
        self.how = chooser([], "How it is drawn")
        self.first = QSpinBox()
        self.first.setAccessibleName("First feature that is drawn as a curve")
        self.first.setToolTip(f"{MOST} features from this one on are drawn as curves")
        self.first_caption = caption("From feature")
        for widget in (caption("Draw"), self.how, self.first_caption, self.first):
            self.controls.addWidget(widget)
        self.how.currentIndexChanged.connect(self.redraw)
        self.first.valueChanged.connect(self.redraw)
        self._make_plots()
        self.steps.changed.connect(self._in_view)
        self.reset()

    def _make_plots(self) -> None:
        self.sound = Sound(self.steps, self.theme)
        self.series = StepPlot(self.steps, self.theme, label="value")
        self.banded = BandedLines(self.series, self.theme, MOST, self._series_again)
        self.marks = MarkRow(self.series, self.theme, MOST)
        self.map = MapRow(self.figure, 0, self.steps, self.theme, label="feature")
        self.tokens = MapRow(self.figure, 1, self.steps, self.theme, label="token")
        self.tokens.plot.getAxis("left").setWidth(NAMED)
        self.pixels = Pixels(self.figure, 2, self.theme)
        self.array_plot = StepPlot(None, self.theme, label="value", bottom="number")
        self.array_lines = BandedLines(self.array_plot, self.theme, 1, self.draw_if_seen)
        maps = (self.map, self.tokens, self.pixels)
        items = [self.sound.plot, self.series, self.array_plot, *(part for one in maps for part in (one.plot, one.bar))]
        self.arranged = Arranged(self.figure, items)
        self.plots = [self.sound.plot, self.series, self.map.plot, self.tokens.plot, self.pixels.plot, self.array_plot]

    def reset(self) -> None:
        """Another capture: drawn as fits it."""
        self.how.blockSignals(True)
        self.how.clear()
        self.how.blockSignals(False)
        self.rows: TokenRows | None = None
        self._wide = is_wide(self.width(), self.height())
        self._curves: list[tuple[str, Array]] = []
        self._title = ""
        self.pixel: tuple[int, int] | None = None
        """(row, column) under the mouse."""
        self._marked: list[tuple[int, npt.NDArray[np.int64]]] = []
        """(colour, marked steps) of each feature that only marks steps."""

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        for part in (self.sound, self.banded, self.map, self.tokens, self.pixels, self.array_lines):
            part.set_theme(theme)
        self.marks.set_theme(theme, [colour for colour, _ in self._marked])
        super().set_theme(theme)

    # -- what there is

    def here(self) -> list[Channel]:
        """The channels of the chosen input."""
        return [one for one in self.channels() if one.place == self.where.currentData()]

    def of(self, dims: tuple[str, ...]) -> Channel | None:
        """The channel of the chosen input over these axes."""
        return next((one for one in self.here() if one.dims == dims), None)

    def main(self) -> Channel:
        """The input itself, not what was made from it or before it."""
        return next(one for one in self.here() if one.signal not in ("picture", "waveform"))

    def ways(self) -> dict[str, str]:
        """How it can be drawn, what fits it best first."""
        main = self.main()
        if main.value_domain:
            return {TOKENS: TOKENS}
        if main.dims == SERIES:
            assert self.capture is not None
            many = self.capture.extent(main.name, self.frame)[1] > MOST or self.of(WAVEFORM) is not None
            found = [PICTURE] if self.of(OF_PICTURE) is not None else []
            return {one: one for one in [*found, *((MAP, CURVES) if many else (CURVES, MAP))]}
        return {PICTURE: PICTURE} if len(main.dims) > 1 else {CURVES: CURVES}

    # -- drawing

    def update_contents(self) -> None:
        """The chosen input in the chosen way."""
        offer(self.where, {one.place: clean(one.place) for one in self.channels()})
        offer(self.how, self.ways())
        way, main = self.how.currentData(), self.main()
        for plot in self.plots:
            plot.step_axis.set_names(self.step_names() if plot.steps is not None else ())
        several = way == CURVES and main.dims == SERIES
        self._offer_features(main, several=several)
        cells: dict[Any, Cell] = {}
        if way == TOKENS:
            cells = self._draw_tokens(main)
        elif way == MAP:
            cells = self._draw_map(main)
        elif way == PICTURE:
            cells = self._draw_picture(main)
        elif "step" in main.dims:
            cells = self._draw_series(main)
        else:
            cells = self._draw_array(main)
        self._lay_out(cells)

    def _lay_out(self, cells: dict[Any, Cell]) -> None:
        sound = self.of(WAVEFORM)
        if sound is None or self.how.currentData() == PICTURE:
            self.arranged.place(cells, (1,), (1, 0, 1) if len(cells) > 2 else (1,))
            return
        assert self.capture is not None
        self.sound.show(self.capture, sound, self.frame, self.capture.extent(self.main().name, self.frame)[0])
        lower = {item: (1, column, high, wide) for item, (_, column, high, wide) in cells.items()}
        self.arranged.place({self.sound.plot: (0, 0, 1, 1), **lower}, (2, 3), (1,))

    def _offer_features(self, main: Channel, *, several: bool) -> None:
        assert self.capture is not None
        features = self.capture.extent(main.name, self.frame)[1] if several else 0
        for widget in (self.first_caption, self.first):
            widget.setVisible(features > MOST)
        self.first.blockSignals(True)
        self.first.setRange(0, max(0, features - MOST))
        self.first.blockSignals(False)

    def _draw_tokens(self, main: Channel) -> dict[Any, Cell]:
        assert self.capture is not None
        rows = self.rows = rows_of(self.capture.array(main.name, self.frame), self.names_of(main), self._room())
        self.tokens.plot.getAxis("left").setTicks([list(enumerate(map(clean, rows.names)))])
        self.tokens.show(
            rows.shares, len(rows.row), len(rows.names), Levels(0.0, 1.0, root=True), "1",
            self.capture.revision(main.name, self.frame), gaps=gaps_of(self.capture, main.name, self.frame, y=None),
        )  # fmt: skip
        self.tokens.plot.set_title(f"{clean(main.title)}: {rows.sentence}")
        return {self.tokens.plot: (0, 0, 1, 1), self.tokens.bar: (0, 1, 1, 1)}

    def _room(self) -> int:
        """Rows of tokens that can be named in the height that there is."""
        return max(LEAST_ROWS, min(MOST_ROWS, int((self.height() - AROUND_ROWS) / self.fontMetrics().height())))

    def names_of(self, channel: Channel) -> tuple[str, ...]:
        """The vocabulary of ids."""
        return self.capture.labels(channel.value_domain, self.frame) if self.capture is not None else ()

    def _draw_map(self, main: Channel) -> dict[Any, Cell]:
        assert self.capture is not None
        steps, features = self.capture.extent(main.name, self.frame)
        levels, nan, infinite = glance(self.capture, main, self.frame)
        sound = self.of(WAVEFORM) is not None
        if not self.differs and (lowest := self._lowest(main)) >= 0:  # energies have no middle
            levels = Levels(lowest, levels.high, clipped=levels.clipped, root=sound)
        self.map.plot.invertY(not sound)  # frequencies rise upwards
        self.map.show(
            overview_of(self.capture, main.name, self.frame), steps, features, levels, main.unit,
            self.capture.revision(main.name, self.frame), nan=nan, infinite=infinite,
            gaps=gaps_of(self.capture, main.name, self.frame),
            changes=changes_of(self.capture, main.name, self.frame),
        )  # fmt: skip
        self.map.plot.set_title(f"{clean(main.title)}, {features:,} features by step")
        return {self.map.plot: (0, 0, 1, 1), self.map.bar: (0, 1, 1, 1)}

    def _lowest(self, main: Channel) -> float:
        """The least finite number of a channel; −∞ where there is none."""
        assert self.capture is not None
        low, _ = self.capture.overview(main.name, self.frame, size=(1, 1))
        return float(low.min()) if np.isfinite(low).all() and low.size else -np.inf

    def _draw_picture(self, main: Channel) -> dict[Any, Cell]:
        """The picture; beside it, in a wide panel, the series as which it is read."""
        assert self.capture is not None
        channel = self.of(OF_PICTURE) or main
        extent, name = self.capture.extent(channel.name, self.frame), channel.name
        if len(extent) == COLOURS and extent[0] == COLOURS:
            values = np.ma.filled(self.capture.array(name, self.frame).astype(np.float64), np.nan)
            finite = values[np.isfinite(values)]
            self.pixels.show_colours(values, *((finite.min(), finite.max()) if len(finite) else (0.0, 1.0)))
            self.pixels.plot.set_title(f"{clean(channel.title)}: red, green and blue from least to largest number")
            return {self.pixels.plot: (0, 0, 1, 1)}
        values = drawable(self.capture.array(name, self.frame))
        levels, _, _ = glance(self.capture, channel, self.frame)
        self.pixels.plot.label_bottom(channel.dims[-1])
        self.pixels.plot.label_left(channel.dims[-2])
        gaps = gaps_of(self.capture, name, self.frame, x=values.ndim - 1, y=values.ndim - 2)
        self.pixels.show(values.reshape(-1, values.shape[-1]), levels, channel.unit, gaps)
        part = "" if channel is main else ", framed what the step under the cursor reads"
        self.pixels.plot.set_title(f"{clean(main.title)}{part}")
        found: dict[Any, Cell] = {self.pixels.plot: (0, 0, 1, 1), self.pixels.bar: (0, 1, 1, 1)}
        if channel is not main and self._wide and self._steps_of(main)[0] > 1:
            self._draw_series(main)
            found[self.series] = (0, 2, 1, 1)
        return found

    def _steps_of(self, main: Channel) -> tuple[int, int]:
        """(steps, features) of vectors."""
        assert self.capture is not None
        steps, features = self.capture.extent(main.name, self.frame)
        return steps, features

    def _draw_series(self, main: Channel) -> dict[Any, Cell]:
        """(step, feature) or (step,) numbers as curves; features that only mark steps as marks below them."""
        assert self.capture is not None
        table = self._features(main)
        drawn = [(name, values) for name, values in table if not is_mark(values)]
        marks = [(name, values) for name, values in table if is_mark(values)]
        self._marked = [(len(drawn) + n, np.flatnonzero(values == 1)) for n, (_, values) in enumerate(marks)]
        self.marks.set_theme(self.theme, [colour for colour, _ in self._marked])
        self._curves = drawn
        self._title = clean(main.title) + "".join(f"; ▲ {name}" for name, _ in marks)
        self._show_series()
        self.series.mark_gaps(gaps_of(self.capture, main.name, self.frame, y=None))
        return {self.series: (0, 0, 1, 1)}

    def _features(self, main: Channel) -> list[tuple[str, Array]]:
        """(name, (steps,) numbers) of the features that are drawn."""
        assert self.capture is not None
        if main.dims != SERIES:
            return [(clean(main.title), drawable(self.capture.array(main.name, self.frame)).astype(np.float64))]
        first = self.first.value() if self.how.currentData() == CURVES else 0
        features = range(first, min(first + MOST, self._steps_of(main)[1]))
        cut = (slice(None), slice(features.start, features.stop))
        values = drawable(self.capture.block(main.name, self.frame, cut)).astype(np.float64)
        names = main.labels.get("feature", ())
        return [(clean(names[f]) if f < len(names) else f"feature {f}", values[:, n]) for n, f in enumerate(features)]

    def _show_series(self) -> None:
        self.banded.show(self._curves, self.steps.bounds)
        values = np.concatenate([values for _, values in self._curves]) if self._curves else np.zeros(1)
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
        span, rows = (high - low) or 1.0, len(self._marked)
        bottom = low - (0.05 + MARKS_HIGH * rows) * span
        self.marks.show([at for _, at in self._marked], self.steps.bounds, bottom, MARKS_HIGH * span)
        self.series.vb.setYRange(bottom, high + 0.05 * span, padding=0)
        self.series.set_title(self._title + (CROWD if self.banded.dense else ""))

    def _series_again(self) -> None:
        self._in_view(*self.steps.bounds)

    def _draw_array(self, main: Channel) -> dict[Any, Cell]:
        assert self.capture is not None
        values = drawable(self.capture.array(main.name, self.frame)).reshape(-1).astype(np.float64)
        self.array_plot.label_bottom(main.dims[-1])
        self.array_plot.vb.setXRange(-0.5, max(1, len(values)) - 0.5, padding=0)
        self.array_plot.set_title(f"{clean(main.title)}, {len(values):,} numbers")
        self.array_lines.show([(main.title, values)], (0, len(values)))
        self.array_plot.fit_left(values, centred=False)
        return {self.array_plot: (0, 0, 1, 1)}

    def _in_view(self, _low: float, _high: float) -> None:
        if self.state != "figure" or self.over.on or not self.in_sight():
            return
        if self.series.isVisible():
            self._show_series()
        if self.sound.plot.isVisible():
            self.sound.draw()

    def resizeEvent(self, event: Any) -> None:
        """A wide panel has the series beside the picture; a wider one shows more of each series."""
        super().resizeEvent(event)
        wide, self._wide = self._wide, is_wide(self.width(), self.height())
        named = self.rows is not None and len(self.rows.names) != min(self._room(), self.rows.different)
        if self.state == "figure" and (wide != self._wide or named):
            self.draw_if_seen()
        self._in_view(*self.steps.bounds)

    # -- the cursor

    def follow(self, new: Position, old: Position) -> None:
        """What the step under the cursor reads is framed in the picture; its token's row is marked."""
        step, channel = new.step, self.of(OF_PICTURE)
        boxes = []
        if channel is not None and step is not None and self.capture is not None:
            _, features = self._steps_of(self.main())
            columns = self.capture.extent(channel.name, self.frame)[1]
            boxes = boxes_of(step * features, (step + 1) * features, columns)
        self.pixels.mark(boxes)
        known = self.rows is not None and step is not None and step < len(self.rows.row)
        row = int(self.rows.row[step]) if known and self.rows is not None and step is not None else -1
        self.tokens.show_row(row if row >= 0 else None)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step under the mouse; over a picture, to the step that reads the pixel."""
        if plot is not self.pixels.plot:
            if plot is not self.array_plot:
                self.looking.move(step=round(x))
            return
        main, channel = self.main(), self.of(OF_PICTURE)
        assert self.capture is not None
        rows, columns = self.capture.extent((channel or main).name, self.frame)[-2:]
        row, column = min(max(0, round(y)), rows - 1), min(max(0, round(x)), columns - 1)
        self.pixel = (row, column)
        if channel is not None:
            self.looking.move(step=(row * columns + column) // self._steps_of(main)[1])
        self.drawn.emit()

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The token or the numbers at the step, and the number of the pixel under the mouse."""
        if self.capture is None or self.state != "figure":
            return []
        main, step, found = self.main(), position.step, list[tuple[str, str]]()
        if step is not None and main.dims[0] == "step" and step < self.capture.extent(main.name, self.frame)[0]:
            found += self._at_step(main, step)
        picture = self.of(OF_PICTURE)
        if self.pixel is not None and picture is not None and self.how.currentData() == PICTURE:
            value = exact_at(self.capture, picture.name, self.frame, *self.pixel)
            found.append((f"pixel [{self.pixel[0]}, {self.pixel[1]}]  {main.place}", measured(value, picture.unit)))
        return found

    def _at_step(self, main: Channel, step: int) -> list[tuple[str, str]]:
        assert self.capture is not None
        if main.dims != SERIES:
            value = exact_at(self.capture, main.name, self.frame, step)
            word = f"  {called(int(value), self.names_of(main))!r}" if main.value_domain and not isinstance(
                value, str) else ""  # fmt: skip
            return [(f"{clean(main.title)} [{step}]  {main.place}", f"{measured(value, main.unit)}{word}")]
        first = self.first.value() if self.how.currentData() == CURVES else 0
        return [
            (f"{main.signal}[{step}, {f}]  {main.place}",
             measured(exact_at(self.capture, main.name, self.frame, step, f), main.unit))
            for f in range(first, min(first + MOST, self._steps_of(main)[1]))
        ]  # fmt: skip

    def data(self) -> dict[str, Array]:
        """Every channel of the chosen input."""
        assert self.capture is not None
        return {one.name: self.capture.array(one.name, self.frame) for one in self.here()}
