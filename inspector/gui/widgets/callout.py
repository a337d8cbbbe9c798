"""A few words beside what they are about, with a tip that points at it and buttons to go on or to end."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFont, QKeyEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from inspector.gui.widgets.plain_text import clean_block, plain_label
from inspector.gui.widgets.theme import LIGHT, Theme

WIDTH, NARROWEST, TIP = 260, 215, 10
"""Pixels of a callout where there is room, at least, and of its tip at the left."""
LOWER = 120
"""Pixels below the top of its target, where that is high enough: the first numbers under the cursor stay seen."""


class Callout(QWidget):
    """`onward` and `ended` when its buttons are pressed; Escape ends too."""

    onward = Signal()
    ended = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme = LIGHT
        self.title, self.words = plain_label(), plain_label()
        self.go, self.end = QPushButton("Next"), QPushButton("End")
        bold = QFont(self.title.font())
        bold.setBold(True)
        self.title.setFont(bold)
        self.words.setWordWrap(True)
        for label in (self.title, self.words):
            label.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self.go.clicked.connect(self.onward)
        self.end.clicked.connect(self.ended)
        row = QHBoxLayout()
        row.addWidget(self.end)
        row.addStretch(1)
        row.addWidget(self.go)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(TIP + 12, 10, 12, 10)
        for each in (self.title, self.words):
            layout.addWidget(each)
        layout.addLayout(row)
        self._again = QTimer(self, interval=0, singleShot=True)
        """Fits it once after all that its labels ask for."""
        self._again.timeout.connect(self._fit)
        self.setFixedWidth(WIDTH)
        self.hide()

    def say(self, title: str, words: str, go: str) -> None:
        """Other words; `go` is what the button that goes on says."""
        self.title.setText(clean_block(title))
        self.words.setText(clean_block(words))
        self.go.setText(go)
        self.setAccessibleName(title)
        self.setAccessibleDescription(words)
        self._fit()

    def event(self, event: QEvent) -> bool:
        """Texts of another size need another height; each label asks for it as it gets its font."""
        done = super().event(event)
        if event.type() == QEvent.Type.Show:
            self._fit()
        elif event.type() == QEvent.Type.LayoutRequest and self._wanted() not in (-1, self.height()):
            self._again.start()
        return done

    def _wanted(self) -> int:
        """The height of its words, in pixels, or -1 while its labels are hidden: these ask for none."""
        layout = self.layout()
        return -1 if layout is None else layout.heightForWidth(self.width())

    def _fit(self) -> None:
        layout = self.layout()
        assert layout is not None
        layout.invalidate()
        if (wanted := self._wanted()) != -1:
            self.setFixedHeight(wanted)

    def point_at(self, target: QRect, within: QRect) -> None:
        """Stand at the right of a rectangle where there is room for it, else inside it at its right end."""
        room = within.right() - target.right() - 2
        width = min(WIDTH, room) if room >= NARROWEST else WIDTH
        left = target.right() + 2 if room >= NARROWEST else target.right() - width
        if width != self.width():
            self.setFixedWidth(width)
            self._fit()
        low = min(target.top() + LOWER, target.bottom() - self.height() - 8)
        top = min(max(within.top(), target.top() + 40, low), within.bottom() - self.height())
        self.move(QPoint(left, top))
        self.raise_()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape ends."""
        if event.key() == Qt.Key.Key_Escape:
            self.ended.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The ground, the edge and the tip."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(QColor(self.theme.base))
        painter.setPen(QPen(QColor(self.theme.accent), 1.5))
        right, bottom, at = self.width() - 1.0, self.height() - 1.0, 28.0
        corners = ((TIP, 1), (right, 1), (right, bottom), (TIP, bottom), (TIP, at + TIP), (1, at), (TIP, at - TIP))
        painter.drawPolygon(QPolygonF([QPointF(x, y) for x, y in corners]))
        painter.end()
