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
from inspector.gui.dialogs.asked_python import AskedPython
from inspector.gui.widgets.check_boxes import CheckBoxes
from inspector.gui.widgets.line_field import LineField
from inspector.gui.widgets.plain_text import clean, plain_label, tooltip
from inspector.records import Entry

FIELDS = {
    "theme": "Light, dark, or as the system has it",
    "font size": "Points of all texts; plots follow",
    "threads": "Cores that a model computes on",
    "memory": "Most memory that a model may take, on Linux: beyond it the model is ended with one sentence, before the "
    "machine begins to swap",
    "python of models": "Interpreter, or folder of an environment, in which models run: it needs torch, the model's "
    "libraries and this version of inspector. Empty: the one that runs this window",
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
MOST_MEMORY = 100_000


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is chosen. `points`, `threads` and `memory` (GB) are 0 for the system's size, for all cores but one, and for
    most of what is free."""

    theme: str = "Auto"
    points: int = 0
    threads: int = 0
    device: str = "cpu"
    runs: str = ""
    budget: float = 1.0
    also: frozenset[str] = field(default_factory=frozenset)
    python: str = ""
    memory: int = 0


class PreferencesDialog(QDialog):
    """A field for each choice; `chosen` once it was accepted. `devices` and `quantities` as the worker reported."""

    def __init__(
        self, now: Chosen, devices: Sequence[str], quantities: Sequence[Entry], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Preferences")
        self.chosen = now
        self.at_first = now.also
        """What was computed beyond the default when the list was filled."""
        self.problem = plain_label("")
        self.problem.setObjectName("problem")
        self.problem.setAccessibleName("Problem")
        self.problem.setWordWrap(True)
        self.problem.hide()
        self._make_fields(now, devices, quantities)
        form = QFormLayout()
        for name, widget in self.fields.items():
            form.addRow(name.capitalize(), self._with_choose(name, widget))
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
        for text, seconds in BUDGETS.items():
            self.budget.addItem(text, seconds)
        self.budget.setCurrentIndex(
            max(0, list(BUDGETS.values()).index(now.budget) if now.budget in BUDGETS.values() else 1)
        )
        self.points = self._counted("as the system has it", MOST_POINTS, now.points, " points")
        self.threads = self._counted("all cores but one", os.cpu_count() or 1, now.threads, "")
        self.memory = self._counted("most of what is free", MOST_MEMORY, now.memory, " GB")
        self.runs = LineField()
        self.runs.setText(now.runs)
        self.also = QListWidget()
        CheckBoxes(self.also)
        self.also.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # a long name ends in …
        self.offer(devices, quantities, now.also)
        self.python = LineField()
        self.python.setPlaceholderText("the one that runs this window")
        self.python.setText(now.python)
        widgets = (
            self.theme, self.points, self.threads, self.memory, self.python, self.device, self.runs, self.budget,
            self.also,
        )  # fmt: skip
        self.fields: dict[str, QWidget] = dict(zip(FIELDS, widgets, strict=True))

    def offer(self, devices: Sequence[str], quantities: Sequence[Entry], also: frozenset[str]) -> None:
        """What the worker has reported, also while the dialog is open; `also` is computed beyond the default now."""
        self.at_first = also
        chosen = self.device.currentText() or self.chosen.device
        self.device.clear()
        self.device.addItems(list(dict.fromkeys(("cpu", *devices, chosen))))
        self.device.setCurrentText(chosen)
        self.also.clear()
        for entry in quantities:
            item = QListWidgetItem(clean(f"{entry.key}: {entry.summary}"), self.also)
            item.setData(Qt.ItemDataRole.UserRole, entry.key)
            item.setToolTip(tooltip(f"{entry.summary} Cost: {entry.cost or 'small'}."))
            item.setCheckState(Qt.CheckState.Checked if entry.key in also else Qt.CheckState.Unchecked)
        if not quantities:
            QListWidgetItem("The list is filled when the worker is ready", self.also).setFlags(Qt.ItemFlag.NoItemFlags)

    @staticmethod
    def _counted(nothing: str, most: int, now: int, suffix: str) -> QSpinBox:
        """A number, whose 0 is a choice in words."""
        box = QSpinBox()
        box.setRange(0, most)
        box.setSpecialValueText(nothing)
        box.setSuffix(suffix)
        box.setValue(now)
        return box

    def _with_choose(self, name: str, widget: QWidget) -> QWidget:
        """A field, with a button beside it where it holds a path."""
        if widget not in (self.runs, self.python):
            return widget
        row, browse = QWidget(), QPushButton("Choose…")
        browse.setAccessibleName(f"Choose: {name}")
        browse.clicked.connect(self._browse_runs if widget is self.runs else self._browse_python)
        layout = QHBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(widget, 1)
        layout.addWidget(browse)
        return row

    def _browse_runs(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Where runs are kept", self.runs.text())
        if folder:
            self.runs.setText(folder)

    def _browse_python(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "Python that runs models", self.python.text())
        if path:
            self.python.setText(path)

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
        listed = [one for one in items if one.data(Qt.ItemDataRole.UserRole)]
        ticked = {
            str(one.data(Qt.ItemDataRole.UserRole)) for one in listed if one.checkState() == Qt.CheckState.Checked
        }
        also = ticked if listed else self.at_first
        return Chosen(
            self.theme.currentText(), points, self.threads.value(), self.device.currentText(),
            str(folder) if self.runs.text() else "", float(self.budget.currentData()), frozenset(also),
            self.python.text().strip(), self.memory.value(),
        )  # fmt: skip

    def _accept(self) -> None:
        try:
            wanted = self.read()
        except ValueError as problem:
            self._refuse(str(problem))
            return
        if not wanted.python or wanted.python == self.chosen.python:
            self._use(wanted)
            return
        self.setEnabled(False)  # the interpreter may take seconds to say what it has
        self._refuse(f"Asking {wanted.python} what it has …")
        asked = AskedPython(wanted.python, self)
        asked.answered.connect(lambda problem: self._answered(wanted, problem))

    def _answered(self, wanted: Chosen, problem: str) -> None:
        self.setEnabled(True)
        if problem:
            self._refuse(f"Python of models: {problem}")
        else:
            self._use(wanted)

    def _refuse(self, why: str) -> None:
        self.problem.setText(clean(why))
        self.problem.show()

    def _use(self, wanted: Chosen) -> None:
        self.chosen = wanted
        self.accept()
