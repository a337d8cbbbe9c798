"""The bar that says what a model without code is: rebuilt by a guess, which can be changed, or tensors and nothing
else."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton

from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.gui.widgets.theme import Theme
from inspector.gui.window.bars.damage_bar import OneLine
from inspector.records import WEIGHTS, Loaded

GUESSED = "Rebuilt by names and shapes, a guess: {}"
ALONE = "{} is shown as its tensors: nothing of it {}"
NOT_REBUILT, NOT_ASKED = "could be rebuilt to run.", "runs."


class RebuiltBar(QFrame):
    """Hidden for a model that was made by its own code. `changing`, `looking` and `naming` for its buttons: to change
    the guess, to look at the weights, to name the model."""

    changing = Signal()
    looking = Signal()
    naming = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("rebuilt")
        self.line = OneLine()
        self.change, self.look, self.name = (
            QPushButton("Change…"),
            QPushButton("Weights"),
            QPushButton("Name its model…"),
        )
        self.change.setToolTip("Which layers run, in which order, what stands before and behind them")
        self.look.setToolTip("Every tensor of the file")
        self.name.setToolTip("Open these weights in the model that they belong to")
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 2)
        row.addWidget(self.line, 1)
        for button, signal in ((self.change, self.changing), (self.look, self.looking), (self.name, self.naming)):
            button.clicked.connect(lambda _checked=False, signal=signal: signal.emit())
            row.addWidget(button)
        self._shown: object = None
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.setStyleSheet(f"#rebuilt {{ background: {theme.raised}; border-bottom: 2px solid {theme.warning}; }}")

    def show_loaded(self, loaded: Loaded | None) -> None:
        """Say what was guessed of the model that is open, or why it is tensors alone."""
        guess = loaded.report.guess if loaded is not None and loaded.report is not None else {}
        alone = loaded is not None and loaded.kind == WEIGHTS
        why = str(guess.get("why", ""))
        said = GUESSED.format(str(guess.get("told", "")))
        if loaded is not None and alone:
            said = ALONE.format(loaded.title, NOT_REBUILT if why else NOT_ASKED)
        there = alone or bool(guess)
        if (there, said) == self._shown:
            return
        self._shown = (there, said)
        self.line.say(said.strip() if there else "")
        whole = loaded.report.rebuilt if loaded is not None and loaded.report is not None else ""
        self.line.setToolTip(tooltip(whole or why or said))
        self.setAccessibleName(clean(said))
        self.change.setVisible(there and not alone)
        self.look.setVisible(there and not alone)
        self.name.setVisible(alone)
        self.setVisible(there)
