"""Pause, one iteration, go on, and when to pause: of the training that writes the capture that is shown."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from inspector.gui.dialogs.break_dialog import BreakDialog
from inspector.gui.state.steering import Steering
from inspector.gui.widgets.plain_text import plain_box, tooltip

WAITS = "It waits already."
RUNS = "It does not wait."
WHEN, SET = "Pause when…", "●"
"""The last button, and what it has where a condition is set."""


class TrainingControls(QWidget):
    """Four buttons in the status row, disabled with the reason in their tooltips where they do nothing."""

    def __init__(self, steering: Steering) -> None:
        super().__init__()
        self.steering = steering
        self.buttons: dict[str, QToolButton] = {}
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        for text, do in (
            ("Pause", self.pause), ("Step", self.step), ("Go on", self.go_on), (WHEN, self.ask_condition),
        ):  # fmt: skip
            button = self.buttons[text] = QToolButton()
            button.setText(text)
            button.clicked.connect(do)
            row.addWidget(button)
        when = self.buttons[WHEN]
        when.setText(f"{WHEN} {SET}")
        when.setFixedWidth(when.sizeHint().width())  # so that nothing moves when a condition is set
        self.hide()

    def show_state(self, visible: bool) -> None:
        """Show what is possible now; hidden where what is shown is no training."""
        steering = self.steering
        waits = steering.paused is not None
        condition = f"; now: {steering.condition}" if steering.condition else ""
        for text, why, says in (
            ("Pause", WAITS if waits else "", "Let the training wait at the end of an iteration, recorded and probed"),
            ("Step", "" if waits else RUNS, "Make one iteration, and wait again"),
            ("Go on", "" if waits else RUNS, "Let the training go on"),
            (WHEN, "", f"Let the training wait where a condition holds{condition}"),
        ):
            reason = steering.reason or why
            self.buttons[text].setEnabled(not reason)
            self.buttons[text].setToolTip(tooltip(reason or says))
        self.buttons[WHEN].setText(f"{WHEN} {SET}" if steering.condition else WHEN)
        self.setVisible(visible)

    @Slot()
    def pause(self) -> None:
        """Let it wait."""
        self._ask("pause")

    @Slot()
    def step(self) -> None:
        """One iteration."""
        self._ask("step")

    @Slot()
    def go_on(self) -> None:
        """Let it go on."""
        self._ask("continue")

    @Slot()
    def ask_condition(self) -> None:
        """Ask when it is to wait."""
        if self.steering.reason:
            self._tell(self.steering.reason)
            return
        dialog = BreakDialog(self.steering.condition, self.window())
        if dialog.exec():
            self._ask("break", dialog.condition)

    def _ask(self, action: str, condition: str = "") -> None:
        problem = self.steering.ask(action, condition)
        if problem:
            self._tell(problem)

    def _tell(self, sentence: str) -> None:
        box = plain_box(self.window(), "inspector", sentence)
        box.open()
