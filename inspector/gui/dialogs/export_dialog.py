"""Which figures are exported, and how they look: the choices of `inspector export` as fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFormLayout,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.widgets.check_boxes import CheckBoxes
from inspector.gui.widgets.controls import caption, chooser
from inspector.gui.widgets.plain_text import clean, plain_label

FIGURES, STEPS, TRAINING = "Figures", "Animation over the steps", "Animation over training"
ON_SCREEN, FOR_PRINT = 96, 192
"""Dots an inch of an animation and of a figure, unless others are chosen."""
NOW, EVERY = "the frame that is shown", "every frame"
COLUMN = "85x60mm"
SIZES = ("1200x760", "900x600", COLUMN, "180x110mm", "3.3x2.2in")
THEMES = {"Light": "light", "Dark": "dark", "Paper (white)": "paper"}
MOVING = ("gif", "apng", "webp", "mp4")
FORMS = {FIGURES: ("png", "svg", "pdf"), STEPS: MOVING, TRAINING: MOVING}
NUMBERS = {"none": "", "CSV": "csv", "JSON": "json", "NPZ": "npz"}


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was chosen. `words`: as options of `inspector export`, without the panel, the frame and the file;
    `everything`: every panel was, of which those are drawn that show something."""

    what: str
    panels: tuple[str, ...]
    every_frame: bool
    form: str
    words: tuple[str, ...]
    everything: bool = False


class ExportDialog(QDialog):
    """Asks for panels, size, theme, font, steps, format, numbers beside them, or an animation."""

    def __init__(
        self, panels: Sequence[tuple[str, str]], front: str, frames: int, steps: tuple[int, int] | None,
        theme: str = "light", parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        """`panels`: (key, title) of those that show something; `front`: the key of the one in front."""
        super().__init__(parent)
        self.setWindowTitle("Export figures")
        self._steps = steps
        self._make_fields(frames, theme)
        self._list_panels(panels, front)
        self._lay_out()
        self.what.currentTextChanged.connect(self._arrange)
        self.panels.itemChanged.connect(self._arrange)
        self.ranged.toggled.connect(self._arrange)
        self.first.valueChanged.connect(self._arrange)
        self.last.valueChanged.connect(self._arrange)
        self._arrange()
        self.resize(620, 460)

    def _lay_out(self) -> None:
        self._form = form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for name, field in (
            ("&What", self.what), ("Frames", self.frames), ("&Steps", self._row(self.ranged, self.first, self.last)),
            ("Si&ze", self.size_text), ("&Colours", self.theme), ("&Font", self.font_size), ("Format", self.form),
            ("&Resolution", self.dpi), ("&Numbers beside them", self.numbers), ("Pictures a second", self.rate),
            ("Each n-th picture", self.every),
        ):  # fmt: skip
            form.addRow(name, field)
        self.problem = plain_label()
        self.problem.setObjectName("problem")
        self.problem.setWordWrap(True)
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.go = self.buttons.addButton("Export…", QDialogButtonBox.ButtonRole.AcceptRole)
        self.go.setDefault(True)
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        left = QVBoxLayout()
        left.addWidget(self.every_panel)
        left.addWidget(self.panels, 1)
        both = QHBoxLayout()
        both.addLayout(left, 1)
        both.addLayout(form, 1)
        layout = QVBoxLayout(self)
        layout.addLayout(both, 1)
        layout.addWidget(self.problem)
        layout.addWidget(self.buttons)

    def _make_fields(self, frames: int, theme: str) -> None:
        what = [FIGURES, *([STEPS] if self._steps else []), *([TRAINING] if frames > 1 else [])]
        self.what: QComboBox = chooser(what, "What is exported")
        self.frames: QComboBox = chooser([NOW, *([EVERY] if frames > 1 else [])], "Frames")
        self.ranged = QCheckBox("from")
        self.ranged.setToolTip("Only a range of the steps; else those that are in view")
        self.first, self.last = self._whole("First step", 0), self._whole("Last step", 0)
        if self._steps:
            for field, value in ((self.first, self._steps[0]), (self.last, self._steps[1])):
                field.setRange(0, self._steps[1])
                field.setValue(value)
        self.ranged.setEnabled(bool(self._steps))
        self.size_text = QComboBox()
        self.size_text.setEditable(True)
        self.size_text.addItems(SIZES)
        self.size_text.setAccessibleName("Size: pixels of 1/96 inch, mm or in")
        self.theme: QComboBox = chooser(list(THEMES), "Colours")
        self.theme.setCurrentText(next(name for name, key in THEMES.items() if key == theme))
        self.font_size = QDoubleSpinBox()
        self.font_size.setAccessibleName("Points of the texts")
        self.font_size.setRange(0.0, 40.0)
        self.font_size.setSpecialValueText("as in the window")
        self.font_size.setSuffix(" pt")
        self.font_size.setDecimals(1)
        self.form: QComboBox = chooser(list(FORMS[FIGURES]), "Format")
        self.dpi = self._whole("Dots an inch", FOR_PRINT, 36, 1200)
        self.dpi.setSuffix(" dpi")
        self.numbers: QComboBox = chooser(list(NUMBERS), "Numbers beside each figure")
        self.rate = self._whole("Pictures a second", 10, 1, 50)
        self.every = self._whole("Each n-th picture", 1, 1, 1_000_000)

    @staticmethod
    def _whole(name: str, value: int, low: int = 0, high: int = 2**31 - 1) -> QSpinBox:
        field = QSpinBox()
        field.setAccessibleName(name)
        field.setRange(low, high)
        field.setValue(value)
        return field

    @staticmethod
    def _row(*fields: QWidget) -> QWidget:
        row = QWidget()
        layout = QHBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        for number, field in enumerate(fields):
            if number == len(fields) - 1:
                layout.addWidget(caption("to"))
            layout.addWidget(field, int(number > 0))
        return row

    def _list_panels(self, panels: Sequence[tuple[str, str]], front: str) -> None:
        self.every_panel = QCheckBox("&All panels")
        self.every_panel.setTristate(False)
        self.panels = QListWidget()
        CheckBoxes(self.panels)
        self.panels.setAccessibleName("Panels")
        edged = self.panels.palette()  # boxes have an edge in the dark too (theme.py says why they have none)
        edged.setColor(QPalette.ColorRole.Window, edged.color(QPalette.ColorRole.PlaceholderText))
        self.panels.setPalette(edged)
        for key, title in panels:
            item = QListWidgetItem(clean(title))
            item.setData(Qt.ItemDataRole.UserRole, key)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if key == front else Qt.CheckState.Unchecked)
            self.panels.addItem(item)
        if not self.chosen_panels() and self.panels.count():
            self.panels.item(0).setCheckState(Qt.CheckState.Checked)
        self.every_panel.toggled.connect(self._check_all)

    def _check_all(self, on: bool) -> None:
        for row in range(self.panels.count()):
            self.panels.item(row).setCheckState(Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)

    def chosen_panels(self) -> tuple[str, ...]:
        """Keys of those that are checked."""
        items = (self.panels.item(row) for row in range(self.panels.count()))
        return tuple(
            str(item.data(Qt.ItemDataRole.UserRole)) for item in items if item.checkState() == Qt.CheckState.Checked
        )

    def _arrange(self) -> None:
        """Show the fields of what is exported, and why nothing can be."""
        what, count = self.what.currentText(), len(self.chosen_panels())
        moving = what != FIGURES
        wanted = FORMS[what]
        if [self.form.itemText(i) for i in range(self.form.count())] != list(wanted):
            self.form.clear()
            self.form.addItems(list(wanted))
            self.dpi.setValue(ON_SCREEN if moving else FOR_PRINT)
        for field in (self.frames, self.numbers):
            self._form.setRowVisible(field, not moving)
        for number in (self.rate, self.every):
            self._form.setRowVisible(number, moving)
        for number in (self.first, self.last):
            number.setEnabled(self.ranged.isChecked())
        why = "" if count else "Choose a panel at least."
        if moving and count > 1:
            why = "An animation draws one panel: choose one."
        if self.ranged.isChecked() and self.first.value() > self.last.value():
            why = "The last step comes before the first one."
        self.problem.setText(why)
        self.go.setEnabled(not why)

    def chosen(self) -> Chosen:
        """What was chosen."""
        what = self.what.currentText()
        words = ["--size", self.size_text.currentText().strip(), "--theme", THEMES[self.theme.currentText()],
                 "--dpi", str(self.dpi.value())]  # fmt: skip
        words += ["--font-size", f"{self.font_size.value():g}"] if self.font_size.value() else []
        if self.ranged.isChecked():
            words += ["--steps", f"{self.first.value()}:{self.last.value() + 1}"]
        if what == FIGURES:
            numbers = NUMBERS[self.numbers.currentText()]
            words += ["--numbers", numbers] if numbers else []
            words += ["--format", self.form.currentText()]
        else:
            words += ["--animate", "steps" if what == STEPS else "training"]
            words += ["--rate", str(self.rate.value()), "--every", str(self.every.value())]
        every = what == FIGURES and self.frames.currentText() == EVERY
        panels = self.chosen_panels()
        form, everything = self.form.currentText(), len(panels) == self.panels.count()
        return Chosen(what, panels, every, form, tuple(words), everything)
