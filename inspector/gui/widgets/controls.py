"""Small controls that all panels use, and how a number is written beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtWidgets import QComboBox, QLabel, QWidget

from inspector.gui.widgets.plain_text import clean, plain_label


def chooser(options: list[str], name: str) -> QComboBox:
    """A combo box with an accessible name whose entries are plain text."""
    box = QComboBox()
    box.addItems([clean(option) for option in options])
    box.setAccessibleName(name)
    box.setToolTip(name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    box.setMinimumWidth(56)  # in a narrow window it is cut before it widens the window
    return box


def set_options(box: QComboBox, options: list[str]) -> None:
    """Other entries, the present choice kept where it still exists; no signal if nothing changed."""
    if [box.itemText(i) for i in range(box.count())] == options:
        return
    present = box.currentText()
    box.blockSignals(True)
    box.clear()
    box.addItems(options)
    box.setCurrentIndex(options.index(present) if present in options else 0)
    box.blockSignals(False)


def keep_room(widget: QWidget) -> None:
    """Its room stays where it is while it is hidden."""
    policy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    widget.setSizePolicy(policy)


def caption(text: str) -> QLabel:
    """A short label beside a control."""
    return plain_label(text)


def number(value: Any) -> str:
    """A number with all digits that its type holds."""
    if isinstance(value, (np.floating, float)):
        if np.isnan(value):
            return "NaN"
        if np.isinf(value):
            return "∞" if value > 0 else "−∞"
        digits = {2: 4, 4: 7, 8: 10}.get(getattr(np.asarray(value).dtype, "itemsize", 8), 7)
        return f"{float(value):.{digits}g}"
    return str(value)


def measured(value: Any, unit: str) -> str:
    """A number with its unit, where it has one."""
    return number(value) if unit in ("", "1") else f"{number(value)} {unit}"
