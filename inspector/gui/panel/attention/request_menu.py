"""A button with a menu of what else can be computed of heads of attention."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QToolButton

from inspector.gui.panel.attention.on_request import OF_HEADS
from inspector.gui.widgets.plain_text import tooltip

WHAT = "What is computed only on request: of the run that is shown, and of later ones"


class RequestMenu(QToolButton):
    """`asked(key)` with the quantity that was chosen. Hidden where everything is there, or nothing can be asked for."""

    asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setText("Compute ▾")
        self.setStyleSheet("QToolButton::menu-indicator { image: none; }")  # Qt's own lies over the text
        self.setAccessibleName("Compute more of the heads")
        self.setToolTip(tooltip(WHAT))
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self)
        self.setMenu(menu)
        self.choices = {signal: QAction(title, self) for signal, (_, title) in OF_HEADS.items()}
        for signal, action in self.choices.items():
            menu.addAction(action)
            action.triggered.connect(lambda _checked=False, key=OF_HEADS[signal][0]: self.asked.emit(key))

    def leave_out(self, known: Collection[str], *, possible: bool) -> None:
        """Offer what is not among the signals that are `known`."""
        for signal, action in self.choices.items():
            action.setVisible(signal not in known)
        self.setVisible(possible and any(action.isVisible() for action in self.choices.values()))
