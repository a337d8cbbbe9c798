"""A list of choices whose chosen text is cut with "…" where it does not fit: Qt's own ends inside a letter."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QStylePainter

MARGIN = 4
"""Pixels of the field that Qt leaves free beside the text."""


class CutBox(QComboBox):
    """As Qt's in all else."""

    def shown_text(self) -> str:
        """What of the chosen text is seen."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        style, part = self.style(), QStyle.SubControl.SC_ComboBoxEditField
        field = style.subControlRect(QStyle.ComplexControl.CC_ComboBox, option, part, self)
        room = max(0, field.width() - MARGIN)
        return option.fontMetrics.elidedText(self.currentText(), Qt.TextElideMode.ElideRight, room)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The frame and the arrow, then the text."""
        painter, option = QStylePainter(self), QStyleOptionComboBox()
        self.initStyleOption(option)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        option.currentText = self.shown_text()
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        painter.end()
