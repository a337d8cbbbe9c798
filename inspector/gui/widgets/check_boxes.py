"""Boxes to check in the rows of a list, with an edge that is seen on every ground."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QAbstractItemView, QStyledItemDelegate, QStyleOptionViewItem


class CheckBoxes(QStyledItemDelegate):
    """Fusion makes the edge of the colour of windows, darker, which is dark on dark: here it is that of hints.

    A palette of the list would not do: the style sheet of a window replaces it.
    """

    def __init__(self, view: QAbstractItemView) -> None:
        super().__init__(view)
        self.edge: QColor | None = None
        """Another colour, where that of the list's palette is not of the theme that is shown."""
        view.setItemDelegate(self)

    def initStyleOption(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        """The colours of one row."""
        super().initStyleOption(option, index)
        edge = self.edge or option.palette.color(QPalette.ColorRole.PlaceholderText)
        option.palette.setColor(QPalette.ColorRole.Window, edge)
