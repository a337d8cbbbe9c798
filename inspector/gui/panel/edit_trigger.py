"""Editing from a picture: a double-click, or the menu of the right button, on a row that can be held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QPoint, Qt, Signal, Slot
from PySide6.QtWidgets import QMenu

from inspector.gui.panel.figure import Figure
from inspector.gui.widgets.plain_text import clean


class EditHere(QObject):
    """`asked(channel)` when the unit and step under the mouse are to be edited.

    `find(scene position)` gives the (name, title) of the channel whose map is there, or None, and moves the cursor.
    """

    asked = Signal(str)

    def __init__(self, figure: Figure, find: Callable[[Any], tuple[str, str] | None]) -> None:
        super().__init__(figure)
        self.figure, self.find = figure, find
        self.menu: QMenu | None = None
        figure.scene().sigMouseClicked.connect(self._clicked)

    @Slot(object)
    def _clicked(self, event: Any) -> None:
        button = event.button()
        if not (event.double() and button == Qt.MouseButton.LeftButton) and button != Qt.MouseButton.RightButton:
            return
        found = self.find(event.scenePos())
        if found is None:
            return
        event.accept()
        if button == Qt.MouseButton.RightButton:
            self._offer(*found, event.screenPos().toPoint())
        else:
            self.asked.emit(found[0])

    def _offer(self, name: str, title: str, where: QPoint) -> None:
        self.menu = QMenu(self.figure)
        self.menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        action = self.menu.addAction(clean(f"Edit this unit of the {title} from here…").replace("&", "&&"))
        action.triggered.connect(lambda _checked=False: self.asked.emit(name))
        self.menu.popup(where)
