"""Which run of a log is shown: one of them, or all together."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QWidget

from inspector.capture import Capture
from inspector.gui.state.followed_log import as_log
from inspector.gui.widgets.cut_box import CutBox
from inspector.gui.widgets.plain_text import clean, plain_label

EVERY = "all runs together"


class RunBar(QWidget):
    """Hidden unless a log with several runs is shown. `chosen(run)`: a name, or None for all."""

    chosen = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.box = CutBox()
        self.box.setAccessibleName("Which run of the log is shown")
        self.box.setMinimumContentsLength(20)
        self.box.activated.connect(self._choose)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 8, 2)
        row.addWidget(plain_label("Run"))
        row.addWidget(self.box, 1)
        self._runs: tuple[str, ...] = ()
        self.hide()

    def show_capture(self, capture: Capture | None) -> None:
        """Offer the runs of a log, also new ones; the one that is shown stays."""
        log = as_log(capture)
        runs = log.whole.runs if log is not None else ()
        if runs != self._runs:
            self._runs = runs
            self.box.clear()
            for run in (None, *runs):
                self.box.addItem(f"{EVERY} ({len(runs):,})" if run is None else clean(run), run)
        if log is not None:
            self.box.setCurrentIndex(1 + runs.index(log.run) if log.run in runs else 0)
        self.setVisible(len(runs) > 1)

    @Slot(int)
    def _choose(self, index: int) -> None:
        self.chosen.emit(self.box.itemData(index))
