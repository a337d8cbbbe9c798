"""The bar above a dock: its title where no tab shows it, its panel's controls, and buttons for the dock."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QLineF, QObject, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QIcon,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QPixmap,
    QPixmapCache,
    QShowEvent,
)
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QLabel, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from inspector.gui.widgets.plain_text import clean
from inspector.gui.widgets.theme import LIGHT, Theme

Do = Callable[[], object]
SIDE, SHARP = 14, 2
"""Size of a symbol, and how many pixels it has for each, for screens of high density."""
NARROWEST = 120
"""Pixels of width that a bar has at least."""
EDGE = 2
"""Pixels of the line around a dock that is a window of its own."""
REACH = 120
"""Pixels of such a dock that are on a screen at least."""
BESIDE = QPoint(36, 36)
REOPEN = "Ctrl+Shift+T"
"""As browsers have it for a closed tab."""
FLOAT, DOCK = "Float: a window of its own", "Back into the window"
ENLARGE, RESTORE = "Enlarge this panel (F9)", "Show all panels again (F9)"


class CutTitle(QLabel):
    """A title that ends in … where it has no room."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """As much of it as there is room for."""
        shown = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        QPainter(self).drawText(self.rect(), int(Qt.AlignmentFlag.AlignVCenter), shown)


class DockBar(QWidget):
    """One row: title, controls, then buttons to enlarge (panels only), to float and to close.

    Controls and title are cut rather than keeping a dock wide. The layout alone says how narrow the bar can be: a
    window that opens asks each bar hundreds of times, which a method in Python would make slow.
    """

    def __init__(self, dock: QDockWidget, enlarge: Do | None = None, theme: Theme = LIGHT) -> None:
        super().__init__(dock)
        self.setObjectName("dockbar")
        self.dock, self.theme, self.enlarged = dock, theme, False
        self.title = CutTitle(clean(dock.windowTitle()))
        font = QFont(self.title.font())
        font.setBold(True)
        self.title.setFont(font)
        self.title.setMinimumWidth(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addStrut(NARROWEST)
        self._layout = QHBoxLayout()
        column.addLayout(self._layout)
        margin = 3 if enlarge is None else 0
        self._layout.setContentsMargins(8, margin, 4, margin)
        self._layout.setSpacing(2)
        self._layout.addWidget(self.title)
        self._layout.addStretch(1)
        self.buttons: dict[str, QToolButton] = {}
        if enlarge is not None:
            self._add("enlarge", ENLARGE, enlarge)
        self._add("float", FLOAT, self.float)
        self._add("close", f"Close; {REOPEN} shows it again", dock.close)
        self._floated: QRect | None = None
        """Where the dock was a window of its own, before its button brought it back."""
        self.frame = FloatingFrame(dock, theme)
        dock.topLevelChanged.connect(self._show_floating)
        self._draw()

    def _add(self, kind: str, name: str, do: Do) -> None:
        self._layout.addWidget(self._button(kind, name, do))

    def _button(self, kind: str, name: str, do: Do) -> QToolButton:
        button = QToolButton()
        button.setIconSize(QSize(SIDE, SIDE))
        button.setToolTip(name)
        button.setAccessibleName(f"{kind}: {self.dock.windowTitle()}")
        button.setAutoRaise(True)
        button.clicked.connect(lambda _checked=False: do())
        self.buttons[kind] = button
        return button

    def add_first(self, kind: str, name: str, do: Do) -> QToolButton:
        """One more button, before the others; its symbol is drawn with theirs."""
        before = self._layout.indexOf(next(iter(self.buttons.values())))
        button = self._button(kind, name, do)
        self._layout.insertWidget(before, button)
        self._draw()
        return button

    def set_controls(self, controls: QWidget) -> None:
        """Show the controls of a panel between title and buttons."""
        policy = controls.sizePolicy()
        policy.setHorizontalPolicy(QSizePolicy.Policy.Ignored)
        controls.setSizePolicy(policy)
        self._layout.takeAt(1)
        self._layout.insertWidget(1, controls, 1)

    def float(self) -> None:
        """A window of its own: where it was one before, else beside where the dock was, so that it is seen to be one;
        or back into the window where it was, in front of the others in its tabs."""
        if self.dock.isFloating():
            self._floated = self.dock.geometry()
            self.dock.setFloating(False)
            self.dock.raise_()
            return
        self.dock.setFloating(True)
        place = self._floated or self.dock.geometry().translated(BESIDE)
        self.dock.setGeometry(within_reach(place, self.dock.screen().availableGeometry()))

    def _show_floating(self, floating: bool) -> None:
        """A window of its own has a frame, and its bar another ground: no window manager draws them."""
        self.buttons["float"].setToolTip(DOCK if floating else FLOAT)
        self.frame.setVisible(floating)
        self.setAutoFillBackground(floating)

    def set_theme(self, theme: Theme) -> None:
        """Symbols in other colours."""
        if theme != self.theme:
            self.theme = self.frame.theme = theme
            self._draw()

    def _draw(self) -> None:
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Window, QColor(self.theme.raised))
        self.setPalette(palette)
        self.frame.update()
        for kind, button in self.buttons.items():
            button.setIcon(symbol("restore" if kind == "enlarge" and self.enlarged else kind, self.theme.muted))

    def show_enlarged(self, enlarged: bool) -> None:
        """Set what the first button does."""
        self.enlarged = enlarged
        self.buttons["enlarge"].setToolTip(RESTORE if enlarged else ENLARGE)
        self._draw()


def within_reach(place: QRect, room: QRect) -> QRect:
    """A place moved so that enough of the bar at its top is on a screen to be dragged; mostly it is that already."""
    left = min(max(place.left(), room.left() - place.width() + REACH), room.left() + room.width() - REACH)
    top = min(max(place.top(), room.top()), room.top() + room.height() - REACH)
    return QRect(QPoint(left, top), place.size())


class FloatingFrame(QWidget):
    """The edge of a dock that is a window of its own, over what is in it; the mouse does not meet it."""

    def __init__(self, dock: QDockWidget, theme: Theme) -> None:
        super().__init__(dock)
        self.dock, self.theme = dock, theme
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()
        dock.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """As large as the dock, and above what has come into it since."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show, QEvent.Type.LayoutRequest) and self.isVisible():
            self._cover()
        return False

    def showEvent(self, event: QShowEvent) -> None:
        """From now on it is as large as the dock."""
        self._cover()
        super().showEvent(event)

    def _cover(self) -> None:
        self.setGeometry(self.dock.rect())
        self.raise_()

    def paintEvent(self, event: QPaintEvent) -> None:
        """A line around all of it."""
        painter = QPainter(self)
        painter.setPen(QPen(QColor(self.theme.muted), EDGE))
        half = EDGE / 2
        painter.drawRect(QRectF(self.rect()).adjusted(half, half, -half, -half))
        painter.end()


def symbol(kind: str, colour: str) -> QIcon:
    """A small line drawing: "enlarge", "restore", "float", "close", "list". Drawn once for all bars."""
    pixmap, name = QPixmap(), f"inspector dock {kind} {colour}"
    if not QPixmapCache.find(name, pixmap):
        pixmap = _drawn(kind, colour)
        QPixmapCache.insert(name, pixmap)
    return QIcon(pixmap)


def _drawn(kind: str, colour: str) -> QPixmap:
    pixmap = QPixmap(SIDE * SHARP, SIDE * SHARP)
    pixmap.setDevicePixelRatio(SHARP)
    pixmap.fill(QColor(0, 0, 0, 0))
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(colour), 1.3))
    if kind == "close":
        painter.drawLines([QLineF(3.5, 3.5, 10.5, 10.5), QLineF(10.5, 3.5, 3.5, 10.5)])
    elif kind == "float":
        painter.drawRect(QRectF(2.5, 4.5, 7, 7))
        painter.drawLines([QLineF(5, 2.5, 11.5, 2.5), QLineF(11.5, 2.5, 11.5, 9)])
    elif kind == "list":
        painter.drawLines([QLineF(2.5, y, 11.5, y) for y in (3.5, 6.5)])
        painter.drawLines([QLineF(4.5, 9.5, 7, 12), QLineF(7, 12, 9.5, 9.5)])
    elif kind == "enlarge":
        painter.drawRect(QRectF(2.5, 2.5, 9, 9))
        painter.drawLine(QLineF(2.5, 4, 11.5, 4))
    else:
        painter.drawRect(QRectF(2.5, 2.5, 9, 9))
        painter.drawLine(QLineF(2.5, 7, 11.5, 7))
    painter.end()
    return pixmap
