"""The docks of the window: their first arrangement, the remembered one, and which of a group of tabs is on top."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow, QTabBar, QTabWidget, QWidget

from inspector.gui.state.settings import LAYOUT_VERSION, Settings
from inspector.gui.widgets.plain_text import tooltip
from inspector.gui.widgets.theme import Theme
from inspector.gui.window.dock_title import DockBar
from inspector.gui.window.screen import fit

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel

SIDE = Qt.DockWidgetArea
NARROW = 1360
"""Width of a window below which the bars at the sides are narrower, so that all tabs are visible."""
NARROWEST, MOST_SHARE = 180, 0.19
"""Pixels of the left bar at least, and its part of the window's width at most."""


class Docking:
    """Everything that can be moved around in a window, by key."""

    def __init__(self, window: QMainWindow) -> None:
        self.window = window
        self.docks: dict[str, QDockWidget] = {}
        self.bars: dict[str, DockBar] = {}
        self.seen: set[str] = set()
        """Keys of the panels that are on screen, on top of the others in their tabs."""
        self.enlarged = ""
        self._hidden: list[QDockWidget] = []
        self._heights: list[tuple[QDockWidget, int]] = []
        self._first = QByteArray()
        self._first_of_rows: list[str] = []
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
        dock.setTitleBarWidget(DockBar(dock))
        return dock

    def add_panel(self, key: str, panel: Panel) -> QDockWidget:
        """The dock of a panel, with the panel's controls in its bar, and a line for damage in it."""
        from inspector.gui.panel.damaged import PanelNote

        PanelNote(panel)
        dock = self.add(key, panel.title, panel, SIDE.BottomDockWidgetArea)
        self.bars[key] = DockBar(dock, panel.control_row, lambda: self.enlarge(key))
        dock.setTitleBarWidget(self.bars[key])
        dock.visibilityChanged.connect(lambda seen: self.seen.add(key) if seen else self.seen.discard(key))
        return dock

    def settle(self, panels: Mapping[str, Panel], settings: Settings) -> None:
        """The first arrangement, or the remembered one."""
        self._arrange(panels)
        self._first = self.window.saveState(LAYOUT_VERSION)
        remembered = settings.layout()
        if remembered is not None:  # before anything is painted: Qt leaves ghosts of tab bars otherwise
            self.window.restoreGeometry(remembered[0])
            fit(self.window)  # it may have been remembered on a larger screen
            self.window.restoreState(remembered[1], LAYOUT_VERSION)
        else:
            fit(self.window)
            QApplication.processEvents()
            self._proportions()
        self.label_tabs(panels)

    def remember(self, settings: Settings) -> None:
        """Store the arrangement for the next start, if there was one."""
        self.restore()
        if self._first.size():
            settings.set_layout(self.window.saveGeometry(), self.window.saveState(LAYOUT_VERSION))

    def reset(self) -> None:
        """The layout of the first start."""
        self.restore()
        self.window.restoreState(self._first, LAYOUT_VERSION)
        for key, dock in self.docks.items():
            dock.setVisible(key != "log")
        QApplication.processEvents()
        self._proportions()
        self._hide_ghosts()

    # -- one panel alone

    def enlarge(self, key: str) -> None:
        """One panel, with those in tabs beside it, fills the window; a second call shows the others again."""
        if self.enlarged:
            self.restore()
            return
        dock = self.docks[key]
        if dock.isFloating():
            dock.setFloating(False)
        keep = {dock, *self.window.tabifiedDockWidgets(dock)}
        others = [self.docks[k] for k in (*self.bars, "log") if self.docks[k] not in keep]
        self._hidden = [other for other in others if not other.isHidden() and not other.isFloating()]
        on_top = [self.docks[k] for k in self.bars if k in self.seen and self.docks[k] in self._hidden]
        self._heights = [(each, each.height()) for each in (dock, *on_top)]
        for other in self._hidden:
            other.hide()
        self.enlarged = key
        self._update_bars()

    def restore(self) -> None:
        """All panels again, if one was enlarged."""
        if not self.enlarged:
            return
        self.enlarged = ""
        for dock in self._hidden:
            dock.show()
        for dock, _ in self._heights[1:]:
            dock.raise_()
        QApplication.processEvents()
        docks, heights = [dock for dock, _ in self._heights], [height for _, height in self._heights]
        self.window.resizeDocks(docks, heights, Qt.Orientation.Vertical)
        self._hidden, self._heights = [], []
        self._update_bars()
        self._hide_ghosts()

    def enlarge_front(self) -> None:
        """Enlarge the panel with the keyboard focus, else the first visible one; or show all again."""
        focus = QApplication.focusWidget()
        seen = [key for key in self.bars if key in self.seen]
        held = [key for key in seen if focus is not None and self.docks[key].isAncestorOf(focus)]
        if held or seen:
            self.enlarge((held or seen)[0])

    def _update_bars(self) -> None:
        for bar in self.bars.values():
            bar.show_enlarged(bool(self.enlarged))

    def set_theme(self, theme: Theme) -> None:
        """Other colours in the bars."""
        for dock in self.docks.values():
            bar = dock.titleBarWidget()
            if isinstance(bar, DockBar):
                bar.set_theme(theme)

    # -- tabs

    def label_tabs(self, panels: Mapping[str, Panel]) -> None:
        """A tab's tooltip describes its panel, and the tab is pale where this run has nothing for it.

        A title is in the bar of a dock only where no tab shows it.
        """
        titled = {panel.title: (key, panel) for key, panel in panels.items()}
        tabbed = set()
        for bar in self._tab_bars():
            for i in range(bar.count()):
                if bar.tabText(i) not in titled:
                    continue
                key, panel = titled[bar.tabText(i)]
                tabbed.add(key)
                nothing = panel.capture is not None and not panel.channels()
                theme = panel.theme
                bar.setTabToolTip(i, tooltip(panel.hint))
                bar.setTabTextColor(i, QColor(theme.muted if nothing else theme.text))
        for key, dock_bar in self.bars.items():
            dock_bar.title.setVisible(key not in tabbed or self.docks[key].isFloating())

    def raise_useful(self, panels: Mapping[str, Panel]) -> None:
        """Where the panel on top of a group of tabs is empty, one that is not comes to the top."""
        group = {self.docks[key]: key for key in panels}
        for key, panel in panels.items():
            dock = self.docks[key]
            if key not in self.seen or panel.state != "empty":
                continue
            panel.redraw()  # what cannot apply to the model is known only when its run has ended
            if panel.state != "empty" or dock.isFloating():
                continue
            others = [panels[group[d]] for d in self.window.tabifiedDockWidgets(dock) if d in group]
            for other in others:
                other.redraw()
            full = next((other for other in others if other.state == "figure"), None)
            if full is not None:
                self.docks[full.key].raise_()

    # -- arranging

    def _arrange(self, panels: Mapping[str, Panel]) -> None:
        above = [key for key, panel in panels.items() if panel.tab_row == "upper"]
        below = [key for key in panels if key not in above]
        self._first_of_rows = [row[0] for row in (above, below) if row]
        if above and below:
            self.window.splitDockWidget(self.docks[above[0]], self.docks[below[0]], Qt.Orientation.Vertical)
        for group in (above, [*below, "log"]):
            for first, second in pairwise(group):
                self.window.tabifyDockWidget(self.docks[first], self.docks[second])
            if group:
                self.docks[group[0]].raise_()
        self.docks["log"].hide()

    def _proportions(self) -> None:
        """Set the sizes; only those of visible docks can be set, so this comes after the arranging."""
        rows = [self.docks[key] for key in self._first_of_rows]
        sides = [self.docks["open"], self.docks["model"]]
        width = self.window.width()
        self.window.resizeDocks(rows, [370, 360][: len(rows)], Qt.Orientation.Vertical)
        wanted = sides[0].widget().sizeHint().width()  # so that names are not cut
        widths = [max(NARROWEST, min(wanted, int(MOST_SHARE * width))), 270 if width >= NARROW else 230]
        self.window.resizeDocks([sides[0], self.docks["numbers"]], widths, Qt.Orientation.Horizontal)
        self.window.resizeDocks(sides, [300, 400], Qt.Orientation.Vertical)

    def _tab_bars(self) -> list[QTabBar]:
        bars = [bar for bar in self.window.findChildren(QTabBar) if bar.parent() is self.window and bar.isVisible()]
        return sorted(bars, key=lambda bar: bar.y())

    def _hide_ghosts(self) -> None:
        """Tab bars that Qt leaves where a group of docks was before a layout was restored."""
        titles = {dock.windowTitle() for dock in self.docks.values()}
        seen: set[tuple[str, ...]] = set()
        for bar in self._tab_bars():
            names = tuple(bar.tabText(i) for i in range(bar.count()))
            ghost = not names or names in seen or not set(names) <= titles
            seen.add(names)
            if ghost:
                bar.hide()
