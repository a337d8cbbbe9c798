"""Changes to a run, chosen from what the capture shows: clamp a unit or a gate, change a token."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Slot
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from inspector.capture import Capture
from inspector.gui.state.cursor import Position
from inspector.gui.widgets.plain_text import clean, plain_label, token
from inspector.records import STEP_DOMAIN, Edit, parse_edit
from inspector.records.edits import HEAD

INPUT = "input"
KINDS = ("state", "gate")
MAP = ("head", "query", "key")


class EditDialog(QDialog):
    """A list of edits, begun at the cursor's place, unit and step, or for the channel `name`.

    `name` is a channel ("rnn.l0:gate/forget") whose unit is to be clamped, or "input" for the token at the step.
    """

    def __init__(
        self, capture: Capture, position: Position, known: Sequence[Edit], parent: QWidget | None, name: str = ""
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Edit and run")
        self.signals = signals_of(capture)
        self.tokens = capture.labels(STEP_DOMAIN, position.frame)
        extents = [steps_of(capture, name) for known in self.signals.values() for name in known.values()]
        length = max([1, len(self.tokens), *extents])
        self._make_fields(length)
        self.list = QListWidget()
        self.list.addItems([str(edit) for edit in known])
        self.problem = plain_label()
        self.problem.setObjectName("problem")
        self._build()
        self.place.currentTextChanged.connect(self._arrange)
        self.signal.currentTextChanged.connect(self._name_unit)
        self._name_unit("")
        self.start.valueChanged.connect(self._say_token)
        self._begin(position, name)
        self._pending = bool(name)
        """Whether the fields were requested or changed since the last edit was added:
        then they count as an edit too."""
        for changed in (self.token.textChanged, *(box.valueChanged for box in (self.unit, self.start, self.stop))):
            changed.connect(self._touched)
        self.value.valueChanged.connect(self._touched)

    def _make_fields(self, length: int) -> None:
        self.place, self.signal = QComboBox(), QComboBox()
        self.place.addItems([*self.signals, INPUT])
        self.unit, self.start, self.stop = QSpinBox(), QSpinBox(), QSpinBox()
        self.unit.setRange(-1, 1_000_000)
        self.start.setRange(0, length - 1)
        self.stop.setRange(0, length)
        self.value = QDoubleSpinBox()
        self.value.setRange(-1e9, 1e9)
        self.value.setDecimals(4)
        self.token = QLineEdit()

    def _begin(self, position: Position, name: str) -> None:
        """The fields set from the cursor; the field that is still empty has the keyboard focus."""
        place, _, signal = name.partition(":")
        wanted = place if name else position.place
        if wanted in self.signals or wanted == INPUT:
            self.place.setCurrentText(wanted)
        self._arrange(self.place.currentText())
        self.signal.setCurrentText(signal or self.signal.currentText())
        unit = (position.head or 0) if self.signal.currentText() == HEAD else position.unit
        self.unit.setValue(-1 if unit is None or wanted == INPUT else unit)
        self.start.setValue(0 if signal == HEAD else position.step or 0)  # a head is ablated at every query
        self._say_token(self.start.value())
        (self.token if wanted == INPUT else self.value).setFocus()
        self.value.selectAll()

    def _build(self) -> None:
        self.form = QFormLayout()
        for text, widget in (
            ("Place", self.place), ("Hold", self.signal), ("Unit", self.unit), ("at", self.value),
            ("Token", self.token), ("From step", self.start), ("to before", self.stop),
        ):  # fmt: skip
            self.form.addRow(text, widget)
            widget.setAccessibleName(text)
        self.add = QPushButton("Add")
        self.add.clicked.connect(self._add)
        self.drop = QPushButton("Remove")
        self.drop.clicked.connect(lambda: self.list.takeItem(self.list.currentRow()))
        row = QHBoxLayout()
        row.addWidget(self.add)
        row.addWidget(self.drop)
        row.addStretch(1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.go = buttons.addButton("Run with these", QDialogButtonBox.ButtonRole.AcceptRole)
        self.add.setAutoDefault(False)
        self.drop.setAutoDefault(False)
        buttons.accepted.connect(self._accept)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        about = (
            "The model runs twice, unchanged and with the changes; the frame bar then shows either, or the difference."
        )
        self.about = plain_label(about)
        self.about.setWordWrap(True)
        for item in (self.about, self.form, row, self.list, self.problem, buttons):
            if isinstance(item, QWidget):
                layout.addWidget(item)
            else:
                layout.addLayout(item)
        self.go.setDefault(True)
        self.resize(460, 520)

    def say(self, sentence: str) -> None:
        """Show what is wrong with the changes in the list."""
        self.problem.setText(clean(sentence))

    @Slot(str)
    def _arrange(self, place: str) -> None:
        tokens = place == INPUT
        self.signal.clear()
        self.signal.addItems(list(self.signals.get(place, {})))
        self.stop.setSpecialValueText("that step alone" if tokens else "the end")
        for widget in (self.signal, self.unit, self.value):
            self.form.setRowVisible(widget, not tokens)
        self.form.setRowVisible(self.token, tokens)

    @Slot(str)
    def _name_unit(self, signal: str) -> None:
        """What is counted: heads of attention, or units."""
        word = "head" if signal == HEAD else "unit"
        label = self.form.labelForField(self.unit)
        assert isinstance(label, QLabel)
        label.setText(word.capitalize())
        self.unit.setAccessibleName(word.capitalize())
        self.unit.setSpecialValueText(f"all {word}s")

    @Slot(int)
    def _say_token(self, step: int) -> None:
        """Show which token is at the step now."""
        now = f"instead of {token(self.tokens[step])}" if step < len(self.tokens) else "a number, or a token"
        self.token.setPlaceholderText(clean(f"what is put in, {now}"))

    def edit(self) -> Edit:
        """The edit that the fields describe. Raises ValueError with a one-line message."""
        stop = self.stop.value() or None
        if self.place.currentText() == INPUT:
            if not self.token.text():
                raise ValueError("Enter the token that is put in.")
            return parse_edit(f"input={self.token.text()}@{self.start.value()}{f':{stop}' if stop else ''}")
        unit = None if self.unit.value() < 0 else self.unit.value()
        return Edit(
            place=self.place.currentText(), signal=self.signal.currentText(), unit=unit, value=self.value.value(),
            start=self.start.value(), stop=stop,
        )  # fmt: skip

    def edits(self) -> tuple[Edit, ...]:
        """All that are in the list."""
        return tuple(parse_edit(self.list.item(n).text()) for n in range(self.list.count()))

    @Slot()
    def _touched(self) -> None:
        self._pending = True

    @Slot()
    def _add(self) -> None:
        try:
            self.list.addItem(str(parse_edit(str(self.edit()))))
            self.problem.setText("")
            self._pending = False
        except ValueError as problem:
            self.problem.setText(clean(str(problem)))

    @Slot()
    def _accept(self) -> None:
        """Run with what is in the list and what was filled in last, unless that is not an edit."""
        if self._pending or not self.list.count():
            self._pending = True
            self._add()
        if self.list.count() and not self._pending:
            self.accept()


def signals_of(capture: Capture) -> dict[str, dict[str, str]]:
    """place → {signal: channel} of everything that can be clamped: states and gates by step and unit, and heads."""
    found: dict[str, dict[str, str]] = {}
    for channel in capture.channels.values():
        if channel.kind in KINDS and channel.dims == ("step", "unit"):
            place, _, signal = channel.name.partition(":")
            found.setdefault(place, {})[signal] = channel.name
        elif channel.kind == "attention" and channel.dims == MAP and channel.scale != "diverging":
            found.setdefault(channel.place, {})[HEAD] = channel.name  # of signed maps, of scans, nothing is changed
    return found


def steps_of(capture: Capture, name: str) -> int:
    """The number of steps, or of queries, of a channel that can be clamped."""
    return int(capture.extent(name)[1 if capture.channels[name].dims == MAP else 0])
