"""Two numbers between which the colours of a map go."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QLineEdit, QWidget

from inspector.gui.widgets.images.colour_choice import why_no_range
from inspector.gui.widgets.numbers import short
from inspector.gui.widgets.plain_text import plain_label

NO_NUMBER = "{} is no number."


class RangeDialog(QDialog):
    """`then(low, high)` with the numbers, which are a range; else a line says why they are none."""

    def __init__(
        self, low: float, high: float, *, log: bool, then: Callable[[float, float], None], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Range of the colours")
        self._log, self._then = log, then
        self.low, self.high = QLineEdit(short(low, 6)), QLineEdit(short(high, 6))
        self.problem = plain_label()
        self.problem.setObjectName("problem")
        self.problem.setWordWrap(True)
        form = QFormLayout(self)
        for words, field in (("From", self.low), ("To", self.high)):
            field.setAccessibleName(words)
            form.addRow(words, field)
        form.addRow(self.problem)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        form.addRow(buttons)
        self.resize(320, 0)
        self.low.selectAll()

    def accept(self) -> None:
        """Choose the range, or say why it is none."""
        numbers: list[float] = []
        for field in (self.low, self.high):
            try:
                numbers.append(float(field.text().strip().replace("−", "-")))
            except ValueError:
                self.problem.setText(NO_NUMBER.format(repr(field.text())))
                return
        problem = why_no_range(numbers[0], numbers[1], log=self._log)
        self.problem.setText(problem)
        if not problem:
            self._then(numbers[0], numbers[1])
            super().accept()
