"""The docks of the window: their first arrangement, the remembered one, and which of a group of tabs is on top."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QByteArray, QEvent, QSize, Qt, QTimer
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow, QTabWidget, QWidget

from inspector.gui.state.settings import LAYOUT_VERSION, Settings
from inspector.gui.widgets.theme import LIGHT, Theme
from inspector.gui.window.docking.dock_title import Do, DockBar
from inspector.gui.window.docking.giving_way import GivingWay
from inspector.gui.window.docking.panel_tabs import PanelTabs, hold_soon
from inspector.gui.window.docking.panels_on_demand import PanelPlace, Panels
from inspector.gui.window.docking.rows_back import RowsBack
from inspector.gui.window.docking.screen import fit
from inspector.gui.window.docking.side_widths import SideWidths
from inspector.gui.window.docking.tab_lists import TabLists

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel

SIDE = Qt.DockWidgetArea
PAGE = "overview"
"""The panel that has the room of all others while it is in front; at the first start it is behind them."""
AT_FIRST_HIDDEN = ("log", "comparison")
ON_OCCASION = ("weights", "table")
"""Panels that have no tab until something is opened that they alone show, or they are asked for: by a range of steps
on the strip, or by their names."""
"""Docks that are shown when they are asked for, in tabs with the lower panels."""
WIDTHS = "widths of the bars"
"""The setting with what the bars at the sides had before a narrow window squeezed them."""
FIRST = QSize(900, 400)
"""Of a panel that is exported before it or one in tabs with it was visible."""


class Docking:
    """Everything that can be moved around in a window, by key."""

    def __init__(self, window: QMainWindow) -> None:
        self.window = window
        self.docks: dict[str, QDockWidget] = {}
        self.bars: dict[str, DockBar] = {}
        self.seen: set[str] = set()
        """Keys of the panels that are on screen, on top of the others in their tabs."""
        self.enlarged = ""
        self.back = RowsBack(self)
        self.sides = SideWidths(self)
        self._hidden: list[QDockWidget] = []
        self._heights: list[tuple[QDockWidget, int]] = []
        self._first = QByteArray()
        self._first_of_rows: list[str] = []
        self._places: dict[str, PanelPlace] = {}
        self._prepared: dict[str, QDockWidget] = {}
        self._panels: Panels | None = None
        self._theme = LIGHT
        self._labeller = QTimer(window, interval=0, singleShot=True)
        """Started where docks have moved: Qt has made other tab bars then, whose tabs have no colours yet."""
        self.giving_way = GivingWay(self, PAGE)
        self._arranged = False
        """Whether the docks have their places: while they get them each is visible for a moment."""
        self.tabs = PanelTabs(window)
        self.tabs.clicked = lambda key: hold_soon(self.window, self.docks[key], self._places[key])
        self.lists = TabLists(self, window)
        self._pager = QTimer(window, interval=0, singleShot=True)
        self._pager.timeout.connect(self._settle_page)
        self._widener = QTimer(window, interval=0, singleShot=True)
        self._widener.timeout.connect(self.sides.widen)
        self._labeller.timeout.connect(self.label_tabs)
        window.setDockNestingEnabled(True)
        window.setCorner(Qt.Corner.BottomLeftCorner, SIDE.LeftDockWidgetArea)
        window.setCorner(Qt.Corner.BottomRightCorner, SIDE.RightDockWidgetArea)
        window.setTabPosition(SIDE.AllDockWidgetAreas, QTabWidget.TabPosition.North)

    def resized(self) -> None:
        """The window has another size."""
        self._widener.start()

    def add(
        self, key: str, title: str, widget: QWidget, area: Qt.DockWidgetArea, enlarge: Do | None = None
    ) -> QDockWidget:
        """One more dock, whose bar has a button to enlarge it where something does that."""
        dock = self.docks[key] = self._made(key, title, widget, enlarge)
        self.window.addDockWidget(area, dock)
        return dock

    def _made(self, key: str, title: str, widget: QWidget, enlarge: Do | None) -> QDockWidget:
        dock = QDockWidget(title, self.window)
        dock.setObjectName(f"dock-{key}")
        dock.setWidget(widget)
        dock.setTitleBarWidget(DockBar(dock, enlarge, self._theme))  # before it is in the window, which lays out anew
        return dock

    def prepare_panel(self, key: str, kind: type[Panel]) -> None:
        """Make the dock of a panel, for `add_panel`: both for all panels takes as long as a window may not answer."""
        self._places[key] = PanelPlace()
        self._prepared[key] = self._made(key, kind.title, self._places[key], lambda: self.enlarge(key))

    def add_panel(self, key: str) -> QDockWidget:
        """The dock of a panel that is not made yet, and was prepared."""
        dock = self.docks[key] = self._prepared.pop(key)
        self.window.addDockWidget(SIDE.BottomDockWidgetArea, dock)
        self.bars[key] = cast(DockBar, dock.titleBarWidget())
        for moved in (dock.topLevelChanged, dock.dockLocationChanged, dock.visibilityChanged):
            moved.connect(lambda _: self._labeller.start())
        dock.visibilityChanged.connect(lambda seen: self._turned(key, seen))
        return dock

    def _turned(self, key: str, seen: bool) -> None:
        (self.seen.add if seen else self.seen.discard)(key)
        if key == PAGE:
            self._pager.start()
        panel = self._panels.made.get(key) if self._panels is not None else None
        self._places[key].seen |= seen and panel is not None
        if panel is not None and not (seen and self.back.takes(key, panel)):
            panel.say_on_screen(seen)

    def put(self, key: str, panel: Panel) -> None:
        """A panel that has been made comes into its dock, its controls into the bar, and a line for damage into it."""
        from inspector.gui.panel.damaged import PanelNote
        from inspector.gui.panel.remaining import RemainingNote

        PanelNote(panel)
        RemainingNote(panel)
        self.bars[key].set_controls(panel.control_row)
        self._places[key].put(panel)
        self._places[key].seen = panel.on_screen = key in self.seen

    def lay_out(self, key: str, panel: Panel) -> None:
        """Give a panel that goes into a file but has never been on screen the size of the one in front of it."""
        if self._places[key].seen:
            return
        beside = self.window.tabifiedDockWidgets(self.docks[key])
        front = [other for other in self.bars if other in self.seen and self.docks[other] in beside]
        sizes = [self._places[other].size() for other in front]
        self._places[key].lay_out(panel, sizes[0] if sizes else FIRST)

    def place_of(self, key: str) -> PanelPlace:
        """The contents of the dock of a panel."""
        return self._places[key]

    def say(self, key: str, text: str) -> None:
        """Show a text in the dock of a panel that could not be made."""
        self._places[key].say(text)

    def settle(self, panels: Panels, settings: Settings) -> None:
        """The first arrangement, or the remembered one."""
        self._panels = self.tabs.panels = panels
        self._arrange(panels.kinds)
        self._first = self.window.saveState(LAYOUT_VERSION)
        remembered = settings.layout()
        if remembered is not None:  # before anything is painted: Qt leaves ghosts of tab bars otherwise
            self.window.restoreGeometry(remembered[0])
            fit(self.window)  # it may have been remembered on a larger screen
            self.window.restoreState(remembered[1], LAYOUT_VERSION)
            self.sides.take_text(settings.text(WIDTHS))
        else:
            fit(self.window)
            QApplication.processEvents()
            self._proportions()
        self.label_tabs()
        self._arranged = True
        self._pager.start()

    def remember(self, settings: Settings) -> None:
        """Store the arrangement for the next start, if there was one."""
        self.show_rows()
        if self._first.size():
            settings.set_text(WIDTHS, self.sides.in_text())
            settings.set_layout(self.window.saveGeometry(), self.window.saveState(LAYOUT_VERSION))

    def reset(self) -> None:
        """The layout of the first start."""
        self.restore()
        self._arranged = False
        self.window.restoreState(self._first, LAYOUT_VERSION)
        for key, dock in self.docks.items():
            dock.setVisible(key not in (*AT_FIRST_HIDDEN, *ON_OCCASION))
        QApplication.processEvents()
        self._proportions()
        self._hide_ghosts()
        self.label_tabs()
        self._arranged = True

    def rearrange(self, do: Callable[[], None], enlarged: str) -> None:
        """Give the docks other places; then one of the panels may fill the window."""
        self.restore()
        self._arranged = False
        do()
        self._hide_ghosts()
        self.label_tabs()
        self._arranged = True
        if enlarged in self.bars and enlarged in self.seen:
            self.enlarge(enlarged)
        self._pager.start()

    # -- one panel alone

    def enlarge(self, key: str) -> None:
        """One panel, with those in tabs beside it, fills the window; a second call shows the others again."""
        if self.enlarged:
            self.restore()
            return
        dock = self.docks[key]
        if dock.isFloating():  # Qt hides and shows also one that is docked: the focus went to the tab beside it
            dock.setFloating(False)
        keep = {dock, *self.window.tabifiedDockWidgets(dock)}
        others = [self.docks[k] for k in self._in_rows]
        self._hidden = [each for each in others if not (each in keep or each.isHidden() or each.isFloating())]
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
        self.window.setUpdatesEnabled(False)  # what is laid out is painted once, and not in between
        try:
            for dock in self._hidden:
                dock.show()
            for dock, _ in self._heights[1:]:
                dock.raise_()
            QApplication.processEvents()
            docks, heights = [dock for dock, _ in self._heights], [height for _, height in self._heights]
            self.window.resizeDocks(docks, heights, Qt.Orientation.Vertical)
        finally:
            self.window.setUpdatesEnabled(True)
            # Of a painting that was asked for before and came meanwhile Qt does nothing and asks for no other: the
            # window would not be painted any more until somebody changes its size.
            QApplication.postEvent(self.window, QEvent(QEvent.Type.UpdateRequest))
        self._hidden, self._heights = [], []
        self._update_bars()
        self._hide_ghosts()
        self.label_tabs()
        self.giving_way.rows_are_back()

    def show_rows(self) -> None:
        """All panels again, for who keeps the arrangement: the overview, once it is seen, takes no room meanwhile."""
        arranged, self._arranged = self._arranged, False
        self.restore()
        self._arranged = arranged

    def show_panel(self, key: str) -> None:
        """Bring a panel to the front; where another one fills the window, that gives way."""
        dock, self.giving_way.asked = self.docks[key], key
        beside = self.window.tabifiedDockWidgets(self.docks[self.enlarged]) if self.enlarged else []
        if self.enlarged not in ("", key) and dock not in beside and key in self._in_rows:
            self.show_rows()
        dock.show()
        dock.raise_()
        if key == PAGE:
            self._pager.start()  # it may have been in front already, without the room of the others
        elif key in self._in_rows and not self.enlarged:
            self._pager.stop()  # the overview was to fill the window, without this panel

    @property
    def _in_rows(self) -> tuple[str, ...]:
        """Keys of what is in the rows of panels, and not at the sides."""
        return (*self.bars, *AT_FIRST_HIDDEN)

    def _settle_page(self) -> None:
        """The overview is a page: in front of its tabs it fills the window, and gives the room back when it is left."""
        if not self._arranged:
            return
        in_front = PAGE in self.seen and not self.docks[PAGE].isFloating()
        if in_front and not self.enlarged:
            self.enlarge(PAGE)
        elif not in_front and self.enlarged == PAGE:
            self.back.restore()

    def enlarge_front(self) -> None:
        """Enlarge the panel (or the comparison) with the keyboard focus, else the first visible one; or show all."""
        focus = QApplication.focusWidget()
        seen = [key for key in self.bars if key in self.seen]
        held = [key for key in (*seen, "comparison") if focus is not None and self.docks[key].isAncestorOf(focus)]
        if held or seen:
            self.enlarge((held or seen)[0])

    def _update_bars(self) -> None:
        for bar in self.bars.values():
            bar.show_enlarged(bool(self.enlarged))

    def set_theme(self, theme: Theme) -> None:
        """Other colours in the bars."""
        self._theme = theme
        for dock in self.docks.values():
            bar = dock.titleBarWidget()
            if isinstance(bar, DockBar):
                bar.set_theme(theme)
        self.tabs.colour(theme)

    # -- tabs

    def label_tabs(self) -> None:
        """Describe and colour the tabs; a title is in the bar of a dock only where no tab shows it."""
        tabbed = self.tabs.label()
        self.lists.watch()
        for key, dock_bar in self.bars.items():
            dock_bar.title.setVisible(key not in tabbed or self.docks[key].isFloating())

    def raise_useful(self) -> None:
        """Where the panel on top of a group of tabs is empty, one that is not comes to the top."""
        for _ in self.giving_way.steps(frozenset(self.seen), at_once=True):
            pass

    def give_way(self, capture: object) -> None:
        """`raise_useful` once for a capture, with events between the panels (giving_way.py)."""
        self.giving_way.for_capture(capture)

    @property
    def rows(self) -> Collection[str]:
        """Keys of the panels that are in rows of tabs."""
        return self.bars.keys()

    @property
    def made(self) -> Mapping[str, Panel]:
        """The panels that have been made."""
        return self._panels.made if self._panels is not None else {}

    def panel_with_data(self, key: str) -> Panel | None:
        """A panel, made where it is not yet, of which the capture that is shown has something."""
        return self._panels.get(key) if self._panels is not None and self._panels.has_data(key) else None

    # -- arranging

    def _arrange(self, kinds: Mapping[str, type[Panel]]) -> None:
        above = [key for key, kind in kinds.items() if kind.tab_row == "upper"]
        below = [key for key in kinds if key not in above]
        self._first_of_rows = [next((key for key in row if key != PAGE), row[0]) for row in (above, below) if row]
        if above and below:
            self.window.splitDockWidget(self.docks[above[0]], self.docks[below[0]], Qt.Orientation.Vertical)
        for group in (above, [*below, *AT_FIRST_HIDDEN]):
            for first, second in pairwise(group):
                self.window.tabifyDockWidget(self.docks[first], self.docks[second])
            front = [key for key in group if key != PAGE]
            if front:
                self.docks[front[0]].raise_()
        for key in (key for key in (*AT_FIRST_HIDDEN, *ON_OCCASION) if key in self.docks):
            self.docks[key].hide()

    def _proportions(self) -> None:
        """Set the sizes; only those of visible docks can be set, so this comes after the arranging."""
        rows = [self.docks[key] for key in self._first_of_rows]
        for dock in rows:
            dock.raise_()  # again: before the docks have their places the first tab is in front all the same
        QApplication.processEvents()
        self.window.resizeDocks(rows, [370, 360][: len(rows)], Qt.Orientation.Vertical)
        self.sides.set_first()
        self.window.resizeDocks([self.docks["open"], self.docks["model"]], [300, 400], Qt.Orientation.Vertical)

    def _hide_ghosts(self) -> None:
        """Tab bars that Qt leaves where a group of docks was before a layout was restored."""
        titles = {dock.windowTitle() for dock in self.docks.values()}
        seen: set[tuple[str, ...]] = set()
        for bar in self.tabs.bars():
            names = tuple(bar.tabText(i) for i in range(bar.count()))
            ghost = not names or names in seen or not set(names) <= titles
            seen.add(names)
            if ghost:
                bar.hide()
