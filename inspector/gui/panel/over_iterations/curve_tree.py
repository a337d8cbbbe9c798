"""The list of all curves of a run: searched by name, folded by group, with a box that keeps a curve drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QLineEdit,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from inspector.capture import Curve
from inspector.gui.widgets.check_boxes import CheckBoxes
from inspector.gui.widgets.plain_text import clean, plain_label, tooltip
from inspector.gui.widgets.theme import Theme

KEY = Qt.ItemDataRole.UserRole
FOLDED = 12
"""Groups of more curves than this are folded at first."""
MOST_OF_A_CHANNEL = 4
"""Curves of one table by parameter that are drawn where the table is asked for."""


class CurveTree(QWidget):
    """`changed()` when other curves are to be drawn: those whose boxes are checked (`pinned`), and the selected one."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.search = QLineEdit()
        self.search.setPlaceholderText("Search curves by name")
        self.search.setAccessibleName("Search curves by name")
        self.search.setToolTip("Only curves with this in their name are listed; what is drawn stays")
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._filter)
        self.tree = QTreeWidget()
        self.tree.setHeaderHidden(True)
        self.tree.setUniformRowHeights(True)
        self.tree.setIndentation(12)
        self.tree.setAccessibleName("Curves")
        self._boxes = CheckBoxes(self.tree)
        self.count = plain_label()
        self.count.setEnabled(False)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.setSpacing(4)
        for widget in (self.search, self.tree, self.count):
            layout.addWidget(widget)
        self._offered: Sequence[Curve] = ()
        self.touched = False
        """Whether the user has checked or unchecked a box."""
        self._items: dict[str, QTreeWidgetItem] = {}
        self._pinned: tuple[str, ...] | None = None
        """Those that are checked, None until somebody asks: of thousands of boxes that takes milliseconds."""
        self._groups: dict[str, QTreeWidgetItem] = {}
        self.tree.itemChanged.connect(self._toggled)
        self.tree.currentItemChanged.connect(self._selected)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._boxes.edge = QColor(theme.muted)
        self.tree.viewport().update()

    # -- what is listed

    @property
    def keys(self) -> tuple[str, ...]:
        """All that are listed."""
        return tuple(self._items)

    def offer(self, curves: Sequence[Curve]) -> None:
        """List these curves; boxes, folding and the selection stay for those that were listed before."""
        if curves is self._offered or tuple(curve.key for curve in curves) == self.keys:
            return
        self._offered = curves
        self.tree.blockSignals(True)
        pinned, current = set(self.pinned), self.current
        folded = {name for name, item in self._groups.items() if not item.isExpanded()}
        known = set(self._groups)
        self.tree.clear()
        self._items, self._groups, self._pinned = {}, {}, None
        sizes: dict[str, int] = {}
        for curve in curves:
            sizes[curve.group] = sizes.get(curve.group, 0) + 1
        for curve in curves:
            parent = self._group(curve.group)
            item = QTreeWidgetItem(parent, [clean(curve.name)])
            item.setData(0, KEY, curve.key)
            item.setToolTip(0, tooltip(_about(curve)))
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(0, Qt.CheckState.Checked if curve.key in pinned else Qt.CheckState.Unchecked)
            self._items[curve.key] = item
        for name, item in self._groups.items():
            item.setText(0, f"{clean(name)} ({sizes[name]:,})")
            item.setExpanded(name not in folded if name in known else sizes[name] <= FOLDED)
        if current in self._items:
            self.tree.setCurrentItem(self._items[current])
        self.tree.blockSignals(False)
        self._filter(self.search.text())

    def _group(self, name: str) -> QTreeWidgetItem:
        if not name:
            return self.tree.invisibleRootItem()
        if name not in self._groups:
            item = self._groups[name] = QTreeWidgetItem(self.tree)
            item.setFlags(Qt.ItemFlag.ItemIsEnabled)
        return self._groups[name]

    # -- what is chosen

    @property
    def pinned(self) -> tuple[str, ...]:
        """Keys of the curves whose boxes are checked, in order."""
        if self._pinned is None:
            checked = Qt.CheckState.Checked
            self._pinned = tuple(key for key, item in self._items.items() if item.checkState(0) == checked)
        return self._pinned

    @property
    def current(self) -> str:
        """The key of the curve that is selected, "" for none."""
        item = self.tree.currentItem()
        return str(item.data(0, KEY) or "") if item is not None else ""

    def pin(self, keys: Iterable[str]) -> None:
        """Check these boxes and no others, without `changed`."""
        wanted = set(keys)
        self.tree.blockSignals(True)
        for key, item in self._items.items():
            item.setCheckState(0, Qt.CheckState.Checked if key in wanted else Qt.CheckState.Unchecked)
        self._pinned = None
        self.tree.blockSignals(False)

    def pin_channels(self, names: Iterable[str], place: str = "") -> bool:
        """Check curves of these channels, of each that of a place and the first ones; False where there is none."""
        first = sorted(self._offered, key=lambda curve: not place or curve.name != place)
        own = {name: [curve.key for curve in first if curve.channel.name == name] for name in names}
        keys = [key for found in own.values() for key in found[:MOST_OF_A_CHANNEL]]
        if keys:
            self.pin(keys)
        return bool(keys)

    def select(self, key: str) -> None:
        """Select a curve, or none."""
        self.tree.setCurrentItem(self._items.get(key))  # type: ignore[arg-type]

    @Slot(QTreeWidgetItem, int)
    def _toggled(self, _item: QTreeWidgetItem, _column: int) -> None:
        self.touched, self._pinned = True, None
        self.changed.emit()

    @Slot(QTreeWidgetItem, QTreeWidgetItem)
    def _selected(self, _new: QTreeWidgetItem, _old: QTreeWidgetItem) -> None:
        self.changed.emit()

    # -- searching

    @property
    def listed(self) -> tuple[str, ...]:
        """Keys of the curves that match what is searched for."""
        return tuple(key for key, item in self._items.items() if not item.isHidden())

    @Slot(str)
    def _filter(self, text: str) -> None:
        """Only curves of which name or group has every word that is searched for; their groups are unfolded."""
        words = text.lower().split()
        shown: set[str] = set()
        for key, item in self._items.items():
            parent = item.parent()
            group = parent.text(0) if parent is not None else ""
            found = all(word in f"{group} {item.text(0)}".lower() for word in words)
            item.setHidden(not found)
            if found:
                shown.add(key)
        for item in self._groups.values():
            visible = any(not item.child(n).isHidden() for n in range(item.childCount()))
            item.setHidden(not visible)
            if words and visible:
                item.setExpanded(True)
        count = len(self._items)
        self.count.setText(f"{len(shown):,} of {count:,} curves" if words else f"{count:,} curves")


def _about(curve: Curve) -> str:
    """What a curve is, for a tooltip."""
    channel = curve.channel
    parts = [f"{curve.group}: {curve.name}" if curve.group else curve.name, channel.formula, channel.source]
    if channel.method not in ("exact", "as logged"):
        parts.append(channel.method)
    return "\n".join(part for part in parts if part)
