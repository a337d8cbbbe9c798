"""The spikes of a training, each with what moved first before it; one of them can be run again."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from inspector.analysis.chronology import chronology_at
from inspector.capture import Capture
from inspector.gui.widgets.plain_text import clean, clean_block, plain_label, tooltip
from inspector.records import Event

MOST = 500
MOST_MOVES = 30
NOT_KEPT = "Its iteration was marked, and not kept for running it again."


class SpikeDialog(QDialog):
    """`chosen` is the iteration that is to be run again; None where none is. `kept`: iterations that can be."""

    def __init__(self, capture: Capture, events: Sequence[Event], kept: set[int], parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("Spikes of this training")
        self.chosen: float | None = None
        self._capture, self._events, self._kept = capture, list(events)[-MOST:], kept
        self.list = QListWidget()
        self.list.setAccessibleName("Spikes")
        self.list.setWordWrap(True)
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setResizeMode(QListWidget.ResizeMode.Adjust)
        for event in self._events:
            item = QListWidgetItem(clean(f"{event.iteration:,.10g}  {event.kind}: {event.text}"))
            item.setToolTip(tooltip(event.text))
            self.list.addItem(item)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setAccessibleName("What moved first")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.again = buttons.addButton("Run this iteration again", QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.rejected.connect(self.reject)
        buttons.accepted.connect(self._choose)
        self.list.currentRowChanged.connect(self._show)
        self.list.itemDoubleClicked.connect(self._choose)
        row = QHBoxLayout()
        row.addWidget(self.list, 1)
        row.addWidget(self.text, 1)
        layout = QVBoxLayout(self)
        layout.addWidget(plain_label("What moved first before the iteration that is chosen:"))
        layout.addLayout(row)
        layout.addWidget(buttons)
        self.resize(980, 460)
        self.list.setCurrentRow(len(self._events) - 1)
        self._show(self.list.currentRow())

    def _show(self, row: int) -> None:
        can = 0 <= row < len(self._events) and self._events[row].iteration in self._kept
        self.again.setEnabled(can)
        self.again.setToolTip("" if can else tooltip(NOT_KEPT))
        if not 0 <= row < len(self._events):
            return
        found = chronology_at(self._capture, self._events[row].iteration)
        sentence = found.verdict.sentence
        moves = "\n".join(f"  {n}. {move}" for n, move in enumerate(found.moves[:MOST_MOVES], 1))
        self.text.setPlainText(
            clean_block(
                f"{sentence[:1].upper()}{sentence[1:]}.\n\n{moves}\n\nWhat would make this wrong: {found.wrong}."
            )
        )

    def _choose(self) -> None:
        row = self.list.currentRow()
        if 0 <= row < len(self._events) and self._events[row].iteration in self._kept:
            self.chosen = self._events[row].iteration
            self.accept()
