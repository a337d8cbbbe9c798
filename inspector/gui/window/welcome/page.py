"""The first page as widgets: at the left what to open and what was open, at the right the samples by kind."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.widgets.plain_text import clean, plain_label
from inspector.gui.widgets.theme import LIGHT, Theme
from inspector.gui.widgets.tile_grid import TileGrid
from inspector.gui.window.keyboard.stops import in_order
from inspector.gui.window.welcome.cards import LEAST, OpenCard

LEFT, WIDEST = 400, 1700
"""Pixels of the left column, and of the whole page at most: a line across a wide screen is hard to follow."""
SPACE = 16
LONGEST = 60
"""Characters of the name of a file that is held over the window."""
DROP = "Drop a model, a capture, a checkpoint, a log or a sequence anywhere in this window"
WHAT = "See, step by step, what happens inside a sequence model."
KINDS = {
    "model": "Open a model…", "capture": "Open a capture…", "checkpoint": "Open a checkpoint…", "log": "Open a log…",
}  # fmt: skip


class WelcomePage(QWidget):
    """Covers the panels. `asked(kind)` for one of KINDS; `closed` where the panels are wanted; `escaped` by Esc."""

    asked = Signal(str)
    closed = Signal()
    escaped = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme = LIGHT
        self.setAutoFillBackground(True)
        self.setAccessibleName("What can be opened")
        self.cards: list[OpenCard] = []
        self._muted: list[QLabel] = []
        self.lists, self.samples = QVBoxLayout(), QVBoxLayout()
        """The lists of what was open, and the groups of samples."""
        self.buttons = {kind: QPushButton(text) for kind, text in KINDS.items()}
        for kind, button in self.buttons.items():
            button.setAutoDefault(True)
            button.clicked.connect(lambda _checked=False, kind=kind: self.asked.emit(kind))
        self.panels = QPushButton("Show the panels")
        self.panels.setToolTip("Leave this page (Esc); Help ▸ Welcome shows it again")
        self.panels.clicked.connect(self.closed)
        self._build()

    def _build(self) -> None:
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        left = _scrolled(self._left())
        left.setFixedWidth(LEFT)
        right, column = QWidget(), QVBoxLayout()
        right.setLayout(column)
        column.setContentsMargins(SPACE, SPACE, SPACE, SPACE)
        column.setSpacing(6)
        column.addLayout(self.samples)
        column.addStretch(1)
        row.addWidget(left)
        row.addWidget(_scrolled(right), 1)
        inner = QWidget()
        inner.setLayout(row)
        inner.setMaximumWidth(WIDEST)
        outer = QHBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(inner)

    def _left(self) -> QWidget:
        left, column = QWidget(), QVBoxLayout()
        left.setLayout(column)
        column.setContentsMargins(SPACE, SPACE, SPACE, SPACE)
        column.setSpacing(6)
        top = QHBoxLayout()
        top.addWidget(heading("inspector", 1.7))
        top.addStretch(1)
        top.addWidget(self.panels)
        column.addLayout(top)
        column.addWidget(self.muted(WHAT))
        column.addSpacing(6)
        column.addWidget(self._drop())
        column.addLayout(self.lists)
        column.addStretch(1)
        return left

    def _drop(self) -> QWidget:
        """The frame that says what can be dropped, and the buttons for those who look for it instead."""
        words = self.muted(DROP)
        self.zone = DropZone(words)
        grid = QGridLayout(self.zone)
        grid.setContentsMargins(12, 12, 12, 12)
        words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        grid.addWidget(words, 0, 0, 1, 2)
        for number, button in enumerate(self.buttons.values()):
            grid.addWidget(button, 1 + number // 2, number % 2)
        return self.zone

    def muted(self, text: str) -> QLabel:
        """A line that is no heading."""
        label = plain_label(text)
        label.setWordWrap(True)
        self._muted.append(label)
        return label

    # -- contents

    def fill_lists(self, parts: Sequence[tuple[QWidget, Sequence[OpenCard]]]) -> None:
        """What was open: for each list a heading, and its cards; lists without cards are left out."""
        self._empty(self.lists)
        for head, cards in parts:
            if cards:
                self.lists.addSpacing(8)
                self.lists.addWidget(head)
                for card in cards:
                    self.lists.addWidget(card)
        self._adopt([card for _, cards in parts for card in cards])

    def fill_samples(self, groups: Sequence[tuple[str, Sequence[OpenCard]]]) -> None:
        """The samples, each group below its title."""
        self._empty(self.samples)
        for title, cards in groups:
            grid = TileGrid(QSize(LEAST.width(), cards[0].sizeHint().height()), stretched=False)
            grid.show_tiles(cards)
            self.samples.addWidget(heading(title, 1.0))
            self.samples.addWidget(grid)
            self.samples.addSpacing(6)
        self._adopt([card for _, cards in groups for card in cards])

    def _empty(self, layout: QVBoxLayout) -> None:
        """Remove what a layout has; cards inside go with their owners."""
        while (item := layout.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                gone = [card for card in self.cards if card is widget or widget.isAncestorOf(card)]
                self.cards = [card for card in self.cards if card not in gone]
                widget.hide()
                widget.deleteLater()

    def _adopt(self, cards: Sequence[OpenCard]) -> None:
        self.cards += cards
        for card in cards:
            card.set_theme(self.theme)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = self.zone.theme = theme
        for label in self._muted:
            palette = label.palette()
            palette.setColor(label.foregroundRole(), QColor(theme.muted))
            label.setPalette(palette)
        for card in self.cards:
            card.set_theme(theme)
        self.zone.update()

    # -- keys

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Tab stays on the page: what it covers cannot be seen."""
        reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
        stops = [one for one in in_order(self) if one.isVisible() and one.isEnabled() and takes_tab(one)]
        focus = QApplication.focusWidget()
        at = stops.index(focus) if focus in stops else (-1 if forward else 0)
        others = [one for one in stops if one is not focus]
        if others:
            stops[(at + (1 if forward else -1)) % len(stops)].setFocus(reason)
        return bool(others)

    def event(self, event: QEvent) -> bool:
        """Escape is the page's own key, before the shortcuts of the window it covers."""
        mine = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape
        if mine and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        return bool(super().event(event))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape leaves the page, or what it waits for."""
        if event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
        else:
            super().keyPressEvent(event)


def takes_tab(widget: QWidget) -> bool:
    """Whether Tab stops at a widget."""
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus)


class DropZone(QFrame):
    """A dashed frame, which is solid and says what will be opened while something is held over the window."""

    def __init__(self, words: QLabel) -> None:
        super().__init__()
        self.theme, self.words = LIGHT, words
        self.names: tuple[str, ...] = ()
        """Of what is held over the window."""

    def expect(self, names: Sequence[str]) -> None:
        """These files are held over the window; none any longer."""
        if tuple(names) != self.names:
            self.names = tuple(names)
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            self.words.setMinimumHeight(self.words.height() if names else 0)  # nothing below it moves
            self.words.setText(clean(f"Let go to open {cut(names[0])}{more}") if names else DROP)
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The ground and the frame."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        held = bool(self.names)
        painter.setBrush(QColor(self.theme.raised if held else self.theme.base))
        style = Qt.PenStyle.SolidLine if held else Qt.PenStyle.DashLine
        painter.setPen(QPen(QColor(self.theme.accent if held else self.theme.muted), 2.4 if held else 1.2, style))
        painter.drawRoundedRect(self.rect().adjusted(1, 1, -2, -2), 6, 6)
        painter.end()


def cut(name: str) -> str:
    """A name that fits two lines."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-LONGEST // 2 :]}"


def heading(text: str, size: float) -> QLabel:
    """A line in bold, `size` times as large as the usual type."""
    label = plain_label(text)
    font = QFont(label.font())
    font.setBold(True)
    font.setPointSizeF(font.pointSizeF() * size)
    label.setFont(font)
    return label


def _scrolled(widget: QWidget) -> QScrollArea:
    """What is higher than the window is scrolled, never sideways."""
    area = QScrollArea()
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(widget)
    return area
