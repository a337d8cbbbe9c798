"""Widgets of one size in as many columns as fit, without gaps where some are hidden."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRect, QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

GAP = 8
MOST_COLUMNS = 6


class TileGrid(QWidget):
    """As high as its rows; all columns are equally wide.

    `stretched`: fewer tiles than columns fill the width too, instead of being as wide as those of other grids.
    """

    def __init__(self, least: QSize, parent: QWidget | None = None, *, stretched: bool = True) -> None:
        super().__init__(parent)
        self._stretched = stretched
        self._least = least
        self._tiles: list[QWidget] = []
        # Preferred and not Fixed: the height that a layout remembers as the most may be that of another width
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_tiles(self, tiles: Sequence[QWidget]) -> None:
        """These, in their order; others that were here are hidden."""
        if self._tiles == list(tiles):
            return
        for tile in self._tiles:
            tile.setVisible(tile in tiles)
        self._tiles = list(tiles)
        for tile in tiles:
            tile.setParent(self)
            tile.show()
        self.updateGeometry()
        self._arrange()

    def columns(self, width: int) -> int:
        """How many fit into a width."""
        fit = max(1, (width + GAP) // (self._least.width() + GAP))
        most = max(1, len(self._tiles)) if self._stretched else MOST_COLUMNS
        return int(min(fit, MOST_COLUMNS, most))

    def hasHeightForWidth(self) -> bool:
        """Narrower is higher."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Of all rows."""
        rows = -(-len(self._tiles) // self.columns(width))
        return max(0, rows * (self._least.height() + GAP) - GAP)

    def sizeHint(self) -> QSize:
        """Of a usual width."""
        return QSize(3 * self._least.width(), self.heightForWidth(max(self.width(), self._least.width())))

    def minimumSizeHint(self) -> QSize:
        """One column."""
        return QSize(self._least.width(), self.heightForWidth(max(self.width(), self._least.width())))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Another width may have other columns."""
        super().resizeEvent(event)
        if self.columns(event.oldSize().width()) != self.columns(self.width()):
            self.updateGeometry()  # its layout keeps the height that it had, and cuts the last rows
        self._arrange()

    def _arrange(self) -> None:
        columns = self.columns(self.width())
        width = (self.width() + GAP) // columns - GAP
        for number, tile in enumerate(self._tiles):
            row, column = divmod(number, columns)
            height = self._least.height()
            tile.setGeometry(QRect(column * (width + GAP), row * (height + GAP), width, height))
