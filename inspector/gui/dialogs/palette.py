"""Everything by its name: what there is in a window is listed, a part of its name finds it, Enter does it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialog,
    QHeaderView,
    QLineEdit,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.dialogs.dialogs import name_of
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.records.json_text import read_json

KINDS = ("Panel", "Action", "Sample", "Quantity", "Recent", "Training", "Checkpoint", "Setting", "Page", "Text")
"""What there is to find; of equal matches the earlier kind comes first."""
NATIVE = QKeySequence.SequenceFormat.NativeText
COMMAND = Qt.ItemDataRole.UserRole
MOST = 60
"""Rows that are listed; a longer name finds the others."""
USES = "palette uses"
MOST_USES = 400
"""Names whose uses are remembered, the newest."""
NOTHING = "Nothing of that name"


@dataclass(frozen=True, slots=True)
class Command:
    """Something that can be done, by its name. `about` is searched too, and shown as a tooltip; `keys` do the same."""

    name: str
    kind: str
    do: Callable[[], object]
    about: str = ""
    keys: str = ""

    @property
    def identity(self) -> str:
        """By what its uses are counted."""
        return f"{self.kind}: {self.name}"


Search = Callable[[str], Iterable[Command]]
"""What is found only once something was typed: the text of the sequence."""


def commands_of(actions: Iterable[QAction]) -> list[Command]:
    """The actions that can be done now."""
    return [
        Command(name_of(one), "Action", one.trigger, one.statusTip(), one.shortcut().toString(NATIVE))
        for one in actions
        if one.isEnabled()
    ]


def match(command: Command, typed: str) -> int | None:
    """How well a name fits, 0 the best: the name itself, its beginning, the beginning of one of its words, inside it,
    in what it is about; None where not every word that was typed is in either."""
    name, wanted = command.name.casefold(), " ".join(typed.casefold().split())
    words = wanted.split()
    if name == wanted:
        return 0
    if all(word in name for word in words):
        parts = name.replace("-", " ").replace("/", " ").replace(":", " ").split()
        begun = all(any(part.startswith(word) for part in parts) for word in words)
        return 1 if name.startswith(wanted) else 2 if begun else 3
    text = f"{name} {command.about.casefold()}"
    return 4 if all(word in text for word in words) else None


def ranked(commands: Iterable[Command], typed: str, uses: dict[str, int]) -> list[Command]:
    """What fits, the best first; of equally good ones those that were used more often."""
    found = [
        ((fit, -uses.get(one.identity, 0), KINDS.index(one.kind)), one)
        for one in commands
        if (fit := match(one, typed)) is not None
    ]
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


class Uses:
    """How often each thing was done from here: kept with the other choices."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        try:
            read = read_json(settings.text(USES, "{}"))
        except ValueError:  # edited by hand
            read = {}
        self.counts = {str(k): int(v) for k, v in read.items() if isinstance(v, int)} if isinstance(read, dict) else {}

    def count(self, command: Command) -> None:
        """Once more; what is in the text changes from run to run and is not counted."""
        if command.kind == "Text":
            return
        before = self.counts.pop(command.identity, 0)
        self.counts[command.identity] = before + 1
        kept = dict(list(self.counts.items())[-MOST_USES:])
        self.settings.set_text(USES, json.dumps(kept))


class Palette(QDialog):
    """A line to type in, and what it finds: its name, its keys, and what kind of thing it is."""

    def __init__(
        self, commands: Sequence[Command], settings: Settings, parent: QWidget | None = None,
        search: Search = lambda _typed: (),
    ) -> None:  # fmt: skip
        super().__init__(parent)
        self.setWindowTitle("Find anything by its name")
        self.line, self.list = QLineEdit(), QTreeWidget()
        self.line.setPlaceholderText("A panel, an action, a sample, a quantity, a setting, or text of the sequence")
        self.line.setAccessibleName("Name to find")
        self._commands, self._search, self._uses = commands, search, Uses(settings)
        self._set_up()
        layout = QVBoxLayout(self)
        layout.addWidget(self.line)
        layout.addWidget(self.list)
        self.line.textChanged.connect(self._filter)
        self.line.returnPressed.connect(self._do)
        self.list.itemActivated.connect(lambda _item: self._do())
        self._filter("")
        self.resize(640, 420)

    def _set_up(self) -> None:
        table = self.list
        table.setAccessibleName("What is found")
        table.setColumnCount(3)
        table.setHeaderHidden(True)
        table.setRootIsDecorated(False)
        table.setUniformRowHeights(True)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # a long name ends in …
        header = table.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)

    def _filter(self, typed: str) -> None:
        self.list.clear()
        found = ranked([*self._commands, *(self._search(typed) if typed.strip() else ())], typed, self._uses.counts)
        for command in found[:MOST]:
            self._add(command)
        left = len(found) - MOST
        if not found or left > 0:
            last = QTreeWidgetItem(self.list, [NOTHING if not found else f"and {left} more: type more of the name"])
            last.setFlags(Qt.ItemFlag.NoItemFlags)
        first = self.list.topLevelItem(0)
        if found and first is not None:
            self.list.setCurrentItem(first)

    def _add(self, command: Command) -> None:
        item = QTreeWidgetItem(self.list, [clean(command.name), command.keys, command.kind])
        item.setData(0, COMMAND, command)
        item.setToolTip(0, tooltip(f"{command.name}: {command.about}" if command.about else command.name))
        for column in (1, 2):
            item.setForeground(column, self.palette().placeholderText())
            item.setTextAlignment(column, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Up and down choose in the list while the line has the focus."""
        rows = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -10, Qt.Key.Key_PageDown: 10}
        by = rows.get(Qt.Key(event.key()))
        if by is None:
            super().keyPressEvent(event)
            return
        at = self.list.indexOfTopLevelItem(self.list.currentItem()) + by
        item = self.list.topLevelItem(min(max(0, at), self.list.topLevelItemCount() - 1))
        if item is not None and item.data(0, COMMAND) is not None:
            self.list.setCurrentItem(item)

    def _do(self) -> None:
        item = self.list.currentItem()
        command: Command | None = item.data(0, COMMAND) if item is not None else None
        if command is not None:
            self._uses.count(command)
            self.accept()
            command.do()
