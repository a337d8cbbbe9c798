"""What was made of a file of weights alone: the guess as fields, to be changed and built again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.widgets.check_boxes import CheckBoxes
from inspector.gui.widgets.cut_box import CutBox
from inspector.gui.widgets.plain_text import clean, clean_block, plain_label, tooltip

NOTHING = "none"
HOW = (
    "Names and shapes say which layers there are, not in which order they are used. What is checked runs from top to "
    "bottom, between what stands before and behind it."
)
OF_GATES = {"LSTM": "i input, f forget, g cell, o output", "GRU": "r reset, z update, n new"}
LAYER, BACKWARD = 0, 1
ENDS = {"embedding": "Embedding", "before": "Linear layer before", "head": "Linear layer behind"}


class RebuiltDialog(QDialog):
    """`arguments()` are what the fields ask for. `told`: the guess in words; `guess`: see engine's open_weights."""

    def __init__(self, told: str, guess: Mapping[str, Any], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("The model that was rebuilt")
        self.guess, self.now = guess, dict(_mapping(guess.get("arguments")))
        self.told, self.problem = plain_label(), plain_label()
        self.told.setText(clean_block(told))
        for label in (self.told, self.problem):
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.problem.setObjectName("problem")
        self.problem.hide()
        self.layers = QTableWidget(0, 2)
        CheckBoxes(self.layers)
        self.ends = {name: self._end(name) for name in ENDS}
        self.nonlinearity, self.task, self.gates = QComboBox(), QComboBox(), QLineEdit()
        self._fill_layers()
        self._fill_rest()
        self._arrange()

    # -- fields

    def _fill_layers(self) -> None:
        """Those that are run come first, in their order."""
        offered = {str(place): str(words) for place, words in _pairs(self.guess.get("layers"))}
        run = [place for place in map(str, self.now.get("layers", ())) if place in offered]
        backward = set(map(str, self.now.get("backward", ())))
        self.layers.setHorizontalHeaderLabels(["Recurrent layers", "From the last step"])
        self.layers.setAccessibleName("Recurrent layers that are run, in their order")
        self.layers.verticalHeader().hide()
        self.layers.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.layers.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.layers.horizontalHeader().setSectionResizeMode(LAYER, QHeaderView.ResizeMode.Stretch)
        self.layers.horizontalHeader().setSectionResizeMode(BACKWARD, QHeaderView.ResizeMode.ResizeToContents)
        self.layers.setMinimumHeight(120)
        places = [*run, *(place for place in offered if place not in run)]
        self.layers.setRowCount(len(places))
        for row, place in enumerate(places):
            self._put(row, place, offered[place], on=place in run, backward=place in backward)

    def _put(self, row: int, place: str, words: str, *, on: bool, backward: bool) -> None:
        for column, text, checked in ((LAYER, words, on), (BACKWARD, "", backward)):
            item = QTableWidgetItem(clean(text))
            item.setToolTip(tooltip(text))
            item.setData(Qt.ItemDataRole.UserRole, place)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if checked else Qt.CheckState.Unchecked)
            self.layers.setItem(row, column, item)

    def _end(self, name: str) -> QComboBox:
        box = CutBox()
        box.setAccessibleName(ENDS[name])
        box.addItem(NOTHING, None)
        for place, rows, columns in _triples(self.guess.get("matrices")):
            box.addItem(clean(f"{place} ({rows:,} × {columns:,})"), place)
        at = box.findData(self.now.get(name))
        box.setCurrentIndex(max(0, at))
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(30)
        return box

    def _fill_rest(self) -> None:
        both = {"nonlinearity": self.nonlinearity, "task": self.task}
        for (name, box), key in zip(both.items(), ("nonlinearities", "tasks"), strict=True):
            offered = self.guess.get(key)
            box.addItems([clean(str(one)) for one in offered or ()])
            box.setCurrentText(str(self.now.get(name, "")))
            box.setAccessibleName(name.capitalize())
        orders = _mapping(self.guess.get("gates"))
        self.gates.setText(str(self.now.get("gates", "")))
        self.gates.setPlaceholderText(" or ".join(map(str, orders.values())))
        self.gates.setToolTip(tooltip("\n".join(OF_GATES.get(kind, kind) for kind in orders)))
        self.gates.setAccessibleName("Order of the gates in the file")

    def _arrange(self) -> None:
        form = QFormLayout()
        form.addRow(ENDS["embedding"], self.ends["embedding"])
        form.addRow(ENDS["before"], self.ends["before"])
        form.addRow("Layers", self._layers_with_buttons())
        form.addRow(ENDS["head"], self.ends["head"])
        if self.nonlinearity.count():
            form.addRow("Nonlinearity of RNN", self.nonlinearity)
        if _mapping(self.guess.get("gates")):
            form.addRow("Order of the gates", self.gates)
        form.addRow("Task", self.task)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.go = buttons.addButton("Build again", QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.accepted.connect(self._accept)
        buttons.rejected.connect(self.reject)
        how = plain_label(HOW)
        how.setWordWrap(True)
        layout = QVBoxLayout(self)
        for widget in (self.told, how):
            layout.addWidget(widget)
        layout.addLayout(form)
        layout.addWidget(self.problem)
        layout.addWidget(buttons)
        self.resize(640, self.sizeHint().height())

    def _layers_with_buttons(self) -> QWidget:
        holder = QWidget()
        row, column = QHBoxLayout(holder), QVBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.layers, 1)
        for text, by in (("Up", -1), ("Down", 1)):
            button = QPushButton(text)
            button.setAutoDefault(False)
            button.setToolTip(f"The chosen layer one place {text.lower()}")
            button.clicked.connect(lambda _checked=False, by=by: self.move_layer(by))
            column.addWidget(button)
        column.addStretch(1)
        row.addLayout(column)
        return holder

    def move_layer(self, by: int) -> None:
        """Exchange the chosen layer with the one above it (−1) or below it (1)."""
        row = self.layers.currentRow()
        if row < 0 or not 0 <= row + by < self.layers.rowCount():
            return
        for column in (LAYER, BACKWARD):
            one, other = self.layers.takeItem(row, column), self.layers.takeItem(row + by, column)
            self.layers.setItem(row + by, column, one)
            self.layers.setItem(row, column, other)
        self.layers.setCurrentCell(row + by, LAYER)

    # -- the answer

    def say(self, sentence: str) -> None:
        """Why it could not be built."""
        self.problem.setText(clean_block(sentence))
        self.problem.setVisible(bool(sentence))

    def _checked(self, column: int) -> list[str]:
        items = [self.layers.item(row, column) for row in range(self.layers.rowCount())]
        return [
            str(item.data(Qt.ItemDataRole.UserRole)) for item in items
            if item is not None and item.checkState() == Qt.CheckState.Checked
        ]  # fmt: skip

    def arguments(self) -> dict[str, Any]:
        """What the fields ask for."""
        found: dict[str, Any] = {"layers": self._checked(LAYER)}
        found |= {name: box.currentData() for name, box in self.ends.items()}
        if self.nonlinearity.count():
            found["nonlinearity"] = self.nonlinearity.currentText()
        if self.gates.text().strip():
            found["gates"] = "".join(self.gates.text().split())
        backward = [place for place in self._checked(BACKWARD) if place in found["layers"]]
        if backward:
            found["backward"] = backward
        return {**found, "task": self.task.currentText()}

    def _accept(self) -> None:
        if self._checked(LAYER):
            self.accept()
        else:
            self.say("Check at least one layer.")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _pairs(value: Any) -> list[Sequence[Any]]:
    return [one for one in value or () if isinstance(one, (list, tuple)) and len(one) == 2]


def _triples(value: Any) -> list[tuple[str, int, int]]:
    return [(str(one[0]), int(one[1]), int(one[2])) for one in value or ()
            if isinstance(one, (list, tuple)) and len(one) == 3]  # fmt: skip
