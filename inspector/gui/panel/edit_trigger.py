"""Editing from a figure: a double-click, or the menu of the right button, on a row that can be clamped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QPoint, Qt, Signal, Slot
from PySide6.QtWidgets import QMenu

from inspector.gui.panel.figure import Figure
from inspector.gui.panel.pointing import data_at, plot_at
from inspector.gui.widgets.plain_text import clean
from inspector.records import Channel


class EditHere(QObject):
    """`asked(channel)` when the unit and step under the mouse are to be edited.

    `clampable(plot)` gives the channel whose map a plot is, or None; `pointed(plot, x, y)` moves the cursor there.
    """

    asked = Signal(str)

    def __init__(
        self, figure: Figure, clampable: Callable[[Any], Channel | None], pointed: Callable[[Any, float, float], None]
    ) -> None:
        super().__init__(figure)
        self.figure, self.clampable, self.pointed = figure, clampable, pointed
        self.menu: QMenu | None = None
        figure.scene().sigMouseClicked.connect(self._clicked)

    @Slot(object)
    def _clicked(self, event: Any) -> None:
        button = event.button()
        if not (event.double() and button == Qt.MouseButton.LeftButton) and button != Qt.MouseButton.RightButton:
            return
        plot = plot_at(self.figure, event.scenePos())
        channel = None if plot is None else self.clampable(plot)
        if channel is None:
            return
        self.pointed(plot, *data_at(plot, event.scenePos()))
        event.accept()
        if button == Qt.MouseButton.RightButton:
            self._offer(channel.name, channel.title, event.screenPos().toPoint())
        else:
            self.asked.emit(channel.name)

    def _offer(self, name: str, title: str, where: QPoint) -> None:
        self.menu = QMenu(self.figure)
        self.menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        action = self.menu.addAction(clean(f"Edit this unit of the {title} from here…").replace("&", "&&"))
        action.triggered.connect(lambda _checked=False: self.asked.emit(name))
        self.menu.popup(where)
