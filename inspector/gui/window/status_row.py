"""The bottom line: what goes on, how long, how far, and how the worker is."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QProgressBar, QPushButton, QSizePolicy, QStatusBar

from inspector.gui.state.session import Session
from inspector.gui.widgets.plain_text import clean, plain_label, tooltip


class CutLabel(QLabel):
    """One line of plain text that is cut where there is no room for it: it never makes the window wider."""

    def __init__(self) -> None:
        super().__init__()
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.whole = ""

    def show_text(self, text: str) -> None:
        """Other text; all of it stands in the tip."""
        if clean(text) != self.whole:
            self.whole = clean(text)
            self.setToolTip(tooltip(self.whole))
            self._cut()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """More or less room."""
        super().resizeEvent(event)
        self._cut()

    def minimumSizeHint(self) -> QSize:
        """A line's height, and no width of its own."""
        return QSize(0, super().minimumSizeHint().height())

    def _cut(self) -> None:
        line = " ".join(self.whole.split("\n"))
        self.setText(self.fontMetrics().elidedText(line, Qt.TextElideMode.ElideRight, max(0, self.width() - 2)))


class StatusRow:
    """Fills a status bar and keeps it true to the session."""

    def __init__(self, status: QStatusBar, session: Session) -> None:
        self.session = session
        self.sentence, self.elapsed, self.worker = CutLabel(), plain_label(), plain_label()
        self.bar = QProgressBar()
        self.bar.setMaximumWidth(180)
        self.bar.setTextVisible(False)
        self.stop, self.restart = QPushButton("Cancel"), QPushButton("Start again")
        self.stop.clicked.connect(session.cancel)
        self.restart.clicked.connect(lambda _checked=False: session.start_again())
        for hidden in (self.bar, self.stop, self.restart):
            hidden.hide()
        status.addWidget(self.sentence, 1)
        for widget in (self.elapsed, self.bar, self.stop, self.restart, self.worker):
            status.addPermanentWidget(widget)

    def show_state(self) -> None:
        """What the session is at."""
        session, progress = self.session, self.session.progress
        text = progress.text if session.running and progress is not None else session.sentence
        self.sentence.show_text(text)
        self.elapsed.setText(f"{session.seconds:.1f} s" if session.seconds else "")
        self.bar.setVisible(session.busy)
        self.stop.setVisible(session.busy)
        if progress is not None and progress.total:
            self.bar.setRange(0, 1000)
            self.bar.setValue(round(1000 * progress.done / progress.total))
        else:
            self.bar.setRange(0, 0)
        torch = f"torch {session.catalog.torch}" if session.catalog is not None else ""
        words = {"starting": "torch is loading …", "ready": f"{torch}, ready", "ended": "worker ended"}
        self.worker.setText(clean(words.get(session.worker_state, session.worker_state)))
        self.restart.setVisible(session.worker_state == "ended")
