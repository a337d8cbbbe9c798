"""Weights: every tensor of a checkpoint as a map with its histogram, spectrum and norms, or two files compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF, Qt, QTimer
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QCheckBox, QLineEdit, QPushButton, QSplitter, QVBoxLayout, QWidget

from inspector.analysis.weights import ListedPart, WeightList, weight_list
from inspector.gui.panel.base import Panel, caption, chooser, set_options
from inspector.gui.panel.registry import PANELS
from inspector.gui.panel.weights.beside import BESIDE, NOTHING, SPECTRUM, Beside
from inspector.gui.panel.weights.choices import Slices
from inspector.gui.panel.weights.listing import CHANGED, chosen_parts, rows_of
from inspector.gui.panel.weights.page import WeightsPage, line_of
from inspector.gui.panel.weights.values import SMALL, Cut, TensorMap, TensorRows
from inspector.gui.state.cursor import Position
from inspector.gui.state.side_reader import SideReader, Task
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.tables.sorted_table import SortedTable
from inspector.gui.widgets.theme import Theme
from inspector.records import WEIGHTS, Channel
from inspector.records import weights as layout

Array = npt.NDArray[Any]
TABLES = (("tensor", "statistic"), ("tensor", "bin"), ("row", "column"))
POLL_MS = 60
MOST_NAME = 230
"""Pixels of the names of tensors at first; they are cut in their middle."""
LEAST_WIDE = 560
"""Pixels of a figure from which on the second plot stands beside the map."""
DIFFERENCE = "second − first"
ALL, PICTURE = "Read every number", "each cell the value farthest from 0 of {} × {}"


@PANELS.register("weights")
class Weights(Panel):
    """Channels of kind "weights": the list of all tensors, and the values of the one that is chosen in it."""

    tab_order, tab_row = 78, "upper"
    menu_group = "inside"
    key, title = "weights", "Weights"
    hint = (
        "Every tensor of a checkpoint: its numbers, map, histogram, singular values and norms, gates apart; two "
        "checkpoints tensor by tensor. Drop a checkpoint whose model is not known, or choose Run ▸ Look at the weights."
    )
    by_steps = False
    needs_height = 150

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Everything of a capture of weights."""
        return channel.kind == WEIGHTS and (channel.dims in TABLES or channel.dims[:1] == layout.axes_of(1))

    def concerns(self, name: str) -> bool:
        """Nothing that a run could not compute."""
        return False

    def picture(self) -> QWidget:
        """The list with a field that searches it, and the figure beside it."""
        self.table = SortedTable("tensor", "Tensors and their numbers")
        self.table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.table.chosen.connect(self._chosen)
        self.search = QLineEdit()
        self.search.setPlaceholderText("Find tensors: words of their names")
        self.search.setAccessibleName("Find tensors")
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._fill)
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self.search)
        column.addWidget(self.table, 1)
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.addWidget(left)
        splitter.addWidget(self.figure)
        for place in (0, 1):
            splitter.setStretchFactor(place, 1)
            splitter.setCollapsible(place, False)
        splitter.setSizes([1000, 1000])
        return splitter

    def build(self) -> None:
        """The plots, and the controls."""
        self.page, self.reader = WeightsPage(self.figure, self.theme), SideReader()
        self.beside = Beside(self.reader)
        self.plots = self.page.plots
        self.files, self.of_files = chooser([], "Which file, or how far they differ"), caption("Show")
        self.files.currentTextChanged.connect(self.redraw)
        self.controls.addWidget(self.of_files)
        self.controls.addWidget(self.files)
        self.second = self.add_choice("Beside it", "What is drawn beside the map")
        set_options(self.second, list(BESIDE))
        self.slices = Slices(self._draw)
        for one in self.slices.widgets:
            self.controls.addWidget(one)
        self.gates = QCheckBox("Gates apart")
        self.gates.setToolTip("List the gates of LSTM and GRU layers as rows of their own")
        self.gates.setChecked(True)
        self.gates.toggled.connect(self._fill)
        self.controls.addWidget(self.gates)
        self.ask = QPushButton(ALL)
        self.ask.clicked.connect(self._ask)
        self.controls.addWidget(self.ask)
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._read_more)
        self.found: WeightList | None = None
        self.reset()

    def reset(self) -> None:
        """Another capture."""
        self.reader.close()
        self.beside.forget()
        self.found, self.numbers, self.part = None, list[int](), 0
        self._seen: Any = None
        self._ranked = False
        """Whether how far two files differ is known, by which they are sorted at first."""
        self._map: TensorMap | None = None
        self._cut: Any = None
        self._at: tuple[int, int] | None = None

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.page.set_theme(theme)
        self.table.set_theme(theme)
        super().set_theme(theme)

    # -- the list

    def update_contents(self) -> None:
        """The list, and the tensor that is chosen in it."""
        assert self.capture is not None
        seen = tuple(self.capture.revision(name, self.frame) for name in self.capture.channels if name in LISTS)
        if seen != self._seen or self.found is None:
            self._seen, first = seen, self.found is None
            self.found = weight_list(self.capture, self.frame)
            self._begin(first=first)
        if self.found is not None and self.found.parts:
            self._draw()

    def _begin(self, *, first: bool) -> None:
        """Another list; of two files what changed most comes first."""
        found = self.found
        if found is None:
            return
        two = len(found.tables) == 2
        set_options(self.files, [DIFFERENCE, *found.files] if two else [])
        self.files.setVisible(two)
        self.of_files.setVisible(two)
        self.gates.setVisible(any(part.gate for part in found.parts))
        self._fill()
        ranked, self._ranked = found.compared is not None and not self._ranked, found.compared is not None
        if ranked:
            self.table.sort_by(CHANGED, descending=True)
        order = self.table.numbers.order
        if (first or ranked) and order:
            listed = [self.numbers[row] for row in order]
            matrices = (number for number in listed if found.parts[number].has_map and not ranked)
            self.part = next(matrices, listed[0])
            self.table.choose(self.numbers.index(self.part))

    def _fill(self, *_: object) -> None:
        if self.found is None:
            return
        self.numbers = chosen_parts(self.found, self.search.text(), gates=self.gates.isChecked())
        self.table.show_table(rows_of(self.found, self.numbers))
        self.table.setColumnWidth(0, min(self.table.columnWidth(0), MOST_NAME))
        self.table.choose(self.numbers.index(self.part) if self.part in self.numbers else None)

    def _chosen(self, row: int) -> None:
        if row < len(self.numbers) and self.numbers[row] != self.part:
            self.part, self._at = self.numbers[row], None
            self._draw()

    @property
    def listed(self) -> ListedPart | None:
        """The part that is drawn."""
        return self.found.parts[self.part] if self.found is not None and self.part < len(self.found.parts) else None

    # -- what is drawn of it

    def _names(self, part: ListedPart, signal: str) -> tuple[str, ...]:
        """The channels of what is chosen of a tensor; () where they are not there."""
        assert self.capture is not None
        both = [f"{part.name}:{signal}{side}" for side in layout.SIDES]
        there = [name for name in map(layout.channel_of, both) if name in self.capture.channels]
        chosen = self.files.currentText()
        if self.found is None or len(self.found.tables) == 1 or len(there) < 2:
            return tuple(there[:1])
        if chosen == DIFFERENCE:
            same = len({tuple(self.capture.extent(name, self.frame)) for name in there}) == 1
            return tuple(there) if same else (there[0],)
        return (there[self.found.files.index(chosen)],) if chosen in self.found.files else (there[0],)

    def _draw(self) -> None:
        """The part that is chosen."""
        part = self.listed
        if part is None or self.capture is None or self.state == "error":
            return
        names = self._names(part, layout.VALUES)
        cut, note = (self._cut_of(part, names), "") if names else self._picture_of(part)
        self.ask.setVisible(not names and note != "")
        empty = cut is None or min(self.capture.extent(cut.names[0], self.frame), default=0) == 0
        source = None if cut is None or empty else TensorRows(self.capture, cut, self.frame)
        self._show(part, source, note)

    def _cut_of(self, part: ListedPart, names: tuple[str, ...]) -> Cut:
        assert self.capture is not None
        shape = list(self.capture.extent(names[0], self.frame))
        if part.block is not None:
            shape[part.block[0]] = part.block[2] - part.block[1]
        self.slices.show_shape(shape)
        return Cut(names, *self.slices.pair, self.slices.fixed, part.block)

    def _picture_of(self, part: ListedPart) -> tuple[Cut | None, str]:
        """The cells of a picture of a large tensor, and what a cell is."""
        assert self.capture is not None
        self.slices.show_shape(())
        names = self._names(part, layout.CELLS)
        if len(names) == 2:
            names = (layout.channel_of(f"{part.name}:{layout.CELLS}{layout.DIFFERENCE}"),)
        if not names or names[0] not in self.capture.channels:
            return None, ""
        whole = self.found.parts[part.tensor] if self.found is not None else part
        shape = layout.shape_of(next((one for one in whole.shapes if one), "")) or ()
        rows, columns = layout.picture_shape(shape)
        of = f"; a picture of all of {part.name}" if part.gate else ""
        cells = (layout.cell_size(rows), layout.cell_size(columns))
        return Cut(names, 0, 1, shape=(rows, columns), cells=cells), PICTURE.format(*cells) + of

    def _show(self, part: ListedPart, source: TensorRows | None, note: str) -> None:
        wide = self.figure.width() >= LEAST_WIDE and self.figure.width() > 1.2 * self.figure.height()
        chosen = self.second.currentText()
        line = source is not None and source.shape[0] == 1
        main = "" if source is None else "line" if line else "map"
        second = "" if chosen == NOTHING and main else "ranks" if chosen == SPECTRUM else "beside"
        self.page.place(main, second, wide=wide)
        title = self._title(part)
        if source is not None and line:
            self.page.draw_line(self._lines(part, source), title, note)
        elif source is not None:
            self._draw_map(part, source, title, note)
        if second:
            assert self.found is not None
            self.beside.draw(self.page, chosen, self.found, self.part, source, exact=not note)
        self._poll()

    def _title(self, part: ListedPart) -> str:
        shape = " / ".join(
            dict.fromkeys(one or "scalar" for one, there in zip(part.shapes, part.there, strict=True) if there)
        )
        types = " / ".join(dict.fromkeys(one for one in part.types if one))
        order = f", gates in the order of {part.order}" if part.order and part.gate else ""
        which = f"{self.files.currentText()}: " if self.found is not None and len(self.found.tables) == 2 else ""
        return f"{which}{part.title}: {shape}, {types}{order}"

    def _lines(self, part: ListedPart, source: TensorRows) -> list[Any]:
        """Values over their index, of both files where both are there."""
        return [line_of(part.title, source)]

    def _draw_map(self, part: ListedPart, source: TensorRows, title: str, note: str) -> None:
        assert self.found is not None and self.capture is not None
        key = (source.cut, tuple(self.capture.revision(name, self.frame) for name in source.cut.names))
        anew = key != self._cut
        if anew or self._map is None:
            self._cut, self._map = key, TensorMap(source)
            made = self._map
            self.reader.do(self.capture, Task(("map", key), made.build, 1), at_once=source.size <= SMALL)
        kind = self.capture.channel(source.cut.names[0], self.frame).dtype
        unsigned = len(source.cut.names) == 1 and kind.startswith(("uint", "bool"))
        self.page.draw_map(self._map, key, title, self._under(source) or note, unsigned=unsigned, anew=anew)
        axes = (-2, -2) if part.gate or note else (source.cut.rows, source.cut.columns)
        self.page.mark_gates(self.found, self.part, axes)

    def _under(self, source: TensorRows) -> str:
        """The exact value under the mouse."""
        down, across = source.cut.cells
        row, column = (self._at[0] // down, self._at[1] // across) if self._at is not None else (-1, -1)
        if not (0 <= row < source.shape[0] and 0 <= column < source.shape[1]):
            return ""
        value = float(source.exact((row, row + 1), (column, column + 1))[0, 0])
        if source.cut.cells != (1, 1):
            return f"around [{row * down:,}, {column * across:,}]: {short(value, 7)} is farthest from 0"
        return f"[{row:,}, {column:,}] = {short(value, 7)}"

    def _ask(self) -> None:
        part = self.listed
        if part is not None:
            self.wanted.emit((f"{layout.MORE}@{part.tensor}",))

    # -- what is read beside the window

    def _poll(self) -> None:
        if self.reader.busy and not self._timer.isActive():
            self._timer.start()

    def _read_more(self) -> None:
        if not self.reader.busy:
            self._timer.stop()
        if self.reader.news() and self.state == "figure" and self.capture is not None:
            self._draw()

    def complete(self) -> None:
        """Wait for everything that is being read: a figure in a file shows the whole."""
        self.reader.wait()
        self._timer.stop()
        self.redraw()

    # -- the mouse, and figures

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """The value under the mouse."""
        if plot is not self.page.map or self._map is None or np.isnan(x) or np.isnan(y):
            return
        rows, columns = self._map.shape
        self._at = (min(max(0, round(y)), rows - 1), min(max(0, round(x)), columns - 1))
        self.page.map.set_title(self._title(self.listed), self._under(self._map.source))  # type: ignore[arg-type]

    def follow(self, new: Position, old: Position) -> None:
        """A tensor that was chosen in the tree of the model."""
        if new.place != old.place and self.found is not None:
            named = [row for row, number in enumerate(self.numbers) if self.found.parts[number].name == new.place]
            if named and self.numbers[named[0]] != self.part:
                self.table.choose(named[0])
                self._chosen(named[0])

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The value under the mouse."""
        said = self._under(self._map.source) if self._map is not None and self._at is not None else ""
        return [(self.listed.title if self.listed is not None else "", said)] if said else []

    def resizeEvent(self, event: Any) -> None:
        """A wide figure has its plots beside each other."""
        super().resizeEvent(event)
        if self.state == "figure":
            self.draw_if_seen()

    def data(self) -> dict[str, Array]:
        """The table of numbers, and the values that are drawn."""
        if self.found is None or self.capture is None:
            return {}
        found = {layout.TABLE + side: table for side, table in zip(layout.SIDES, self.found.tables, strict=False)}
        if self.found.compared is not None:
            found[layout.COMPARED] = self.found.compared
        part = self.listed
        for name in self._names(part, layout.VALUES) if part is not None else ():
            found[name] = np.asarray(self.capture.array(name, self.frame))
        return found

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        """The first rows of the list as text, and the figure beside them."""
        painter.fillRect(rect, QColor(self.theme.window))
        if self.state != "figure" or self.found is None:
            return
        left = QRectF(rect.left(), rect.top(), 0.5 * rect.width(), rect.height())
        self.table.paint_text(painter, left, self.theme)
        super().paint(painter, QRectF(left.right(), rect.top(), rect.right() - left.right(), rect.height()))


LISTS = frozenset(
    f"{name}{side}"
    for name in (layout.TABLE, layout.HISTOGRAM, layout.COMPARED, layout.BLOCKS)
    for side in layout.SIDES
)
