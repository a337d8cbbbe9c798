"""The docks of the window: their first arrangement, the remembered one, and which of a group of tabs is on top."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow, QTabBar, QTabWidget, QWidget

from inspector.gui.settings import LAYOUT_VERSION, Settings

if TYPE_CHECKING:
    from inspector.gui.panel import Panel

SIDE = Qt.DockWidgetArea
ABOVE = ("states", "units", "gates", "attention")
"""Panels of the upper row; the others stand below."""


class Docking:
    """Everything that can be moved around in a window, by key."""

    def __init__(self, window: QMainWindow) -> None:
        self.window = window
        self.docks: dict[str, QDockWidget] = {}
        self._first = QByteArray()
        window.setDockNestingEnabled(True)
        window.setCorner(Qt.Corner.BottomLeftCorner, SIDE.LeftDockWidgetArea)
        window.setCorner(Qt.Corner.BottomRightCorner, SIDE.RightDockWidgetArea)
        window.setTabPosition(SIDE.AllDockWidgetAreas, QTabWidget.TabPosition.North)

    def add(self, key: str, title: str, widget: QWidget, area: Qt.DockWidgetArea) -> QDockWidget:
        """One more dock."""
        dock = QDockWidget(title, self.window)
        dock.setObjectName(f"dock-{key}")
        dock.setWidget(widget)
        self.window.addDockWidget(area, dock)
        self.docks[key] = dock
        return dock

    def settle(self, panels: Mapping[str, Panel], settings: Settings) -> None:
        """The first arrangement, or the remembered one."""
        self._arrange(panels)
        self._first = self.window.saveState(LAYOUT_VERSION)
        remembered = settings.layout()
        if remembered is not None:  # before anything is painted: Qt leaves ghosts of tab bars otherwise
            self.window.restoreGeometry(remembered[0])
            self.window.restoreState(remembered[1], LAYOUT_VERSION)
        else:
            QApplication.processEvents()
            self._proportions()

    def remember(self, settings: Settings) -> None:
        """Keep the arrangement for the next start, if there ever was one."""
        if self._first.size():
            settings.set_layout(self.window.saveGeometry(), self.window.saveState(LAYOUT_VERSION))

    def reset(self) -> None:
        """The layout of the first start."""
        self.window.restoreState(self._first, LAYOUT_VERSION)
        for key, dock in self.docks.items():
            dock.setVisible(key != "log")
        QApplication.processEvents()
        self._proportions()
        self._hide_ghosts()

    def raise_useful(self, panels: Mapping[str, Panel]) -> None:
        """Where the panel on top of a group of tabs is empty, one that is not comes to the top."""
        group = {self.docks[key]: key for key in panels}
        for key, panel in panels.items():
            dock = self.docks[key]
            if dock.visibleRegion().isEmpty() or panel.state != "empty" or dock.isFloating():
                continue
            others = [panels[group[d]] for d in self.window.tabifiedDockWidgets(dock) if d in group]
            for other in others:
                other.redraw()
            full = next((other for other in others if other.state == "figure"), None)
            if full is not None:
                self.docks[full.key].raise_()

    def _arrange(self, panels: Mapping[str, Panel]) -> None:
        above = [key for key in ABOVE if key in self.docks]
        below = [key for key in panels if key not in above]
        if above and below:
            self.window.splitDockWidget(self.docks[above[0]], self.docks[below[0]], Qt.Orientation.Vertical)
        for group in (above, below):
            for first, second in pairwise(group):
                self.window.tabifyDockWidget(self.docks[first], self.docks[second])
            if group:
                self.docks[group[0]].raise_()
        if below:
            self.window.splitDockWidget(self.docks[below[0]], self.docks["log"], Qt.Orientation.Vertical)
        self.docks["log"].hide()

    def _proportions(self) -> None:
        """How the room is shared out; only sizes that are on screen can be set, so this comes after the arranging."""
        rows = [self.docks[key] for key in ("states", "jacobians") if key in self.docks]
        sides = [self.docks["open"], self.docks["model"]]
        self.window.resizeDocks(rows, [430, 300][: len(rows)], Qt.Orientation.Vertical)
        self.window.resizeDocks([sides[0], self.docks["numbers"]], [250, 290], Qt.Orientation.Horizontal)
        self.window.resizeDocks(sides, [300, 400], Qt.Orientation.Vertical)

    def _hide_ghosts(self) -> None:
        """Tab bars that Qt leaves where a group of docks stood before a layout was restored."""
        titles = {dock.windowTitle() for dock in self.docks.values()}
        seen: set[tuple[str, ...]] = set()
        bars = [bar for bar in self.window.findChildren(QTabBar) if bar.parent() is self.window and bar.isVisible()]
        for bar in sorted(bars, key=lambda bar: bar.y()):
            names = tuple(bar.tabText(i) for i in range(bar.count()))
            ghost = not names or names in seen or not set(names) <= titles
            seen.add(names)
            if ghost:
                bar.hide()
