"""Outputs: loss and surprise by step, and the most probable classes or tokens of each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import Qt

from inspector.capture.pyramid import with_nan
from inspector.gui.panel.base import Panel, measured, number
from inspector.gui.panel.exact import exact, exact_at
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.charts.curves import Curves
from inspector.gui.widgets.gaps import gaps_of
from inspector.gui.widgets.images.cell_texts import CellTexts
from inspector.gui.widgets.images.quantise import Levels, levels_of
from inspector.gui.widgets.maps.maprow import MapRow
from inspector.gui.widgets.plain_text import token
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
SHARES = (2, 3)
"""Parts of the height of the curves and of the table, whose eight lines of words need more."""
TALLEST = 16_777_215
"""Pixels of height of a row that is not limited."""
MOST_STEPS = 2000
"""Steps in view above which no screen has room for a token in each."""


@PANELS.register("outputs")
class Outputs(Panel):
    """(step,) lines and (step, rank) tables of kind "output"."""

    tab_order, tab_row = 70, "upper"
    menu_group = "sequence"
    key, title = "outputs", "Outputs"
    hint = "Loss and surprise by step, and the most probable outputs. Needs a model with a loss or a vocabulary."
    shows = ("output/loss", "output/probabilities")
    needs_height = 260

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Lines by step and tables by rank."""
        return channel.kind == "output" and channel.dims in (("step",), ("step", "rank"))

    def concerns(self, name: str) -> bool:
        """Outputs that could not be computed."""
        return name.startswith("output:")

    def build(self) -> None:
        """Lines above the table of ranks."""
        self.curves = Curves(self.steps, self.theme, label="", log=False)
        self.figure.addItem(self.curves.plot, row=0, col=0)
        self.row = MapRow(self.figure, 1, self.steps, self.theme, label="rank")
        self.plots = [self.curves.plot, self.row.plot]
        self.words = CellTexts()
        self.row.plot.addItem(self.words, ignoreBounds=True)
        self.row.map.in_view.changed.connect(self.draw_if_seen, Qt.ConnectionType.QueuedConnection)
        self.steps.changed.connect(self._in_view)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.curves.set_theme(theme)
        self.row.set_theme(theme)
        self.words.theme = theme
        super().set_theme(theme)

    def _in_view(self, _low: float, _high: float) -> None:
        if self.state == "figure" and self.in_sight():
            self.redraw()

    def lines(self) -> list[Channel]:
        """The channels that are drawn as lines."""
        return [channel for channel in self.channels() if channel.dims == ("step",)]

    def ranked(self) -> tuple[Channel | None, Channel | None]:
        """(probabilities, the tokens they belong to)."""
        tables = [channel for channel in self.channels() if channel.dims == ("step", "rank")]
        values = next((channel for channel in tables if not channel.value_domain), None)
        return values, next((channel for channel in tables if channel.value_domain), None)

    def summary(self) -> str:
        """Mean loss and perplexity over all sequences of the run, where they are known; for two runs both."""
        assert self.capture is not None
        frames: list[tuple[Any, int]] = [(self.capture, self.capture.frame_of(self.channels()[0].name, self.frame))]
        if self.differs:
            frames = [(side.view, side.frame) for side in self.source.sides]
        if len(frames) == 1 and _scalar(self.capture, "output:loss/terms", frames[0][1]) == 0:
            return "no step carries a loss"
        unit = next((channel.unit for channel in self.lines() if channel.signal == "loss"), "1")
        words = {"loss/mean": f"mean loss {{}} {unit}".removesuffix(" 1"), "perplexity": "perplexity {}"}
        said = []
        for name, text in words.items():
            found = [_scalar(capture, f"output:{name}", frame) for capture, frame in frames]
            values = [number(round_to(value)) for value in found if value is not None]
            said += [text.format(" → ".join(values))] if values else []
            if name == "loss/mean" and values and len(frames) == 1:
                said[-1] += self._beside_others(*frames[0])
        return ", ".join(said) + self._lost(frames)

    def _beside_others(self, view: Any, frame: int) -> str:
        """Of a batch: over how many losses the mean is, and that of the sequence whose curve is drawn."""
        channel = next((one for one in self.lines() if one.signal == "loss"), None)
        terms = _scalar(view, "output:loss/terms", frame)
        if channel is None or terms is None:
            return ""
        own = np.ma.filled(np.ma.asarray(view.array(channel.name, frame)).astype(np.float64), np.nan)
        own = own[~np.isnan(own)]
        if not len(own) or terms - (_scalar(view, "output:loss/nan", frame) or 0) <= len(own):
            return ""
        return f" over {int(terms):,} losses of all sequences ({number(round_to(float(own.mean())))} over this one)"

    @staticmethod
    def _lost(frames: list[tuple[Any, int]]) -> str:
        """How many losses are NaN that should not be, as the end of a sentence."""
        names = ("output:loss/nan", "output:loss/terms")
        said = [[int(_scalar(capture, name, frame) or 0) for name in names] for capture, frame in frames]
        counts = " → ".join(f"{nan:,} of {terms:,}" for nan, terms in said)
        return f"; the model made NaN of {counts} losses" if any(nan for nan, _ in said) else ""

    def update_contents(self) -> None:
        """Lines in view, and the table with its tokens where they can be read."""
        assert self.capture is not None
        lines = self.lines()
        self.curves.plot.setVisible(bool(lines))
        self.curves.plot.step_axis.set_names(self.step_names())
        self.curves.label = ", ".join(dict.fromkeys(channel.unit for channel in lines if channel.unit != "1"))
        self.curves.plot.set_title(self.summary())
        self.curves.show(self.capture, lines, self.frame, self.steps.bounds)
        values, tokens = self.ranked()
        there = values is not None and not self.differs  # the most probable tokens of two runs are not the same
        for item in (self.row.plot, self.row.bar):
            item.setVisible(there)
        for row, share in enumerate(SHARES if there else (1, 0)):
            self.figure.ci.layout.setRowStretchFactor(row, share)
            self.figure.ci.layout.setRowMaximumHeight(row, TALLEST if share else 0)
        if values is None or not there:
            return
        array = self.capture.array(values.name, self.frame)
        levels = Levels(0.0, 1.0) if values.scale != "diverging" else levels_of(array, values.scale, None)
        revision = self.capture.revision(values.name, self.frame)
        gaps = gaps_of(self.capture, values.name, self.frame)
        self.row.show_array(array, levels, "1", revision=revision, gaps=gaps)
        self.row.plot.set_title(f"{values.title}: most probable at the top")
        self.row.plot.step_axis.set_names(self.step_names())
        ends = sorted({0, array.shape[1] - 1})
        self.row.plot.getAxis("left").setTicks([[(rank, str(rank + 1)) for rank in ends]])
        self._draw_texts(array, tokens)

    def _draw_texts(self, values: Array, tokens: Channel | None) -> None:
        """The tokens, in the cells that have room for them."""
        low, high = self.steps.bounds
        first, stop = max(0, int(low)), min(len(values), int(high) + 2)
        self.words.setVisible(tokens is not None and stop - first <= MOST_STEPS)
        if tokens is None or self.capture is None or stop - first > MOST_STEPS:
            return
        ids = self.capture.block(tokens.name, self.frame, (slice(first, stop),))
        names = self.capture.labels(tokens.value_domain, self.frame)

        def word(rank: int, step: int) -> str:
            inside = 0 <= step - first < ids.shape[0] and rank < ids.shape[1]
            return named(names, ids[step - first, rank], "?") if inside else ""

        drawn = self.row.map.levels
        self.words.set_texts(word, drawn.index(with_nan(values).T), drawn.table)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The cursor goes to the step under the mouse."""
        self.looking.move(step=round(x))

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """Every line at the step, and the ranks with their tokens."""
        step, rows = position.step, []
        if self.capture is None or step is None:
            return []
        for channel in self.lines():
            if step < self.capture.extent(channel.name, self.frame)[0]:
                value = exact_at(self.capture, channel.name, self.frame, step)
                rows.append((f"{channel.title} [{step}]", measured(value, channel.unit)))
        values, tokens = self.ranked()
        if values is not None and tokens is not None and step < self.capture.extent(values.name, self.frame)[0]:
            names = self.capture.labels(tokens.value_domain, self.frame)
            shares = exact(self.capture, values.name, self.frame, (slice(step, step + 1),))[0]
            ids = self.capture.block(tokens.name, self.frame, (slice(step, step + 1),))[0]
            for rank, (share, one) in enumerate(zip(shares, ids, strict=False)):
                name = named(names, one, str(one))
                rows.append((f"{self.changed(values)}output {rank + 1} [{step}]: {name}", number(share)))
        return rows

    def data(self) -> dict[str, Array]:
        """Lines and tables, whole."""
        assert self.capture is not None
        return {channel.name: self.capture.array(channel.name, self.frame) for channel in self.channels()}


def named(names: Sequence[str], one: Any, otherwise: str) -> str:
    """The token of an id; "?" where the id is not known, and `otherwise` where it has no name."""
    if np.ma.is_masked(one):
        return "?"
    return token(names[one]) if 0 <= one < len(names) else otherwise


def round_to(value: float) -> float:
    """The number with four digits, for a title."""
    return float(f"{value:.4g}")


def _scalar(capture: Any, name: str, frame: int) -> float | None:
    """The last number of that name in a frame."""
    return next((s.value for s in reversed(capture.scalars) if (s.name, s.frame) == (name, frame)), None)
