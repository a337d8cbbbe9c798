"""The user's requests to the window beside opening: run again, run with changes, compute more, one sequence of many."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Signal, Slot

from inspector.analysis.sequence_table import command_for
from inspector.capture import CaptureError
from inspector.gui.dialogs.about import About
from inspector.gui.dialogs.edit_dialog import INPUT
from inspector.gui.runtime.crash_file import folder
from inspector.gui.runtime.versions import versions
from inspector.gui.state.needed import needed_for
from inspector.gui.state.preferred import budget_of
from inspector.gui.state.session import Session
from inspector.gui.state.settings import Settings
from inspector.gui.state.shown import Made
from inspector.gui.state.step_axes import places_along
from inspector.gui.window.opening import Opening
from inspector.gui.window.report_file import ReportFile
from inspector.gui.window.searches import Searches
from inspector.gui.window.states_choice import remembered_states
from inspector.gui.window.training_trials import TrainingTrials
from inspector.gui.window.weights_of import WeightsOf
from inspector.records import (
    SEQUENCE_DOMAIN,
    SEQUENCES,
    STEP_DOMAIN,
    InputSpec,
    counted,
)
from inspector.records.weights import MORE

NOT_MADE_BY_IT = (
    "The model that is open did not make this capture: open the capture's model and run it, then change that."
)

NOT_OPEN = (
    "The model that is open did not run these sequences: open their model and run them, then open sequence {}; or run "
    "it from a terminal."
)

OF_WEIGHTS = MORE.partition("/")[0] + "/"
"""What keys begin with that ask for more of a capture of weights."""


class Asking(Opening):
    """A window whose lists, fields and dialogs send requests to the session. `welcoming` and `touring` when the first
    page or the tour is asked for."""

    welcoming = Signal()
    touring = Signal()

    def __init__(self, session: Session, settings: Settings) -> None:
        super().__init__(session, settings)
        self._data_set: Made | None = None
        """The run of many sequences of which one was opened last."""
        self._number: int | None = None
        """Which of its sequences that was."""
        session.also = self.compute_menu.wanted
        session.background.budget = budget_of(settings, session.background.budget)
        session.states_of = lambda subject: remembered_states(settings, subject)
        self.compute_menu.chosen.connect(self._also)
        self.compute_menu.opening.connect(self.open_its_model)
        self.sequences.editing.connect(lambda: self.edit(INPUT))
        self.input.asked.connect(self.run)
        self.input.cancelled.connect(session.cancel)
        self.frames.forgotten.connect(self.run_without_edits)
        self.report = ReportFile(self)
        self.trials = TrainingTrials(self)
        self.searches = Searches(self)
        self.weights = WeightsOf(self, self.models, self.run, self.open_model)
        self.models.looked_at.connect(self.weights.open_tensors)

    @Slot(int)
    def open_sequence(self, number: int) -> None:
        """Run one sequence of the data set that is shown, alone; `back` shows the data set again."""
        capture, made = self.session.capture, self.session.again_possible
        if capture is None:
            return
        if made is None or made.request.input.kind != SEQUENCES:
            command = command_for(capture.start, number)
            self.fail(NOT_OPEN.format(number), f"In a terminal:\n{command}" if command else "")
            return
        self._data_set, self._number = made, number
        spec = made.request.input
        self.run(replace(spec, options={**spec.options, "number": number}))

    @Slot()
    def back_to_sequences(self) -> None:
        """Show the data set from which a sequence was opened last."""
        if self._data_set is None:
            self.fail("No sequence of a data set was opened here, so there is none to go back to.")
            return
        try:
            self.session.show_again(self._data_set)
        except CaptureError as problem:
            self.fail(str(problem))
            return
        self.new_capture()
        self.docking.raise_useful()
        self.docking.label_tabs()
        self.looking.move(steps={SEQUENCE_DOMAIN: self._number})
        self.show_state()

    @Slot()
    def run_again(self) -> None:
        """Run what was typed since the last run, or repeat that run."""
        if self.input.typed:
            self.input.ask()
        else:
            self.session.again()
        self.show_state()

    @Slot(tuple)
    def compute_also(self, keys: tuple[str, ...]) -> None:
        """Compute more for the run that is shown; what is not computed by default, from now on."""
        if all(key.startswith(OF_WEIGHTS) for key in keys):
            self._more_of_weights(keys)
            return
        catalog, needed = self.session.catalog, needed_for(self.session)
        default = {entry.key for entry in catalog.quantities if entry.default} if catalog is not None else set()
        if not needed.why or needed.load is not None:
            self.compute_menu.switch_on([key for key in keys if key not in default])
        if self.session.can_run_again:
            self.session.analyse(keys)
            self.show_state()
        else:
            self.open_its_model()

    def _more_of_weights(self, keys: tuple[str, ...]) -> None:
        """All values of tensors of the capture of weights that is shown."""
        if self.session.can_run_again:
            self.session.analyse(keys)
            self.show_state()
        else:
            self.fail("Open the checkpoint of this capture again; then every number of it can be read.")

    @Slot()
    def open_its_model(self) -> None:
        """Open the model of the capture that is shown, where it is not open, and run its first example."""
        needed = needed_for(self.session)
        if needed.load is None:
            self.fail(needed.why or "Open a model and run it: what is missing will be computed in that run.")
        elif needed.button.startswith("Run"):
            self.run(InputSpec())
        else:
            self.models.then = None
            self.open_model(needed.load)

    def show_about(self) -> None:
        """Versions of all that runs, and where things are kept."""
        catalog = self.session.catalog
        worker = (
            f"torch {catalog.torch}, {counted(catalog.threads, 'thread')}" if catalog is not None else "not started yet"
        )
        places = [("worker", worker), ("runs", str(self.session.runs)), ("error files", str(folder()))]
        About([*versions(), *places], self).exec()

    def choose_budget(self, seconds: float) -> None:
        """How long a quantity may take that is computed without being asked for."""
        self.session.background.budget = seconds
        self.settings.set_text("budget", str(seconds))
        self.say_what_remains()

    def _also(self, keys: tuple[str, ...]) -> None:
        self.session.also = keys
        self.session.sentence = "Computed from the next run on; F5 runs again."
        self.show_state()

    def edit(self, name: str = "") -> None:
        """Ask for changes, begun with a channel or the "input" where one is named; run without and with them."""
        from inspector.gui.dialogs.edit_dialog import EditDialog

        capture, made = self.session.capture, self.session.again_possible
        if capture is None:
            self.fail("Run a model first; then a token, a unit or a gate of that run can be changed.")
            return
        if made is None:
            self.fail(NOT_MADE_BY_IT)
            return
        place = name.rpartition(":")[0] or self.looking.position.place
        axis = STEP_DOMAIN if name == INPUT else places_along(capture).get(place, STEP_DOMAIN)
        refused = self.session.shown.refused
        dialog = EditDialog(capture, self.looking.position.along(axis), refused.edits or made.request.edits, self, name)
        dialog.say(refused.sentence)
        if dialog.exec():
            self.session.run_with(made, dialog.edits())
            self.show_state()

    @Slot()
    def run_without_edits(self) -> None:
        """Run the sequence that is shown without changes."""
        made = self.session.again_possible
        if made is None:
            self.fail(NOT_MADE_BY_IT)
        else:
            self.session.run_with(made, ())
            self.show_state()
