"""Spikes of a watched training: opening one runs its iteration again, on the model that its user names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Slot

from inspector.capture import Capture
from inspector.capture.spike_files import FOLDER, spike_file_of, spike_files
from inspector.gui.dialogs.spike_dialog import SpikeDialog
from inspector.gui.state.followed_log import as_log
from inspector.gui.window.model_opening import ModelOpening
from inspector.gui.window.parts import Parts
from inspector.records import InputSpec, Place

KINDS = ("spike", "non-finite")
SPIKE = "spike"
"""The kind of a sequence that is a kept iteration, and the key of the panel that shows it."""
NONE = "No training with spikes is shown."
NOT_KEPT = (
    "Iteration {} was marked, and not kept for running it again: what is kept are at most 20 iterations of a training "
    'that is watched with cost="normal" or "full", and of one on another machine what had room.'
)
WHICH = "Which model was trained? Its code makes the model; the parameters are those of iteration {}."


class Spikes(QObject):
    """Of one window. `run(spec)` runs something on the model that is open; `show(path)` shows a capture."""

    def __init__(
        self, window: Parts, models: ModelOpening, run: Callable[[InputSpec], None], show: Callable[[str], None]
    ) -> None:  # fmt: skip
        super().__init__(window)
        self.window, self.models, self.run, self.show = window, models, run, show

    @Slot(float)
    def open(self, iteration: float) -> None:
        """Run an iteration again: on the model that is open, where it is the one that was trained, else ask for it."""
        capture = self._training()
        if capture is None:
            self.window.fail(NONE)
            return
        found = spike_file_of(Path(capture.path), iteration)
        if found is None:
            self.window.fail(NOT_KEPT.format(f"{iteration:,.10g}"))
            return
        spec = InputSpec(kind=SPIKE, value=str(found.path.absolute()))
        loaded = self.window.session.loaded
        if loaded is not None and loaded.places and _names(loaded.places) == _names(capture.start.places):
            self.run(spec)
        else:
            settings = self.window.settings
            self.models.ask(settings.text("subject"), then=spec, why=WHICH.format(f"{found.iteration:,}"))

    def list(self) -> None:
        """Show all of them, with what moved first."""
        capture = self._training()
        events = [] if capture is None else [event for event in capture.events if event.kind in KINDS]
        if capture is None or not events:
            self.window.fail(NONE)
            return
        kept = {one.iteration for one in spike_files(Path(capture.path))}
        dialog = SpikeDialog(capture, events, kept, self.window)
        if dialog.exec() and dialog.chosen is not None:
            self.open(dialog.chosen)

    def back(self) -> None:
        """Show the training whose iteration was run again."""
        capture = self.window.session.capture
        about = capture.start.meta.get(SPIKE) if capture is not None else None
        path = Path(str(about.get("path", ""))) if isinstance(about, dict) else None
        if path is None or path.parent.name != FOLDER:
            self.window.fail("What is shown is no iteration of a training.")
            return
        self.show(str(path.parent.parent))

    def _training(self) -> Capture | None:
        capture = self.window.session.capture
        return None if capture is None or as_log(capture) is not None else capture


def _names(places: tuple[Place, ...]) -> list[tuple[str, str]]:
    """Modules by name and class: of the same code they are the same."""
    return [(place.name, place.module) for place in places]
