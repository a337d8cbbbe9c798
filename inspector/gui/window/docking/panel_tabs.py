"""The tabs of panels: what each is for, and pale where the run that is shown has nothing for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow, QTabBar, QWidget

from inspector.gui.widgets.plain_text import tooltip
from inspector.gui.widgets.theme import LIGHT, Theme
from inspector.gui.window.docking.panels_on_demand import Panels
from inspector.gui.window.docking.tab_tips import TabTips

HEARD = "heard"
"""The property of a bar whose clicks are heard already."""
NOTHING = "nothing to show in this run"
"""What a program that reads the screen says of a pale tab."""


class PanelTabs:
    """The bars of tabs that Qt makes for docks of `window` that share a place."""

    def __init__(self, window: QMainWindow) -> None:
        self.panels: Panels | None = None
        self.clicked: Callable[[str], None] = lambda _key: None
        """What is done when somebody clicks at the tab of a panel."""
        self._window = window
        self._theme = LIGHT
        self.pale: set[str] = set()
        """Keys of the panels that have nothing to show in this run."""
        self._tips = TabTips(self._told, window)

    def bars(self) -> list[QTabBar]:
        """Those that are visible, from top to bottom."""
        bars = self._window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
        return sorted((bar for bar in bars if bar.isVisible()), key=lambda bar: bar.y())

    def label(self) -> set[str]:
        """Describe every tab, and colour it; returns the keys of the panels that have one."""
        panels = self.panels
        tabbed = self.each()
        for bar, place, key in tabbed:
            assert panels is not None
            bar.installEventFilter(self._tips)  # of one that has it already nothing changes
            if not bar.property(HEARD):
                bar.setProperty(HEARD, True)
                bar.tabBarClicked.connect(partial(self._clicked, bar))
            bar.setTabToolTip(place, tooltip(panels.kinds[key].hint))
            nothing = panels.source is not None and not panels.has_data(key) and not panels.expects(key)
            (self.pale.add if nothing else self.pale.discard)(key)
            bar.setAccessibleTabName(place, f"{bar.tabText(place)}, {NOTHING}" if nothing else "")
        self.colour(self._theme)
        return {key for _, _, key in tabbed}

    def _clicked(self, bar: QTabBar, place: int) -> None:
        for one, number, key in self.each():
            if one is bar and number == place:
                self.clicked(key)

    def colour(self, theme: Theme) -> None:
        """The colours of a theme for the names of tabs."""
        self._theme = theme
        for bar, place, key in self.each():
            bar.setTabTextColor(place, QColor(theme.muted if key in self.pale else theme.text))

    def each(self) -> list[tuple[QTabBar, int, str]]:
        """Each tab of a panel: its bar, its place in it, and the key of the panel."""
        titled = {kind.title: key for key, kind in self.panels.kinds.items()} if self.panels is not None else {}
        tabs = ((bar, place) for bar in self.bars() for place in range(bar.count()))
        return [(bar, i, titled[bar.tabText(i)]) for bar, i in tabs if bar.tabText(i) in titled]

    def _told(self, title: str) -> str:
        """What the panel of a title is for, and the formulas of what it shows."""
        panels = self.panels
        keys = [key for key, kind in panels.kinds.items() if kind.title == title] if panels is not None else []
        return panels.told(keys[0]) if keys and panels is not None else ""


def hold_soon(window: QMainWindow, dock: QDockWidget, inside: QWidget) -> None:
    """Give a panel whose tab was clicked the keyboard, when Qt has turned to it: Qt leaves it where it was, or with any
    other panel where that one has gone behind, and keys (F9 …) would be about that."""

    def hold() -> None:
        focus = QApplication.focusWidget()
        if inside.isVisible() and (focus is None or not dock.isAncestorOf(focus)):
            inside.setFocus(Qt.FocusReason.MouseFocusReason)

    QTimer.singleShot(0, window, hold)
