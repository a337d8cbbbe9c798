"""What is remembered between starts: window, layout, recent files, theme."""

from __future__ import annotations

from pathlib import Path

import platformdirs
from PySide6.QtCore import QByteArray, QSettings

RECENT = 10
LAYOUT_VERSION = 2


class Settings:
    """An ini file in the user's configuration folder."""

    def __init__(self) -> None:
        folder = Path(platformdirs.user_config_dir("inspector", appauthor=False))
        folder.mkdir(parents=True, exist_ok=True)
        self._store = QSettings(str(folder / "window.ini"), QSettings.Format.IniFormat)

    def recent(self) -> list[str]:
        """Recent captures and files, newest first."""
        found = self._store.value("recent", [])
        return [str(item) for item in found] if isinstance(found, list) else [str(found)] if found else []

    def add_recent(self, path: str) -> None:
        """Put a path at the head of the recent ones."""
        known = [path, *(item for item in self.recent() if item != path)]
        self._store.setValue("recent", known[:RECENT])

    def text(self, name: str, default: str = "") -> str:
        """A remembered choice."""
        return str(self._store.value(f"choice/{name}", default))

    def set_text(self, name: str, value: str) -> None:
        """Remember a choice."""
        self._store.setValue(f"choice/{name}", value)

    def layout(self) -> tuple[QByteArray, QByteArray] | None:
        """(geometry, state of docks), or None at the first start."""
        geometry, state = self._store.value("geometry"), self._store.value("state")
        if isinstance(geometry, QByteArray) and isinstance(state, QByteArray):
            return geometry, state
        return None

    def set_layout(self, geometry: QByteArray, state: QByteArray) -> None:
        """Remember the window."""
        self._store.setValue("geometry", geometry)
        self._store.setValue("state", state)
        self._store.sync()
