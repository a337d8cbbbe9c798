"""What to run: an example, text, ids, a file or a made signal; Enter runs it at once."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QToolButton,
    QWidget,
)

from inspector.gui.widgets.plain_text import clean
from inspector.records import InputSpec, Loaded

SIGNALS = ("noise", "impulse", "constant", "sine")
FILES = "Sequences (*.txt *.ids *.npy *.npz *.csv *.wav *.flac);;All files (*)"
LINE_BREAK = "↵"


class InputBar(QWidget):
    """`asked(spec)` when the user wants a run; `cancelled` when they want it to stop."""

    asked = Signal(object)
    cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.kind = QComboBox()
        self.kind.setAccessibleName("What kind of sequence")
        self.examples = QComboBox()
        self.examples.setAccessibleName("Ready sequences of the model")
        self.line = QLineEdit()
        self.line.setAccessibleName("The sequence; Enter runs it")
        self.signal = QComboBox()
        self.signal.addItems(list(SIGNALS))
        self.signal.setAccessibleName("Made signal")
        self.steps = QSpinBox()
        self.steps.setRange(1, 1_000_000)
        self.steps.setValue(100)
        self.steps.setSuffix(" steps")
        self.steps.setAccessibleName("Steps of the made signal")
        self.browse = QToolButton()
        self.browse.setText("…")
        self.browse.setAccessibleName("Choose a file")
        self.go = QPushButton("Run")
        self.go.setToolTip("Run (F5)")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(8, 4, 8, 4)
        for widget in (self.kind, self.examples, self.signal, self.steps, self.browse):
            layout.addWidget(widget)
        layout.addWidget(self.line, 1)
        layout.addWidget(self.go)
        self.kind.currentTextChanged.connect(self._arrange)
        self.line.returnPressed.connect(self.ask)
        self.go.clicked.connect(self._pressed)
        self.examples.activated.connect(self.ask)
        self.browse.clicked.connect(self._browse)
        self._running = False
        self.set_loaded(None)

    def set_loaded(self, loaded: Loaded | None) -> None:
        """Offer what the open model can read."""
        kinds: list[str] = []
        if loaded is not None:
            kinds += ["Example"] if loaded.examples else []
            kinds += ["Text", "Ids"] if loaded.kind == "tokens" else ["Signal"]
            kinds.append("File")
        self.setEnabled(bool(kinds))
        self.kind.blockSignals(True)
        self.kind.clear()
        self.kind.addItems(kinds)
        self.kind.blockSignals(False)
        self.examples.clear()
        for name in loaded.examples if loaded is not None else ():
            self.examples.addItem(clean(name), name)
        if loaded is not None and loaded.default_text:
            self.line.setText(loaded.default_text.replace("\n", LINE_BREAK))
        self._arrange()

    def set_running(self, running: bool) -> None:
        """The button runs or cancels."""
        if running != self._running:
            self._running = running
            self.go.setText("Cancel" if running else "Run")

    def _arrange(self) -> None:
        kind = self.kind.currentText()
        self.examples.setVisible(kind == "Example")
        self.signal.setVisible(kind == "Signal")
        self.steps.setVisible(kind == "Signal")
        self.browse.setVisible(kind == "File")
        self.line.setVisible(kind != "Signal")
        self.kind.setVisible(bool(kind))
        self.line.setReadOnly(False)
        hints = {
            "Text": f"Type text and press Enter ({LINE_BREAK} is a line break)",
            "Ids": "3 1 4 1 5 …; a semicolon begins another sequence of the batch",
            "File": "A path: .txt .ids .npy .npz .csv .wav .flac",
            "Example": "Edit and press Enter to run your own text",
        }
        self.line.setPlaceholderText(hints.get(kind, "Open a model first"))

    def spec(self) -> InputSpec:
        """What the controls say."""
        kind = self.kind.currentText()
        if kind == "Text":
            return InputSpec(kind="text", value=self.line.text().replace(LINE_BREAK, "\n"))
        if kind == "Ids":
            return InputSpec(kind="ids", value=self.line.text())
        if kind == "File":
            return InputSpec(kind="file", value=self.line.text())
        if kind == "Signal":
            return InputSpec(kind="generated", value=self.signal.currentText(), options={"steps": self.steps.value()})
        return InputSpec(kind="example", value=str(self.examples.currentData() or ""))

    def ask(self) -> None:
        """Ask for a run of what is there; editing the text of an example turns it into typed text."""
        if self.sender() is self.line and self.kind.currentText() == "Example" and self.kind.findText("Text") >= 0:
            self.kind.setCurrentText("Text")
        if self.isEnabled():
            self.asked.emit(self.spec())

    def _pressed(self) -> None:
        if self._running:
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
            self.line.clear()

    def show_file(self, path: str) -> None:
        """Put a file's path into the line."""
        if self.kind.findText("File") >= 0:
            self.kind.setCurrentText("File")
            self.line.setText(path)
