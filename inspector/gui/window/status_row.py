"""The bottom line: the present activity, its time and progress, and the state of the worker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QProgressBar, QPushButton, QStatusBar

from inspector.capture import SUFFIX
from inspector.gui.state.followed import training_sentence
from inspector.gui.state.session import Session
from inspector.gui.widgets.plain_text import clean, plain_label, tooltip
from inspector.gui.window.status_texts import StatusTexts
from inspector.gui.window.training.training_controls import TrainingControls
from inspector.records import duration

TOLD_SECONDS = 2.0
"""Less than that is not worth a word."""


class StatusRow(QObject):
    """Fills a status bar from the session."""

    def __init__(self, status: QStatusBar, session: Session) -> None:
        super().__init__(status)
        self.session = session
        self.texts, self.elapsed, self.worker = StatusTexts(status), plain_label(), plain_label()
        self.sentence, self.what = self.texts.sentence, self.texts.what
        self.background, self.training = plain_label(), plain_label()
        self.background.setEnabled(False)  # quiet: nobody waits for it
        self.bar = QProgressBar()
        self.bar.setMaximumWidth(180)
        self.bar.setTextVisible(False)
        self.stop, self.restart = QPushButton("Cancel"), QPushButton("Start again")
        self.stop.clicked.connect(session.cancel)
        self.restart.clicked.connect(lambda _checked=False: session.start_again())
        self.folder = QPushButton("Show in folder")
        self.folder.clicked.connect(self._show_folder)
        self._saved: tuple[str, Path] | None = None
        self.controls = TrainingControls(session.steering)
        for hidden in (self.bar, self.stop, self.restart, self.folder):
            hidden.hide()
        status.addWidget(self.texts, 1)
        texts = (self.training, self.elapsed, self.background, self.worker)
        for widget in (
            *texts,
            self.bar,
            self.folder,
            self.restart,
            self.stop,
            self.controls,
        ):  # buttons last: no text moves them
            status.addPermanentWidget(widget)

    def show_what(self, parts: Sequence[str]) -> None:
        """What is shown, in a line; its tooltip has one part a line."""
        self.texts.show_what(" · ".join(parts))
        self.what.setToolTip(tooltip("\n".join(parts)))

    def offer_folder(self, sentence: str, path: Path) -> None:
        """Offer to show a file or folder that was written, for as long as the sentence about it stands."""
        self._saved = (sentence, path)

    @Slot()
    def _show_folder(self) -> None:
        """Show the folder in the file manager of the system."""
        if self._saved is not None:
            path = self._saved[1].absolute()
            shown = path if path.is_dir() and not path.name.endswith(SUFFIX) else path.parent
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(shown)))

    def show_state(self) -> None:
        """Show the state of the session."""
        session, progress = self.session, self.session.progress
        going_on = session.running and not session.cancelling  # else the sentence says that it is cancelled
        text = progress.text if going_on and progress is not None else session.sentence
        left = session.remaining.words() if going_on else ""
        self.texts.show_sentence(f"{text}, {left}" if left else text)
        self.folder.setVisible(self._saved is not None and self._saved[0] == text)
        self.elapsed.setText(f"{session.seconds:.1f} s" if session.seconds else "")
        reading = session.reading
        self.bar.setVisible(session.busy or reading is not None)
        self.stop.setVisible(session.waited_for or reading is not None)
        self.stop.setEnabled(not session.cancelling)
        if reading is not None and reading.size and not session.busy:
            self.bar.setRange(0, 1000)
            self.bar.setValue(round(1000 * reading.read / reading.size))
        elif progress is not None and progress.total:
            self.bar.setRange(0, 1000)
            self.bar.setValue(round(1000 * progress.done / progress.total))
        else:
            self.bar.setRange(0, 0)
        behind = session.background
        present = f"in the background: {behind.present}, {behind.count} left" if behind.present else ""
        present += f" (about {duration(behind.seconds)})" if present and behind.seconds >= TOLD_SECONDS else ""
        self.background.setText(clean("; ".join(text for text in (session.sweeping.short, present) if text)))
        torch = f"torch {session.catalog.torch}" if session.catalog is not None else ""
        words = {"starting": "torch is loading …", "ready": f"{torch}, ready", "ended": "worker ended"}
        self.worker.setText(clean(words.get(session.worker_state, session.worker_state)))
        self.restart.setVisible(session.worker_state == "ended")
        foreign = session.capture if session.shown.made is None else None  # of a run of this window more is said
        self.training.setText(clean(session.steering.said or training_sentence(foreign)))
        self.training.setToolTip(tooltip(session.steering.said))
        self.controls.show_state(self.training.text() != "" or not session.steering.reason)
