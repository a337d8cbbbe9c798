"""Opening whatever a user names, chooses or drops: a model, a checkpoint, a capture, a log, a sequence, a folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import Slot

from inspector.capture import CaptureError, capture_of_index, is_log
from inspector.capture.logs.header_words import training_columns
from inspector.capture.regular import is_a_folder, is_there
from inspector.diagnosis.series import listed
from inspector.gui.dialogs.listen_dialog import ListenDialog
from inspector.gui.state.capture_opening import takes_long
from inspector.gui.state.followed_log import as_log
from inspector.gui.state.offered import PARTS, Offered, is_of_transformers
from inspector.gui.state.preferred import DEVICE
from inspector.gui.state.session import Session
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.plain_text import clean
from inspector.gui.window.looked_through import LooksThrough, is_mere_folder, is_or_was_capture
from inspector.gui.window.model_opening import ModelOpening
from inspector.gui.window.open_at import OpenAt
from inspector.gui.window.sessions import Sessions
from inspector.gui.window.spikes import Spikes
from inspector.gui.window.sweeps import Sweeps
from inspector.records import (
    WEIGHTS,
    Catalog,
    InputSpec,
    Load,
    Log,
    data_spec,
)
from inspector.records.naming import model_in_file
from inspector.workspace.samples import sample_at
from inspector.workspace.session_files import is_session

ARRAYS = (".npz", ".npy")
"""Files that are sequences for a model that is open, and weights where there is none."""
ALSO_CHECKPOINTS = "is opened as a log; for its checkpoints use File ▸ Run a folder of checkpoints…"

RUN_INSTEAD = "to run it as a sequence, choose File in the input row and give it the path"
AS_SEQUENCE = (
    "was run as a sequence: it has a column of steps, but none that only trainings have (loss, learning rate, "
    "accuracy, gradient norm). To see it as the log of a training use File ▸ Open as a log…"
)


class Opening(LooksThrough):
    """A window whose lists, fields and dialogs open files, models and samples."""

    def __init__(self, session: Session, settings: Settings) -> None:
        super().__init__(session, settings)
        self.models = ModelOpening(self, self.open_model, settings)
        self.models.preferred = lambda: self.device
        self._listen: ListenDialog | None = None
        self._waiting: list[str] = []
        """Files that wait for the worker's catalogue before they are opened."""
        self.opener.sample_chosen.connect(self.open_sample)
        self.opener.path_chosen.connect(self.open_path)
        self.runs.chosen.connect(self.show_run)
        self.spikes = Spikes(self, self.models, self.run, self.open_capture)
        self.timeline.opened.connect(self.spikes.open)
        self.sweeps = Sweeps(self, self.open_capture, self._open_checkpoint)
        self.open_at = OpenAt(self, self.show_run)
        self.sessions = Sessions(self, self.open_at, self.open_path)

    def listen(self) -> None:
        """Listen for trainings on other machines, in a dialog that may stay open."""
        if self._listen is None:
            folder = self.settings.text("listen", str(self.session.runs.parent / "captures"))
            self._listen = ListenDialog(self.session.listening, folder, self)
            self._listen.opened.connect(self.open_capture)
            self._listen.finished.connect(lambda _: self.settings.set_text("listen", self._kept_folder()))
        self._listen.show()
        self._listen.raise_()

    def _kept_folder(self) -> str:
        return "" if self._listen is None else self._listen.folder.text()

    def offer(self, catalog: Catalog) -> None:
        """Fill every list of choices from the worker's catalogue; open the file that waited for it."""
        self.offered = Offered(catalog)
        self.models.know(self.offered)
        self.input.set_offered(self.offered)
        self.menu_actions += self.compute_menu.offer(catalog)
        for panel in self.panels.made.values():
            panel.know(catalog.quantities, catalog.cures)
        paths, self._waiting = self._waiting, []
        if paths:
            self.session.sentence = ""
            self.open_paths(paths)

    @Slot(str, str)
    def open_sample(self, name: str, checkpoint: str = "", then: InputSpec | None = None) -> None:
        """Open a sample and run its first example."""
        self.input.forget_refused()
        self.session.open_subject(Load(subject=name, checkpoint=checkpoint, device=self.device), then)
        self.show_state()

    @property
    def device(self) -> str:
        """What samples and models open on where nothing else is said: the preferred one, if the worker has it."""
        wanted, catalog = self.settings.text(DEVICE, "cpu"), self.session.catalog
        return wanted if catalog is not None and wanted in catalog.devices else "cpu"

    def open_model(self, load: Load | None = None) -> None:
        """Open a model, or ask which; where its code was not agreed to, the worker asks before any of it runs."""
        if load is None:
            self.models.ask()
            return
        if load.tensors == "never":  # a file of weights is no model that others belong to
            self.settings.set_text("subject", load.subject)
        self.input.forget_refused()
        self.session.open_subject(load, self.models.then)
        self.show_state()

    @Slot(str)
    def open_path(self, path: str) -> None:
        """Open whatever a file is: a capture, a model's code, a checkpoint, a sequence; a folder once it was looked
        through."""
        self.open_paths([path])

    def _open_one(self, path: str) -> None:
        path = str(capture_of_index(Path(path)))
        suffix, kind = Path(path).suffix.lower(), self.offered.kind_of(path)
        if is_session(path):
            self.sessions.open(path)
        elif is_or_was_capture(path):
            self.open_capture(path)
        elif is_a_folder(path):
            self._open_folder(path)
        elif self._is_log(path, kind):
            self.open_log(path, self._why_log(path) if kind == "sequence" and self.session.subject else "")
        elif suffix in ARRAYS and self._nothing_reads:
            self.models.for_checkpoint(path, "")
        elif kind == "sequence" and not self.session.subject and self.session.opening is None:
            self.fail(f"{Path(path).name} is a sequence: open the model that is to read it first, then this file.")
        elif kind == "sequence":
            self._run_file(path)
        elif (sample := sample_at(Path(path))) is not None:
            self.open_at.wait()
            self.open_sample(sample.name)
        elif suffix == ".py" or model_in_file(path):
            self.models.ask(path)
        elif kind == "checkpoint":
            self._open_checkpoint(path)
        elif self.session.catalog is None and is_there(path):
            self._wait_to_open(path)
        else:
            self.fail(
                f"{Path(path).name} cannot be opened here; expected a capture, a .py, a checkpoint, a sequence "
                "or a log of a training."
            )

    def _run_file(self, path: str) -> None:
        """Run the model on a sequence."""
        if is_log(path):
            self.session.note(Log(f"{Path(path).name} {AS_SEQUENCE}"))
        self.input.show_file(path)
        self.run(InputSpec(kind="file", value=path))

    def _is_log(self, path: str, kind: str) -> bool:
        """Whether a path is opened as a log. A file that the model which is open could read is one where its header
        names what only trainings have."""
        if kind == "sequence" and self.session.subject and not training_columns(Path(path)):
            return False
        return self.held_by(path).log if is_mere_folder(path) else is_log(path)

    @staticmethod
    def _why_log(path: str) -> str:
        """Why a file that is a sequence by its name is taken for a log, and how it is run instead."""
        names = training_columns(Path(path))
        named = " and ".join(names[:2])
        return f"taken for the log of a training, as its columns {named} are of one; {RUN_INSTEAD}"

    @property
    def _nothing_reads(self) -> bool:
        """Whether no model is open, or being opened, that could read a sequence."""
        loaded = self.session.loaded
        if loaded is not None and loaded.kind == WEIGHTS:
            return True
        return not self.session.subject and self.session.opening is None

    def _open_folder(self, path: str) -> None:
        """A folder that is no capture holds sequences, or the weights of a model."""
        held = self.held_by(path)
        weights = held.weights
        if self.session.catalog is None:  # which files are weights is not known yet
            self._wait_to_open(path)
        elif not weights and held.log:
            if held.checkpoints_below:
                self.session.note(Log(f"{Path(path).name} {ALSO_CHECKPOINTS}"))
            self.open_log(path)
        elif self._holds_sequences(path):
            self._open_sequences(path)
        elif weights and len(weights) == 1 and not is_of_transformers(path):
            self._open_checkpoint(weights[0])
        elif (weights and is_of_transformers(path)) or (Path(path) / PARTS).is_file():
            self.session.open_subject(Load(subject=path, tensors="if needed"))
            self.show_state()
        else:
            self.sweeps.ask([path])

    def _holds_sequences(self, path: str) -> bool:
        """Whether a folder, which is neither a capture nor a log, has no weights, so that its files are sequences."""
        held = self.held_by(path)
        return not (held.weights or held.checkpoints_below or (Path(path) / PARTS).is_file())

    def _open_checkpoint(self, path: str) -> None:
        """Of the model that is open or was open last; alone where there is none."""
        loaded = self.session.loaded
        alone = loaded is not None and loaded.report is not None and bool(loaded.report.guess)
        if is_a_folder(path) and is_of_transformers(path):
            self._open_folder(path)
        else:
            known = "" if alone else self.session.subject or self.settings.text("subject")
            self.models.for_checkpoint(path, known)

    def _wait_to_open(self, path: str) -> None:
        """Whether anything reads the path is known when the catalogue has arrived."""
        if path not in self._waiting:
            self._waiting.append(path)
        more = len(self._waiting) - 1
        names = f"{Path(self._waiting[0]).name}{f' and {more} more' if more else ''}"
        self.session.sentence = f"{names} {'are' if more else 'is'} opened as soon as the worker is ready."

    def _open_sequences(self, path: str) -> None:
        """Run every file of a folder as a sequence."""
        if not self.session.subject and self.session.opening is None:
            self.fail(
                f"{Path(path).name} is a folder: open the model that is to read its files first, then the folder."
            )
            return
        self.input.show_many(path)
        self.run(data_spec(path))

    def open_capture(self, path: str) -> None:
        """Show a capture from disk; a large one once it was read."""
        later = takes_long(Path(path))
        try:
            (self.session.read_capture if later else self.session.open_capture)(path)
        except CaptureError as problem:
            self.fail(str(problem))
            return
        if not later:
            self.show_opened()
        self._opened(path)

    def open_log(self, path: str, why: str = "") -> None:
        """Show a log of another tool, once it was read; `why` it was taken for one, where that is a question."""
        self.session.open_log(path, why)
        if why:
            self.session.note(Log(f"{Path(path).name}: {why}."))
        self._opened(path)

    def _opened(self, path: str) -> None:
        self.list_recent(path)
        self.input.forget_refused()
        self.show_state()

    def open_paths(self, paths: Sequence[str]) -> None:
        """Open what was dropped or named: several runs together, anything else one after the other. Folders are looked
        through first, and where that takes a while the window goes on meanwhile."""
        self.look_through(paths, partial(self._open_all, paths))

    def _open_all(self, paths: Sequence[str]) -> None:
        logs = [path for path in paths if self._is_log(path, self.offered.kind_of(path)) or is_or_was_capture(path)]
        if len(logs) > 1:
            self.open_together(logs)
            paths = [path for path in paths if path not in logs]
        if len(paths) > 1 and all(self._is_checkpoint(path) for path in paths):
            self.sweeps.ask(paths)
            return
        runs = [path for path in paths if path not in logs and self._is_run(path)]
        for path in paths:
            if path not in runs[1:]:
                self._open_one(path)
        if len(runs) > 1:
            self.fail(_not_run(runs))

    def _is_run(self, path: str) -> bool:
        """Whether a file is one that the model which is open runs as a sequence, or a folder, no log, of such files."""
        if self._nothing_reads or is_session(path) or is_or_was_capture(path):
            return False
        if is_a_folder(path):
            return self._holds_sequences(path)
        kind = self.offered.kind_of(path)
        return kind == "sequence" and not self._is_log(path, kind)

    def _is_checkpoint(self, path: str) -> bool:
        below = is_mere_folder(path) and self.held_by(path).checkpoint
        return below or self.offered.kind_of(path) == "checkpoint"

    def open_together(self, paths: Sequence[str]) -> None:
        """Show the curves of several captures and logs together, once all were read."""
        self.session.open_together(paths)
        self.input.forget_refused()
        self.show_state()

    def add_run(self, path: str) -> None:
        """Draw the curves of one more capture or log together with those that are shown."""
        log = as_log(self.session.capture)
        whole: Any = None if log is None else log.whole
        views = getattr(whole, "views", None) or ([whole] if whole is not None else [])
        shown = [str(view.path) for view in views]
        if log is None and self.session.capture is not None:
            shown = [str(self.session.capture.path)]
        self.look_through([*shown, path], partial(self._add_run, shown, path))

    def _add_run(self, shown: list[str], path: str) -> None:
        if self._has_curves(path):
            self._open_all([*shown, path])
        else:
            self.fail(
                f"{Path(path).name} is neither a capture nor a log of a training, so it has no curves to be added."
            )

    def _has_curves(self, path: str) -> bool:
        """Whether a path is that of a capture or a log, whose curves can be drawn with those of others."""
        return is_or_was_capture(path) or (self.held_by(path).log if is_mere_folder(path) else is_log(path))

    @Slot(object)
    def show_run(self, run: str | None) -> None:
        """Show one run of a log, or all."""
        try:
            self.session.show_run(run)
        except CaptureError as problem:
            self.fail(str(problem))
            return
        self.new_capture()
        self.docking.label_tabs()

    @Slot(object)
    def run(self, spec: InputSpec) -> None:
        """Run a sequence on the open model."""
        begun = self.session.run(spec)
        self.input.typed = self.input.typed and not self.session.running
        self.input.say("" if begun else self.session.sentence)
        self.show_state()


def _not_run(paths: Sequence[str]) -> str:
    """What is said of all but the first of several sequences, or folders of them, that were dropped on a model."""
    others = sorted(paths[1:], key=lambda path: not is_a_folder(path))  # of many that are left out no folder is unnamed
    names = [f"{clean(Path(path).name)}{' (a folder)' if is_a_folder(path) else ''}" for path in (paths[0], *others)]
    what = "sequence, or one folder of them," if any(map(is_a_folder, paths)) else "sequence"
    return (
        f"{listed(names[1:])} {'was' if len(others) == 1 else 'were'} not run: one {what} runs at a time, now "
        f"{names[0]}. To run them all, put them into a folder and drop that."
    )
