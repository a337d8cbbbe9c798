"""The options of one entry, in a small dialog: of an input that is typed or read, of a quantity that is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from inspector.gui.widgets.option_fields import OptionFields
from inspector.gui.widgets.plain_text import clean, plain_label
from inspector.records import Option


class OptionsDialog(QDialog):
    """Fields for the options, begun with the present values; errors are shown above the buttons."""

    def __init__(
        self, title: str, summary: str, options: Sequence[Option], values: Mapping[str, Any], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle(clean(title))
        self.fields = OptionFields(options)
        self.fields.show_values(values)
        words, self.problem = plain_label(clean(summary)), plain_label("")
        words.setWordWrap(True)
        self.problem.setWordWrap(True)
        self.problem.setAccessibleName("Problem")
        self.problem.hide()
        self._values: dict[str, Any] = dict(values)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self._accept)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        for widget in (words, self.fields, self.problem, buttons):
            layout.addWidget(widget)

    def values(self) -> dict[str, Any]:
        """What was accepted: options that differ from their defaults."""
        return self._values

    def _read(self) -> dict[str, Any]:
        """What the fields say. Raises ValueError with a one-line message."""
        return self.fields.values()

    def _accept(self) -> None:
        try:
            self._values = self._read()
        except ValueError as problem:
            self.problem.setText(clean(str(problem)))
            self.problem.show()
            return
        self.accept()
