"""What is chosen in the controls of panels, by the names that the controls tell assistive technology."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QAbstractButton, QComboBox, QDoubleSpinBox, QSpinBox, QWidget

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel

Control = QComboBox | QAbstractButton | QSpinBox | QDoubleSpinBox


def chosen_in(panel: Panel) -> dict[str, Any]:
    """The choice of every control that has one, by its name."""
    found: dict[str, Any] = {}
    for name, control in _controls(panel):
        if isinstance(control, QComboBox):
            if control.currentText():
                found[name] = control.currentText()
        elif isinstance(control, QAbstractButton):
            found[name] = control.isChecked()
        else:
            found[name] = control.value()
    return found


def choose_in(panel: Panel, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Choose the same again; returns what could not be chosen (yet): a list that does not offer it."""
    left = dict(wanted)
    for name, control in _controls(panel):
        value = left.get(name)
        if value is None:
            continue
        if isinstance(control, QComboBox):
            place = control.findText(value) if isinstance(value, str) else -1
            if place < 0:
                continue
            control.setCurrentIndex(place)
        elif isinstance(control, QAbstractButton):
            control.setChecked(value is True)
        elif isinstance(control, QDoubleSpinBox) and isinstance(value, (int, float)):
            control.setValue(float(value))
        elif isinstance(control, QSpinBox) and isinstance(value, int):
            control.setValue(max(control.minimum(), min(value, control.maximum())))
        del left[name]
    return left


def _controls(panel: Panel) -> Iterator[tuple[str, Control]]:
    """Those in the panel's row that keep a choice, each name once."""
    seen: set[str] = set()
    for one in panel.control_row.findChildren(QWidget):
        if not isinstance(one, (QComboBox, QAbstractButton, QSpinBox, QDoubleSpinBox)):
            continue
        checkable = not isinstance(one, QAbstractButton) or one.isCheckable()
        text = one.text() if isinstance(one, QAbstractButton) else ""
        name = one.accessibleName() or text
        if name and checkable and name not in seen:
            seen.add(name)
            yield name, one
