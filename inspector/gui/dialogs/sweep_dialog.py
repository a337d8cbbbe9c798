"""A folder of checkpoints: which there are, on what they run, and how far that is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from inspector.capture import SUFFIX
from inspector.capture.regular import is_there, path_of
from inspector.gui.dialogs.model_dialog import CPU, with_button, wrong_with
from inspector.gui.dialogs.sweep_table import SweepTable
from inspector.gui.dialogs.trust_dialog import ask_trust
from inspector.gui.state.sweeping import Sweeping
from inspector.gui.widgets.plain_text import clean, plain_label
from inspector.records import InputSpec, Load, Run, Sweep

LOOK_MS = 200
BETWEEN = ";"
"""Between several paths in one field; a path that has one in its name is taken as it is where it exists."""
SHOWN, FIRST, TEXT = "The one that was run here", "The model's first example", "Text:"
HOW = (
    "Runs a model at every checkpoint on the same sequence; each is a frame of one capture, in the order of training. "
    "It goes on while this dialog is closed. Begun again with the same settings, it computes only what is missing."
)


@dataclass(frozen=True, slots=True)
class Prefilled:
    """What the window knows: the model that is open, what it ran, where captures go, which devices there are."""

    load: Load
    captures: str
    shown: InputSpec | None = None
    also: tuple[str, ...] = ()
    devices: tuple[str, ...] = (CPU,)


@dataclass(slots=True)
class _Fields:
    """Every field that a sweep depends on: none can be changed while one runs."""

    checkpoints: QLineEdit = field(default_factory=QLineEdit)
    subject: QLineEdit = field(default_factory=QLineEdit)
    arguments: QLineEdit = field(default_factory=lambda: QLineEdit("{}"))
    sequence: QComboBox = field(default_factory=QComboBox)
    text: QLineEdit = field(default_factory=QLineEdit)
    out: QLineEdit = field(default_factory=QLineEdit)
    workers: QSpinBox = field(default_factory=QSpinBox)
    device: QComboBox = field(default_factory=QComboBox)
    follow: QCheckBox = field(default_factory=lambda: QCheckBox("Wait for new ones"))
    partial: QCheckBox = field(default_factory=lambda: QCheckBox("Load what fits"))
    overwrite: QCheckBox = field(default_factory=lambda: QCheckBox("Compute all anew"))

    def name_them(self) -> None:
        """Names for screen readers, and tooltips."""
        for widget, name in (
            (self.checkpoints, "Checkpoints"), (self.subject, "Model"), (self.arguments, "Arguments"),
            (self.sequence, "Sequence"), (self.text, "Text"), (self.out, "Capture"), (self.workers, "Processes"),
            (self.device, "Device"),
        ):  # fmt: skip
            widget.setAccessibleName(name)
        self.checkpoints.setPlaceholderText("a folder, a pattern (runs/*/last.ckpt), or files with ; between them")
        self.subject.setPlaceholderText("file.py:make_model, package.module:Model, or a sample's name")
        self.workers.setRange(0, 256)
        self.workers.setSpecialValueText("as many as fit")
        self.follow.setToolTip("Checkpoints that are written later are taken too, until it is cancelled")
        self.partial.setToolTip("Of checkpoints that do not fit the model completely")
        self.overwrite.setToolTip("Replaces the frames that are there")


class SweepDialog(QDialog):
    """Not modal. `opened(path)`: the capture has a frame and is to be shown; `one(path)`: one checkpoint alone."""

    opened = Signal(str)
    one = Signal(str)

    def __init__(self, sweeping: Sweeping, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Run a folder of checkpoints")
        self.sweeping, self.known = sweeping, Prefilled(Load(subject=""), "")
        self.fields, self.table, self.said, self.bar = _Fields(), SweepTable(), plain_label(), QProgressBar()
        self.fields.name_them()
        self.bar.setTextVisible(False)
        room = self.bar.sizePolicy()
        room.setRetainSizeWhenHidden(True)
        self.bar.setSizePolicy(room)
        self.go = QPushButton("Begin")
        self.go.setAutoDefault(False)
        self.alone = QPushButton("Open this one")
        self.alone.setToolTip("Open the chosen checkpoint alone (a double click)")
        self.alone.setAutoDefault(False)
        self.alone.clicked.connect(lambda _checked=False: self._open_one(self.table.chosen))
        self.table.opened.connect(self._open_one)
        self.table.itemSelectionChanged.connect(lambda: self.alone.setEnabled(bool(self.table.chosen)))
        self.alone.setEnabled(False)
        self._listed: Sequence[str] = ()
        self._own_name = ""
        """The name of the capture as it was proposed: it follows the folder until the user writes another."""
        self._chose = False
        """Whether the user has chosen a sequence; until then the first one that is offered is meant."""
        self._arrange()
        self.go.clicked.connect(self._pressed)
        self.fields.checkpoints.editingFinished.connect(self._look_into)
        self.fields.sequence.activated.connect(self._choose)
        self.fields.sequence.currentTextChanged.connect(lambda text: self.fields.text.setVisible(text == TEXT))
        self._timer = QTimer(self, interval=LOOK_MS)
        self._timer.timeout.connect(self.look)
        self.finished.connect(lambda _result: sweeping.rest())

    def _arrange(self) -> None:
        parts, form = self.fields, QFormLayout()
        form.addRow("Checkpoints", with_button(parts.checkpoints, self._browse))
        form.addRow("Model", parts.subject)
        form.addRow("Arguments (JSON)", parts.arguments)
        form.addRow("Sequence", _row(parts.sequence, parts.text))
        form.addRow("Capture", parts.out)
        form.addRow("Processes", _row(parts.workers, plain_label("on"), parts.device))
        form.addRow("", _row(parts.follow, parts.partial, parts.overwrite))
        how = plain_label(HOW)
        how.setWordWrap(True)
        self.said.setWordWrap(True)
        below = QHBoxLayout()
        below.addWidget(self.bar, 1)
        below.addWidget(self.alone)
        below.addWidget(self.go)
        layout = QVBoxLayout(self)
        layout.addWidget(how)
        layout.addLayout(form)
        layout.addWidget(self.table, 1)
        layout.addWidget(self.said)
        layout.addLayout(below)
        self.resize(720, 600)

    # -- what the fields say

    def fill(self, paths: Sequence[str], known: Prefilled) -> None:
        """Begin with what the window knows; what was begun before stays in the fields."""
        if not self.sweeping.running and (paths or self.sweeping.path is None):
            self.known = replace(known, shown=known.shown or self.known.shown)  # the capture of a sweep has none
            self._offer()
            if paths:
                self.fields.checkpoints.setText(f"{BETWEEN} ".join(paths))
                self._look_into()
        self._timer.start()
        self.look()

    def _offer(self) -> None:
        parts, known = self.fields, self.known
        parts.subject.setText(known.load.subject or parts.subject.text())
        parts.arguments.setText(json.dumps(dict(known.load.arguments)))
        chosen = parts.sequence.currentText() if self._chose else ""
        offered = [*([SHOWN] if known.shown is not None else []), FIRST, TEXT]
        parts.sequence.clear()
        parts.sequence.addItems(offered)
        parts.sequence.setCurrentText(chosen if chosen in offered else offered[0])
        parts.text.setVisible(parts.sequence.currentText() == TEXT)
        parts.device.clear()
        parts.device.addItems(list(known.devices))
        parts.device.setCurrentText(known.load.device if known.load.device in known.devices else CPU)

    @Slot()
    def _choose(self) -> None:
        self._chose = True

    @property
    def paths(self) -> tuple[str, ...]:
        """The folders, patterns and files of the field."""
        text = self.fields.checkpoints.text().strip()
        if not text or is_there(text):
            return (text,) if text else ()
        return tuple(part.strip() for part in text.split(BETWEEN) if part.strip())

    def request(self) -> Sweep:
        """What the fields describe."""
        parts, known = self.fields, self.known
        chosen = parts.sequence.currentText()
        spec = known.shown if chosen == SHOWN and known.shown is not None else InputSpec()
        if chosen == TEXT:
            spec = InputSpec(kind="text", value=parts.text.text())
        load = Load(
            subject=parts.subject.text().strip(), arguments=json.loads(parts.arguments.text() or "{}"),
            partial=parts.partial.isChecked(), device=parts.device.currentText() or CPU,
        )  # fmt: skip
        path = path_of(parts.out.text().strip()).absolute()
        run = Run(path=str(path), input=spec, also=known.also, overwrite=parts.overwrite.isChecked())
        return Sweep(
            paths=self.paths, load=load, run=run, workers=parts.workers.value(), follow=parts.follow.isChecked()
        )

    def wrong(self) -> str:
        """What is wrong with the fields, as one line, or ""."""
        parts = self.fields
        if not self.paths:
            return "Name the checkpoints: a folder, a pattern, or files."
        name = parts.out.text().strip()
        if not name.endswith(SUFFIX):
            return f"The capture is a folder whose name ends with {SUFFIX}; {name or 'none'} was given."
        return wrong_with(parts.subject.text(), parts.arguments.text())

    @Slot()
    def _look_into(self) -> None:
        """List other checkpoints, and propose a name for their capture."""
        if self.paths == self._listed or self.sweeping.running:
            return
        self._listed = self.paths
        if self.fields.out.text() == self._own_name:
            self._own_name = str(Path(self.known.captures) / _name_for(self.paths))
            self.fields.out.setText(self._own_name)
        if self.paths:
            self.sweeping.look_into(self.paths)

    def _browse(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, "A folder of checkpoints", self.fields.checkpoints.text())
        if folder:
            self.fields.checkpoints.setText(folder)
            self._look_into()

    def _open_one(self, path: str) -> None:
        """One checkpoint instead of all."""
        if path and not self.sweeping.running:
            self.hide()
            self.one.emit(path)

    # -- running

    @Slot()
    def _pressed(self) -> None:
        """Begin, or cancel."""
        wrong = "" if self.sweeping.running else self.wrong()
        if self.sweeping.running:
            self.sweeping.cancel()
        elif not wrong:
            path_of(self.fields.out.text().strip()).parent.mkdir(parents=True, exist_ok=True)
            self._listed = self.paths
            self.sweeping.begin(self.request())
        self.look()
        if wrong:
            self.said.setText(clean(wrong))

    @Slot()
    def look(self) -> None:
        """Show how far it is; show its capture once it has a frame; ask whether code may run."""
        sweeping = self.sweeping
        if sweeping.appeared is not None:
            path, sweeping.appeared = sweeping.appeared, None
            self.opened.emit(str(path))
        if sweeping.asked is not None:
            asked, sweeping.asked = sweeping.asked, None
            ask_trust(self, asked, sweeping.agree, lambda: None)
        if self.isVisible():
            self._show()

    def _show(self) -> None:
        sweeping, told = self.sweeping, self.sweeping.progress
        for widget in (self.fields.checkpoints, self.fields.subject, self.fields.arguments, self.fields.sequence,
                       self.fields.text, self.fields.out, self.fields.workers, self.fields.device, self.fields.follow,
                       self.fields.partial, self.fields.overwrite):  # fmt: skip
            widget.setEnabled(not sweeping.running)
        self.table.show_rows(sweeping.rows)
        self.said.setText(clean(sweeping.sentence))
        words = {(True, False): "Cancel", (True, True): "End at once"}
        self.go.setText(words.get((sweeping.running, sweeping.cancelling), "Begin"))
        self.bar.setVisible(sweeping.running or sweeping.reading)
        known = told is not None and bool(told.total)
        self.bar.setRange(0, 1000 if known else 0)
        if told is not None and known:
            self.bar.setValue(round(1000 * told.done / told.total))


def _row(*widgets: QWidget) -> QWidget:
    holder = QWidget()
    layout = QHBoxLayout(holder)
    layout.setContentsMargins(0, 0, 0, 0)
    for widget in widgets:
        layout.addWidget(widget, 1 if isinstance(widget, QLineEdit) else 0)
    if not any(isinstance(widget, QLineEdit) for widget in widgets):
        layout.addStretch(1)
    return holder


def _name_for(paths: Sequence[str]) -> str:
    """The name of the capture of a sweep: the folder with the one above it, since many are called "checkpoints"."""
    if not paths:
        return ""
    path = path_of(paths[0]).absolute()
    parts = [path.parent.name, path.name] if len(paths) == 1 else [path.parent.parent.name, path.parent.name]
    words = "-".join(part for part in parts if part)
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in words)[:80] + f"-sweep{SUFFIX}"
