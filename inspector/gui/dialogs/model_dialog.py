"""Which model to open: its file and callable, its arguments and a checkpoint; after a failure, what was wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QStringListModel, Qt, Signal, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QComboBox,
    QCompleter,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QPlainTextEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from inspector.capture.regular import is_a_file, path_of
from inspector.gui.dialogs.beside import checkpoints_beside
from inspector.gui.dialogs.callables import callables, described, lone
from inspector.gui.dialogs.found_list import FoundList
from inspector.gui.state.offered import is_of_transformers, name_filter
from inspector.gui.widgets.plain_text import clean_block, plain_label
from inspector.records import Load
from inspector.records.json_text import no_constant, read_json
from inspector.workspace.samples import find_sample

LISTED = 8
CPU = "cpu"


class OpenModelDialog(QDialog):
    """`file.py:callable`, `package.module:callable` or a folder of Hugging Face's; arguments, checkpoint, device.
    `looked_at(path)`: only the tensors of the checkpoint are asked for."""

    looked_at = Signal(str)

    def __init__(self, parent: QWidget | None = None, subject: str = "", checkpoint: str = "") -> None:
        super().__init__(parent)
        self.setWindowTitle("Open a model")
        self.checkpoints = name_filter("Checkpoints", ())
        """The filter of the dialog that chooses a checkpoint."""
        self.subject, self.arguments, self.checkpoint = QLineEdit(), QLineEdit("{}"), QLineEdit()
        self.suffixes: tuple[str, ...] = ()
        """Of checkpoints, which are looked for beside the file that is named."""
        self.makers, self.weights = FoundList("Callables of the file"), FoundList("Checkpoints beside the file")
        self.makers.chosen.connect(self._take_maker)
        self.weights.chosen.connect(self.checkpoint.setText)
        self.device = QComboBox()
        self.device.setAccessibleName("Device")
        self.offer_devices((CPU,))
        self.subject.setPlaceholderText("file.py:make_model, package.module:Model, or a folder of Hugging Face's")
        for line, name in ((self.subject, "Model"), (self.arguments, "Arguments"), (self.checkpoint, "Checkpoint")):
            line.setAccessibleName(name)
        self._names, self._offered = QStringListModel(self), ""
        completer = QCompleter(self._names, self)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.subject.setCompleter(completer)
        self.subject.setPlaceholderText("without one it is rebuilt from the checkpoint, as far as its names tell")
        self.subject.textChanged.connect(self._offer)
        self.subject.returnPressed.connect(self._accept)  # the list of completions keeps Enter from the dialog
        self.problem, self.details, self.more = plain_label(""), QPlainTextEdit(), QToolButton()
        self._build()
        self.fill(subject, checkpoint)
        self.say("")

    def _build(self) -> None:
        """Fields, the problem with its details, buttons."""
        form = QFormLayout()
        form.addRow("Model", with_button(self.subject, self._browse_model))
        form.addRow("", self.makers)
        form.addRow("Arguments (JSON)", self.arguments)
        form.addRow("Checkpoint", with_button(self.checkpoint, self._browse_checkpoint))
        form.addRow("", self.weights)
        form.addRow("Device", self.device)
        self.problem.setWordWrap(True)
        self.problem.setObjectName("problem")
        self.problem.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.problem.setAccessibleName("Problem")
        self.more.setText("Details")
        self.more.setCheckable(True)
        self.more.toggled.connect(self._show_details)
        self.details.setReadOnly(True)
        self.details.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Open | QDialogButtonBox.StandardButton.Cancel)
        self.look = buttons.addButton("Only its tensors", QDialogButtonBox.ButtonRole.ActionRole)
        self.look.setToolTip("Show every tensor of the checkpoint, without a model")
        self.look.clicked.connect(self._look)
        self.checkpoint.textChanged.connect(lambda text: self.look.setEnabled(bool(text.strip())))
        self.checkpoint.textChanged.connect(lambda text: self.weights.mark(text.strip()))
        self.look.setEnabled(False)
        buttons.accepted.connect(self._accept)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addLayout(form)
        layout.addWidget(self.problem)
        layout.addWidget(self.more)
        layout.addWidget(self.details, 1)
        layout.addWidget(buttons)

    def showEvent(self, event: QShowEvent) -> None:
        """It begins in its first field each time: where it was left, Enter would press Cancel again."""
        super().showEvent(event)
        self.subject.setFocus()
        self.subject.selectAll()

    def fill(self, subject: str, checkpoint: str = "") -> None:
        """Other fields: a Python file gets the callable that is most likely to make a model. The checkpoint that was
        named for another model is not taken over."""
        if subject:
            if _parts(subject)[0] != _parts(self.subject.text())[0]:
                self.checkpoint.clear()
            self._choose(subject)
        if checkpoint:
            self.checkpoint.setText(checkpoint)

    @property
    def fields(self) -> dict[str, str]:
        """What stands in the fields, by name."""
        lines = {"subject": self.subject, "arguments": self.arguments, "checkpoint": self.checkpoint}
        return {name: line.text() for name, line in lines.items()}

    def show_fields(self, fields: Mapping[str, str]) -> None:
        """The fields as they were at another time."""
        for name, line in (("subject", self.subject), ("arguments", self.arguments), ("checkpoint", self.checkpoint)):
            if fields.get(name):
                line.setText(str(fields[name]))

    def offer_devices(self, names: Sequence[str]) -> None:
        """The devices of the machine on which the model runs; the one that was chosen stays chosen if it is there."""
        chosen = self.device.currentText()
        self.device.clear()
        self.device.addItems(list(names))
        self.device.setCurrentText(chosen if chosen in names else CPU)
        self.device.setEnabled(len(names) > 1)
        self.device.setToolTip("" if len(names) > 1 else "torch finds no other device on this machine")

    def say(self, sentence: str, details: str = "") -> None:
        """Show what is wrong, above the buttons; the details can be unfolded and copied."""
        self.problem.setText(clean_block(sentence))
        self.problem.setVisible(bool(sentence))
        self.details.setPlainText(clean_block(details))
        self.more.setVisible(bool(details))
        self.more.setChecked(False)
        self._show_details(False)

    @Slot(bool)
    def _show_details(self, shown: bool) -> None:
        self.details.setVisible(shown)
        width, layout = max(620, self.width()), self.layout()
        if layout is not None:
            layout.activate()
            needed = layout.totalMinimumHeightForWidth(width)  # a sentence of two lines leaves the lists their rows
            self.resize(width, max(needed, 420 if shown else 0))

    def load(self) -> Load:
        """The request that the fields describe."""
        subject, checkpoint = self.subject.text().strip(), self.checkpoint.text().strip()
        return Load(
            subject=subject or checkpoint, arguments=read_json(self.arguments.text() or "{}"),
            checkpoint=checkpoint if subject else "", device=self.device.currentText(),
            tensors="never" if subject else "if needed",
        )  # fmt: skip

    @Slot()
    def _look(self) -> None:
        self.reject()
        self.looked_at.emit(self.checkpoint.text().strip())

    @Slot()
    def _accept(self) -> None:
        if not self.isVisible():
            return  # Enter has reached the button as well
        where, name = _parts(self.subject.text())
        if where.endswith(".py") and not name and (only := lone(where)):
            self.subject.setText(f"{where}:{only}")
        wrong = wrong_with(self.subject.text(), self.arguments.text(), self.checkpoint.text())
        if wrong:
            self.say(wrong)
        else:
            self.accept()

    def _choose(self, subject: str) -> None:
        """Put a subject into its field, with the most likely callable where none is named."""
        where, name = _parts(subject)
        found = callables(where) if where.endswith(".py") and not name else []
        self.subject.setText(f"{where}:{found[0]}" if found else subject)
        self._offer(self.subject.text())

    def offer_checkpoints(self, suffixes: tuple[str, ...]) -> None:
        """Look for files of these suffixes beside the model; also for the one that is named already."""
        if suffixes != self.suffixes:
            self.suffixes, self._offered = suffixes, ""
            self._offer(self.subject.text())

    @Slot(str)
    def _offer(self, text: str) -> None:
        """Complete the callables of the file that is named."""
        where, _ = _parts(text)
        if where != self._offered:
            self._offered = where
            found = described(where) if where.endswith(".py") else []
            self._names.setStringList([f"{where}:{one.name}" for one in found])
            self.makers.show_found([(f"{where}:{one.name}", one.words) for one in found])
            beside = checkpoints_beside(where, self.suffixes) if found else []
            self.weights.show_found([(str(path), words) for path, words in beside])
            self.weights.mark(self.checkpoint.text().strip())
        self.makers.mark(text.strip())

    @Slot(str)
    def _take_maker(self, subject: str) -> None:
        self.subject.setText(subject)
        self.say("")

    def _folder(self) -> str:
        """Where the model is, so that it is looked for there."""
        return str(path_of(_parts(self.subject.text())[0]).parent) if self.subject.text() else ""

    def _browse_model(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "A Python file", self._folder(), "Python (*.py)")
        if path:
            self._choose(path)
            self.say("")
            self.subject.setFocus()

    def _browse_checkpoint(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "A checkpoint", self._folder(), self.checkpoints)
        if path:
            self.checkpoint.setText(path)


def wrong_with(subject: str, arguments: str, checkpoint: str = "") -> str:
    """What is wrong with a model and its arguments as they were typed, as one line, or "". Without a model it is
    rebuilt from the checkpoint's names and shapes."""
    try:
        good = isinstance(read_json(arguments or "{}", parse_constant=no_constant), dict)
    except ValueError:
        good = False
    if not good:
        return 'The arguments are not a JSON object; expected for example {"hidden": 64}.'
    text = subject.strip()
    if not text and checkpoint.strip():
        return ""
    where, name = _parts(text)
    if name or find_sample(text) is not None or (text and is_of_transformers(text)):
        return ""
    if not where.endswith(".py"):
        return (
            "Name the model: file.py:callable, package.module:callable, a sample's name, or a folder of Hugging Face's."
        )
    if not is_a_file(where):
        return f"There is no file {where}."
    file = path_of(where)
    found = callables(file)
    has = f"{file.name} has {', '.join(found[:LISTED])}{' …' if len(found) > LISTED else ''}"
    return f"Name the callable that makes the model, as in {file.name}:{found[0]}; {has}." if found else (
        f"Name the callable of {file.name} that makes the model; none was found at its top level."
    )  # fmt: skip


def _parts(subject: str) -> tuple[str, str]:
    """(file or module, callable) of `file.py:callable`; a callable that is not named yet is ""."""
    text = subject.strip()
    if text.endswith(".py"):
        return text, ""
    where, separator, name = text.rpartition(":")
    return (where, name.strip()) if separator else (text, "")


def with_button(line: QLineEdit, browse: object) -> QWidget:
    """A field with a button that lets the user choose what to put into it."""
    holder = QWidget()
    layout = QHBoxLayout(holder)
    layout.setContentsMargins(0, 0, 0, 0)
    button = QToolButton()
    button.setText("…")
    button.setAccessibleName("Choose a file")
    button.clicked.connect(browse)
    layout.addWidget(line)
    layout.addWidget(button)
    return holder
