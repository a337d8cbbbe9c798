"""A field for each option of an entry, by its type: for the options of an input or a quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QFormLayout, QHBoxLayout, QLineEdit, QSpinBox, QWidget

from inspector.gui.widgets.plain_text import clean, plain_label, tooltip
from inspector.records import Option

LARGEST = 2**31 - 1
NARROW = 90
"""Pixels of a field in a row."""


class OptionFields(QWidget):
    """Fields below each other, or in a row. `changed` when the user changes one.

    Lists of texts are left out: further sequences of a batch are given elsewhere.
    """

    changed = Signal()

    def __init__(self, options: Sequence[Option], parent: QWidget | None = None, *, in_a_row: bool = False) -> None:
        super().__init__(parent)
        self.options = tuple(option for option in options if option.type != "texts")
        self.fields: dict[str, QWidget] = {}
        self._captions: dict[str, QWidget] = {}
        layout = QHBoxLayout(self) if in_a_row else QFormLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        for option in self.options:
            called = clean(option.name.replace("_", " "))
            field, words = self._field(option), plain_label(called)
            field.setAccessibleName(called)
            field.setToolTip(tooltip(option.help or option.expected))
            words.setToolTip(field.toolTip())
            self.fields[option.name], self._captions[option.name] = field, words
            if isinstance(layout, QFormLayout):
                layout.addRow(words, field)
            else:
                field.setMaximumWidth(NARROW)
                layout.addWidget(words)
                layout.addWidget(field)

    def _field(self, option: Option) -> QWidget:
        if option.type == "int" and option.default is not None:
            spin = QSpinBox()
            spin.setRange(int(max(option.low or 0 if option.low is not None else -LARGEST, -LARGEST)),
                          int(min(option.high if option.high is not None else LARGEST, LARGEST)))  # fmt: skip
            spin.setValue(int(option.default))
            spin.valueChanged.connect(self.changed)
            return spin
        if option.type == "bool":
            box = QCheckBox()
            box.setChecked(bool(option.default))
            box.toggled.connect(self.changed)
            return box
        if option.type == "choice":
            choice = QComboBox()
            choice.addItems([clean(one) for one in option.choices])
            choice.setCurrentIndex(option.choices.index(option.default) if option.default in option.choices else 0)
            choice.activated.connect(self.changed)
            return choice
        line = QLineEdit()
        shown = "" if option.default is None else option.written(option.default)
        line.setPlaceholderText(clean(shown or option.expected))
        line.textEdited.connect(self.changed)
        return line

    def show_values(self, values: Mapping[str, Any]) -> None:
        """Put values into the fields."""
        for option in self.options:
            if option.name not in values:
                continue
            field, value = self.fields[option.name], values[option.name]
            if isinstance(field, QSpinBox):
                field.setValue(int(option.value(value)))
            elif isinstance(field, QCheckBox):
                field.setChecked(bool(option.value(value)))
            elif isinstance(field, QComboBox):
                field.setCurrentIndex(option.choices.index(value))
            elif isinstance(field, QLineEdit):
                field.setText(clean(option.written(option.value(value))))

    def show_only(self, value: str) -> None:
        """Leave out the options that are not for this one of several sequences."""
        for option in self.options:
            seen = not option.of_value or value in option.of_value
            self.fields[option.name].setVisible(seen)
            self._captions[option.name].setVisible(seen)

    def values(self) -> dict[str, Any]:
        """What differs from the defaults, as values of a record. Raises ValueError with a one-line message."""
        found = {}
        for option in self.options:
            given = self._given(option)
            if given is None or self.fields[option.name].isHidden():
                continue
            try:
                value = option.value(given)
            except ValueError as problem:
                raise ValueError(f"{option.name} {problem}.") from None
            default = None if option.default is None else option.value(option.default)
            if value != default:
                found[option.name] = list(value) if isinstance(value, tuple) else value
        return found

    def _given(self, option: Option) -> Any:
        field = self.fields[option.name]
        if isinstance(field, QSpinBox):
            return field.value()
        if isinstance(field, QCheckBox):
            return field.isChecked()
        if isinstance(field, QComboBox):
            return option.choices[field.currentIndex()]
        return (field.text().strip() or None) if isinstance(field, QLineEdit) else None
