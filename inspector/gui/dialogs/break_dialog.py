"""Asks when a training is to wait."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLineEdit, QVBoxLayout, QWidget

from inspector.gui.widgets.plain_text import clean, plain_label
from inspector.records import parse_condition

WORDS = (
    "The training waits at the end of the iteration in which one of these begins to hold, separated by commas:\n\n"
    "non-finite   the loss, a gradient or an activation becomes NaN or infinite\n"
    "spike   the gradient norm is far above its last 200\n"
    "iteration 500\n"
    "loss > 5, gradient norm > 10   or another limit, < too\n"
    "weight/norm[rnn.weight_hh_l0] > 3   a table of Training; without […] any of its columns\n\n"
    "Without a condition it waits for none. Where no `every` was given, all iterations are recorded meanwhile."
)


class BreakDialog(QDialog):
    """`condition` is what was accepted, "" for none; what cannot be read is said above the buttons."""

    def __init__(self, condition: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Pause the training when…")
        self.condition = condition
        self.field = QLineEdit(condition)
        self.field.setAccessibleName("Condition")
        self.field.setPlaceholderText("non-finite, gradient norm > 10")
        words, self.problem = plain_label(""), plain_label("")
        words.setText(WORDS)
        words.setWordWrap(True)
        words.setMinimumSize(560, words.heightForWidth(560))
        self.problem.setWordWrap(True)
        self.problem.setAccessibleName("Problem")
        self.problem.hide()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self._accept)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        for widget in (words, self.field, self.problem, buttons):
            layout.addWidget(widget)

    def _accept(self) -> None:
        text = self.field.text().strip()
        try:
            self.condition = str(parse_condition(text)) if text else ""
        except ValueError as problem:
            self.problem.setText(clean(str(problem)))
            self.problem.show()
            self.adjustSize()
            return
        self.accept()
