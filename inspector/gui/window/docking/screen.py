"""A window that is never larger than its screen: at its first start, or where it was remembered on a larger one."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

WANTED = QSize(1440, 900)
FRAME = QSize(4, 32)
"""About the size of a window frame, as long as the window manager has not reported it."""
LARGE = Qt.WindowState.WindowMaximized | Qt.WindowState.WindowFullScreen
WITHOUT_SCREEN = ("offscreen", "minimal", "vnc")


def room_of(window: QWidget) -> QRect | None:
    """The part of its screen that a window may fill, without bars and docks; None where there is no real screen."""
    screen = window.screen()
    if screen is None or QGuiApplication.platformName() in WITHOUT_SCREEN:
        return None
    return screen.availableGeometry()


def first_size(window: QWidget) -> QSize:
    """The size at the first start."""
    room = room_of(window)
    return WANTED if room is None else WANTED.boundedTo(room.size() - FRAME)


def fit(window: QWidget) -> None:
    """Make a window small enough for its screen and bring it inside, with its frame."""
    room = room_of(window)
    if room is None or window.windowState() & LARGE:
        return
    frame = window.frameGeometry().size() - window.size()
    if window.isVisible() and not frame.isNull():
        window.resize(window.size().boundedTo(room.size() - frame))
    else:
        window.resize(window.size().boundedTo(room.size() - FRAME))
    outer = QRect(window.pos(), window.size() + frame)
    inside = QPoint(
        max(room.left(), min(outer.left(), room.right() + 1 - outer.width())),
        max(room.top(), min(outer.top(), room.bottom() + 1 - outer.height())),
    )
    if inside != window.pos():
        window.move(inside)
