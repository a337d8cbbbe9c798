"""Health: counts of the kinds of numbers in every captured tensor, NaN and infinity first."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from inspector.gui.panel.base import Panel
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Position
from inspector.gui.state.step_axes import places_along
from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.tables.text_table import paint_lines
from inspector.records import STEP_DOMAIN, Channel

Array = npt.NDArray[Any]
BAD = ("-inf", "+inf", "nan")
FIRST_BAD = "first_bad_step"


@PANELS.register("health")
class Health(Panel):
    """(count,) channels of kind "health", one row a tensor."""

    tab_order = 190
    menu_group = "training"
    key, title = "health", "Health"
    hint = "Counts of −∞, negative, zero, positive, +∞ and NaN in every captured tensor. Run a model to see them."
    shows = ("health",)
    by_steps = False

    @classmethod
    def accepts(cls, channel: Channel) -> bool:
        """Counts of one tensor."""
        return channel.kind == "health" and channel.dims == ("count",)

    def picture(self) -> QWidget:
        """A table instead of a figure."""
        self.table = QTableWidget()
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(self.table.fontMetrics().height() + 8)
        self.table.setAlternatingRowColors(True)
        self.table.setAccessibleName("Health of every captured tensor")
        self.table.cellClicked.connect(self._clicked)
        return self.table

    def build(self) -> None:
        """The table was made by `picture`."""

    def rows(self) -> list[tuple[Channel, dict[str, int | None]]]:
        """Every tensor with its counts (None where they are not known), those with NaN or infinities first."""
        assert self.capture is not None
        found = []
        for channel in self.channels():
            values = self.capture.array(channel.name, self.frame)
            names = channel.labels.get("count", ())
            counts = [None if np.ma.is_masked(value) else int(value) for value in values]
            found.append((channel, dict(zip(names, counts, strict=False))))
        return sorted(found, key=lambda row: -sum(row[1].get(name) or 0 for name in BAD))

    def update_contents(self) -> None:
        """One row a tensor."""
        rows = self.rows()
        columns = list(rows[0][1])
        header = self.table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)  # else each cell that is set measures its column
        self.table.setColumnCount(len(columns) + 1)
        self.table.setHorizontalHeaderLabels(["tensor", *(self.heading(name) for name in columns)])
        self.table.setRowCount(len(rows))
        for i, (channel, counts) in enumerate(rows):
            self.table.setItem(i, 0, QTableWidgetItem(clean(self.tensor(channel))))
            for j, name in enumerate(columns):
                self.table.setItem(i, j + 1, self._cell(name, counts[name]))
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)

    @staticmethod
    def heading(name: str) -> str:
        """A column's name as it is shown."""
        return {"-inf": "−∞", "+inf": "+∞", "nan": "NaN", FIRST_BAD: "first bad step"}.get(name, name)

    @staticmethod
    def tensor(channel: Channel) -> str:
        """Which tensor a channel counts: place:signal."""
        return f"{channel.place}:{channel.signal.removeprefix('health/')}"

    @staticmethod
    def shown(name: str, value: int | None) -> str:
        """A count as it is shown."""
        if value is None:
            return "?"
        return "none" if name == FIRST_BAD and value < 0 else f"{value:,}"

    def _cell(self, name: str, value: int | None) -> QTableWidgetItem:
        item = QTableWidgetItem(self.shown(name, value))
        item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if name in BAD and value:
            item.setForeground(QColor(self.theme.error))
            font = item.font()
            font.setBold(True)
            item.setFont(font)
        return item

    def _clicked(self, row: int, _column: int) -> None:
        channel, counts = self.rows()[row]
        assert self.capture is not None
        step = counts.get(FIRST_BAD)
        place = {"place": channel.place} if self._in_the_model(channel.place) else {}
        own = "" if channel.place.startswith("input.") else STEP_DOMAIN  # an input without steps has no cursor
        axis = places_along(self.capture).get(channel.place, own)
        self.looking.move(**place, steps={axis: step} if axis and step is not None and step >= 0 else {})

    def _in_the_model(self, place: str) -> bool:
        """Whether a place is one of the model's: inputs ("input.NAME"), outputs and all parameters together are at none
        that panels show."""
        assert self.capture is not None
        if place.partition(".")[0] not in ("input", "output", "parameters"):
            return True
        modules = (known.name for known in self.capture.start.places)
        return any(name and f"{place}.".startswith(f"{name}.") for name in modules)  # modules may have these names

    def follow(self, new: Position, old: Position) -> None:
        """A table has no cursor line."""

    def data(self) -> dict[str, Array]:
        """The counts of every tensor."""
        assert self.capture is not None
        return {channel.name: self.capture.array(channel.name, self.frame) for channel, _ in self.rows()}

    def paint(self, painter: QPainter, rect: QRectF) -> None:
        """The whole table, as text."""
        painter.fillRect(rect, QColor(self.theme.window))
        rows = self.rows() if self.state == "figure" else []
        if not rows:
            return
        lines = [["tensor", *map(self.heading, rows[0][1])]]
        for channel, counts in rows:
            lines.append([clean(self.tensor(channel)), *(self.shown(n, v) for n, v in counts.items())])
        names = list(rows[0][1])
        paint_lines(
            painter, rect, lines, self.theme,
            lambda row, column: column > 0 and names[column - 1] in BAD and bool(rows[row][1].get(names[column - 1])),
        )  # fmt: skip
