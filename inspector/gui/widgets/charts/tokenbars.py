"""Bars of a number by token, already sorted: the token below each bar, how often it occurs above."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtGui import QFont, QFontMetricsF

from inspector.gui.widgets.plain_text import clean, token
from inspector.gui.widgets.plots.axes import style_axis
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]
MOST, FEWEST, FEWEST_OF_ALL = 48, 12, 3
CLOSEST = 0.8
"""The part of a line's height at which labels that are written downwards follow each other at least (see StepAxis)."""
LABEL, LETTER = 10.0, 7.0
"""Pixels of a label beside its letters, and of one letter."""
BEYOND = 60
"""Pixels by which a text may pass the end of its axis before it is turned."""
ROOM = 120
"""Characters of labels that fit side by side in a panel of usual width."""
MOST_ROOM = 0.7
"""The part of a plot's height that counts may take at most."""
PADDING = 0.02


def places_for(names: Sequence[str], width: float = math.inf) -> int:
    """How many bars fit so that their labels can be read, in so many pixels: beside each other or written downwards."""
    longest = max((min(len(name), 10) for name in names), default=1)
    usual = max(FEWEST, min(MOST, ROOM // max(2, longest + 1)))
    return usual if math.isinf(width) else max(FEWEST_OF_ALL, min(usual, int(width / (line_height() * CLOSEST)) - 1))


def line_height() -> float:
    """Pixels of a line of an axis' labels."""
    return QFontMetricsF(QFont()).height()


def ends(count: int, room: int) -> list[int | None]:
    """Positions 0 … count−1 that are shown: all, or the first and the last ones with a gap (None) between."""
    if count <= room:
        return list(range(count))
    half = room // 2
    return [*range(half), None, *range(count - (room - half - 1), count)]


class TokenBars:
    """The plot, its bars and its counts."""

    def __init__(self, theme: Theme) -> None:
        self.plot = StepPlot(None, theme, bottom="")
        self.plot.step_axis.turns = True  # words even where they have no room beside each other: ranks read as ids
        self._given: tuple[Sequence[str], Array, Sequence[int], float, str] | None = None
        self._places = 0
        self._height: float | None = None
        self.bars = pg.BarGraphItem(x=[0], height=[0], width=0.8)
        self.mean = pg.InfiniteLine(angle=0)
        self.plot.addItem(self.bars)
        self.plot.addItem(self.mean, ignoreBounds=True)
        self.counts: list[pg.TextItem] = []
        self._shown: list[int | None] = []
        self._ends = (0.0, 0.0)
        """The lowest and the highest bar, and 0."""
        self.plot.vb.sigResized.connect(self._resized)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.plot.set_theme(theme)
        self.bars.setOpts(brush=pg.mkBrush(theme.series[0]), pen=pg.mkPen(theme.base))
        self.mean.setPen(pg.mkPen(theme.muted, width=1, style=pg.QtCore.Qt.PenStyle.DashLine))
        for item in self.counts:
            item.setColor(theme.muted)

    def show(self, names: Sequence[str], values: Array, counts: Sequence[int], mean: float, label: str) -> None:
        """Draw the bars of sorted values; `counts` may be empty; NaN values have no bar; `label` names the values."""
        self._given = (names, values, counts, mean, label)
        style_axis(self.plot.getAxis("left"), self.theme, label)
        self._places = self._room(names)
        shown = self._shown = ends(len(values), self._places)
        heights = np.array([np.nan_to_num(values[i]) if i is not None else 0.0 for i in shown])
        self.bars.setOpts(x=np.arange(len(shown)), height=heights, width=0.78)
        nan = np.isnan(values)  # no bar, and not one of height 0
        self.plot.step_axis.set_names(
            tuple(f"{names[i]}{' ?' if nan[i] else ''}" if i is not None else "…" for i in shown)
        )
        self.mean.setVisible(bool(np.isfinite(mean)))
        self.mean.setPos(mean if np.isfinite(mean) else 0.0)
        low, high = (float(f(heights)) if len(heights) else 0.0 for f in (np.min, np.max))
        self._ends = (-1.0, 1.0) if low < 0 else (0.0, max(high, 0.05))
        self.plot.vb.setXRange(-0.6, max(1, len(shown)) - 0.4, padding=0)
        self._draw_counts([(i, counts[j]) for i, j in enumerate(shown) if j is not None and counts], heights)
        self._fit()

    def _room(self, names: Sequence[str]) -> int:
        return places_for(names, self.plot.vb.width() if self.plot.scene() is not None else math.inf)

    def _resized(self) -> None:
        """Another width has room for other numbers of bars."""
        if self._given is not None and self._room(self._given[0]) != self._places:
            self.show(*self._given)
        else:
            self._fit()

    def _fit_names(self) -> None:
        """A height for names that are written downwards, where the width asks for it."""
        axis = self.plot.step_axis
        turned = axis.written(0, len(axis.names) - 1, self.plot.vb.width()) == "turned"
        longest = max((len(token(name)) for name in axis.names), default=0)
        height = LABEL + LETTER * min(longest, axis.longest) if turned else None
        if height != self._height:
            self._height = height
            axis.setHeight(height)
            # pyqtgraph leaves out a text that passes the axis' end before it is turned; the first and the last would
            axis.setStyle(hideOverlappingLabels=BEYOND if turned else True)

    def _fit(self) -> None:
        """Room for the longest count above the highest bar; a plot too low for both shows no counts, never half ones.

        A count without its last digit reads as another number: "×104" as "×10".
        """
        self._fit_names()
        bottom, top = self._ends
        longest = max((item.textItem.boundingRect().width() for item in self.counts), default=0.0)
        share = longest / max(1.0, self.plot.vb.height()) + 2 * PADDING
        for item in self.counts:
            item.setVisible(share <= MOST_ROOM)
        room = 1 - share if self.counts and share <= MOST_ROOM else 1.0
        self.plot.vb.setYRange(bottom, bottom + (top - bottom) / room, padding=PADDING)

    def at(self, x: float) -> int | None:
        """The number of the value, in their order, whose bar is at x; None between and beyond them."""
        place = round(x)
        return self._shown[place] if 0 <= place < len(self._shown) else None

    def _draw_counts(self, counts: list[tuple[int, int]], heights: Array) -> None:
        for item in self.counts[len(counts) :]:
            self.plot.removeItem(item)
        del self.counts[len(counts) :]
        while len(self.counts) < len(counts):
            self.counts.append(pg.TextItem(anchor=(0, 0.5), angle=90, color=self.theme.muted))
            self.plot.addItem(self.counts[-1], ignoreBounds=True)
        for item, (place, count) in zip(self.counts, counts, strict=True):
            item.setPlainText(clean(f"×{count:,}"))
            item.setPos(place, max(0.0, float(heights[place])))
