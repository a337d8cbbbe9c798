"""Picture: what each word that is said of a picture has to do with its parts, over the picture itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyqtgraph as pg
from PySide6.QtCore import QRectF
from PySide6.QtGui import QFontMetrics

from inspector.gui.panel.arranged import Arranged, is_wide
from inspector.gui.panel.base import Panel, measured
from inspector.gui.panel.channel_choice import offer
from inspector.gui.panel.exact import exact_at
from inspector.gui.panel.picture.maps import (
    WORDS,
    grid_of,
    is_attention,
    of_attention,
    of_words,
    picture_of,
    words_in_view,
)
from inspector.gui.panel.picture.mosaic import Colours, Column, coloured, grey, mosaic, over, size_of
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.plots.stepplot import StepPlot
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
KIND = "picture_words"
LARGE = 480
"""Pixels along the longer side of the large picture."""
COVERAGE = "coverage"
NAMED = 74
"""Pixels for words beside their rows."""
BETWEEN = 8
"""Pixels between the names of two columns."""


@PANELS.register("picture")
class PictureOfWords(Panel):
    """(head, query, key) attention whose keys are the patches of a picture, and channels of kind "picture_words"."""

    tab_order = 135
    menu_group = "sequence"
    key, title = "picture", "Picture"
    hint = (
        "The attention of each word over the picture, the word's gradient at the pixels and what blanking a patch "
        "changes. Needs a model that reads a picture and says something of it step by step, or attends to its patches."
    )
    shows = ("attention/maps",)
    extra = ("picture/words",)
    needs_height = 240

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Weights, of which `only` keeps those over patches, and what belongs to words."""
        return is_attention(channel) or (channel.kind == KIND and channel.dims in WORDS)

    def concerns(self, name: str) -> bool:
        """Words of a picture that could not be shown."""
        return name.startswith("input") and ":words" in name

    def build(self) -> None:
        """The large picture, and the table of small ones."""
        self.where = self.add_choice("Attention", "Whose attention is shown")
        self.large, self.table = (StepPlot(None, self.theme, bottom="") for _ in range(2))
        self.images: dict[StepPlot, pg.ImageItem] = {}
        for plot in (self.large, self.table):
            plot.invertY(True)
            image = self.images[plot] = pg.ImageItem(axisOrder="row-major")
            plot.addItem(image)
            plot.vb.both = True
            plot.vb.setAspectLocked(True)
            plot.vb.sigResized.connect(self._fit)
        self.large.hideAxis("bottom")
        self.large.hideAxis("left")
        self.table.getAxis("left").setWidth(NAMED)
        self.row_frame, self.cell_frame = (pg.PlotCurveItem() for _ in range(2))
        for item in (self.row_frame, self.cell_frame):
            self.table.addItem(item, ignoreBounds=True)
        self.arranged = Arranged(self.figure, [self.large, self.table])
        self.plots = [self.large, self.table]
        self.reset()

    def reset(self) -> None:
        """Another capture has other maps."""
        self.columns: list[Column] = []
        self.words = range(0)
        self.ground: Colours | None = None
        self.chosen = 0
        """The column that is drawn large."""
        self.cell: tuple[int, int] | None = None
        """(row, column) of the map under the mouse."""

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.row_frame.setPen(pg.mkPen(theme.cursor, width=1.5))
        self.cell_frame.setPen(pg.mkPen(theme.accent, width=3))
        super().set_theme(theme)

    # -- what there is

    @classmethod
    def only(cls, capture: Any, found: list[Channel], frame: int) -> list[Channel]:
        """Attention only where it is over the patches of a picture."""
        return [one for one in found if one.kind == KIND or grid_of(capture, one, frame) is not None]

    def _filled(self) -> list[Channel]:
        found = super()._filled()
        return found if self.capture is None else self.only(self.capture, found, self.frame)

    def maps(self) -> dict[str, Channel]:
        """Place → weights over patches; of a model that is called for each word, the last call, of all words, first."""
        assert self.capture is not None
        found = [one for one in self.channels() if is_attention(one)]
        words = {one.name: self.capture.extent(one.name, self.frame)[1] for one in found}
        last_first = list(reversed(found))
        return {one.place: one for one in sorted(last_first, key=lambda one: -words[one.name])}

    def attention(self) -> Channel | None:
        """The weights that are chosen."""
        return self.maps().get(self.where.currentData() or "")

    def total(self) -> int:
        """How many words there are."""
        assert self.capture is not None
        sizes = [
            self.capture.extent(one.name, self.frame)[one.dims.index("query" if is_attention(one) else "step")]
            for one in self.channels() if not is_attention(one) or one is self.attention()
        ]  # fmt: skip
        return int(max(sizes, default=0))

    # -- drawing

    def update_contents(self) -> None:
        """Both pictures."""
        offer(self.where, {place: clean(place) for place in self.maps()} or {"": "none"})
        self.where.setEnabled(self.where.count() > 1)
        step = self.looking.position.step
        self._take(words_in_view(self.total(), step))
        self._lay_out()
        self._draw_table()
        self._draw_large()

    def _lay_out(self) -> None:
        wide = is_wide(self.width(), self.height())
        cells = {self.large: (0, 0, 1, 1), self.table: (0, 1, 1, 1) if wide else (1, 0, 1, 1)}
        self.arranged.place(cells, (1,) if wide else (2, 3), (2, 3) if wide else (1,))

    def _take(self, words: range) -> None:
        assert self.capture is not None
        channel, position = self.attention(), self.looking.position
        self.words = words
        given = [] if channel is None else of_attention(self.capture, channel, self.frame, words, position.head or 0)
        said = [one for one in self.channels() if one.kind == KIND]
        self.columns = given + of_words(self.capture, said, self.frame, words)
        picture = picture_of(self.capture, channel, self.frame)
        self.ground = None if picture is None else grey(picture)
        self.chosen = min(self.chosen, max(0, len(self.columns) - 1))

    def _draw_table(self) -> None:
        if not self.columns:
            self.images[self.table].clear()
            return
        base = pg.mkColor(self.theme.base)
        drawn = mosaic(self.ground, self.columns, range(len(self.words)), (base.red(), base.green(), base.blue()))
        below = any(column.below is not None for column in self.columns)
        rows, columns = len(self.words) + below, len(self.columns)
        self.images[self.table].setImage(drawn, levels=None)
        self.images[self.table].setRect(QRectF(-0.5, -0.5, columns, rows))
        self.table.vb.setAspectLocked(True, drawn.shape[0] * columns / (drawn.shape[1] * rows))
        names = [self._word(word) for word in self.words] + [COVERAGE] * below
        self.table.getAxis("left").setTicks([list(enumerate(names))])
        self.table.set_title(*self._rules())
        self._fit()

    def _name_columns(self) -> None:
        """Every column where the names have room beside each other; else the one that is drawn large."""
        left, right = self.table.vb.viewRange()[0]
        room, metrics = self.table.vb.width() / max(right - left, 1e-9), QFontMetrics(self.table.font())
        fit = all(metrics.horizontalAdvance(one.title) + BETWEEN <= room for one in self.columns)
        named = [(n, column.title) for n, column in enumerate(self.columns) if fit or n == self.chosen]
        self.table.getAxis("bottom").setTicks([named])

    def _fit(self, *_: object) -> None:
        """The whole of both pictures: with square pixels another size of a plot shows another part."""
        for plot, image in self.images.items():
            if image.image is not None:
                plot.vb.setRange(image.mapRectToParent(image.boundingRect()), padding=0.01)
        self._name_columns()

    def _rules(self) -> tuple[str, str]:
        """What the colours mean."""
        told = ["√weight 0 … 1"] if any(column.root for column in self.columns) else []
        for column in self.columns:
            if column.head < 0:
                sign = "±" if column.signed else "0 … "
                told.append(f"{column.title} {sign}{short(column.top)} nat")
        covered = next((column.below_top for column in self.columns if column.below is not None), None)
        last = "" if covered is None else f"coverage, Σ of the weights over all words: 0 … {short(covered)}"
        return "; ".join(told), last

    def _draw_large(self) -> None:
        row = self._row(self.looking.position.step)
        if not self.columns or not len(self.words):
            self.images[self.large].clear()
            return
        column = self.columns[self.chosen]
        values = column.values[row]
        size = size_of(self.ground, (values.shape[0], values.shape[1]), LARGE)
        shown = over(self.ground, coloured(values, column.top, signed=column.signed, root=column.root), size)
        self.images[self.large].setImage(shown, levels=None)
        self.images[self.large].setRect(QRectF(0, 0, size[1], size[0]))
        self._fit()
        self.large.set_title(f"{self._word(self.words[row])!r}: {column.title}")
        self._frame(self.row_frame, -0.5, row - 0.5, len(self.columns), 1)
        self._frame(self.cell_frame, self.chosen - 0.5, row - 0.5, 1, 1)

    @staticmethod
    def _frame(item: pg.PlotCurveItem, left: float, top: float, wide: float, high: float) -> None:
        x, y = [left, left + wide, left + wide, left, left], [top, top, top + high, top + high, top]
        item.setData(np.array(x), np.array(y))

    def _row(self, step: int | None) -> int:
        """The row of the word at the cursor; the first without a cursor."""
        return 0 if step is None or not len(self.words) else min(max(step - self.words.start, 0), len(self.words) - 1)

    def _word(self, word: int) -> str:
        names = self.step_names()
        return clean(names[word]) if word < len(names) else str(word)

    def resizeEvent(self, event: Any) -> None:
        """Beside each other in a wide panel."""
        super().resizeEvent(event)
        if self.state == "figure" and not self.over.on:
            self._lay_out()

    # -- the cursor

    def follow(self, new: Position, old: Position) -> None:
        """Another word is drawn large; other words are read where it is not among those that are shown."""
        self.large.show_cursor(None)
        self.table.show_cursor(None)
        if new.step is not None and words_in_view(self.total(), new.step) != self.words:
            self._take(words_in_view(self.total(), new.step))
            self._draw_table()
        if new.head != old.head and new.head is not None:
            own = [n for n, column in enumerate(self.columns) if column.head == new.head]
            self.chosen = own[0] if own else self.chosen
        self._draw_large()

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """Over a small picture: its word and column; over the large one: the cell of its map."""
        if not self.columns or not len(self.words):
            return
        if plot is self.large:
            rect, shape = self.images[self.large].mapRectToParent(
                self.images[self.large].boundingRect()), self.columns[self.chosen].values.shape[1:]  # fmt: skip
            at = (int(y / max(1.0, rect.height()) * shape[0]), int(x / max(1.0, rect.width()) * shape[1]))
            self.cell = (min(max(0, at[0]), shape[0] - 1), min(max(0, at[1]), shape[1] - 1))
            self.drawn.emit()
            return
        self.chosen = min(max(0, round(x)), len(self.columns) - 1)
        column, row = self.columns[self.chosen], min(max(0, round(y)), len(self.words) - 1)
        head = {"head": column.head} if column.head >= 0 else {}
        self.looking.move(step=self.words[row], **head)
        self._draw_large()

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The number of the cell under the mouse, in every map that has such cells; ln p of the word."""
        if self.capture is None or self.state != "figure" or not self.columns:
            return []
        step, found = self.words[self._row(position.step)] if len(self.words) else 0, []
        for channel in self.channels():
            if channel.dims == ("step",):
                value = exact_at(self.capture, channel.name, self.frame, step)
                found.append((f"{channel.title} [{step}]  {channel.place}", measured(value, channel.unit)))
        column = self.columns[self.chosen]
        if self.cell is not None and all(a < b for a, b in zip(self.cell, column.values.shape[1:], strict=True)):
            found.append(self._at_cell(column, step, *self.cell))
        return found

    def _at_cell(self, column: Column, step: int, row: int, across: int) -> tuple[str, str]:
        assert self.capture is not None
        channel = self.capture.channels[column.name]
        at: tuple[int, ...] = (step, row, across)
        if column.head >= 0:
            grid = grid_of(self.capture, channel, self.frame)
            assert grid is not None
            at = (column.head, step, grid[2] + row * grid[1] + across)
        value = exact_at(self.capture, column.name, self.frame, *at)
        return f"{column.title} [{step}], row {row}, column {across}  {channel.place}", measured(value, channel.unit)

    def data(self) -> dict[str, Array]:
        """Every channel that is drawn, whole."""
        assert self.capture is not None
        attention = self.attention()
        own = [one for one in self.channels() if one.kind == KIND or one is attention]
        return {one.name: self.capture.array(one.name, self.frame) for one in own}
