"""A frame around what has the keyboard focus: Qt draws one for fields and buttons only, and style sheets hide that."""

from __future__ import annotations

import shiboken6
from PySide6.QtCore import QEvent, QObject, QRect, Qt, Slot
from PySide6.QtGui import QColor, QGuiApplication, QPainter, QPaintEvent, QRegion
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QDialog,
    QDockWidget,
    QLineEdit,
    QMainWindow,
    QPlainTextEdit,
    QWidget,
)

LISTS = (QAbstractItemView, QPlainTextEdit)
"""What nothing shows the focus of in a dialog: the chosen row looks the same without it."""
WIDTH = 2
"""Pixels of the frame."""


class FocusRing(QWidget):
    """Lies over one widget, as large as it, and is seen at its edge only; it takes no mouse and no focus."""

    def __init__(self, around: QWidget, colour: QColor) -> None:
        super().__init__(around)
        self.around, self._colour = around, colour
        self.setObjectName("focusring")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        around.installEventFilter(self)
        self._lay_out()
        self.show()
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """As large as the widget below it."""
        if event.type() == QEvent.Type.Resize and watched is self.around:
            self._lay_out()
        return False

    def _lay_out(self) -> None:
        around = self.around.rect()
        self.setGeometry(around)
        inside = around.adjusted(WIDTH, WIDTH, -WIDTH, -WIDTH)
        self.setMask(QRegion(around) - QRegion(inside))  # what is below is not painted again with it

    def paintEvent(self, event: QPaintEvent) -> None:
        """The colour of what is chosen; the mask leaves the edge."""
        painter = QPainter(self)
        painter.fillRect(QRect(self.rect()), self._colour)
        painter.end()


class FocusFollower(QObject):
    """Puts the ring around whatever in a window got the focus by the keyboard, and lets Tab leave tables and texts.

    While a button of the mouse is down the focus came from it, and where it went is seen already.
    """

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self.window = window
        self.ring: FocusRing | None = None
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self.follow)

    @Slot(QWidget, QWidget)
    def follow(self, _old: QWidget | None, new: QWidget | None) -> None:
        """Another widget has the focus, or none."""
        self._take_away()
        if new is None:
            return
        if not self._holds(new.window()):
            _show_in_dialog(new)
            if not (isinstance(new, LISTS) and self._asks_by(new.window())):
                return  # Qt draws that of fields and buttons in a dialog
        let_tab_leave(new)
        if QGuiApplication.mouseButtons() == Qt.MouseButton.NoButton and not isinstance(new, QLineEdit):
            self.ring = FocusRing(new, new.palette().highlight().color())

    def _holds(self, top: QWidget) -> bool:
        """Whether a window is this one, or a dock of it that floats."""
        return top is self.window or (isinstance(top, QDockWidget) and top.parentWidget() is self.window)

    def _asks_by(self, top: QWidget) -> bool:
        """Whether a window is a dialog of this one, or of such a dialog."""
        above: QWidget | None = top
        while isinstance(above, QDialog):
            parent = above.parentWidget()
            above = parent.window() if parent is not None else None
        return above is self.window and top is not above

    def _take_away(self) -> None:
        ring, self.ring = self.ring, None
        if ring is not None and shiboken6.isValid(ring):
            ring.hide()
            ring.deleteLater()


def _show_in_dialog(widget: QWidget) -> None:
    """A dialog shows which of its boxes has the focus as it opens, where Qt waits for the first Tab in it."""
    top = widget.window()
    if isinstance(top, QDialog) and QGuiApplication.mouseButtons() == Qt.MouseButton.NoButton:
        top.setAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange)
        widget.update()


def let_tab_leave(widget: QWidget) -> None:
    """A table is one stop: arrows move in it, Tab goes on. So is a text that is only read."""
    if isinstance(widget, QAbstractItemView):
        widget.setTabKeyNavigation(False)
    elif isinstance(widget, QPlainTextEdit) and widget.isReadOnly():
        widget.setTabChangesFocus(True)
