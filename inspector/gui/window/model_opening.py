"""Opening a model by its dialog, which comes back with its fields and a reason where the model could not be opened."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QFileDialog, QHeaderView, QTreeView, QWidget

from inspector.capture import LOGS, PACKED_SUFFIX, SUFFIX
from inspector.capture.regular import is_a_folder
from inspector.gui.dialogs.dialogs import ReportDialog
from inspector.gui.dialogs.model_dialog import OpenModelDialog
from inspector.gui.state.exchange import Changes
from inspector.gui.state.offered import Offered, name_filter
from inspector.gui.state.settings import Settings
from inspector.records import CheckpointReport, InputSpec, Load
from inspector.records.json_text import read_json
from inspector.workspace.session_files import SUFFIX as SESSION

INDEX = "index.sqlite"
FIRST = {
    "capture": "Open a capture", "checkpoint": "Open a checkpoint", "log": "Open a file as the log of a training",
}  # fmt: skip
"""What the dialog says that was asked for one kind."""
FIELDS = "open model"
"""The name under which the fields of the dialog are remembered."""


class ModelOpening(QObject):
    """`looked_at(path)`: the tensors of a checkpoint are to be shown, without its model.

    Asks which model to open (`opened(load)` is called with the answer) and what to do with a checkpoint."""

    looked_at = Signal(str)

    def __init__(self, parent: QWidget, opened: Callable[[Load], None], settings: Settings) -> None:
        super().__init__(parent)
        self.settings = settings
        self.window, self.opened = parent, opened
        self.offered = Offered()
        self.dialog: OpenModelDialog | None = None
        self._devices: Sequence[str] = ()
        """Those that the dialog offers; () until they are known."""
        self._asked: Load | None = None
        self.preferred: Callable[[], str] = lambda: "cpu"
        """The device that is chosen until the user chooses another one."""
        self.then: InputSpec | None = None
        """What runs on the model that is asked for, instead of its first example."""

    def ask(self, subject: str = "", checkpoint: str = "", then: InputSpec | None = None, why: str = "") -> None:
        """Show the dialog, with its last fields, and those that are given here; `then` is what the model is to run."""
        self.then = then
        if self.dialog is None:
            self.dialog = OpenModelDialog(self.window)
            self.dialog.show_fields(self._kept_fields())
            self.dialog.accepted.connect(self._go)
            self.dialog.looked_at.connect(self.looked_at)
            self.dialog.finished.connect(lambda _: self._keep_fields())
            self._offer_in(self.dialog)
        self.dialog.fill(subject, checkpoint)
        self.dialog.say(why)
        self.dialog.open()

    def know(self, offered: Offered) -> None:
        """What the worker has reported: a dialog that was opened before that offers it from now on."""
        self.offered = offered
        if self.dialog is not None:
            self._offer_in(self.dialog)

    def _offer_in(self, dialog: OpenModelDialog) -> None:
        """Which checkpoints are looked for, and the devices; the preferred one is chosen once they are known."""
        dialog.checkpoints = name_filter("Checkpoints", self.offered.checkpoints)
        dialog.offer_checkpoints(self.offered.checkpoints)
        if self.offered.catalog is not None:
            first = not self._devices
            self._devices = self.offered.catalog.devices
            dialog.offer_devices(self._devices)
            if first:
                dialog.device.setCurrentText(self.preferred())

    def for_checkpoint(self, path: str, subject: str) -> None:
        """Ask for which model a checkpoint is, `subject` or another one; where there is none, or that is a checkpoint
        itself, the model is rebuilt from the names and shapes of its tensors, or these are shown. A file that is a
        model is opened."""
        if subject and not self.offered.is_model(path) and self.offered.kind_of(subject) != "checkpoint":
            self.ask(subject, path)
        else:
            self.then = None
            self.opened(Load(subject=str(Path(path).absolute()), device=self.preferred(), tensors="if needed"))

    def _kept_fields(self) -> dict[str, str]:
        """The fields as they were at the end of the last window."""
        try:
            found = read_json(self.settings.text(FIELDS, "{}"))
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _keep_fields(self) -> None:
        if self.dialog is not None:
            self.settings.set_text(FIELDS, json.dumps(self.dialog.fields))

    @Slot()
    def _go(self) -> None:
        assert self.dialog is not None
        self._asked = self.dialog.load()
        self.opened(self._asked)

    def came_back(self, changes: Changes) -> bool:
        """Whether the model that could not be opened is the dialog's: then it shows why, above the same fields."""
        failure, load = changes.failure, changes.not_opened
        if failure is None or load is None or self._asked is None or self.dialog is None:
            return False
        if replace(load, generation=0, partial=False) != self._asked:
            return False
        self.dialog.say(failure.message, failure.details)
        self.dialog.open()
        return True

    def report(self, report: CheckpointReport, agree: Callable[[], None], refuse: Callable[[], None]) -> None:
        """Ask whether to load the part of a checkpoint that fits."""
        dialog = ReportDialog(report, self.window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.accepted.connect(agree)
        dialog.rejected.connect(refuse)
        dialog.open()


class OpenDialog(QFileDialog):
    """Anything that can be opened: a packed capture, a model's code, a checkpoint, a sequence, or a capture's folder.

    The dialogs of the systems choose either a file or a folder; here a folder that is a capture counts as a file.
    """

    def __init__(self, parent: QWidget | None = None, offered: Offered | None = None) -> None:
        super().__init__(parent, "Open a capture, a model, a checkpoint, a sequence or a log")
        self.chosen = ""
        self.setOption(QFileDialog.Option.DontUseNativeDialog)
        self.setFileMode(QFileDialog.FileMode.ExistingFile)
        self.resize(820, 480)
        columns = self.findChild(QTreeView)
        if columns is not None:
            columns.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)  # so that dates are not cut
        known = offered if offered is not None else Offered()
        suffixes = (PACKED_SUFFIX, SUFFIX, SESSION, ".py", *known.checkpoints, *known.sequences)
        logs = dict.fromkeys(name for _, reader in LOGS.items() for name in reader.names)
        kinds = " ".join(dict.fromkeys((*(f"*{suffix}" for suffix in suffixes), *logs)))
        self.setNameFilters([
            f"What can be opened ({kinds})", f"Captures (*{SUFFIX} *{PACKED_SUFFIX})",
            f"Logs of trainings ({' '.join(logs)})", name_filter("Checkpoints", known.checkpoints).split(";;")[0],
            "All files (*)",
        ])  # fmt: skip
        self.directoryEntered.connect(self._entered)

    def list_first(self, kind: str) -> None:
        """Show only "capture"s, "log"s or "checkpoint"s at first; anything else: all that can be opened."""
        found = [each for each in self.nameFilters() if kind and each.lower().startswith(kind)]
        if found:
            self.selectNameFilter(found[0])
            self.setWindowTitle(FIRST.get(kind, self.windowTitle()))

    @Slot(str)
    def _entered(self, path: str) -> None:
        """A double-click on a capture's folder opens it rather than showing its pages."""
        if is_capture(path):
            self._take(path)

    def accept(self) -> None:
        """Take what is selected; a folder that is not a capture is entered."""
        found = [path for path in self.selectedFiles() if path]
        if found and is_capture(found[0]):
            self._take(found[0])
        elif found and Path(found[0]).name == INDEX and is_capture(str(Path(found[0]).parent)):
            self._take(str(Path(found[0]).parent))
        elif found and is_a_folder(found[-1]):
            self.setDirectory(found[-1])
            self.selectFile("")
        else:
            super().accept()
            if self.result() == QFileDialog.DialogCode.Accepted and found:
                self.chosen = found[0]

    def _take(self, path: str) -> None:
        self.chosen = path
        self.setDirectory(str(Path(path).parent))  # the next dialog begins beside the capture, not in its pages
        self.done(int(QFileDialog.DialogCode.Accepted.value))


def is_capture(path: str) -> bool:
    """Whether a path is the folder of a capture, by its name or by what is in it."""
    folder = Path(path)
    return folder.is_dir() and (folder.name.endswith(SUFFIX) or (folder / INDEX).is_file())
