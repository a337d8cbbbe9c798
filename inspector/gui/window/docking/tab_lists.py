"""Where a row of panels has more tabs than there is room for, a button beside the others lists them all: arrows alone
do not say what is behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from PySide6.QtCore import QEvent, QObject, QPoint, QTimer
from PySide6.QtWidgets import QMenu, QTabBar, QToolButton

from inspector.gui.window.docking.dock_title import DockBar
from inspector.gui.window.docking.panel_tabs import NOTHING, PanelTabs

KIND, TIP = "list", "All panels of this row"
CHANGES = (QEvent.Type.Resize, QEvent.Type.Show, QEvent.Type.Hide, QEvent.Type.LayoutRequest)


class Docks(Protocol):
    """What is used of the docks of a window (docks.py)."""

    bars: dict[str, DockBar]
    tabs: PanelTabs

    def show_panel(self, key: str) -> None:
        """Show a panel, in front of the others in its tabs."""


class TabLists(QObject):
    """Shows the button in the bars of the panels of a row whose tabs do not all fit, and its menu."""

    def __init__(self, docks: Docks, parent: QObject) -> None:
        super().__init__(parent)
        self._docks = docks
        self._again = QTimer(self, interval=0, singleShot=True)
        self._again.timeout.connect(self.update)

    def watch(self) -> None:
        """Qt has made bars of tabs, or moved them."""
        for bar in self._docks.tabs.bars():
            bar.installEventFilter(self)  # of one that has it already nothing changes
        self._again.start()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """More or less room for tabs."""
        if event.type() in CHANGES:
            self._again.start()
        return False

    def update(self) -> None:
        """Show the button where it is needed, and nowhere else."""
        needed = {key for bar, _, key in self._docks.tabs.each() if _is_too_narrow(bar)}
        for key, bar in self._docks.bars.items():
            if key in needed or KIND in bar.buttons:
                button = bar.buttons.get(KIND) or self._made(key, bar)
                button.setVisible(key in needed)

    def _made(self, key: str, bar: DockBar) -> QToolButton:
        return bar.add_first(KIND, TIP, lambda: self._open(key))

    def listed(self, key: str) -> tuple[Sequence[tuple[str, str]], Sequence[tuple[str, str]]]:
        """(key, title) of the panels of the row of a panel in the order of their tabs: those that have something to
        show, and those that have nothing in this run."""
        tabs = self._docks.tabs
        own = next((bar for bar, _, other in tabs.each() if other == key), None)
        row = [(other, bar.tabText(place)) for bar, place, other in tabs.each() if bar is own]
        return [one for one in row if one[0] not in tabs.pale], [one for one in row if one[0] in tabs.pale]

    def menu(self, key: str) -> QMenu:
        """All panels of the row of a panel, it checked."""
        menu = QMenu(self._docks.bars[key])
        there, nothing = self.listed(key)
        for panels in (there, nothing):
            if panels is nothing and nothing:
                menu.addSeparator()  # Qt's own sections begin left of the entries, and touch the first
                menu.addAction(NOTHING.capitalize()).setEnabled(False)
            for other, title in panels:
                action = menu.addAction(title.replace("&", "&&"))
                action.setCheckable(other == key)  # empty boxes at the others would read as switches
                action.setChecked(other == key)
                action.triggered.connect(lambda _checked=False, other=other: self._docks.show_panel(other))
        return menu

    def _open(self, key: str) -> None:
        menu, button = self.menu(key), self._docks.bars[key].buttons[KIND]
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(button.mapToGlobal(QPoint(0, button.height())))


def _is_too_narrow(bar: QTabBar) -> bool:
    """Whether some of its tabs are out of sight: Qt shows arrows then."""
    return any(arrow.isVisible() for arrow in bar.findChildren(QToolButton))
