"""File ▸ Report: what the rules find, with figures, as one HTML file. A process of its own writes it, by the command
line: the rules may read all of a large capture, and the window goes on."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QProcess, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog

from inspector.gui.state.followed_log import as_log
from inspector.gui.window.own_command import start_command, told_by
from inspector.records.plain_text import plain_sentence

if TYPE_CHECKING:
    from inspector.gui.window.showing import Showing

DAMAGED = "--damaged"


class ReportFile(QObject):
    """Asks for a file and has the report written into it; one at a time."""

    def __init__(self, window: Showing) -> None:
        super().__init__(window)
        self._window = window
        self._process: QProcess | None = None

    @Slot()
    def ask(self) -> None:
        """Ask for the file."""
        shown = self._window.session.capture
        if shown is None:
            self._window.fail("There is nothing to report on: open a capture or a log first.")
            return
        if self._process is not None:
            self._window.fail("A report is being written already.")
            return
        name = Path(shown.path).name.partition(".")[0] or "run"
        path, _ = QFileDialog.getSaveFileName(self._window, "Report", f"{name}-report.html", "HTML page (*.html)")
        if path:
            self.write(path if Path(path).suffix else f"{path}.html")

    def write(self, to: str) -> None:
        """Write the report of what is shown."""
        shown = self._window.session.capture
        assert shown is not None
        log = as_log(shown)
        run = ["--run", str(log.view.run)] if log is not None and log.view.run is not None else []
        process = self._process = QProcess(self)
        process.finished.connect(partial(self._ended, to))
        process.errorOccurred.connect(partial(self._failed, to))
        start_command(process, ["diagnose", str(shown.path), *run, DAMAGED, "--to", to])
        self._window.say(f"The report is being written to {to} …")

    @property
    def busy(self) -> bool:
        """Whether one is being written."""
        return self._process is not None

    def close(self) -> None:
        """End what is being written; a file that is written is complete or absent."""
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.waitForFinished(1_000)

    @Slot()
    def _ended(self, to: str, code: int, _how: QProcess.ExitStatus) -> None:
        if self._process is None:
            return
        told = told_by(self._process)
        self._process = None
        if code != 0:
            self._window.fail(plain_sentence(told or f"The report could not be written: code {code}."))
            return
        self._window.say_saved(f"The report is in {to}.", Path(to))
        QDesktopServices.openUrl(QUrl.fromLocalFile(to))

    @Slot()
    def _failed(self, to: str, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._process = None
            self._window.fail(f"The report could not be written to {to}: {sys.executable} did not start.")
