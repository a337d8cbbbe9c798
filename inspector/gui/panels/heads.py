"""Heads: every head of every attention with its type and its numbers as a table, the divergence of pairs of them as a
matrix, and what attention costs."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy.typing as npt
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QSplitter, QWidget

from inspector.analysis.attention.head_table import of_heads
from inspector.analysis.attention.tables import (
    COST,
    COSTS,
    HEADS,
    Line,
    Table,
    is_of_pairs,
    table_of_cost,
    table_of_heads,
)
from inspector.gui.panel.attention.pairs_of_heads import Pair, PairsOfHeads
from inspector.gui.panel.attention.places_in_short import in_short
from inspector.gui.panel.attention.quantities import OF_HEADS, ON_REQUEST, can_ablate, of_attention
from inspector.gui.panel.attention.request_menu import RequestMenu
from inspector.gui.panel.base import Panel, measured
from inspector.gui.panel.channel_choice import offer
from inspector.gui.panel.exact import why_not_known
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.tables.sorted_table import Rows, SortedTable
from inspector.gui.widgets.theme import Theme
from inspector.records import Channel

Array = npt.NDArray[Any]
OF_COST = "attention/cost"
"""The quantity whose numbers are tables of their own."""
TABLE_SHARE, MATRIX_SHARE = 3, 2
"""Parts of the width of the table and of the matrix."""
SHARED = 1000
"""Sizes that sum to more than there is are taken as shares."""
HEADING_LETTERS = 12
"""Letters of a line of a heading."""


@PANELS.register("heads")
class Heads(Panel):
    """Numbers of heads (kinds "attention_statistic" and "attention_head"), or one channel of kind "attention_cost"."""

    tab_order, tab_row = 61, "upper"
    menu_group = "inside"
    key, title = "heads", "Heads"
    hint = (
        "Every attention head with its type, importance, the head most like it and its other numbers, and what "
        "attention costs. Needs a model with attention."
    )
    shows = OF_HEADS
    extra = (*ON_REQUEST, OF_COST, "attention/redundancy")
    by_steps = False

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Numbers of heads and of pairs of them, costs."""
        return of_heads(channel) or is_of_pairs(channel) or (channel.kind == COST and channel.dims in COSTS)

    def concerns(self, name: str) -> bool:
        """Quantities of attention that could not be computed."""
        return of_attention(name)

    def picture(self) -> QWidget:
        """The table, and the matrix beside it where there is one."""
        self.table = SortedTable("head", "Heads of attention and their numbers")
        self.table.chosen.connect(self._chosen)
        self.parts = QSplitter()
        self.parts.addWidget(self.table)
        self.parts.addWidget(self.figure)
        self.parts.setSizes([SHARED * TABLE_SHARE, SHARED * MATRIX_SHARE])
        return self.parts

    def build(self) -> None:
        """The choice of a table."""
        self.which = self.add_choice("Show", "Heads, or a part of what attention costs")
        self.more = RequestMenu()
        self.more.asked.connect(self._ask)
        self.controls.addWidget(self.more)
        self.pairs = PairsOfHeads(self.theme)
        self.figure.addItem(self.pairs.map, row=0, col=0)
        self._awaited = ""
        """The quantity that was asked for last, until it is shown; it may come in another capture, of a new run."""
        self.reset()
        self.shown = Table((), (), ())
        self.unknown: dict[str, str] = {}
        """Of each attention of which something is not known: the word for that."""

    def reset(self) -> None:
        """Another capture: no pair of heads was pointed at."""
        self.pair: Pair | None = None
        """The two heads under the mouse."""

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.table.set_theme(theme)
        self.pairs.map.set_theme(theme)
        super().set_theme(theme)

    def _ask(self, key: str) -> None:
        """What was chosen is computed; a table of its own is shown when it is there."""
        self._awaited = key
        self.wanted.emit((key,))

    def chosen(self) -> list[Channel]:
        """The channels from which the chosen table is made."""
        wanted = self.which.currentData()
        return [one for one in self.channels() if (one.signal if one.kind == COST else HEADS) == wanted]

    def update_contents(self) -> None:
        """The chosen table; what is not known says why."""
        assert self.capture is not None
        offer(self.which, {(one.signal if one.kind == COST else HEADS): self.entry(one) for one in self.in_order()})
        possible = not self.growing and not self.differs and self.remaining.can_be_asked
        self.more.leave_out({one.signal for one in self.channels()}, possible=possible)
        if self._awaited == OF_COST and (costly := [one.signal for one in self.channels() if one.kind == COST]):
            self._awaited = ""
            self.which.setCurrentIndex(self.which.findData(costly[0]))
        own = self.chosen()
        costs = own[0].kind == COST
        words = ((one.place, why_not_known(self.capture, one.name, self.frame)) for one in own)
        self.unknown = {place: word for place, word in words if word}
        self.shown = (table_of_cost if costs else table_of_heads)(self.capture, self.frame, own)
        self.table.numbers.first = "attention" if costs else "head"
        self.table.show_table(
            Rows(
                self._names(), [heading(one) for one in self.shown.headings],
                [[self.cell(line, one) for one in line.cells] for line in self.shown.lines], self.shown.tips,
                whole=[line.name for line in self.shown.lines],
            )
        )  # fmt: skip
        self._draw_pairs()

    def _names(self) -> list[str]:
        """The names of the rows without what all places share, so that numbers have room; tooltips have all of it."""
        short = in_short(line.place for line in self.shown.lines)
        lines = self.shown.lines
        return [line.name.replace(line.place, short[line.place], 1) if line.place else line.name for line in lines]

    # -- pairs of heads

    def of_pairs(self) -> Channel | None:
        """The divergences of the attention at the cursor, or of the first that has some; none beside a cost."""
        found = [one for one in self.chosen() if is_of_pairs(one)]
        here = self.looking.position.place
        return next((one for one in found if one.place == here), found[0] if found else None)

    def _draw_pairs(self) -> None:
        assert self.capture is not None
        channel = self.of_pairs()
        self.figure.setVisible(channel is not None)
        self.pairs.show(self.capture, self.frame, channel)

    def _mark_pairs(self, at: Position) -> None:
        """The pair under the mouse; before that the cursor's head and the one most like it."""
        assert self.capture is not None
        channel = self.pairs.channel
        pair = self.pair
        if pair is None and channel is not None and at.place == channel.place:
            pair = self.pairs.most_alike(at.head or 0)
        self.pairs.mark(self.capture, self.frame, pair)

    def pointed(self, plot: Any, x: float, y: float) -> None:
        """Over the matrix: its two heads are read."""
        if plot is self.pairs.map.plot:
            self.pair = self.pairs.pair_at(x, y)
            self._mark_pairs(self.looking.position)

    def clicked(self, plot: Any, x: float, y: float) -> None:
        """A click on the matrix goes to the head of the row."""
        self.pointed(plot, x, y)
        if self.pair is not None and self.pairs.channel is not None:
            self.looking.move(place=self.pairs.channel.place, head=self.pair[0])

    def in_order(self) -> list[Channel]:
        """The heads first."""
        return sorted(self.channels(), key=lambda one: one.kind == COST)

    @staticmethod
    def entry(channel: Channel) -> str:
        """What the choice of a table says."""
        if channel.kind != COST:
            return HEADS
        return channel.title if channel.unit in ("", "1") else f"{channel.title}, {channel.unit}"

    def cell(self, line: Line, value: float | str) -> float | str:
        """A number, which of a head may be NaN; where it is not known a word for that, nothing where there is none."""
        if isinstance(value, str) or not math.isnan(value):
            return value
        return self.unknown.get(line.place, "" if line.head is None else value)

    # -- the cursor

    def _chosen(self, row: int) -> None:
        line = self.shown.lines[row]
        self.looking.move(place=line.place, **({} if line.head is None else {"head": line.head}))

    def follow(self, new: Position, old: Position) -> None:
        """The row of the cursor's head is marked, in the table and in the matrix."""
        self.table.choose(self.row_at(new), scroll=False)
        if (new.place, new.head) != (old.place, old.head):
            if new.place != old.place or (self.pair is not None and self.pair[0] != new.head):
                self.pair = None
            self._draw_pairs()
        self._mark_pairs(new)

    def row_at(self, position: Position) -> int | None:
        """The row about the cursor's place and head; of costs the first of the place, or the one that is chosen."""
        rows = [
            number for number, line in enumerate(self.shown.lines)
            if line.place == position.place and line.head in (None, position.head or 0)
        ]  # fmt: skip
        index = self.table.currentIndex()
        now = self.table.numbers.order[index.row()] if index.isValid() else None
        return now if now in rows else next(iter(rows), None)

    def head_here(self) -> tuple[str, int] | None:
        """The head of the row that is marked."""
        row = self.row_at(self.looking.position) if self.capture is not None else None
        line = None if row is None else self.shown.lines[row]
        if line is None or line.head is None or not can_ablate(self.capture.channels.values(), line.place):  # type: ignore[union-attr]
            return None
        return line.place, line.head

    def readout(self, position: Position) -> list[tuple[str, str]]:
        """The row of the cursor's head."""
        row = self.row_at(position)
        if self.state != "figure" or row is None:
            return []
        line = self.shown.lines[row]
        unit = next((one.unit for one in self.chosen() if one.kind == COST), "1")
        cells = ((name, self.cell(line, value)) for name, value in zip(self.shown.headings, line.cells, strict=True))
        return [(f"{name}  {line.name}", measured(value, unit)) for name, value in cells if value != ""]

    def data(self) -> dict[str, Array]:
        """The channels from which the table is made."""
        assert self.capture is not None
        return {channel.name: self.capture.array(channel.name, self.frame) for channel in self.chosen()}

    def resizeEvent(self, event: Any) -> None:
        """In a high panel the matrix is below the table."""
        super().resizeEvent(event)
        wide = self.width() >= self.height()
        self.parts.setOrientation(Qt.Orientation.Horizontal if wide else Qt.Orientation.Vertical)

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        """The table, as text, and the matrix beside it."""
        if self.over.on:
            super().paint(painter, rect)
            return
        painter.fillRect(rect, QColor(self.theme.window))
        if self.state != "figure":
            return
        beside = self.pairs.channel is not None
        wide = rect.width() * TABLE_SHARE / (TABLE_SHARE + MATRIX_SHARE) if beside else rect.width()
        self.table.paint_text(painter, QRectF(rect.left(), rect.top(), wide, rect.height()), self.theme)
        if beside:
            super().paint(painter, rect.adjusted(wide, 0, 0, 0))


def heading(text: str) -> str:
    """A title on several lines."""
    return "\n".join(textwrap.wrap(clean(text), HEADING_LETTERS))
