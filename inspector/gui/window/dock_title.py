"""The bar above a dock: its title where no tab shows it, its panel's controls, and buttons for the dock."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QLineF, QPoint, QRectF, QSize
from PySide6.QtGui import QColor, QFont, QIcon, QPainter, QPen, QPixmap, QPixmapCache
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from inspector.gui.widgets.plain_text import plain_label
from inspector.gui.widgets.theme import LIGHT, Theme

Do = Callable[[], object]
SIDE, SHARP = 14, 2
"""Size of a symbol, and how many pixels it has for each, for screens of high density."""
NARROWEST = 120
"""Pixels of width that a bar has at least."""
BESIDE = QPoint(36, 36)
REOPEN = "Ctrl+Shift+T"
"""As browsers have it for a closed tab."""
ENLARGE, RESTORE = "Enlarge this panel (F9)", "Show all panels again (F9)"


class DockBar(QWidget):
    """One row: title, controls, then buttons to enlarge (panels only), to float and to close.

    Controls and title are cut rather than keeping a dock wide. The layout alone says how narrow the bar can be: a
    window that opens asks each bar hundreds of times, which a method in Python would make slow.
    """

    def __init__(self, dock: QDockWidget, enlarge: Do | None = None, theme: Theme = LIGHT) -> None:
        super().__init__(dock)
        self.setObjectName("dockbar")
        self.dock, self.theme, self.enlarged = dock, theme, False
        self.title = plain_label(dock.windowTitle())
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
        self._add("float", "Float", self.float)
        self._add("close", f"Close; {REOPEN} shows it again", dock.close)
        self._draw()

    def _add(self, kind: str, name: str, do: Do) -> None:
        button = QToolButton()
        button.setIconSize(QSize(SIDE, SIDE))
        button.setToolTip(name)
        button.setAccessibleName(f"{kind}: {self.dock.windowTitle()}")
        button.setAutoRaise(True)
        button.clicked.connect(lambda _checked=False: do())
        self.buttons[kind] = button
        self._layout.addWidget(button)

    def set_controls(self, controls: QWidget) -> None:
        """Show the controls of a panel between title and buttons."""
        policy = controls.sizePolicy()
        policy.setHorizontalPolicy(QSizePolicy.Policy.Ignored)
        controls.setSizePolicy(policy)
        self._layout.takeAt(1)
        self._layout.insertWidget(1, controls, 1)

    def float(self) -> None:
        """A window of its own, beside where the dock was, so that it is seen to be one; or back into the window."""
        self.dock.setFloating(not self.dock.isFloating())
        if self.dock.isFloating():
            self.dock.move(self.dock.pos() + BESIDE)

    def set_theme(self, theme: Theme) -> None:
        """Symbols in other colours."""
        if theme != self.theme:
            self.theme = theme
            self._draw()

    def _draw(self) -> None:
        for kind, button in self.buttons.items():
            button.setIcon(symbol("restore" if kind == "enlarge" and self.enlarged else kind, self.theme.muted))

    def show_enlarged(self, enlarged: bool) -> None:
        """Set what the first button does."""
        self.enlarged = enlarged
        self.buttons["enlarge"].setToolTip(RESTORE if enlarged else ENLARGE)
        self._draw()


def symbol(kind: str, colour: str) -> QIcon:
    """A small line drawing: "enlarge", "restore", "float", "close". Drawn once for all bars."""
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
    elif kind == "enlarge":
        painter.drawRect(QRectF(2.5, 2.5, 9, 9))
        painter.drawLine(QLineF(2.5, 4, 11.5, 4))
    else:
        painter.drawRect(QRectF(2.5, 2.5, 9, 9))
        painter.drawLine(QLineF(2.5, 7, 11.5, 7))
    painter.end()
    return pixmap
