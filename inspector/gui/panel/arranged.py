"""Plots of a figure that are laid out anew: others are shown, or the panel has become wide or high."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inspector.gui.panel.figure import Figure

Cell = tuple[int, int, int, int]
"""(row, column, rows, columns)."""
WIDE = 1.7
"""Width over height from which plots stand beside each other."""
LEAST = 560
"""Pixels below which they stand above each other in any case: two plots with their axes need as many."""

VERY_WIDE, LEAST_OF_THREE = 2.4, 780
"""The same for three plots beside each other."""
LEAST_BESIDE = 240
"""Pixels of height of plots beside each other with a line or two of text below them, at least."""

SMALL = (460, 340)
"""(width, height) in pixels below which a figure of a size that was asked for has room for one plot only."""


def is_wide(width: float, height: float) -> bool:
    """Whether plots should stand beside each other in a room of this size, in pixels."""
    return width >= LEAST and width >= WIDE * height


def is_very_wide(width: float, height: float) -> bool:
    """Whether three plots should stand beside each other in a room of this size, in pixels."""
    return width >= LEAST_OF_THREE and width >= VERY_WIDE * height


class Arranged:
    """The items of a figure that may stand elsewhere or be hidden; other items of the figure stay where they are."""

    def __init__(self, figure: Figure, items: Sequence[Any]) -> None:
        self.figure, self.items = figure, list(items)
        self._cells: dict[Any, Cell] = {}
        self._shares: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def has(self, item: Any) -> bool:
        """Whether an item has a cell now: one that has none is not to be shown."""
        return item in self._cells

    def place(self, cells: Mapping[Any, Cell], rows: Sequence[int] = (), columns: Sequence[int] = ()) -> bool:
        """Show these items in these cells, and no others. Returns whether they were elsewhere before.

        `rows` and `columns` are the shares of the room of each; where none are given for columns, the first has what is
        left by the others.
        """
        shares = (tuple(rows), tuple(columns) or (1,))  # Qt divides room among columns that were used once, too
        if dict(cells) == self._cells and shares == self._shares:
            return False
        for item in self.items:
            if item in self.figure.ci.items:
                self.figure.removeItem(item)
        for item, (row, column, high, wide) in cells.items():
            self.figure.addItem(item, row=row, col=column, rowspan=high, colspan=wide)
            item.show()
        for item in self.items:
            if item not in cells:
                item.hide()
                if item.scene() is None:  # Qt deletes items that are in no scene out of order
                    self.figure.scene().addItem(item)
        self._share(shares)
        self.figure.fill()
        self._cells, self._shares = dict(cells), shares
        return True

    def place_two(
        self, size: tuple[int, int], first: Sequence[Any], second: Sequence[Any], heights: tuple[int, int],
        shares: tuple[int, int] = (1, 1), *, named: str = "",
    ) -> None:  # fmt: skip
        """Two plots with what belongs to each (colour bars), beside each other in a wide panel of this `size`, else
        one above the other; an empty one takes no room. `heights` are the least ones, beside and above each other.
        `named`: what the second one is; in a small figure of a size that was asked for it is left out."""
        small = self._too_small(size) and bool(named and first and second)
        self.figure.left_out = (named,) if small else ()
        second = () if small else second
        wide = is_wide(*size) and bool(first) and bool(second)
        start = len(first) if wide else 0
        cells: dict[Any, Cell] = {item: (0, at, 1, 1) for at, item in enumerate(first)}
        row = 0 if wide or not first else 1
        cells |= {item: (row, start + at, 1, 1) for at, item in enumerate(second)}
        columns = [0] * max(1, len(first) + len(second) if wide else max(len(first), len(second)))
        columns[0] = shares[0] if wide else 1
        if wide:
            columns[start] = shares[1]
        alone = wide or not first or not second
        if self.place(cells, (1,) if alone else shares, columns):
            self.figure.setMinimumHeight(heights[0] if wide else heights[1])

    def place_three(
        self, size: tuple[int, int], plots: tuple[Any, Any], beside: Sequence[Any], text: Any, heights: tuple[int, int],
        named: Sequence[str], *, filled: bool = True,
    ) -> None:  # fmt: skip
        """Two plots above each other with a third `beside` them, or, in a very wide panel of this `size`, all three
        beside each other; `text` in a row below. What follows the third in `beside` is its colour bar. `heights` are
        the least ones: of three beside each other, and otherwise. In a small figure of a size that was asked for only
        the first plot has room, or the third where that is not `filled`; `named` is what the three are."""
        small = self._too_small(size)
        self.figure.left_out = tuple(named[1:] if filled else named[1:2]) if small else ()
        if small:
            row = [plots[0]] if filled else beside
            cells = {item: (0, at, 1, 1) for at, item in enumerate(row)} | {text: (1, 0, 1, len(row))}
            if self.place(cells, (1, 0), (1, *[0] * (len(row) - 1))):
                for column in range(3):
                    self.figure.ci.layout.setColumnPreferredWidth(column, 100 * (column == 0))
            return
        three = is_very_wide(*size)
        first = 2 if three else 1
        cells = {plots[0]: (0, 0, 1, 1), plots[1]: (0, 1, 1, 1) if three else (1, 0, 1, 1)}
        cells |= {item: (0, first + at, 1 if three else 2, 1) for at, item in enumerate(beside)}
        cells[text] = (1 if three else 2, 0, 1, first + len(beside))
        columns = (4, 4, 4) if three else (5, 4, 0)
        if self.place(cells, (1, 0) if three else (3, 2, 0), columns):
            for column, share in enumerate(columns):
                self.figure.ci.layout.setColumnPreferredWidth(column, 100 * share)
            self.figure.setMinimumHeight(heights[0] if three else heights[1])

    def _too_small(self, size: tuple[int, int]) -> bool:
        """Whether a figure of a size that was asked for has room for its main plot only."""
        return self.figure.fixed and (size[0] < SMALL[0] and size[1] < SMALL[1])

    def _share(self, shares: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
        layout = self.figure.ci.layout
        for now, before, tell in (
            (shares[0], self._shares[0], layout.setRowStretchFactor),
            (shares[1], self._shares[1], layout.setColumnStretchFactor),
        ):
            for at in range(max(len(now), len(before))):
                tell(at, now[at] if at < len(now) else 0)
