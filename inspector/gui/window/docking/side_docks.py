"""The bars at the sides: what can be opened, the model as a tree, the exact numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QContextMenuEvent, QFont, QGuiApplication, QKeyEvent, QKeySequence, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QMenu,
    QTableWidget,
    QTableWidgetItem,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from inspector.capture import Capture
from inspector.capture.regular import is_there
from inspector.gui.state.pins import Pin
from inspector.gui.widgets.line_field import LineField
from inspector.gui.widgets.numbers import with_fewer_digits
from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.gui.widgets.tables.breaking import AROUND, BreakingDelegate
from inspector.gui.window.cursor_readout import NOT_THERE
from inspector.records import Place
from inspector.workspace.sample_kinds import by_kind
from inspector.workspace.samples import Sample, step_of
from inspector.workspace.trainings import Training

DATA, IN_WORDS = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.AccessibleTextRole
COMPARED = ": frame "
"""Words in a heading whose numbers compare two runs, or belong to one of two."""
WIDEST = 150
"""Most pixels of the column of numbers, so that their names can be read too."""


NARROWEST = 126
"""Pixels of width in which a short name, a number and a scroll bar have room."""
BESIDE_PINS, WANTED_BESIDE_PINS = 90, 150
"""Pixels of the column of names where pins have columns too: at least, where the table scrolls then, and so that most
names take a line or two."""
INDENT = 14
"""Pixels by which checkpoints are indented below their sample: names should not be cut in a narrow dock."""


class Opener(QTreeWidget):
    """Samples with their checkpoints, recorded trainings, recent captures.

    `sample_chosen(name, checkpoint)`, `path_chosen(path)`.
    """

    sample_chosen = Signal(str, str)
    path_chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._recent: QTreeWidgetItem | None = None
        self.setHeaderHidden(True)
        self.setIndentation(INDENT)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # names with a common prefix differ at their ends
        self.setAccessibleName("What can be opened")
        self.itemActivated.connect(self._activated)

    def sizeHint(self) -> QSize:
        """As wide as the names that are listed, with the scroll bar."""
        frame = 2 * self.frameWidth() + self.verticalScrollBar().sizeHint().width()
        return QSize(self.sizeHintForColumn(0) + frame + 4, super().sizeHint().height())

    def fill(self, samples: Sequence[Sample], recent: Sequence[str], trainings: Sequence[Training] = ()) -> None:
        """List recorded trainings, samples by what they are, then recent files."""
        self.clear()
        self._list_trainings(trainings)
        top = QTreeWidgetItem(self, ["Samples"])
        for kind, some in by_kind(samples):
            group = QTreeWidgetItem(top, [kind.title])
            group.setFlags(Qt.ItemFlag.ItemIsEnabled)
            for sample in some:
                _list_sample(group, sample)
            group.setExpanded(True)
        top.setExpanded(True)
        self._recent = None
        self.show_recent(recent)

    def show_recent(self, recent: Sequence[str]) -> None:
        """List other recent files, newest first; the rest stays as it is, with what is expanded."""
        if self._recent is not None:
            self.takeTopLevelItem(self.indexOfTopLevelItem(self._recent))
            self._recent = None
        if not recent:
            return
        self._recent = QTreeWidgetItem(self, ["Recent"])
        for place in recent:
            item = QTreeWidgetItem(self._recent, [clean(Path(place).name)])
            item.setToolTip(0, tooltip(place))
            item.setData(0, DATA, ("path", place, ""))
            item.setDisabled(not is_there(place))
        self._recent.setExpanded(True)

    def _list_trainings(self, trainings: Sequence[Training]) -> None:
        if not trainings:
            return
        top = QTreeWidgetItem(self, ["Recorded trainings"])
        for one in trainings:
            item = QTreeWidgetItem(top, [clean(one.name)])
            item.setToolTip(0, tooltip(f"{one.name}: {one.title}: {one.task}. Look for: {one.shows}"))
            item.setData(0, DATA, ("path", str(one.capture), ""))
        top.setExpanded(True)

    def _activated(self, item: QTreeWidgetItem, _column: int) -> None:
        found = item.data(0, DATA)
        if not found:
            return
        kind, name, checkpoint = found
        if kind == "sample":
            self.sample_chosen.emit(name, checkpoint)
        else:
            self.path_chosen.emit(name)


def _list_sample(group: QTreeWidgetItem, sample: Sample) -> None:
    """A sample with its checkpoints below it."""
    item = QTreeWidgetItem(group, [clean(sample.name)])
    item.setToolTip(0, tooltip(f"{sample.name}: {sample.title}: {sample.task}. Look for: {sample.shows}"))
    item.setData(0, DATA, ("sample", sample.name, ""))
    for path in sample.checkpoints:
        step = step_of(path)
        child = QTreeWidgetItem(item, [f"step {step:,}" if step is not None else path.name])
        child.setData(0, DATA, ("sample", sample.name, path.name))


class ModelTree(QWidget):
    """The model's modules with the number of channels captured at each. `place_chosen(place)`."""

    place_chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.filter = LineField()
        self.filter.setPlaceholderText("Filter modules")
        self.filter.setClearButtonEnabled(True)
        self.filter.setAccessibleName("Filter modules")
        self.filter.setToolTip("Only modules with this in their name or type, and what they are in")
        self.tree = QTreeWidget()
        self.tree.setHeaderLabels(["Module", "n"])
        self.tree.setIndentation(INDENT)
        self.tree.headerItem().setToolTip(1, tooltip("channels captured here"))
        self.tree.setAccessibleName("Modules of the model")
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.tree.header().setStretchLastSection(False)
        self.tree.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.filter)
        layout.addWidget(self.tree)
        self.tree.currentItemChanged.connect(self._chosen)
        self.filter.textChanged.connect(self._filter)
        self._shape: tuple[int, int] = (-1, -1)

    def show_capture(self, capture: Capture | None) -> None:
        """Another model, or more channels of the same one."""
        places = capture.start.places if capture is not None else ()
        counts: dict[str, int] = {}
        for channel in capture.channels.values() if capture is not None else ():
            counts[channel.place] = counts.get(channel.place, 0) + 1
        shape = (hash(places), sum(counts.values()))
        if shape == self._shape:
            return
        self._shape = shape
        self.tree.blockSignals(True)
        self.tree.clear()
        items: dict[str, QTreeWidgetItem] = {}
        inside = _inside(places)
        for place in places:
            parent = items.get(place.name.rpartition(".")[0]) if place.name else None
            item = self._item(parent or items.get(""), place.name, place.module, counts.pop(place.name, 0))
            item.setToolTip(0, tooltip(_parameters(place, inside[place.name])))
            items[place.name] = item
        for name, count in counts.items():
            owner = next((items[p] for p in _owners(name) if p in items), None)
            self._item(owner, name, "", count)
        self.tree.expandToDepth(3)
        self.tree.blockSignals(False)
        self._filter(self.filter.text())

    def _item(self, parent: QTreeWidgetItem | None, name: str, module: str, count: int) -> QTreeWidgetItem:
        short = name.rpartition(".")[2] or "model"
        texts = [clean(f"{short}  {module}".strip()), str(count) if count else ""]
        item = QTreeWidgetItem(parent, texts) if parent is not None else QTreeWidgetItem(self.tree, texts)
        item.setData(0, DATA, name)
        item.setToolTip(0, tooltip(f"{name or 'model'} {module}"))
        return item

    def _chosen(self, item: QTreeWidgetItem | None, _old: QTreeWidgetItem | None) -> None:
        if item is not None:
            self.place_chosen.emit(str(item.data(0, DATA)))

    def _filter(self, text: str) -> None:
        def visit(item: QTreeWidgetItem) -> bool:
            inside = [visit(item.child(i)) for i in range(item.childCount())]
            known = f"{item.data(0, DATA)} {item.text(0)}".lower()  # also by the type of a module
            seen = not text or text.lower() in known or any(inside)
            item.setHidden(not seen)
            return seen

        for i in range(self.tree.topLevelItemCount()):
            top = self.tree.topLevelItem(i)
            if top is not None:
                visit(top)


def _inside(places: Sequence[Place]) -> dict[str, int]:
    """The parameters of each module and of all that are in it, by name."""
    found = {place.name: 0 for place in places}
    for place in places:
        for name in {place.name, *_owners(place.name)}:
            if name in found:
                found[name] += place.parameters
    return found


def _parameters(place: Place, inside: int) -> str:
    """What a module is called, with the numbers of its parameters: its own, and with those of the modules in it."""
    told = f"{place.name or 'model'} {place.module}: {place.parameters:,} parameters of its own"
    return told + (f", {inside:,} with the modules in it" if inside != place.parameters else "")


def _owners(place: str) -> Iterable[str]:
    """The names above a place, nearest first: "rnn.l0" → "rnn", ""."""
    while place:
        place = place.rpartition(".")[0].partition("#")[0]
        yield place


class Readout(QTableWidget):
    """Exact numbers under the cursor; a selection is copied as text."""

    def __init__(self) -> None:
        super().__init__(0, 2)
        self.setHorizontalHeaderLabels(["quantity", "value"])
        self.verticalHeader().hide()
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.horizontalHeader().setMinimumSectionSize(60)
        self.setAccessibleName("Exact numbers under the cursor")
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.verticalHeader().setMinimumSectionSize(22)
        self.setItemDelegate(BreakingDelegate(self))
        self.setMinimumWidth(NARROWEST)
        self._refit = QTimer(self, interval=0, singleShot=True)
        self._refit.timeout.connect(self.fit)
        self.needs = 0
        """Pixels of width that the columns of pins need; 0 without pins."""

    def show_pins(self, pins: Sequence[Pin], *, fixed: bool) -> None:
        """A column for each pin, right of that of the cursor."""
        self.setColumnCount(2 + len(pins))
        now = ("fixed" if fixed else "cursor") if pins else "value, fixed" if fixed else "value"
        self.setHorizontalHeaderLabels(["quantity", now, *(f"pin {pin.number}" for pin in pins)])
        for at, pin in enumerate(pins, start=2):
            if (item := self.horizontalHeaderItem(at)) is not None:
                item.setToolTip(tooltip(f"Pin {pin.number}: {pin.words}"))
        mode = QHeaderView.ResizeMode
        self.horizontalHeader().setSectionResizeMode(0, mode.Interactive if pins else mode.Stretch)

    def show_rows(self, rows: Sequence[tuple[str, ...]], without: Sequence[str] = ()) -> None:
        """Fill the table; a row without a value is a heading. `without`: for each pin why it has no number, where it
        has none."""
        self.clearSpans()
        self.setRowCount(len(rows))
        plain, bold = QFont(self.font()), QFont(self.font())
        bold.setBold(True)
        for i, row in enumerate(rows):
            what, value = row[0], row[1]
            if not value:
                self.setSpan(i, 0, 1, self.columnCount())
            for j, text in enumerate((what, value, *row[2:], *[""] * (self.columnCount() - max(2, len(row))))):
                item = self.item(i, j)
                if item is None:
                    item = QTableWidgetItem()
                    if j:
                        item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                    self.setItem(i, j, item)
                item.setText(clean(with_fewer_digits(text) if j else text))
                item.setData(DATA, text)
                why = without[j - 2] if text == NOT_THERE and 2 <= j < len(without) + 2 else ""
                item.setToolTip(tooltip(why or text))
                item.setData(IN_WORDS, f"no number: {why}" if why else None)
                item.setFont(plain if value else bold)
        self.fit()

    def fit(self) -> None:
        """Columns as wide as their numbers where there is room, rows as high as their texts in these columns."""
        header = self.horizontalHeader()
        needed = [max(self.sizeHintForColumn(at) + 6, header.sectionSizeHint(at)) for at in range(self.columnCount())]
        room, pins = self.viewport().width(), len(needed) > 2
        widest = WIDEST if pins else min(WIDEST, room // 2)  # longer ones wrap
        widths = [min(widest, max(50, width)) for width in needed[1:]]
        least = [min(width, self._longest_word(at)) for at, width in enumerate(widths, start=1)] if pins else widths
        self.needs = WANTED_BESIDE_PINS + sum(least) + self.width() - room if pins else 0
        if pins:  # several numbers in a cell stand in two lines, so that names have room
            spare = max(0, room - WANTED_BESIDE_PINS - sum(least)) // len(widths)
            widths = [min(width, low + spare) for width, low in zip(widths, least, strict=True)]
            header.resizeSection(0, max(BESIDE_PINS, room - sum(widths)))
        for column, width in enumerate(widths, start=1):
            header.resizeSection(column, width)
        self.resizeRowsToContents()

    def _longest_word(self, column: int) -> int:
        """Pixels that a column needs so that no number in it is broken, nor parted from its unit."""
        metrics, heading = self.fontMetrics(), self.horizontalHeaderItem(column)
        texts = [item.text() for row in range(self.rowCount()) if (item := self.item(row, column)) is not None]
        texts.append(heading.text() if heading is not None else "")
        words = [word for text in texts for word in ((text,) if len(text.split()) == 2 else text.split())]
        longest = max((metrics.horizontalAdvance(word) for word in words), default=0)
        return max(50, min(WIDEST, longest + AROUND + 6))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Texts wrap elsewhere."""
        super().resizeEvent(event)
        if event.oldSize().width() != event.size().width():
            self._refit.start()

    def selected_text(self) -> str:
        """The selected cells as tab-separated text, with all digits.

        Rows that compare two runs come with the heading that says so.
        """
        rows: dict[int, list[str]] = {}
        for item in sorted(self.selectedItems(), key=lambda cell: (cell.row(), cell.column())):
            top = self._heading(item.row())
            heading = self.item(top, 0) if top is not None else None
            if top is not None and heading is not None and COMPARED in heading.text():
                rows.setdefault(top, [heading.text()])
            if item is not heading or top not in rows:
                rows.setdefault(item.row(), []).append(clean(item.data(DATA) or ""))
        return "\n".join("\t".join(row) for row in rows.values())

    def _heading(self, row: int) -> int | None:
        """The row of the heading above a row."""
        return next((above for above in range(row, -1, -1) if self.columnSpan(above, 0) > 1), None)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Copy what is selected, or the whole table."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        copied = menu.addAction("&Copy", lambda: QGuiApplication.clipboard().setText(self.selected_text()))
        copied.setShortcut(QKeySequence(QKeySequence.StandardKey.Copy))
        copied.setEnabled(bool(self.selectedItems()))
        every = menu.addAction("Copy &all", self._copy_all)
        every.setEnabled(self.rowCount() > 0)
        menu.popup(event.globalPos())

    def _copy_all(self) -> None:
        """The whole table, with all digits."""
        self.selectAll()
        QGuiApplication.clipboard().setText(self.selected_text())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Copy the selected cells as tab-separated text."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.selected_text())
            return
        super().keyPressEvent(event)
