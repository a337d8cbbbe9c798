"""A line above a panel's figure, with a button: what of it the run has not computed."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from inspector.gui.panel.base import Panel
from inspector.gui.panel.empty_page import show_button
from inspector.gui.widgets.cut_label import CutLabel
from inspector.gui.widgets.plain_text import tooltip


class RemainingNote(QObject):
    """Visible while the figure lacks something; an empty panel says it on its own page."""

    def __init__(self, panel: Panel) -> None:
        super().__init__(panel)
        self.panel = panel
        self.row, self.label, self.button = QWidget(), CutLabel(), QPushButton()
        self.button.setObjectName("compute-remaining")
        show_button(self.button, panel.remaining)
        self.button.clicked.connect(lambda _checked=False: panel.wanted.emit(panel.remaining.offered))
        inside = QHBoxLayout(self.row)
        inside.setContentsMargins(8, 2, 8, 2)
        inside.addWidget(self.label, 1)
        inside.addWidget(self.button)
        self.row.hide()
        layout: Any = panel.layout()
        layout.insertWidget(layout.indexOf(panel.stack), self.row)
        panel.remaining_changed.connect(self.show)
        panel.stack.currentChanged.connect(self.show)

    def show(self, *_: object) -> None:
        """Show what is lacking now."""
        remaining = self.panel.remaining
        self.row.setVisible(bool(remaining.sentence) and self.panel.state == "figure")
        if remaining.sentence:
            self.label.show_text(remaining.sentence)
            self.label.setToolTip(tooltip(remaining.sentence))
        self.button.setVisible(bool(remaining.offered) and remaining.can_be_asked)
        show_button(self.button, remaining)
