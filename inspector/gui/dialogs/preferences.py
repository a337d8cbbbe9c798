"""Preferences: how the window looks, what models run on, where runs are kept, and what is computed without asking."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from inspector.capture.regular import path_of
from inspector.gui.widgets.line_field import LineField
from inspector.gui.widgets.plain_text import clean, plain_label, tooltip
from inspector.records import Entry

FIELDS = {
    "theme": "Light, dark, or as the system has it",
    "font size": "Points of all texts; plots follow",
    "threads": "Cores that a model computes on, from the next start of the worker on",
    "device": "What samples and models open on, where nothing else is said",
    "where runs are kept": "The folder of the captures that this window makes, from the next start on",
    "computed by itself": "How long a quantity may take that is computed without being asked for",
    "quantities": "What each run computes beyond the default",
}
"""Name of each choice, and what it does; the palette finds them by both."""
THEMES = ("Auto", "Light", "Dark")
BUDGETS: Mapping[str, float] = {
    "nothing": -1.0, "what takes up to 1 s": 1.0, "what takes up to 10 s": 10.0, "what takes up to a minute": 60.0,
    "everything": math.inf,
}  # fmt: skip
LEAST_POINTS, MOST_POINTS = 7, 20


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is chosen. `points` and `threads` are 0 for the system's size and for all cores but one."""

    theme: str = "Auto"
    points: int = 0
    threads: int = 0
    device: str = "cpu"
    runs: str = ""
    budget: float = 1.0
    also: frozenset[str] = field(default_factory=frozenset)


class PreferencesDialog(QDialog):
    """A field for each choice; `chosen` once it was accepted. `devices` and `quantities` as the worker reported."""

    def __init__(
        self, now: Chosen, devices: Sequence[str], quantities: Sequence[Entry], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Preferences")
        self.chosen = now
        self.problem = plain_label("")
        self.problem.setObjectName("problem")
        self.problem.setAccessibleName("Problem")
        self.problem.setWordWrap(True)
        self.problem.hide()
        self._make_fields(now, devices, quantities)
        form = QFormLayout()
        for name, widget in self.fields.items():
            form.addRow(f"{name.capitalize()}:", self._folder_row() if widget is self.runs else widget)
            widget.setAccessibleName(name.capitalize())
            widget.setToolTip(tooltip(FIELDS[name]))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel)
        buttons.accepted.connect(self._accept)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addLayout(form)
        layout.addWidget(self.problem)
        layout.addWidget(buttons)
        self.resize(620, 460)

    def _make_fields(self, now: Chosen, devices: Sequence[str], quantities: Sequence[Entry]) -> None:
        self.theme, self.device, self.budget = QComboBox(), QComboBox(), QComboBox()
        self.theme.addItems(THEMES)
        self.theme.setCurrentText(now.theme)
        self.device.addItems(list(dict.fromkeys(("cpu", *devices, now.device))))
        self.device.setCurrentText(now.device)
        for text, seconds in BUDGETS.items():
            self.budget.addItem(text, seconds)
        self.budget.setCurrentIndex(
            max(0, list(BUDGETS.values()).index(now.budget) if now.budget in BUDGETS.values() else 1)
        )
        self.points = self._counted("as the system has it", MOST_POINTS, now.points, " points")
        self.threads = self._counted("all cores but one", os.cpu_count() or 1, now.threads, "")
        self.runs = LineField()
        self.runs.setText(now.runs)
        self.also = QListWidget()
        self.also.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # a long name ends in …
        for entry in quantities:
            item = QListWidgetItem(clean(f"{entry.key}: {entry.summary}"), self.also)
            item.setData(Qt.ItemDataRole.UserRole, entry.key)
            item.setToolTip(tooltip(f"{entry.summary} Cost: {entry.cost or 'small'}."))
            item.setCheckState(Qt.CheckState.Checked if entry.key in now.also else Qt.CheckState.Unchecked)
        if not quantities:
            QListWidgetItem("The list is filled when the worker is ready", self.also).setFlags(Qt.ItemFlag.NoItemFlags)
        widgets = (self.theme, self.points, self.threads, self.device, self.runs, self.budget, self.also)
        self.fields: dict[str, QWidget] = dict(zip(FIELDS, widgets, strict=True))

    @staticmethod
    def _counted(nothing: str, most: int, now: int, suffix: str) -> QSpinBox:
        """A number, whose 0 is a choice in words."""
        box = QSpinBox()
        box.setRange(0, most)
        box.setSpecialValueText(nothing)
        box.setSuffix(suffix)
        box.setValue(now)
        return box

    def _folder_row(self) -> QWidget:
        row, browse = QWidget(), QPushButton("Choose…")
        browse.setAccessibleName("Choose the folder where runs are kept")
        browse.clicked.connect(self._browse)
        layout = QHBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.runs, 1)
        layout.addWidget(browse)
        return row

    def _browse(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Where runs are kept", self.runs.text())
        if folder:
            self.runs.setText(folder)

    def go_to(self, name: str) -> None:
        """The focus goes to the field of a choice."""
        if name in self.fields:
            self.fields[name].setFocus(Qt.FocusReason.ShortcutFocusReason)

    def read(self) -> Chosen:
        """What the fields say. Raises ValueError with one sentence."""
        points, folder = self.points.value(), path_of(self.runs.text())
        if 0 < points < LEAST_POINTS:
            raise ValueError(f"Font size: {points} points cannot be read; {LEAST_POINTS} to {MOST_POINTS} can.")
        if self.runs.text() and not folder.is_absolute():
            raise ValueError(f"Where runs are kept: {self.runs.text()!r} is not a whole path, as {Path.home()} is.")
        if folder.exists() and not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise ValueError(f"Where runs are kept: nothing can be written into {folder}.")
        items = [item for n in range(self.also.count()) if (item := self.also.item(n)) is not None]
        also = {str(one.data(Qt.ItemDataRole.UserRole)) for one in items if one.checkState() == Qt.CheckState.Checked}
        return Chosen(
            self.theme.currentText(), points, self.threads.value(), self.device.currentText(),
            str(folder) if self.runs.text() else "", float(self.budget.currentData()), frozenset(also),
        )  # fmt: skip

    def _accept(self) -> None:
        try:
            self.chosen = self.read()
        except ValueError as problem:
            self.problem.setText(clean(str(problem)))
            self.problem.show()
            return
        self.accept()
