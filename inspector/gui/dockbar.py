"""The bar above a docked panel: its title where no tab says it, its controls, and what can be done with its dock."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QSizePolicy, QStyle, QToolButton, QWidget

from inspector.gui.text import plain_label

Do = Callable[[], object]
SIDE = 14
ENLARGE, RESTORE = "Enlarge this panel (F9)", "Show all panels again (F9)"


class DockBar(QWidget):
    """One row: title, controls, then buttons to enlarge, to float and to close."""

    def __init__(self, dock: QDockWidget, controls: QWidget, enlarge: Do) -> None:
        super().__init__(dock)
        self.setObjectName("dockbar")
        self.dock = dock
        self.title = plain_label(dock.windowTitle())
        font = QFont(self.title.font())
        font.setBold(True)
        self.title.setFont(font)
        controls.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        icons = QStyle.StandardPixmap
        self.larger = self._button(icons.SP_TitleBarMaxButton, ENLARGE, enlarge)
        self.floating = self._button(icons.SP_TitleBarNormalButton, "Float", lambda: dock.setFloating(not dock.isFloating()))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(8, 0, 4, 0)
        layout.setSpacing(2)
        layout.addWidget(self.title)
        layout.addWidget(controls, 1)
        for button in (self.larger, self.floating, self._button(icons.SP_TitleBarCloseButton, "Close", dock.close)):
            layout.addWidget(button)

    def _button(self, icon: QStyle.StandardPixmap, name: str, do: Do) -> QToolButton:
        button = QToolButton()
        button.setIcon(self.style().standardIcon(icon))
        button.setIconSize(QSize(SIDE, SIDE))
        button.setToolTip(name)
        button.setAccessibleName(f"{name.partition(' (')[0]}: {self.dock.windowTitle()}")
        button.setAutoRaise(True)
        button.clicked.connect(lambda _checked=False: do())
        return button

    def show_enlarged(self, enlarged: bool) -> None:
        """What the first button would do now."""
        self.larger.setToolTip(RESTORE if enlarged else ENLARGE)

    def minimumSizeHint(self) -> QSize:
        """Controls are cut before they keep a dock wide."""
        return QSize(120, super().minimumSizeHint().height())
