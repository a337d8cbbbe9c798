"""What is seen first, with Qt alone: the program's name on a card, while all that a window needs is imported.

A window is of a hundred modules, whose import takes longer than one wants to look at nothing. They are imported in a
thread, by turns with this one, so that the card is painted and answers its display meanwhile; it goes when the window
is there.
"""

from __future__ import annotations

import gc
import importlib.metadata
import sys
from contextlib import nullcontext
from importlib import import_module
from importlib.resources import files

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QApplication, QWidget

from inspector.gui.runtime.again_without import again_without_a_window
from inspector.gui.runtime.display import has_display
from inspector.gui.runtime.qt_types import making_types
from inspector.gui.runtime.turns import Turns
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.described import describe_widgets
from inspector.gui.widgets.theme import DARK, LIGHT, Theme, system_theme

WIDTH, HEIGHT, ICON = 360, 132, 56
EARLIEST = ("inspector.transport.early", "inspector.gui.state.preferred")
MODULES = ("inspector.cli", "inspector.gui.app")
"""What is imported behind it: first what starts the worker."""
_frames: list[FirstFrame] = []


def refused() -> str:
    """Why this Qt cannot be used, as one line, or ""."""
    try:
        version = importlib.metadata.version("PySide6_Essentials")
    except importlib.metadata.PackageNotFoundError:
        return ""
    if version.split(".")[:2] == ["6", "12"] and sys.version_info < (3, 12):
        return (
            f"PySide6 {version} aborts on Python {sys.version_info.major}.{sys.version_info.minor}: install "
            "PySide6_Essentials 6.10.3 (pip install -c constraints.txt …), or use Python 3.12."
        )
    return ""


def wanted_theme(settings: Settings) -> Theme:
    """Light or dark, as was chosen, or as the system has it."""
    return {"Light": LIGHT, "Dark": DARK}.get(settings.text("theme", "Auto"), system_theme())


def the_application() -> QApplication:
    """Qt's application, made where it is not there yet. Widgets are described before there is any: Qt ends the factory
    of interfaces and the interfaces in the opposite order in which they began, and one of Python's outlives neither."""
    application = QApplication.instance() or QApplication(["inspector"])
    assert isinstance(application, QApplication)
    application.setApplicationName("inspector")
    application.setStyle("Fusion")
    describe_widgets()
    return application


class FirstFrame(QWidget):
    """Icon and name in the middle of the screen; nothing in it can be clicked."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(None, Qt.WindowType.SplashScreen | Qt.WindowType.FramelessWindowHint)
        self.setWindowTitle("inspector")
        self.setAccessibleName("inspector is being opened")
        self.theme = theme
        self._icon = QPixmap()
        self._icon.loadFromData(files("inspector.workspace.desktop").joinpath("icon.svg").read_bytes())
        self.setFixedSize(WIDTH, HEIGHT)
        if (screen := self.screen()) is not None:
            self.move(screen.availableGeometry().center() - self.rect().center())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """The card."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        painter.fillRect(self.rect(), QColor(self.theme.window))
        painter.setPen(QPen(QColor(self.theme.grid), 1))
        painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        top = (HEIGHT - ICON) // 2
        painter.drawPixmap(28, top, ICON, ICON, self._icon)
        font, left = QFont(self.font()), 28 + ICON + 20
        room = QRectF(left, top - 4, WIDTH - left - 16, ICON / 2 + 4)
        painter.setPen(QColor(self.theme.text))
        font.setPointSizeF(font.pointSizeF() * 1.6)
        painter.setFont(font)
        painter.drawText(room, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), "inspector")
        painter.setPen(QColor(self.theme.muted))
        painter.setFont(self.font())
        below = room.translated(0, room.height())
        painter.drawText(below, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), "Opening …")


def import_behind_it(*, demo: bool = False) -> None:
    """Show the card where a window can be shown, and import meanwhile what a window needs. A `demo` begins again
    without a window where the display cannot be opened."""
    if refused() or not has_display() or "inspector.gui.app" in sys.modules:
        return
    with again_without_a_window() if demo else nullcontext():
        application = the_application()
    gc.disable()  # a window collects by a timer of its own (runtime/gc_timer.py); while it opens there is no garbage
    _frames.append(frame := FirstFrame(wanted_theme(Settings())))
    frame.show()
    for _ in making_types():
        application.processEvents()
    _import_in_turns(application, EARLIEST)
    _begin_worker()
    _import_in_turns(application, MODULES)


def _import_in_turns(application: QApplication, names: tuple[str, ...]) -> None:
    turns = Turns(lambda: _import(names), "inspector-first-imports")
    while not turns.over:
        application.processEvents()
        turns.give()


def _begin_worker() -> None:
    """Start the worker that the window will have: torch takes longer to load than all of the window."""
    if any(name not in sys.modules for name in EARLIEST):
        return
    from inspector.gui.state.preferred import worker_of
    from inspector.transport.early import begin_early

    begin_early(worker_of(Settings()))


def take_away() -> None:
    """The window is there, or will not come."""
    while _frames:
        frame = _frames.pop()
        frame.close()
        frame.deleteLater()


def _import(names: tuple[str, ...]) -> None:
    try:
        for name in names:
            import_module(name)
    except Exception:  # noqa: BLE001 - whoever imports it next gets the same, and says it
        return
