"""The bar above a dock: its title where no tab shows it, its panel's controls, and buttons for the dock."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QLineF, QPoint, QRectF, QSize
from PySide6.QtGui import QColor, QFont, QIcon, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QSizePolicy, QToolButton, QWidget

from inspector.gui.widgets.plain_text import plain_label
from inspector.gui.widgets.theme import LIGHT, Theme

Do = Callable[[], object]
SIDE, SHARP = 14, 2
"""Size of a symbol, and how many pixels it has for each, for screens of high density."""
BESIDE = QPoint(36, 36)
ENLARGE, RESTORE = "Enlarge this panel (F9)", "Show all panels again (F9)"


class DockBar(QWidget):
    """One row: title, controls, then buttons to enlarge (panels only), to float and to close."""

    def __init__(self, dock: QDockWidget, enlarge: Do | None = None) -> None:
        super().__init__(dock)
        self.setObjectName("dockbar")
        self.dock, self.theme, self.enlarged = dock, LIGHT, False
        self.title = plain_label(dock.windowTitle())
        font = QFont(self.title.font())
        font.setBold(True)
        self.title.setFont(font)
        self._layout = QHBoxLayout(self)
        margin = 3 if enlarge is None else 0
        self._layout.setContentsMargins(8, margin, 4, margin)
        self._layout.setSpacing(2)
        self._layout.addWidget(self.title)
        self._layout.addStretch(1)
        self.buttons: dict[str, QToolButton] = {}
        if enlarge is not None:
            self._add("enlarge", ENLARGE, enlarge)
        self._add("float", "Float", self.float)
        self._add("close", "Close; the Window menu shows it again", dock.close)
        self.set_theme(self.theme)

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
        self.theme = theme
        for kind, button in self.buttons.items():
            button.setIcon(symbol("restore" if kind == "enlarge" and self.enlarged else kind, theme.muted))

    def show_enlarged(self, enlarged: bool) -> None:
        """Set what the first button does."""
        self.enlarged = enlarged
        self.buttons["enlarge"].setToolTip(RESTORE if enlarged else ENLARGE)
        self.set_theme(self.theme)

    def minimumSizeHint(self) -> QSize:
        """Controls are cut rather than keeping a dock wide."""
        return QSize(120, super().minimumSizeHint().height())


def symbol(kind: str, colour: str) -> QIcon:
    """A small line drawing: "enlarge", "restore", "float", "close"."""
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
    return QIcon(pixmap)
