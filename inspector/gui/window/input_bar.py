"""What to run: an example, text, ids, a file or a made signal; Enter runs it at once."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QPushButton,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.widgets.controls import keep_room
from inspector.gui.widgets.cut_label import CutLabel
from inspector.gui.widgets.line_field import LineField
from inspector.gui.widgets.plain_text import clean
from inspector.records import InputSpec, Loaded, Run

SIGNALS = ("noise", "impulse", "constant", "sine")
FILES = "Sequences (*.txt *.ids *.npy *.npz *.csv *.wav *.flac);;All files (*)"
LINE_BREAK = "↵"
TYPED = {"Text": "text", "Ids": "ids", "Numbers": "vectors", "File": "file"}
"""Kinds whose sequence stands in the line, and the engine's name of each."""
EXAMPLE_LETTERS = 14
"""Letters of an example's name that keep their room in a narrow window."""


class InputBar(QWidget):
    """`asked(spec)` when the user wants a run; `cancelled` when they want what goes on to stop.

    What is typed is what runs: beside an example it turns into typed text, or typed numbers for a model of vectors.
    """

    asked = Signal(object)
    cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._make_fields()
        self.kind.currentTextChanged.connect(self._arrange)
        self.line.textEdited.connect(self._edit)
        self.line.returnPressed.connect(self.ask)
        self.go.clicked.connect(self._pressed)
        self.examples.activated.connect(self._chosen)
        self.browse.clicked.connect(self._browse)
        self._busy = self._cancelling = False
        self._loaded: Loaded | None = None
        self.typed = False
        """Whether the line holds text that was typed and has not been run yet."""
        self._offer(None)

    def _make_fields(self) -> None:
        """What kind of sequence, its fields, the line, and the button that runs or cancels."""
        self.kind, self.examples, self.signal = QComboBox(), QComboBox(), QComboBox()
        self.line, self.steps = LineField(), QSpinBox()
        self.signal.addItems(list(SIGNALS))
        self.steps.setRange(1, 1_000_000)
        self.steps.setValue(100)
        self.steps.setSuffix(" steps")
        self.browse, self.go = QToolButton(), QPushButton("Run")
        self.browse.setText("…")
        self.go.setToolTip("Run what stands here (Enter); F5 runs the last sequence again")
        self.fields = (self.kind, self.examples, self.signal, self.steps, self.browse, self.line)
        names = (
            "What kind of sequence", "Ready sequences of the model", "Made signal", "Steps of the made signal",
            "Choose a file", "The sequence; Enter runs it",
        )  # fmt: skip
        self.problem = CutLabel()
        self.problem.setObjectName("problem")
        self.problem.setAccessibleName("Why it does not run")
        self.problem.hide()
        both, layout = QVBoxLayout(self), QHBoxLayout()
        both.setContentsMargins(8, 4, 8, 4)
        both.addLayout(layout)
        both.addWidget(self.problem)
        for widget, name in zip(self.fields, names, strict=True):
            widget.setAccessibleName(name)
            layout.addWidget(widget, int(widget is self.line))
        keep_room(self.line)  # the fields before it stay where they are and as they are
        self.examples.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.examples.setMinimumContentsLength(EXAMPLE_LETTERS)
        layout.addWidget(self.go)

    def set_loaded(self, loaded: Loaded | None) -> None:
        """Offer what the model that is open can read; the same model, opened again, changes nothing."""
        known = None if loaded is None else replace(loaded, generation=0)
        if known != self._loaded:
            self._loaded = known
            self._offer(known)

    def _offer(self, loaded: Loaded | None) -> None:
        kinds: list[str] = []
        if loaded is not None:
            kinds += ["Example"] if loaded.examples else []
            kinds += ["Text", "Ids"] if loaded.kind == "tokens" else ["Signal", "Numbers"]
            kinds.append("File")
        for field in self.fields:
            field.setEnabled(bool(kinds))
        self.kind.blockSignals(True)
        self.kind.clear()
        self.kind.addItems(kinds)
        self.kind.blockSignals(False)
        self.examples.clear()
        for name in loaded.examples if loaded is not None else ():
            self.examples.addItem(clean(name), name)
        if loaded is not None and not self.typed:
            self.line.setText(loaded.default_text.replace("\n", LINE_BREAK))
            self.line.setCursorPosition(0)
        self._arrange()
        self._show_go()

    def set_busy(self, busy: bool, cancelling: bool = False) -> None:
        """The button runs, or cancels what goes on: a run, or the opening of a model."""
        if (busy, cancelling) != (self._busy, self._cancelling):
            self._busy, self._cancelling = busy, cancelling
            self._show_go()

    def _show_go(self) -> None:
        self.go.setText("Cancel" if self._busy else "Run")
        self.go.setEnabled(not self._cancelling if self._busy else self._loaded is not None)

    def say(self, sentence: str) -> None:
        """Tell below the fields why what stands there does not run; "" once it does, or something else stands there."""
        self.problem.show_text(sentence)
        self.problem.setVisible(bool(sentence))

    def is_of(self, run: Run) -> bool:
        """Whether a run was asked for with what stands here."""
        return not run.edits and run.input == self.spec()

    def _arrange(self) -> None:
        self.say("")
        kind = self.kind.currentText()
        self.examples.setVisible(kind == "Example")
        self.signal.setVisible(kind == "Signal")
        self.steps.setVisible(kind == "Signal")
        self.browse.setVisible(kind == "File")
        self.line.setVisible(kind != "Signal")
        self.kind.setVisible(bool(kind))
        hints = {
            "Text": f"Type text and press Enter ({LINE_BREAK} is a line break)",
            "Ids": "3 1 4 1 5 …; a semicolon begins another sequence of the batch",
            "Numbers": self._numbers(),
            "File": "A path: .txt .ids .npy .npz .csv .wav .flac",
            "Example": f"Type {self._own()} and press Enter to run that instead",
        }
        self.line.setPlaceholderText(hints.get(kind, "Open a model first"))

    def _own(self) -> str:
        """What can be typed in the place of an example."""
        return "your own text" if self.kind.findText("Text") >= 0 else "numbers (0.1 0.5; 0.2 0.4)"

    def _numbers(self) -> str:
        width = self._loaded.width if self._loaded is not None else None
        many = f"{width} number{'' if width == 1 else 's'}" if width else "the numbers"
        return f"{many} of a step, then ; and those of the next: 0.1 0.5; 0.2 0.4"

    def spec(self) -> InputSpec:
        """What the controls say."""
        kind, text = self.kind.currentText(), self.line.text()
        if kind in TYPED:
            return InputSpec(kind=TYPED[kind], value=text.replace(LINE_BREAK, "\n") if kind == "Text" else text)
        if kind == "Signal":
            return InputSpec(kind="generated", value=self.signal.currentText(), options={"steps": self.steps.value()})
        return InputSpec(kind="example", value=str(self.examples.currentData() or ""))

    @Slot()
    def ask(self) -> None:
        """Ask for a run of what is there."""
        if self.kind.currentText() == "Example" and self.typed:
            self.kind.setCurrentText("Text" if self.kind.findText("Text") >= 0 else "Numbers")
        if self._loaded is not None:
            self.asked.emit(self.spec())

    @Slot()
    def _edit(self) -> None:
        self.typed = bool(self.line.text())
        self.say("")

    @Slot()
    def _chosen(self) -> None:
        """A ready sequence was chosen: it runs, not what was typed before."""
        self.typed = False
        self.line.clear()
        self.ask()

    def _pressed(self) -> None:
        if self._busy:
            self.cancelled.emit()
        else:
            self.ask()

    def _browse(self) -> None:
        path, _ = QFileDialog.getOpenFileName(self, "Open a sequence", "", FILES)
        if path:
            self.show_file(path)
            self.ask()

    def show_spec(self, spec: InputSpec) -> None:
        """Show which example runs."""
        names = [str(self.examples.itemData(i)) for i in range(self.examples.count())]
        alike = [i for i, name in enumerate(names) if name.lower().startswith(spec.value.lower())]
        if spec.kind == "example" and spec.value and alike:
            self.examples.setCurrentIndex(alike[0])
            if not self.typed:
                self.line.clear()

    def show_file(self, path: str) -> None:
        """Put a file's path into the line."""
        if self.kind.findText("File") >= 0:
            self.kind.setCurrentText("File")
            self.line.setText(path)
            self.typed = False
