"""Tooltips of the tabs of docks: Qt shows them only where a bar of tabs is too narrow for its titles."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QTabBar, QToolTip

from inspector.gui.widgets.plain_text import tooltip


class TabTips(QObject):
    """Shows `told(title)` at a tab, where it has an answer, else the tab's own tooltip."""

    def __init__(self, told: Callable[[str], str], parent: QObject) -> None:
        super().__init__(parent)
        self._told = told

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A tooltip was asked for."""
        if event.type() != QEvent.Type.ToolTip or not isinstance(watched, QTabBar) or not isinstance(event, QHelpEvent):
            return False
        at = watched.tabAt(event.pos())
        if at < 0:
            return False
        text = tooltip(self._told(watched.tabText(at))) or watched.tabToolTip(at)
        QToolTip.showText(event.globalPos(), text, watched)
        return True
