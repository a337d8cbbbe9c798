"""Reading a panel as a person does: colours by the colour bar's texts, curves by the legend, words at the axes."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
import pytest
from panel_captures import Written
from PySide6.QtCore import QPoint, QPointF
from PySide6.QtGui import QColor, QImage

from inspector.gui.widgets.theme import LAST, colour_table
from inspector.records import Labels, Scalar

Array = npt.NDArray[Any]
NOTHING = -math.inf
"""In the truth of a map: nothing is drawn there."""
FARTHEST = 12.0
"""Distance of a colour (root of the sum of three squares) from the nearest one of the map."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a capture holds, where the cursor stands, and what is to be read in a panel then.

    Attributes:
        key: the panel; parts: what is written of a frame; place, at: where the cursor goes.
        choose: path of a box in the panel → the entry that is chosen; mark: (path of a plot, x) that the mouse is at.
        axes: path of a plot → (left, bottom); titles: path of a plot → what its title has in it.
        maps: path of a map's row → its numbers, a row for each row on the screen from the top, a column for each step
            from the left. Bars with `root` have a middle of a quarter; others tell by their texts.
        units: path of a map's row → the unit at its bar; ticks: path of an axis → what stands at 0, 1, 2, …;
            limits: path of a map's row → what its bar ends at; without, about the smallest and the largest number.
        curves: (path of a legend or of a line, name in the legend or "", x, numbers as the axis tells them).
        told: the readout; saved: the names and numbers of what is saved.
    """

    key: str
    parts: tuple[Written | Scalar | Labels, ...]
    place: str = "rnn.l0"
    at: dict[str, int] = field(default_factory=dict)
    choose: dict[str, Any] = field(default_factory=dict)
    mark: tuple[tuple[str, float, float], ...] = ()
    axes: dict[str, tuple[str, str]] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    maps: dict[str, Array] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    ticks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    limits: dict[str, tuple[float, float]] = field(default_factory=dict)
    curves: tuple[tuple[str, str, Any, Any], ...] = ()
    told: tuple[tuple[str, str], ...] = ()
    saved: dict[str, Array] = field(default_factory=dict)
    named: str = ""

    def about(self, path: str) -> str:
        """How the colours of a map run, by the first channel that has its numbers."""
        truth = self.maps[path]
        own = [part[0] for part in self.parts if isinstance(part, tuple) and part[1].ndim == 2]
        values = {part[0].name: part[1] for part in self.parts if isinstance(part, tuple)}
        same = [c for c in own if sorted(values[c.name].shape) == sorted(truth.shape)]
        there = truth[np.isfinite(truth)][0]
        return next((c.scale for c in same if there in values[c.name]), "sequential")

    def __str__(self) -> str:
        return self.named or self.key


def part_of(panel: Any, path: str) -> Any:
    """What a path in a panel leads to: names and, in lists, numbers, between points."""
    for word in path.split("."):
        panel = (
            panel[int(word)] if word.isdecimal() else panel[word] if isinstance(panel, dict) else getattr(panel, word)
        )
    return panel


def ticks_of(axis: Any, count: int) -> tuple[str, ...]:
    """What stands at 0, 1, … count−1 on an axis as it is drawn; "" where nothing does."""
    fixed = dict(level for levels in axis._tickLevels or () for level in levels)
    if not fixed:
        size = axis.height() if axis.orientation in ("left", "right") else axis.width()
        for spacing, values in axis.tickValues(*sorted(axis.range), size):
            fixed |= dict(zip(values, axis.tickStrings(values, 1.0, spacing), strict=True))
    return tuple(fixed.get(float(place), "").replace("\u2007", " ") for place in range(count))


def words_of(plot: Any, side: str) -> str:
    """What stands at an axis."""
    return html.unescape(plot.getAxis(side).labelText)


def title_of(plot: Any) -> str:
    """What stands above a plot, its lines apart."""
    if hasattr(plot, "heading"):
        return str(plot.heading)
    return html.unescape(plot.titleLabel.text.replace("<br>", "\n"))


class ColourReader:
    """The numbers of a map's cells, from the colours on the screen and the texts at its colour bar."""

    def __init__(self, panel: Any, row: Any) -> None:
        self.row, self.figure = row, panel.figure
        self.image: QImage = panel.figure.grab().toImage()
        texts = [text for _, text in row.bar._ticks()]
        self.unit = texts[2].partition(" ")[2]
        self.low, self.middle, self.high = (float(text.partition(" ")[0]) for text in texts)
        table = colour_table(row.map._levels.scale)[: LAST + 1].astype(np.int64)
        self.table = np.stack([table >> shift & 255 for shift in (16, 8, 0)], -1)

    def place(self, x: float, y: float) -> QPoint:
        """Where on the screen a place of the map is."""
        found: QPoint = self.figure.mapFromScene(self.row.plot.vb.mapViewToScene(QPointF(x, y)))
        return found

    def colour(self, x: float, y: float) -> QColor:
        """The colour of the screen at a place of the map."""
        return self.image.pixelColor(self.place(x, y))

    def share(self, x: float, y: float) -> float | None:
        """How far up the colour bar the colour of a cell stands, 0 … 1; None where it is none of its colours."""
        colour = self.colour(x, y)
        away = np.sqrt(((self.table - [colour.red(), colour.green(), colour.blue()]) ** 2).sum(1))
        return float(away.argmin()) / LAST if away.min() <= FARTHEST else None

    def expected(self, value: float) -> float:
        """How far up the bar a number stands, as three texts on it tell: evenly, by logarithm, or by the root."""
        if (
            self.low > 0
            and abs(self.middle**2 - self.low * self.high) < 0.03 * self.middle**2
            and self.high / self.low > 1.2
        ):
            value, low, high = (math.log(max(v, 1e-300)) for v in (value, self.low, self.high))
            return min(1.0, max(0.0, (value - low) / (high - low)))
        share = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        quarter = abs(self.middle - (self.low + 0.25 * (self.high - self.low))) < 0.02 * (self.high - self.low)
        return math.sqrt(share) if quarter else share

    def check(self, truth: Array, where: str) -> None:
        """Every cell's colour stands for its number: row i from the top, column j from the left."""
        whole = self.row.map.boundingRect()
        assert (whole.height(), whole.width()) == truth.shape, where
        first, last = self.place(0, 0), self.place(truth.shape[1] - 1, truth.shape[0] - 1)
        assert first.x() < last.x() and first.y() < last.y(), f"{where}: rows run downward, steps to the right"
        for (i, j), value in np.ndenumerate(truth):
            share = self.share(j + 0.2, i + 0.2)
            if value == NOTHING:
                nothing = self.colour(j + 0.2, i + 0.2).name()
                assert nothing == self.row.plot.theme.base, f"{where}: {nothing} at row {i}, column {j}"
            else:
                assert share is not None, f"{where}: a colour that is not on the bar at row {i}, column {j}"
                assert abs(share - self.expected(float(value))) < 0.02, (
                    f"{where}: row {i}, column {j} is drawn {share:.3f} up the bar and not {self.expected(value):.3f}"
                )
        assert self.colour(0, 0.3) != self.colour(truth.shape[1] - 1, truth.shape[0] - 0.7), "nothing is told apart"

    def check_limits(self, truth: Array, declared: tuple[float, float] | None, *, log: bool, centred: bool) -> None:
        """The bar ends at what was declared; else at most a twentieth of its length outside of what there is, at a round
        number."""
        if declared is not None:
            assert (self.low, self.high) == declared
            return
        there = truth[np.isfinite(truth)]
        ends = [float(there.min()), float(there.max())]
        if centred:
            ends = [-max(map(abs, ends)), max(map(abs, ends))]
        texts = [self.low, self.high]
        if log:
            ends, texts = [math.log10(v) for v in ends], [math.log10(v) for v in texts]
        assert texts == pytest.approx(ends, abs=0.06 * (ends[1] - ends[0])), "limits of the colour bar"

    def check_bar(self) -> None:
        """The bar's own colours run from its lowest text to its highest, from the foot of the map to its top, but for
        what the notes below need."""
        bar = self.row.bar
        area = bar.boundingRect().adjusted(0, 8, 0, -8)
        beside = bar.mapRectFromScene(self.row.plot.vb.sceneBoundingRect())
        notes = len(bar._notes())
        top = max(area.top(), beside.top())
        bottom = min(area.bottom() - 15 * notes - (6 if notes else 0), beside.bottom())
        assert bottom - top > 0.9 * beside.height(), "as high as the map"
        for share, y in ((1.0, top + 2), (0.5, (top + bottom) / 2), (0.0, bottom - 2)):
            point = self.figure.mapFromScene(bar.mapToScene(QPointF(area.left() + 12, y)))
            colour = self.image.pixelColor(point)
            away = np.sqrt(((self.table - [colour.red(), colour.green(), colour.blue()]) ** 2).sum(1))
            assert away.min() <= FARTHEST, f"no colour of the map at {share} of the bar"
            assert abs(away.argmin() / LAST - share) < 0.05, f"the colour at {share} of the bar"


def numbers_of(line: Any) -> tuple[Array, Array]:
    """(x, y) of a line or of a scatter, as drawn."""
    x, y = line.getData()
    return np.asarray(x, np.float64), np.asarray(y, np.float64)


def look_of(line: Any) -> tuple[Any, ...]:
    """By what a curve is told from others: colour, style and width of its pen, or its symbol and the symbol's colour."""
    pen, brush = line.opts.get("pen"), line.opts.get("brush", line.opts.get("symbolBrush"))
    drawn = pg.mkPen(pen)
    of_line = (drawn.color().name(QColor.NameFormat.HexArgb), drawn.style(), drawn.widthF())
    return (
        of_line if line.opts.get("connect") is not None else (line.opts.get("symbol"), pg.mkBrush(brush).color().name())
    )


def axis_numbers(plot: Any, y: Array) -> Array:
    """Heights in a plot as numbers, as the texts of its left axis tell them."""
    axis = plot.getAxis("left")
    texts = axis.tickStrings([0.0, 1.0], 1.0, 1.0)
    return 10**y if texts == ["1", "10"] else y
