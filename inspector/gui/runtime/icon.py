"""The icon of the window and the name by which the desktop knows that a window belongs to its menu entry."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication, QIcon, QPixmap

from inspector.workspace.desktop.entry import NAME
from inspector.workspace.desktop.install import icon as icon_bytes

SIDES = (16, 24, 32, 48, 64, 128, 256)
"""Pixels of the pictures that window managers ask for."""


def app_icon() -> QIcon:
    """The icon, drawn once for each size; without one where this Qt cannot read SVG."""
    whole = QPixmap()
    found = QIcon()
    for side in SIDES:
        if whole.loadFromData(_sized(side)):
            found.addPixmap(whole)
    return found


def use_icon() -> None:
    """Every window of this process has it. X11 and Wayland take the name as that of the menu entry."""
    QGuiApplication.setDesktopFileName(NAME)
    QGuiApplication.setWindowIcon(app_icon())


def _sized(side: int) -> bytes:
    return icon_bytes().replace(b'width="64" height="64"', f'width="{side}" height="{side}"'.encode(), 1)
