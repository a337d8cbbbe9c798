"""The figure of the panel of weights: the map of a tensor or its line, and one plot beside or below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg

from inspector.analysis.weights import ListedPart, WeightList
from inspector.gui.panel.attention.drawing import count_cells, unread_rows
from inspector.gui.panel.weights.plots import Drawn, LinesPlot
from inspector.gui.panel.weights.values import TensorMap, TensorRows
from inspector.gui.widgets.images.quantise import levels_of
from inspector.gui.widgets.maps.colourbar import ColourBar
from inspector.gui.widgets.maps.map_plot import MapPlot
from inspector.gui.widgets.theme import Theme

Array = npt.NDArray[Any]


class WeightsPage:
    """Plots in a figure; what is not shown is taken out of it."""

    def __init__(self, figure: Any, theme: Theme) -> None:
        self.figure, self.theme = figure, theme
        self.map, self.bar = MapPlot(theme), ColourBar(theme)
        self.bar.lie_beside(self.map)
        self.bar.lie_by_map(self.map.map)
        self.map.label("row", "column")
        self.line, self.beside, self.ranks = LinesPlot(theme), LinesPlot(theme), LinesPlot(theme, log=True)
        self.gates: list[pg.InfiniteLine] = []
        self._placed: Any = None

    @property
    def plots(self) -> list[Any]:
        """All of them, shown or not."""
        return [self.map, self.line, self.beside, self.ranks]

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = self.bar.theme = theme
        for plot in self.plots:
            plot.set_theme(theme)
        for line in self.gates:
            line.setPen(pg.mkPen(theme.muted, width=1))
        self.bar.update()

    def place(self, main: str, second: str, *, wide: bool) -> None:
        """Put the plots into the figure: `main` is "map", "line" or "", `second` "beside", "ranks" or ""."""
        if self._placed == (main, second, wide):
            return
        self._placed = (main, second, wide)
        self.figure.clear()
        shown = {"map": self.map, "line": self.line, "beside": self.beside, "ranks": self.ranks}
        if main:
            self.figure.addItem(shown[main], 0, 0)
        if main == "map":
            self.figure.addItem(self.bar, 0, 1)
        if second:
            self.figure.addItem(shown[second], *((0, 2) if wide or not main else (1, 0)))
        layout = self.figure.ci.layout
        for column in range(3):
            layout.setColumnStretchFactor(column, ((5, 0, 4) if wide else (1, 0, 0))[column])

    # -- contents

    def draw_map(self, drawn: TensorMap, revision: Any, title: str, note: str, *, unsigned: bool, anew: bool) -> None:
        """A map as far as it was read."""
        pyramid = drawn.pyramid
        rows, columns = drawn.shape
        level = pyramid.level_for(max(1.0, rows * columns / 1e6) ** 0.5)
        levels = levels_of(level.largest, "sequential" if unsigned else "diverging", None)
        nan, infinite, _ = pyramid.special
        self.bar.set_levels(levels, "", nan=nan, infinite=infinite, gaps=unread_rows(pyramid))
        self.map.map.set_source(
            drawn.look, (columns, rows), levels, (revision, pyramid.rows_done), unread_rows(pyramid)
        )
        self.map.fit(columns, rows, anew=anew)
        count_cells(self.bar, pyramid, "maximum")
        self.map.set_title(title, note)

    def mark_gates(self, found: WeightList, part: int, axes: tuple[int, int]) -> None:
        """Lines between the gates of a tensor whose rows and columns are along these axes."""
        for line in self.gates:
            self.map.removeItem(line)
        self.gates = []
        for gate in found.gates_of(part):
            block = found.parts[gate].block
            if block is not None and block[0] in axes:
                self._mark(found.parts[gate], block, angle=0 if block[0] == axes[0] else 90)

    def _mark(self, gate: ListedPart, block: tuple[int, int, int], *, angle: int) -> None:
        line = pg.InfiniteLine(
            block[1] - 0.5, angle=angle, pen=pg.mkPen(self.theme.muted, width=1), label=gate.gate,
            labelOpts={"position": 0.98 if angle else 0.02, "anchors": [(0, 0), (0, 0)], "color": self.theme.text,
                       "fill": pg.mkBrush(self.theme.base), "movable": False},
        )  # fmt: skip
        self.map.addItem(line, ignoreBounds=True)
        self.gates.append(line)

    def draw_line(self, curves: Sequence[Drawn], title: str, note: str) -> None:
        """The values of a tensor of one axis."""
        self.line.show_lines(curves, "value", "index")
        self.line.set_title(title, note)

    def draw_beside(self, curves: Sequence[Drawn], axes: tuple[str, str], title: str, *, log: bool) -> None:
        """Histograms or lines beside it."""
        plot = self.ranks if log else self.beside
        plot.show_lines(curves, *axes)
        plot.set_title(title)


def line_of(name: str, source: TensorRows) -> Drawn:
    """The values of one axis."""
    values = source.all().reshape(-1)
    return Drawn(name, np.arange(len(values), dtype=np.float64), values.astype(np.float64))
