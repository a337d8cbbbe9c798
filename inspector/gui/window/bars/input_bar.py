"""What to run: an example, typed input, a file, or a generated signal; Enter runs it at once.

The kinds, their choices and their options come from the entries of the worker's registry of inputs.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.dialogs.options_dialog import OptionsDialog
from inspector.gui.state.offered import Offered, name_filter
from inspector.gui.widgets.controls import reserve_space
from inspector.gui.widgets.cut_box import CutBox
from inspector.gui.widgets.cut_label import CutLabel
from inspector.gui.widgets.line_field import LineField
from inspector.gui.widgets.option_fields import OptionFields
from inspector.gui.widgets.plain_text import clean, plain_label, tooltip
from inspector.gui.window.bars.line_texts import LineTexts
from inspector.gui.window.bars.many_sources import choose_many
from inspector.records import WEIGHTS, Entry, InputSpec, Loaded, Option, Run

LINE_BREAK = "↵"
EXAMPLE_LETTERS = 14
"""Letters of an example's name that stay visible in a narrow window."""
MODEL_LETTERS = 28
"""Letters of a model's name that are shown."""


class InputBar(QWidget):
    """`asked(spec)` when the user wants a run; `cancelled` when they cancel the present activity.

    Typed text is what runs: where an example is chosen, the kind changes to the first one that is typed.
    """

    asked = Signal(object)
    cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._make_fields()
        self.kind.currentIndexChanged.connect(self._arrange)
        self.kind.activated.connect(self._kind_chosen)
        self.made.currentTextChanged.connect(self._show_options)
        self.more.clicked.connect(self._ask_options)
        self.line.textEdited.connect(self._edit)
        self.line.returnPressed.connect(self.ask)
        self.go.clicked.connect(self._pressed)
        self.examples.activated.connect(self._chosen)
        self.browse.clicked.connect(self._browse)
        self._busy = self._cancelling = self._several = False
        self._kind_before = ""
        """What kind of sequence was chosen before a file was put into the line."""
        self._loaded: Loaded | None = None
        self._offered = Offered()
        self._entries: dict[str, Entry] = {}
        """The inputs that are offered for the model that is open, by key."""
        self._set: dict[str, dict[str, Any]] = {}
        """Options that were set for kinds that are typed or read, by key."""
        self._texts = LineTexts()
        self.options: OptionFields | None = None
        self.typed = False
        """Whether the line has typed text that has not been run yet."""
        self._offer(None)

    def _make_fields(self) -> None:
        """What kind of sequence, its fields, the line, and the button that runs or cancels."""
        self.kind, self.examples, self.made = QComboBox(), CutBox(), QComboBox()
        self.line, self.browse, self.more, self.go = LineField(), QToolButton(), QToolButton(), QPushButton("Run")
        self.browse.setText("…")
        self.more.setText("Options…")
        self.go.setToolTip("Run this input (Enter); F5 runs the last sequence again")
        self.fields = (self.kind, self.examples, self.made, self.browse, self.line, self.more)
        names = (
            "What kind of sequence", "Example sequences of the model", "Generated signal", "Choose a file",
            "The sequence; Enter runs it", "Options of this kind of sequence",
        )  # fmt: skip
        self.problem = CutLabel()
        self.problem.setObjectName("problem")
        self.problem.setAccessibleName("Why it does not run")
        self.problem.hide()
        both, self._row = QVBoxLayout(self), QHBoxLayout()
        layout = self._row
        both.setContentsMargins(8, 4, 8, 4)
        both.addLayout(layout)
        both.addWidget(self.problem)
        for widget, name in zip(self.fields, names, strict=True):
            widget.setAccessibleName(name)
            layout.addWidget(widget, int(widget is self.line))
        self.whose = plain_label()
        self.whose.hide()
        layout.insertWidget(0, self.whose)
        reserve_space(self.line)  # the fields before it keep position and size
        self.examples.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.examples.setMinimumContentsLength(EXAMPLE_LETTERS)
        layout.addWidget(self.go)

    def set_offered(self, offered: Offered) -> None:
        """Offer what the worker has."""
        if offered != self._offered:
            self._offered = offered
            self._offer(self._loaded)

    def set_loaded(self, loaded: Loaded | None) -> None:
        """Offer what the model that is open can read; the same model, opened again, changes nothing."""
        known = None if loaded is None else replace(loaded, generation=0)
        if known != self._loaded:
            self._loaded = known
            self._offer(known)

    def _offer(self, loaded: Loaded | None) -> None:
        runs = loaded is not None and loaded.kind != WEIGHTS
        entries = (
            self._offered.inputs_for(loaded.kind, bool(loaded.examples), loaded.typed)
            if loaded is not None and runs
            else []
        )
        self._entries = {entry.key: entry for entry in entries}
        for field in self.fields:
            field.setEnabled(bool(entries))
        self.kind.blockSignals(True)
        self.kind.clear()
        for entry in entries:
            self.kind.addItem(clean(entry.title or entry.key), entry.key)
            self.kind.setItemData(self.kind.count() - 1, tooltip(entry.summary), Qt.ItemDataRole.ToolTipRole)
        self.kind.blockSignals(False)
        self.examples.clear()
        for name in loaded.examples if loaded is not None else ():
            self.examples.addItem(clean(name), name)
        if loaded is not None and not self.typed:
            self._set_line(loaded.default_text)
        self._arrange()
        self._show_go()

    def set_busy(self, busy: bool, cancelling: bool = False) -> None:
        """The button runs, or cancels the present activity: a run, or the opening of a model."""
        if (busy, cancelling) != (self._busy, self._cancelling):
            self._busy, self._cancelling = busy, cancelling
            self._show_go()

    def _show_go(self) -> None:
        self.go.setText("Cancel" if self._busy else "Run")
        can = self._loaded is not None and self._loaded.kind != WEIGHTS
        self.go.setEnabled(not self._cancelling if self._busy else can)

    def say(self, sentence: str) -> None:
        """Show below the fields why the input does not run; "" once it does, or the input has changed."""
        self.problem.show_text(sentence)
        self.problem.setVisible(bool(sentence))

    def forget_refused(self) -> None:
        """Something else is opened: neither why a sequence was refused stays, nor the path of a refused file."""
        refused = not self.problem.isHidden()
        self.say("")
        if refused and not self.typed and self.entry is not None and self.entry.form == "file":
            self.line.clear()
            self.kind.setCurrentIndex(max(0, self.kind.findData(self._kind_before)))

    def say_whose(self, model: str) -> None:
        """Say which model runs what stands here, where what is shown below was made by another one; "" nowhere else."""
        name = clean(model)
        self.whose.setText(f"runs {name if len(name) <= MODEL_LETTERS else '…' + name[1 - MODEL_LETTERS :]}")
        self.whose.setToolTip(tooltip(f"What stands here runs on {model}, which did not make what is shown below"))
        self.whose.setVisible(bool(name))

    def is_of(self, run: Run) -> bool:
        """Whether a run was requested with the present input."""
        try:
            return not run.edits and run.input == self.spec()
        except ValueError:
            return False

    @property
    def has_data(self) -> bool:
        """Whether the model that is open brings data of its own."""
        return self._loaded is not None and self._loaded.has_data

    @property
    def entry(self) -> Entry | None:
        """The kind of sequence that is chosen."""
        return self._entries.get(str(self.kind.currentData() or ""))

    def _arrange(self) -> None:
        self.say("")
        entry = self.entry
        form = entry.form if entry is not None else ""
        self._texts.note(form, self.line.text())
        self._clear_for(form)
        self.kind.setVisible(entry is not None)
        self.examples.setVisible(form == "example")
        self.made.setVisible(form == "choice")
        self.browse.setVisible(form in ("file", "several"))
        self.line.setVisible(form != "choice")
        self.more.setVisible(form in ("line", "file", "several") and bool(self._settable()))
        self._place_options(entry if entry is not None and form == "choice" else None)
        self.line.setPlaceholderText(self._prompt(entry))

    def _clear_for(self, form: str) -> None:
        """Text of an example is no path; it returns where text is typed again."""
        several, was = form == "several", self._several
        self._several = several
        if several is not was and not self.typed:
            self._set_line("" if several or self._loaded is None else self._loaded.default_text)

    @Slot()
    def _kind_chosen(self) -> None:
        """Somebody has chosen another kind: the line has no text that was typed for another one."""
        first = self._loaded.default_text if self._loaded is not None and self.examples.currentIndex() <= 0 else ""
        text = self._texts.chosen(first, self.line.text(), typed=self.typed)
        if text is not None:
            self.typed = False
            self._set_line(text)

    def _set_line(self, text: str) -> None:
        self.line.setText(text.replace("\n", LINE_BREAK))
        self.line.setCursorPosition(0)

    def _place_options(self, entry: Entry | None) -> None:
        """The choices of generated signals, with their options beside them."""
        if self.options is not None:
            self._row.removeWidget(self.options)
            self.options.deleteLater()
            self.options = None
        if entry is None:
            return
        self.made.blockSignals(True)
        self.made.clear()
        for choice in entry.choices:
            self.made.addItem(clean(choice), choice)
        self.made.blockSignals(False)
        self.options = OptionFields(entry.options, in_a_row=True)
        self._row.insertWidget(self._row.indexOf(self.line), self.options)
        self._show_options()

    @Slot()
    def _show_options(self) -> None:
        if self.options is not None:
            self.options.show_only(str(self.made.currentData()))

    def _settable(self) -> tuple[Option, ...]:
        """Options of typed input, or of the input that reads the named file."""
        entry = self.entry
        if entry is not None and entry.form == "file":
            entry = self._offered.input_of(self.line.text()) or entry
        return tuple(o for o in entry.options if o.type != "texts") if entry is not None else ()

    @Slot()
    def _ask_options(self) -> None:
        """Ask for the options of an input that is typed or read."""
        entry = self.entry
        if entry is None:
            return
        dialog = OptionsDialog(
            f"Options: {entry.title}", entry.summary, self._settable(), self._set.get(entry.key, {}), self
        )
        if dialog.exec():
            self._set[entry.key] = dialog.values()

    def _prompt(self, entry: Entry | None) -> str:
        """The placeholder of the line."""
        if entry is None:
            alone = self._loaded is not None and self._loaded.kind == WEIGHTS
            return "Tensors alone: nothing to run" if alone else "Open a model first"
        if entry.form == "several":
            return "A folder, a file, 'examples', or 'subject' for the model's own data"
        if entry.form == "file":
            return f"A path: {' '.join(self._offered.sequences)}"
        if entry.form == "example":
            typed = self._typed_kind()
            own = "something of your own" if typed is None else f"your own {typed.title.lower()}"
            return f"Type {own} and press Enter to run that instead"
        width = self._loaded.width if self._loaded is not None else None
        return clean(
            f"{entry.prompt} ({width} number{'' if width == 1 else 's'} a step)"
            if width and entry.reads == ("vectors",)
            else entry.prompt
        )

    def _typed_kind(self) -> Entry | None:
        """The first kind that is typed: the kind of a line beside an example."""
        return next((entry for entry in self._entries.values() if entry.form == "line"), None)

    def spec(self) -> InputSpec:
        """The input of the controls. Raises ValueError with a one-line message where an option is wrong."""
        entry = self.entry
        if entry is None or entry.form == "example":
            return InputSpec(
                kind="example" if entry is None else entry.key, value=str(self.examples.currentData() or "")
            )
        if entry.form == "choice":
            options = self.options.values() if self.options is not None else {}
            return InputSpec(kind=entry.key, value=str(self.made.currentData()), options=options)
        text, known = self.line.text(), {option.name for option in self._settable()}
        options = {name: value for name, value in self._set.get(entry.key, {}).items() if name in known}
        value = text if entry.form in ("file", "several") else text.replace(LINE_BREAK, "\n")
        return InputSpec(kind=entry.key, value=value, options=options)

    def typed_spec(self) -> InputSpec:
        """The input of the controls: beside an example, what was typed. Raises ValueError as `spec` does."""
        entry, typed = self.entry, self._typed_kind()
        if entry is not None and entry.form == "example" and self.typed and typed is not None:
            self.kind.setCurrentIndex(self.kind.findData(typed.key))
        return self.spec()

    @Slot()
    def ask(self) -> None:
        """Request a run of the present input."""
        if self._loaded is None:
            return
        try:
            self.asked.emit(self.typed_spec())
        except ValueError as problem:
            self.say(str(problem))

    @Slot()
    def _edit(self) -> None:
        self.typed = bool(self.line.text())
        self.say("")

    @Slot()
    def _chosen(self) -> None:
        """An example was chosen: it runs, not the text typed before."""
        self.typed = False
        self.line.clear()
        self.ask()

    def _pressed(self) -> None:
        if self._busy:
            self.cancelled.emit()
        else:
            self.ask()

    def _browse(self) -> None:
        if self.entry is not None and self.entry.form == "several":
            choose_many(self)
            return
        filters = name_filter("Sequences", self._offered.sequences)
        path, _ = QFileDialog.getOpenFileName(self, "Open a sequence", "", filters)
        if path:
            self.show_file(path)
            self.ask()

    def show_spec(self, spec: InputSpec) -> None:
        """Show what runs: an example, or what a session or the run before had, to be changed and run again."""
        entry = self._entries.get(spec.kind)
        if entry is not None and spec.value and not self.typed and not spec.parts:
            self._show_given(entry, spec)
        names = [str(self.examples.itemData(i)) for i in range(self.examples.count())]
        alike = [i for i, name in enumerate(names) if name.lower().startswith(spec.value.lower())]
        if spec.kind == "example" and spec.value and alike:
            self.examples.setCurrentIndex(alike[0])
            if not self.typed:
                self.line.clear()

    def _show_given(self, entry: Entry, spec: InputSpec) -> None:
        """A text, a path or a generated signal in the fields of its kind."""
        if entry.form == "line":
            self.kind.setCurrentIndex(self.kind.findData(spec.kind))
            self._set_line(spec.value)
        elif entry.form in ("file", "several"):
            self._show_path(entry.form, spec.value)
        elif entry.form == "choice" and spec.value in entry.choices:
            self.kind.setCurrentIndex(self.kind.findData(spec.kind))
            self.made.setCurrentIndex(self.made.findData(spec.value))
            if self.options is not None:
                with suppress(ValueError, TypeError):  # of another version, or written by hand: the run says so
                    self.options.show_values(spec.options)
        if entry.form != "example":
            self._set[spec.kind] = dict(spec.options)

    def show_many(self, source: str, *, lines: bool = False) -> None:
        """Put the source of many sequences into the line."""
        self._show_path("several", source)
        if self.entry is not None:
            self._set[self.entry.key] = {**self._set.get(self.entry.key, {}), "lines": lines}

    def show_file(self, path: str) -> None:
        """Put a file's path into the line."""
        self._show_path("file", path)

    def _show_path(self, form: str, path: str) -> None:
        of_files = next((entry.key for entry in self._entries.values() if entry.form == form), None)
        if of_files is not None:
            self._kind_before = str(self.kind.currentData() or "")
            self.kind.setCurrentIndex(self.kind.findData(of_files))
            self.line.setText(path)
            self._arrange()
            self.typed = False
