"""Looking at weights without running anything, and changing what was guessed of a model that was rebuilt of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QFileDialog

from inspector.gui.dialogs.rebuilt_dialog import RebuiltDialog
from inspector.gui.state.exchange import Changes
from inspector.gui.state.offered import name_filter
from inspector.gui.window.model_opening import ModelOpening
from inspector.gui.window.parts import Parts
from inspector.records import WEIGHTS, InputSpec, Load

NO_MODEL = "Open a model or a checkpoint first; then its weights can be looked at."
NOT_REBUILT = "The model that is open was not rebuilt from a file of weights, so nothing of it was guessed."


class WeightsOf(QObject):
    """Of one window. `run` runs an input of the model that is open, `open_model` opens another one."""

    def __init__(
        self, window: Parts, models: ModelOpening, run: Callable[[InputSpec], None], open_model: Callable[[Load], None]
    ) -> None:
        super().__init__(window)
        self.window, self.models, self.run, self.open_model = window, models, run, open_model
        self.dialog: RebuiltDialog | None = None
        self._asked: Load | None = None
        window.rebuilt.changing.connect(self.change)
        window.rebuilt.looking.connect(self.look)
        window.rebuilt.naming.connect(self.name_model)

    def name_model(self) -> None:
        """Ask for the model that the tensors which are shown belong to."""
        load = self.window.session.models.load
        if load is not None:
            self.models.ask("", load.subject)

    def look(self) -> None:
        """Every tensor of the model that is open."""
        self._run(InputSpec(kind=WEIGHTS))

    def compare(self) -> None:
        """The same beside those of a checkpoint that is chosen."""
        if self.window.session.loaded is None:
            self.window.fail(NO_MODEL)
            return
        path = self._choose("A checkpoint to compare with")
        if path:
            self._run(InputSpec(kind=WEIGHTS, value=path))

    def look_at_file(self) -> None:
        """Every tensor of a checkpoint that is chosen; nothing of it is run."""
        path = self._choose("A checkpoint to look at")
        if path:
            self.open_tensors(path)

    def open_tensors(self, path: str) -> None:
        """Every tensor of a checkpoint."""
        self.models.then = None
        self.open_model(Load(subject=path, tensors="always"))

    def _choose(self, title: str) -> str:
        path, _ = QFileDialog.getOpenFileName(
            self.window, title, "", name_filter("Checkpoints", self.models.offered.checkpoints)
        )
        return path

    def _run(self, spec: InputSpec) -> None:
        if self.window.session.loaded is None:
            self.window.fail(NO_MODEL)
        else:
            self.run(spec)

    # -- what was rebuilt

    def change(self) -> None:
        """Show what was guessed, and build it again as the user says."""
        session = self.window.session
        report = session.loaded.report if session.loaded is not None else None
        load = session.models.load
        if report is None or "arguments" not in report.guess or load is None:
            self.window.fail(NOT_REBUILT)
            return
        self._show(RebuiltDialog(report.rebuilt, report.guess, self.window), load)

    def _show(self, dialog: RebuiltDialog, load: Load) -> None:
        self.dialog = dialog
        dialog.accepted.connect(lambda: self._again(dialog, load))
        dialog.open()

    def _again(self, dialog: RebuiltDialog, load: Load) -> None:
        self._asked = replace(load, arguments=dialog.arguments(), tensors="never", generation=0, partial=False)
        self.models.then = None
        self.open_model(self._asked)

    def came_back(self, changes: Changes) -> bool:
        """Whether what could not be opened is what the dialog asked for: then it shows why, above the same fields."""
        load, failure, dialog = changes.not_opened, changes.failure, self.dialog
        if failure is None or load is None or dialog is None or self._asked is None:
            return False
        if replace(load, generation=0, partial=False) != self._asked:
            return False
        dialog.say(failure.message)
        dialog.open()
        return True
