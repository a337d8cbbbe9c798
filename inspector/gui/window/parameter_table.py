"""The parameters that changed most between two frames: of their checkpoints, else by the weight norms of captures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QAbstractItemView, QTableWidget, QVBoxLayout, QWidget

from inspector.analysis.parameter_norms import checkpoint_of, norm_changes
from inspector.capture import Pair
from inspector.gui.widgets.cut_label import CutLabel
from inspector.gui.widgets.tables.sorted_cell import SortedCell
from inspector.records import ParameterChange, ParameterChanges, counted

COLUMNS = ("Parameter", "Relative change", "‖second − first‖", "‖first‖", "‖second‖", "Largest element", "Shape")
ROW_HEIGHT = 22
NO_CHECKPOINTS = (
    "Neither the checkpoints of both runs nor their weight norms are known: runs of checkpoint files, sweeps and "
    "watched trainings have them."
)


class ParameterTable(QWidget):
    """`asked(first, second)`: the worker is to read these two checkpoints."""

    asked = Signal(str, str)

    def __init__(self) -> None:
        super().__init__()
        self.said = CutLabel()
        self.said.setContentsMargins(8, 2, 8, 2)
        self.table = QTableWidget(0, len(COLUMNS))
        self.table.setHorizontalHeaderLabels(list(COLUMNS))
        self.table.setAccessibleName("Parameters that changed most")
        self.table.verticalHeader().hide()
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.verticalHeader().setDefaultSectionSize(ROW_HEIGHT)
        self.table.horizontalHeader().setStretchLastSection(True)
        for n, width in enumerate((240, 120, 120, 90, 90, 120)):
            self.table.setColumnWidth(n, width)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.said)
        column.addWidget(self.table, 1)
        self.paths: tuple[str, str] | None = None
        """Of the two checkpoints, where both are known."""
        self.answered = False

    def show_pair(self, pair: Pair | None) -> None:
        """Another comparison: what its captures hold, until the worker has read the checkpoints."""
        self.paths, self.answered = None, False
        self.table.setRowCount(0)
        self.said.show_text("")
        if pair is None:
            return
        found: list[Path] = [path for path in map(checkpoint_of, pair.sides) if path is not None]
        if len(found) == 2:
            self.paths = (str(found[0].absolute()), str(found[1].absolute()))
            self.said.show_text(f"{found[0].name} and {found[1].name} are read …")
            return
        held = norm_changes(*pair.sides)
        self._fill(held)
        self.said.show_text(f"{counted(len(held), 'parameter')}, by the norms that both runs recorded: a change is at "
                            "least as large as that of its norm." if held else NO_CHECKPOINTS)  # fmt: skip

    def ask(self) -> None:
        """Ask for the checkpoints to be read, once, where both are known."""
        if self.paths is not None and not self.answered:
            self.answered = True
            self.asked.emit(*self.paths)

    def take(self, found: ParameterChanges) -> None:
        """The worker has read two checkpoints; those of another comparison are ignored."""
        if (found.first, found.second) != self.paths:
            return
        self._fill(found.changes)
        changed = sum(not one.problem and one.change != 0 for one in found.changes)
        left = f"; {found.left_out:,} more are not listed" if found.left_out else ""
        steps = [f", step {step:,}" if step >= 0 else "" for step in found.steps]
        names = [Path(path).name for path in (found.first, found.second)]
        self.said.show_text(f"{names[0]}{steps[0]} → {names[1]}{steps[1]}: {changed:,} of "
                            f"{counted(len(found.changes), 'tensor')} changed{left}")  # fmt: skip

    def refuse(self, sentence: str) -> None:
        """They could not be read."""
        self.said.show_text(sentence)

    def _fill(self, changes: Sequence[ParameterChange]) -> None:
        self.table.setSortingEnabled(False)
        self.table.setRowCount(len(changes))
        for row, one in enumerate(changes):
            numbers = (one.relative, one.change, one.first, one.second, one.largest)
            shape = " × ".join(map(str, one.shape))
            only_norms = math.isnan(one.change) and not one.elements
            self.table.setItem(row, 0, SortedCell(one.name))
            for column, value in enumerate(numbers, 1):
                known = not one.problem and not (only_norms and column in (2, 5))
                cell = SortedCell(f"{value:.4g}", value) if known else SortedCell("—")
                self.table.setItem(row, column, cell)
            self.table.setItem(row, 6, SortedCell(one.problem or shape))
        self.table.setSortingEnabled(True)
        self.table.sortItems(1, Qt.SortOrder.DescendingOrder)
