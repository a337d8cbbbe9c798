"""Buttons that paint themselves as cards: a few lines of plain text, or a small picture with its title and sentence.

They are buttons so that the keyboard and assistive technology reach them like any other.
"""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QEnterEvent,
    QFont,
    QFontMetrics,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QResizeEvent,
)  # fmt: skip
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.gui.widgets.sketch import Sketch, paint_sketch
from inspector.gui.widgets.theme import LIGHT, Theme

MARGIN, BAR = 10, 4
"""Pixels around the text of a card, and of the coloured bar at its left."""
TILE = QSize(232, 176)
"""The least width of a tile, and its height."""
LINES = 3
"""Of the sentence below a picture."""
_WRAP = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop) | int(Qt.TextFlag.TextWordWrap)


class Card(QAbstractButton):
    """The base: ground, edge of focus, and a hand where it is under the mouse. `asked` from its context menu key."""

    asked = Signal(QPoint)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = LIGHT
        self._under = False
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.theme = theme
        self.update()

    def enterEvent(self, event: QEnterEvent) -> None:
        """It is lighter under the mouse."""
        self._under = True
        self.update()
        super().enterEvent(event)

    def leaveEvent(self, event: object) -> None:
        """As before."""
        self._under = False
        self.update()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """The owner has a menu."""
        self.asked.emit(event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter is a click too, as it is on a button of a dialog."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def paint_ground(self, painter: QPainter) -> None:
        """The ground and the edge."""
        ground = QColor(self.theme.raised if self._under else self.theme.base)
        painter.fillRect(self.rect(), ground)
        edge = QColor(self.theme.accent if self.hasFocus() else self.theme.grid)
        painter.setPen(edge)
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))


class TextCard(Card):
    """A heading, a text, and a line in small type, with a bar of a colour at the left."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.heading = self.words = self.small = ""
        self._colour = "muted"
        self._corner: QWidget | None = None
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_text(self, heading: str, words: str, small: str, colour: str, whole: str = "") -> None:
        """Other texts; `colour` is the name of one of the theme's, `whole` what the tooltip says."""
        self.heading, self.words, self.small, self._colour = clean(heading), clean(words), clean(small), colour
        self.setText(f"{self.heading}: {self.words}")
        self.setAccessibleName(self.text())
        self.setToolTip(tooltip(whole))
        self.updateGeometry()
        self.update()

    def put_in_corner(self, widget: QWidget) -> None:
        """A small button at the right of the heading."""
        self._corner = widget
        widget.setParent(self)
        self._place_corner()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """What is in the corner stays there."""
        super().resizeEvent(event)
        self._place_corner()

    def _place_corner(self) -> None:
        if self._corner is not None:
            size = self._corner.sizeHint()
            self._corner.setGeometry(self.width() - size.width() - 2, 2, size.width(), size.height())

    def hasHeightForWidth(self) -> bool:
        """Text is wrapped."""
        return True

    def heightForWidth(self, width: int) -> int:
        """As high as its lines."""
        room, bold = QRect(0, 0, max(40, width - 2 * MARGIN - BAR), 100_000), QFontMetrics(self._bold())
        height = bold.height() + self.fontMetrics().boundingRect(room, _WRAP, self.words).height()
        if self.small:
            height += QFontMetrics(self._small()).boundingRect(room, _WRAP, self.small).height() + 2
        return height + 14

    def sizeHint(self) -> QSize:
        """Of a usual width."""
        return QSize(420, self.heightForWidth(420))

    def minimumSizeHint(self) -> QSize:
        """No width of its own."""
        return QSize(120, self.heightForWidth(self.width()))

    def _bold(self) -> QFont:
        font = QFont(self.font())
        font.setBold(True)
        return font

    def _small(self) -> QFont:
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() * 0.9)
        return font

    def paintEvent(self, event: QPaintEvent) -> None:
        """Bar, heading in the bar's colour, text."""
        painter = QPainter(self)
        self.paint_ground(painter)
        colour = QColor(getattr(self.theme, self._colour))
        painter.fillRect(QRect(0, 0, BAR, self.height()), colour)
        area = self.rect().adjusted(BAR + MARGIN, 6, -MARGIN, -6)
        painter.setFont(self._bold())
        painter.setPen(colour)
        height = painter.fontMetrics().height()
        corner = self._corner.width() if self._corner is not None else 0
        painter.drawText(
            area, _WRAP & ~int(Qt.TextFlag.TextWordWrap), self._cut(painter, self.heading, area.width() - corner)
        )
        area.setTop(area.top() + height)
        painter.setFont(self.font())
        painter.setPen(QColor(self.theme.text))
        taken = painter.boundingRect(QRectF(area), _WRAP, self.words).height()
        painter.drawText(area, _WRAP, self.words)
        if self.small:
            area.setTop(area.top() + int(taken) + 2)
            painter.setFont(self._small())
            painter.setPen(QColor(self.theme.muted))
            painter.drawText(area, _WRAP, self.small)

    @staticmethod
    def _cut(painter: QPainter, text: str, width: int) -> str:
        return painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, width)


class PictureTile(Card):
    """A small picture with its title above and its sentence below, painted once for each size and theme."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title = clean(title)
        self.sketch: Sketch | None = None
        self.problem = ""
        self._painted: tuple[object, QPixmap] | None = None
        self.cached = True
        """Whether it may be painted from a picture of it; not into a file."""
        self.setMinimumSize(TILE)
        self.setText(self.title)

    def show_sketch(self, sketch: Sketch | None, problem: str = "") -> None:
        """Another picture, or why there is none."""
        if sketch is self.sketch and problem == self.problem:
            return
        self.sketch, self.problem, self._painted = sketch, problem, None
        said = sketch.sentence if sketch is not None else problem
        self.setAccessibleName(f"{self.title}: {clean(said)}")
        names = "\n".join(line.name for line in sketch.lines) if sketch is not None and len(sketch.lines) > 1 else ""
        self.setToolTip(tooltip(f"{self.title}\n{said}\n{names}".strip()))
        self.update()

    def sizeHint(self) -> QSize:
        """The least size."""
        return TILE

    def paintEvent(self, event: QPaintEvent) -> None:
        """What was painted before, where nothing has changed."""
        if not self.cached:
            painter = QPainter(self)
            painter.setFont(self.font())
            self.paint_into(painter)
            return
        ratio = self.devicePixelRatioF()
        key = (self.size(), ratio, self.theme, self._under, self.hasFocus())
        if self._painted is None or self._painted[0] != key:
            pixmap = QPixmap(self.size() * ratio)
            pixmap.setDevicePixelRatio(ratio)
            inner = QPainter(pixmap)
            inner.setFont(self.font())
            self.paint_into(inner)
            inner.end()
            self._painted = key, pixmap
        QPainter(self).drawPixmap(0, 0, self._painted[1])

    def paint_into(self, painter: QPainter) -> None:
        """The tile, at the origin."""
        self.paint_ground(painter)
        area = self.rect().adjusted(MARGIN, 7, -MARGIN, -6)
        font = QFont(self.font())
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(QColor(self.theme.text))
        height = painter.fontMetrics().height()
        title = painter.fontMetrics().elidedText(self.title, Qt.TextElideMode.ElideRight, area.width())
        painter.drawText(area, int(Qt.AlignmentFlag.AlignLeft), title)
        painter.setFont(self.font())
        metrics = painter.fontMetrics()
        text = QRect(
            area.left(), area.bottom() - LINES * metrics.lineSpacing(), area.width(), LINES * metrics.lineSpacing()
        )
        picture = QRectF(area.left(), area.top() + height + 3, area.width(), text.top() - area.top() - height - 6)
        said = self.problem
        if self.sketch is not None:
            paint_sketch(self.sketch, painter, picture, self.theme)
            said = self.sketch.sentence
        painter.setPen(QColor(self.theme.text if self.sketch is not None else self.theme.muted))
        painter.drawText(text, _WRAP, cut_to_lines(clean(said), metrics, text.width()))


def cut_to_lines(text: str, metrics: QFontMetrics, width: int) -> str:
    """As many of its words as fit into LINES lines, with … where some are left out."""
    room = QRect(0, 0, width, 100_000)

    def fits(some: str) -> bool:
        return metrics.boundingRect(room, _WRAP, some).height() <= LINES * metrics.lineSpacing() + 1

    if fits(text):
        return text
    words = text.split(" ")
    low, high = 0, len(words)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(" ".join(words[:middle]) + " …") else (low, middle)
    return " ".join(words[:low]) + " …"
