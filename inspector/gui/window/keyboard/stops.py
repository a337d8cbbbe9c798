"""Going through the window by keyboard: from part to part, and from panel to panel, also to those behind others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QDockWidget, QWidget

if TYPE_CHECKING:
    from inspector.gui.window.parts import Parts

SHORTCUT = Qt.FocusReason.ShortcutFocusReason


class Stops:
    """Parts are the rows at the top, the docks that are seen, from left to right and from the top, and the timeline."""

    def __init__(self, window: Parts) -> None:
        self.window = window

    def parts(self) -> list[QWidget]:
        """What is visible and can hold the focus, in the order of reading."""
        window = self.window
        rows = [window.damage, window.input, window.runs, window.frames, window.compare]
        strips = [row.strip for row in window.sequences]
        docks = sorted(self._docks_in_view(), key=lambda dock: (dock.x(), dock.y()))
        found = [*rows, *strips, *(dock.widget() for dock in docks), window.timeline]
        return [part for part in found if part.isVisible() and first_stop(part) is not None]

    def _docks_in_view(self) -> list[QDockWidget]:
        """Docks in front of the others in their tabs; Qt moves those behind out of the window, still "visible"."""
        inside = self.window.rect()
        docks = self.window.docks.values()
        return [
            dock for dock in docks
            if dock.isVisible() and (dock.isFloating() or inside.intersects(dock.geometry()))
        ]  # fmt: skip

    def go(self, way: int) -> None:
        """The focus goes to the part after (1) or before (-1) the one that has it."""
        parts, focus = self.parts(), QApplication.focusWidget()
        if not parts:
            return
        at = next((n for n, part in enumerate(parts) if focus is not None and holds(part, focus)), None)
        first = 0 if way > 0 else len(parts) - 1
        focus_on(parts[first if at is None else (at + way) % len(parts)])

    def turn(self, way: int) -> None:
        """The panel after or before the one with the focus (else the first that is seen) comes to the front with it.

        Panels that were closed stay closed.
        """
        window, focus = self.window, QApplication.focusWidget()
        keys = [key for key in window.panels.kinds if not window.docks[key].isHidden()]
        if not keys:
            return
        held = [key for key in keys if focus is not None and window.docks[key].isAncestorOf(focus)]
        seen = held or [key for key in keys if key in window.docking.seen]
        at = keys.index(seen[0]) if seen else -way
        self.show(keys[(at + way) % len(keys)])

    def show(self, key: str) -> None:
        """A dock comes to the front and its contents get the focus: by their name, one gets somewhere."""
        window = self.window
        window.docking.show_panel(key)
        panel = window.panels.get(key) if key in window.panels else None
        if panel is not None:
            panel.show()  # one that has just been made would be shown by its layout, later
        focus_on(window.docks[key].widget())


def holds(part: QWidget, focus: QWidget) -> bool:
    """Whether a part has the focus: itself, in it, or in the bar of its dock."""
    if part is focus or part.isAncestorOf(focus):
        return True
    dock = part.parentWidget()
    return dock is not None and dock.inherits("QDockWidget") and dock.isAncestorOf(focus)


def focus_on(part: QWidget) -> None:
    """Give the focus to the first thing in a part that takes it."""
    stop = first_stop(part)
    if stop is not None:
        stop.activateWindow()
        stop.setFocus(SHORTCUT)


def first_stop(part: QWidget) -> QWidget | None:
    """The first widget that Tab would come to: the part itself, or something in it."""
    return next((one for one in in_order(part) if _takes(one)), None)


def in_order(part: QWidget) -> Iterator[QWidget]:
    """The part and what is in it, in the order of Tab, which is that of their making.

    Not by `nextInFocusChain`: PySide takes what that returns, the window too, for a child of the widget that was
    asked, and when that one is deleted, forgets every object of the window that Qt has made, as actions of menus.
    """
    yield part
    yield from part.findChildren(QWidget)


def _takes(widget: QWidget) -> bool:
    """Whether Tab stops here."""
    policy = widget.focusPolicy()
    tabbed = bool(policy.value & Qt.FocusPolicy.TabFocus.value)
    return tabbed and widget.isEnabled() and widget.isVisible() and widget.focusProxy() is None
