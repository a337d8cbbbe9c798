"""Small controls that all panels use, and how a number is written beside them (numbers.py)."""

from __future__ import annotations

from PySide6.QtWidgets import QComboBox, QLabel, QWidget

from inspector.gui.widgets.cut_box import CutBox
from inspector.gui.widgets.numbers import measured, number
from inspector.gui.widgets.plain_text import clean, plain_label


def chooser(options: list[str], name: str) -> QComboBox:
    """A combo box with an accessible name whose entries are plain text."""
    box = CutBox()
    box.addItems([clean(option) for option in options])
    box.setAccessibleName(name)
    box.setToolTip(name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    box.setMinimumWidth(56)  # in a narrow window it is cut rather than widening the window
    return box


def set_options(box: QComboBox, options: list[str]) -> None:
    """Other entries, the present choice stays where it still exists; no signal if nothing changed."""
    if [box.itemText(i) for i in range(box.count())] == options:
        return
    present = box.currentText()
    box.blockSignals(True)
    box.clear()
    box.addItems(options)
    box.setCurrentIndex(options.index(present) if present in options else 0)
    box.blockSignals(False)


def reserve_space(widget: QWidget) -> None:
    """Keep its space reserved while it is hidden."""
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    widget.setSizePolicy(policy)


def caption(text: str) -> QLabel:
    """A short label beside a control."""
    return plain_label(text)


__all__ = ["caption", "chooser", "measured", "number", "reserve_space", "set_options"]
