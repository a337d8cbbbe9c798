"""A cure tried for a finding of a training that was watched: a process of its own trains copies of the model that is
open (`inspector try`), and puts the result into the capture of the training, which has ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QProcess, Slot

from inspector.capture import Capture
from inspector.capture.noted import why_not_added
from inspector.gui.panel.signals import Lead
from inspector.gui.window.own_command import newest_progress, read_by, start_command, without_progress
from inspector.records import Finding, Load
from inspector.records.plain_text import plain_sentence

if TYPE_CHECKING:
    from inspector.gui.window.showing import Showing

PANEL = "cures"
NO_MODEL = (
    "A cure is tried on the model of this training: open it first, with the checkpoint from which to begin, and show "
    "this capture again."
)
GOING = "A cure is being tried already; Esc cancels that."


def show_cure(window: Showing, finding: Finding, cure: str) -> None:
    """Bring the panel to the top; it shows this cure as soon as it was tried."""
    window.go_to(Lead(panel=PANEL, frame=finding.frame))
    panel = window.panels.get(PANEL)
    if panel is not None and hasattr(panel, "show_cure"):
        panel.show_cure(cure)


class TrainingTrials(QObject):
    """Of one window, one at a time."""

    def __init__(self, window: Showing) -> None:
        super().__init__(window)
        self._window = window
        self._process: QProcess | None = None
        self._path = Path()
        self._sentence = self._written = ""
        """What is being tried, and what the command has written."""

    @property
    def busy(self) -> bool:
        """Whether one is going on."""
        return self._process is not None

    def begin(self, capture: Capture, finding: Finding, cure: str) -> None:
        """Try a cure on the model that is open; the window says why where that cannot be."""
        session = self._window.session
        load = session.models.load if session.loaded is not None else None
        why = GOING if self.busy else why_not_added(capture) or ("" if load is not None else NO_MODEL)
        if why or load is None:
            self._window.fail(why)
            return
        self._path, process = capture.path, QProcess(self)
        self._process, self._written = process, ""
        process.readyReadStandardError.connect(self._read)
        process.finished.connect(self._ended)
        process.errorOccurred.connect(self._failed)
        show_cure(self._window, finding, cure)
        start_command(process, words_of(capture.path, load, cure))
        titles = {one.key: one.title for one in session.catalog.cures} if session.catalog is not None else {}
        self._sentence = f"Being tried on {Path(load.subject).name}: {titles.get(cure, cure)} …"
        self._tell_going()

    @Slot()
    def _read(self) -> None:
        """Every ten seconds it says how far it is."""
        if self._process is not None:
            self._written += read_by(self._process)
            self._tell_going(newest_progress(self._written))

    def _tell_going(self, so_far: str = "") -> None:
        sentence = f"{self._sentence} {so_far}".strip()
        self._say(sentence)
        self._tell_panel(f"{sentence.rstrip('.')}. Esc cancels." if so_far else f"{sentence} Esc cancels.")

    @Slot()
    def stop(self) -> None:
        """End it; where there is none, the run of the window, or the opening of a model, is cancelled."""
        if not self.busy:
            self._window.session.cancel()
            return
        self.close()
        self._say("Trying the cure was cancelled.")

    def close(self) -> None:
        """End it without a word; what is in the capture stays as it was."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.waitForFinished(1_000)
            self._tell_panel("")

    @Slot()
    def _ended(self, code: int, _how: QProcess.ExitStatus) -> None:
        if self._process is None:
            return
        told, self._process = without_progress(self._written + read_by(self._process)), None
        self._tell_panel("")
        shown = self._window.session.capture
        if isinstance(shown, Capture) and shown.path == self._path:
            shown.refresh()
        if code:
            self._window.fail(plain_sentence(told.splitlines()[-1] if told else f"Nothing was tried: code {code}."))
        else:
            self._say(f"The result is in {self._path.name}.")

    @Slot()
    def _failed(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._process = None
            self._tell_panel("")
            self._window.fail("The cure could not be tried: Python did not start.")

    def _tell_panel(self, sentence: str) -> None:
        panel = self._window.panels.made.get(PANEL)
        if panel is not None and hasattr(panel, "say_going"):
            panel.say_going(sentence)

    def _say(self, sentence: str) -> None:
        self._window.session.sentence = sentence
        self._window.show_state()


def words_of(capture: Path, load: Load, cure: str) -> list[str]:
    """The command that tries a cure on a model and puts the result into a capture."""
    words = ["try", str(capture), "--subject", load.subject, "--cure", cure, "--device", load.device]
    words += ["--checkpoint", load.checkpoint] if load.checkpoint else []
    return [*words, "--arguments", json.dumps(dict(load.arguments)), "--seed", str(load.seed)]
