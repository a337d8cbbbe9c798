"""File ▸ Export figures: a dialog, then a process of its own that draws, with progress and a way to cancel it.

The command line draws: the window goes on, and the fonts and colours of the figures are not the window's.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QProcess, Qt, Slot
from PySide6.QtWidgets import QFileDialog, QProgressDialog

from inspector.capture import Capture, LogView
from inspector.gui.dialogs.export_dialog import FIGURES, Chosen, ExportDialog
from inspector.gui.export.what_is_there import known_part
from inspector.gui.panel.colours import colours_of
from inspector.gui.state.followed_log import as_log
from inspector.gui.window.own_command import start_command, told_by
from inspector.gui.window.saving import complete, export_all
from inspector.records import ViewAt
from inspector.records.json_text import read_json
from inspector.records.plain_text import plain_sentence

if TYPE_CHECKING:
    from inspector.gui.window.asking import Asking

ENDING_MS = 1_000
NOTHING = "There is nothing to export: open a capture or a log, or run a model first."
COMPARED = "Two runs are compared: the figures are exported as the window shows them."


class FigureExport(QObject):
    """Exports figures of what is shown; one export at a time."""

    def __init__(self, window: Asking) -> None:
        super().__init__(window)
        self._window = window
        self.process: QProcess | None = None
        self.progress: QProgressDialog | None = None
        self.dialog: ExportDialog | None = None
        self._to = ""

    def ask(self) -> None:
        """Ask what is exported."""
        window, capture = self._window, self._window.session.capture
        if capture is None:
            window.fail(NOTHING)
        elif self.process is not None:
            window.fail("Figures are being exported already.")
        elif not isinstance(window.panels.source, (Capture, LogView)) and as_log(window.panels.source) is None:
            window.say(COMPARED)
            export_all(window)
        elif complete(window, "What the panels show"):
            self._open(capture)

    def _open(self, capture: Capture) -> None:
        window, kinds = self._window, self._window.panels.kinds
        full = [(key, kind.title) for key, kind in kinds.items() if window.panels.has_data(key) and key != "overview"]
        front = next((key for key, _ in full if key in window.docking.seen), "")
        steps = (0, window.steps.length - 1) if window.steps.length > 1 else None
        theme = "dark" if window.theme.dark else "light"
        self.dialog = ExportDialog(full, front, len(capture.frames), steps, theme, window)
        self.dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.dialog.accepted.connect(self._chosen)
        self.dialog.open()

    @Slot()
    def _chosen(self) -> None:
        """Ask where the files go."""
        assert self.dialog is not None
        chosen, self.dialog = self.dialog.chosen(), None
        if chosen.what == FIGURES:
            to = QFileDialog.getExistingDirectory(self._window, "Folder for the figures")
        else:
            name = f"{chosen.panels[0]}.{chosen.form}"
            to, _ = QFileDialog.getSaveFileName(self._window, "Animation", name, f"Animation (*.{chosen.form})")
            to = to if not to or Path(to).suffix else f"{to}.{chosen.form}"
        if to:
            self.start(chosen, to)

    def start(self, chosen: Chosen, to: str) -> None:
        """Draw what was chosen into a folder, or a file."""
        self._to = to
        process = self.process = QProcess(self)
        process.readyReadStandardOutput.connect(self._read)
        process.finished.connect(self._ended)
        process.errorOccurred.connect(partial(self._failed, to))
        self.progress = QProgressDialog("Drawing …", "Cancel", 0, 0, self._window)
        self.progress.setWindowTitle("Export figures")
        self.progress.setMinimumDuration(0)
        self.progress.setAutoReset(False)
        self.progress.canceled.connect(self.cancel)
        self.progress.show()
        start_command(process, self._words(chosen, to))
        self._window.say(f"Figures are being exported to {to} …")

    def _words(self, chosen: Chosen, to: str) -> list[str]:
        window, capture = self._window, self._window.session.capture
        assert capture is not None
        log, position = as_log(capture), window.looking.position
        low, high = window.steps.bounds
        seen = high - low < window.steps.length and "--steps" not in chosen.words
        at = ViewAt(
            frame=-1 if chosen.every_frame or window.frames.following else max(-1, window.frames.current),
            place=position.place, step=position.step, unit=position.unit, head=position.head,
            steps=(max(0, round(low + 0.5)), round(high - 0.5)) if seen else None,
            colours=colours_of(window.looking).text,
            run=str(log.view.run) if log is not None and log.view.run is not None else "",
        )  # fmt: skip
        animated = chosen.what != FIGURES
        named = ["--all-panels"] if chosen.everything else ["--panels", ",".join(chosen.panels)]
        panels = ["--panel", chosen.panels[0]] if animated else named
        frames = ["--all-frames"] if chosen.every_frame else []
        at = known_part(capture, at, window.panels.kinds[chosen.panels[0]] if animated else None)
        return ["export", str(capture.path), *panels, *frames, *at.words, *chosen.words, "--damaged", "--progress",
                "--to", to]  # fmt: skip

    # -- while it draws

    @Slot()
    def _read(self) -> None:
        """Progress, a line of JSON each; the last one counts."""
        if self.process is None or self.progress is None:
            return
        lines = bytes(self.process.readAllStandardOutput().data()).splitlines()
        try:
            told = read_json(lines[-1]) if lines else {}
            done, total, text = int(told["done"]), int(told["total"]), str(told["text"])
        except (ValueError, KeyError, TypeError):
            return
        self.progress.setMaximum(total)
        self.progress.setValue(done)
        self.progress.setLabelText(f"{text}: {done:,} of {total:,}")

    @Slot()
    def cancel(self) -> None:
        """End it; every file that is there is complete."""
        if self.process is not None:
            self._over().kill()
            self._window.say(f"The export was cancelled; what was drawn is in {self._to}.")

    def close(self) -> None:
        """The window is closed."""
        if self.process is not None:
            process = self._over()
            process.kill()
            process.waitForFinished(ENDING_MS)

    def _over(self) -> QProcess:
        assert self.process is not None
        process, self.process = self.process, None
        if self.progress is not None:
            self.progress.canceled.disconnect(self.cancel)
            self.progress.close()
            self.progress.deleteLater()
            self.progress = None
        process.finished.connect(process.deleteLater)
        return process

    @Slot()
    def _ended(self, code: int, _how: QProcess.ExitStatus) -> None:
        if self.process is None:
            return
        told = told_by(self._over())
        if code != 0:
            self._window.fail(plain_sentence(told or f"The figures could not be exported: code {code}."))
        else:
            said = plain_sentence(told.splitlines()[-1]) if told else self._to
            self._window.say_saved(f"Exported {said}", Path(self._to))

    @Slot()
    def _failed(self, to: str, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart and self.process is not None:
            self._over()
            self._window.fail(f"The figures could not be exported to {to}: {sys.executable} did not start.")
