"""The arrangement of the docks as plain values: to be kept under a name, or in a session that can be read.

Qt's own bytes of a layout are neither readable nor checked by Qt where they come from a file of somebody else's.

{"areas": {"left" | "right" | "top" | "bottom": NODE}, "hidden": [KEY], "floating": {KEY: [x, y, width, height]},
"enlarged": KEY}, where a NODE is {"tabs": [KEY], "front": KEY} or {"across" | "down": [NODE], "sizes": [pixels]}.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QApplication, QDockWidget

if TYPE_CHECKING:
    from inspector.gui.window.docking.docks import Docking

AREAS = {
    "left": Qt.DockWidgetArea.LeftDockWidgetArea, "right": Qt.DockWidgetArea.RightDockWidgetArea,
    "top": Qt.DockWidgetArea.TopDockWidgetArea, "bottom": Qt.DockWidgetArea.BottomDockWidgetArea,
}  # fmt: skip
DIRECTIONS = {"across": Qt.Orientation.Horizontal, "down": Qt.Orientation.Vertical}
DEEPEST, MOST = 8, 200
"""Splits in splits, and parts of one."""
Node = dict[str, Any]


def describe(docking: Docking) -> Node:
    """How the docks are arranged now."""
    enlarged = docking.enlarged
    docking.show_rows()
    docks = docking.docks
    floating = {key: _box(dock) for key, dock in docks.items() if dock.isFloating() and not dock.isHidden()}
    hidden = [key for key, dock in docks.items() if dock.isHidden()]
    placed = [key for key in docks if key not in floating and key not in hidden]
    areas = {}
    for name, area in AREAS.items():
        groups = _groups(docking, [key for key in placed if docking.window.dockWidgetArea(docks[key]) == area])
        if groups:
            areas[name] = _split(groups)
    if enlarged:
        docking.enlarge(enlarged)
    return {"areas": areas, "hidden": hidden, "floating": floating, "enlarged": enlarged}


def _box(dock: QDockWidget) -> list[int]:
    return [dock.x(), dock.y(), dock.width(), dock.height()]


def _groups(docking: Docking, keys: list[str]) -> list[tuple[Node, QRect]]:
    """The docks in tabs together, and where they are: that of the one in front."""
    named = {dock: key for key, dock in docking.docks.items()}
    found: list[tuple[Node, QRect]] = []
    done: set[str] = set()
    for key in keys:
        if key in done:
            continue
        others = [named[one] for one in docking.window.tabifiedDockWidgets(docking.docks[key]) if one in named]
        tabs = [one for one in keys if one == key or one in others]
        done |= set(tabs)
        front = next((one for one in tabs if not docking.docks[one].visibleRegion().isEmpty()), tabs[0])
        found.append(({"tabs": tabs, "front": front}, docking.docks[front].geometry()))
    return found


def _split(groups: list[tuple[Node, QRect]]) -> Node:
    """Rectangles that were cut out of one, as the cuts that made them."""
    if len(groups) == 1:
        return groups[0][0]
    for name, low, high in (("down", QRect.top, QRect.bottom), ("across", QRect.left, QRect.right)):
        parts: list[list[tuple[Node, QRect]]] = []
        end = None
        for group in sorted(groups, key=lambda one: low(one[1])):
            if end is None or low(group[1]) > end:
                parts.append([])
            parts[-1].append(group)
            end = max(high(group[1]), end if end is not None else high(group[1]))
        if len(parts) > 1:
            sizes = [max(high(r) for _, r in part) - min(low(r) for _, r in part) + 1 for part in parts]
            return {name: [_split(part) for part in parts], "sizes": sizes}
    tabs = [key for node, _ in groups for key in node["tabs"]]  # no cut separates them, which docks never do
    return {"tabs": tabs, "front": tabs[0]}


def check(layout: Any) -> Node:
    """The layout, where it has the form that is told above; docks that do not exist here are left out later.

    Raises ValueError with one phrase.
    """
    if not isinstance(layout, Mapping) or not isinstance(layout.get("areas", {}), Mapping):
        raise ValueError("its layout is not one of docks")
    areas, hidden = layout.get("areas", {}), layout.get("hidden", [])
    floating, enlarged = layout.get("floating", {}), layout.get("enlarged", "")
    if not set(areas) <= set(AREAS) or not _texts(hidden) or not isinstance(enlarged, str):
        raise ValueError("its layout is not one of docks")
    if not isinstance(floating, Mapping) or not all(map(_is_box, floating.values())):
        raise ValueError("a floating dock of its layout has no place")
    for node in areas.values():
        _check_node(node, 0)
    return {"areas": dict(areas), "hidden": hidden, "floating": dict(floating), "enlarged": enlarged}


def _texts(found: Any) -> bool:
    return isinstance(found, (list, tuple)) and len(found) <= MOST and all(isinstance(one, str) for one in found)


def _is_box(found: Any) -> bool:
    return (
        isinstance(found, (list, tuple)) and len(found) == 4
        and all(type(one) is int and -100_000 < one < 100_000 for one in found)
    )  # fmt: skip


def _check_node(node: Any, depth: int) -> None:
    if not isinstance(node, Mapping) or depth > DEEPEST:
        raise ValueError("its layout is not one of docks")
    if "tabs" in node:
        if not _texts(node["tabs"]) or not isinstance(node.get("front", ""), str):
            raise ValueError("a group of tabs in its layout is not one")
        return
    (parts, sizes) = next(((node[name], node.get("sizes")) for name in DIRECTIONS if name in node), (None, None))
    if not isinstance(parts, (list, tuple)) or not 0 < len(parts) <= MOST:
        raise ValueError("a split of its layout has no parts")
    if not isinstance(sizes, (list, tuple)) or len(sizes) != len(parts) or not all(
        type(one) is int and 0 <= one < 100_000 for one in sizes
    ):  # fmt: skip
        raise ValueError("a split of its layout has no sizes")
    for part in parts:
        _check_node(part, depth + 1)


def arrange(docking: Docking, layout: Node) -> None:
    """Arrange the docks by a layout that was checked."""
    docking.rearrange(lambda: _Arranging(docking).arrange(layout), layout["enlarged"])


class _Arranging:
    """Arranges docks by a layout that was checked; each dock is placed once, those it does not name stay last in tabs
    with the others."""

    def __init__(self, docking: Docking) -> None:
        self._docking, self._window = docking, docking.window
        self._rest = dict(docking.docks)
        self._sizes: list[tuple[list[str], list[int], Qt.Orientation]] = []
        self._fronts: list[str] = []

    def arrange(self, layout: Node) -> None:
        """Do it."""
        floating = {key: box for key, box in layout["floating"].items() if key in self._rest}
        hidden = {key for key in layout["hidden"] if key in self._rest}
        away = {key: self._rest.pop(key) for key in {*floating, *hidden}}
        anchors = [self._area(AREAS[name], node) for name, node in layout["areas"].items()]
        below = self._anchor([one for one in anchors if one])
        for key, dock in {**self._rest, **away}.items():
            dock.setFloating(False)
            if below and key != below:
                self._window.tabifyDockWidget(self._docking.docks[below], dock)
            dock.setVisible(key not in hidden)
        for key, (x, y, width, height) in floating.items():
            self._docking.docks[key].setFloating(True)
            self._docking.docks[key].setGeometry(x, y, width, height)
        self._finish()

    def _anchor(self, anchors: Sequence[str]) -> str:
        """The dock with which those are tabbed that the layout does not place: a panel's, where there is one."""
        return next((key for key in anchors if key in self._docking.bars), anchors[-1] if anchors else "")

    def _area(self, area: Qt.DockWidgetArea, node: Node) -> str:
        first = self._take(node)
        if first is None:
            return ""
        self._window.addDockWidget(area, self._docking.docks[first])
        self._place(node, first)
        return first

    def _take(self, node: Node) -> str | None:
        """The first dock of a node that exists and has no place yet; it has one now."""
        key = next((key for key in _keys(node) if key in self._rest), None)
        if key is not None:
            dock = self._rest.pop(key)
            dock.setFloating(False)
            dock.show()
        return key

    def _place(self, node: Node, first: str) -> None:
        """Put the other docks of a node beside the first one of them, which has its place."""
        docks = self._docking.docks
        if "tabs" in node:
            for key in [key for key in node["tabs"] if key in self._rest]:
                self._rest.pop(key).setFloating(False)  # a tab of a floating panel would leave it where it floats
                self._window.tabifyDockWidget(docks[first], docks[key])
                docks[key].show()
            self._fronts.append(node.get("front", first))
            return
        name = next(one for one in DIRECTIONS if one in node)
        parts: list[tuple[Node, str, int]] = [(node[name][0], first, node["sizes"][0])]
        for part, size in zip(node[name][1:], node["sizes"][1:], strict=True):
            key = self._take(part)
            if key is not None:
                self._window.splitDockWidget(docks[parts[-1][1]], docks[key], DIRECTIONS[name])
                parts.append((part, key, size))
        self._sizes.append(([key for _, key, _ in parts], [size for *_, size in parts], DIRECTIONS[name]))
        for part, key, _ in parts:
            self._place(part, key)

    def _finish(self) -> None:
        docks = self._docking.docks
        for key in self._fronts:
            if key in docks and not docks[key].isHidden():
                docks[key].raise_()
        QApplication.processEvents()
        for keys, sizes, direction in self._sizes:
            self._window.resizeDocks([docks[key] for key in keys], sizes, direction)
        QApplication.processEvents()


def _keys(node: Node) -> Iterator[str]:
    if "tabs" in node:
        yield from node["tabs"]
        return
    for part in next(node[name] for name in DIRECTIONS if name in node):
        yield from _keys(part)
