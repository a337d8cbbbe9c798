"""A search for the answer to a sequence, begun in the window: its dialog, and what it knows of the window."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, Slot

from inspector.gui.dialogs.decode_dialog import DecodeDialog
from inspector.gui.window.parts import Parts
from inspector.records import SEQUENCES, WEIGHTS, InputSpec

NOT_ONE = {
    SEQUENCES: "An answer is searched for one sequence: choose or type one, then decode.",
    WEIGHTS: "An answer is searched for a sequence, and nothing was run here: choose or type one, then decode.",
    "spike": "An answer is searched for a sequence, not for an iteration of a training: choose or type one.",
}
"""Why what is shown has no answer, by the kind of its input."""
PANEL = "decoding"
"""Key of the panel that shows the tree, and under which a capture says how it was searched for."""
NO_MODEL = "Open a model first; then the answer to its sequence can be searched for."


class Searches(QObject):
    """Of one window. The settings of the last search stand in the dialog of the next."""

    def __init__(self, window: Parts) -> None:
        super().__init__(window)
        self.window = window
        self._values: dict[str, Any] = {}
        self._begun = False
        """Whether a search was begun here that is not shown yet."""

    @Slot()
    def ask(self) -> None:
        """Ask how, then search for the answer to what was typed, or to the sequence that is shown."""
        window = self.window
        if window.session.loaded is None:
            window.fail(NO_MODEL)
            return
        try:
            spec = self.spec()
        except ValueError as problem:
            window.input.say(str(problem))
            return
        if spec.kind in NOT_ONE:
            window.fail(NOT_ONE[spec.kind])
            return
        dialog = DecodeDialog(self._values, window)
        if not dialog.exec():
            return
        self._values = dialog.values()
        begun = window.session.run(spec, decode=dialog.decode)
        self._begun = begun
        window.input.say("" if begun else window.session.sentence)
        window.show_state()

    def appeared(self) -> None:
        """Bring the tree of a search that was begun here to the top, once it is shown."""
        capture, dock = self.window.session.capture, self.window.docks.get(PANEL)
        if self._begun and capture is not None and PANEL in capture.start.meta and dock is not None:
            self._begun = False
            dock.show()
            dock.raise_()

    def spec(self) -> InputSpec:
        """What was typed since the last run, or the sequence of the run that is shown. Raises ValueError."""
        made = self.window.session.again_possible
        return self.window.input.typed_spec() if self.window.input.typed or made is None else made.request.input
