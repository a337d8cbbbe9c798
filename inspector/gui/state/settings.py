"""What is remembered between starts: window, layout, recent files, theme."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import platformdirs
from PySide6.QtCore import QByteArray, QLockFile, QSettings

from inspector.gui.state.unlocked_store import UnlockedStore

RECENT = 10
LAYOUT_VERSION = 2
LARGEST = 8 << 20
"""Bytes of a file of settings: they have some kilobytes, and Qt reads whatever is there, as a whole."""
TURN_MS = 500
"""So long a window waits for another one that changes the same choice: that takes some milliseconds."""
FILES = ("window.ini", *(f"window-{number}.ini" for number in range(1, 10)))
"""The first of them that can be read is taken: a pipe would be waited for without end."""


class Settings:
    """An ini file in the user's configuration folder; in memory alone where that cannot be made."""

    def __init__(self) -> None:
        folder = Path(platformdirs.user_config_dir("inspector", appauthor=False))
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        file = next((folder / name for name in FILES if _can_be_read(folder / name)), folder / FILES[-1])
        self._store = UnlockedStore(str(file))
        self._chosen = self._lost = False
        """Whether something was chosen since it was last written; whether that could not be."""

    def problem(self) -> str:
        """Why nothing will be remembered; "" where it will be."""
        if os.access(self.folder, os.W_OK | os.X_OK):
            return ""
        return f"Choices and layout are not remembered: the folder {self.folder} cannot be made or written to."

    def not_kept(self) -> str:
        """Write what was chosen now: why that cannot be, as a sentence; "" where it is done. It is tried again."""
        why = self.not_written()
        return why and f"It holds until this window is closed: {why}"

    def newly_lost(self) -> str:
        """The same as one sentence when that begins; "" while nothing was chosen, and until it is over."""
        if not self._chosen:
            return ""
        why, before = self.not_written(), self._lost
        self._chosen, self._lost = bool(why), bool(why)
        return f"What is chosen is not remembered: {why}" if why and not before else ""

    def not_written(self) -> str:
        """The same of what is not in use, but to be remembered only.

        An object of Qt's says for ever that something failed once, so another one of the same file is asked.
        """
        self._store.free()
        asked = UnlockedStore(self._store.fileName())
        asked.sync()
        asked.free()
        return "" if asked.status() == QSettings.Status.NoError else f"{self._store.fileName()} cannot be written to."

    def recent(self) -> list[str]:
        """Recent captures and files, newest first."""
        found = self._store.value("recent", [])
        return [str(item) for item in found] if isinstance(found, list) else [str(found)] if found else []

    def add_recent(self, path: str) -> None:
        """Put a path at the head of the recent ones."""
        known = [path, *(item for item in self.recent() if item != path)]
        self._store.setValue("recent", known[:RECENT])
        self._chosen = True

    def text(self, name: str, default: str = "") -> str:
        """A remembered choice."""
        return str(self._store.value(f"choice/{name}", default))

    def set_text(self, name: str, value: str) -> None:
        """Remember a choice."""
        self._store.setValue(f"choice/{name}", value)
        self._chosen = True

    def change_text(self, name: str, change: Callable[[str], str]) -> None:
        """Remember what becomes of a choice as it is now, which another window may have changed, and write it."""
        turn = QLockFile(f"{self._store.fileName()}.turn")
        turn.tryLock(TURN_MS)  # where that cannot be had, the later one of two windows holds
        try:
            self._store.sync()
            before = self.text(name)
            if (after := change(before)) != before:
                self.set_text(name, after)
                self._store.sync()
        finally:
            turn.unlock()

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


def _can_be_read(file: Path) -> bool:
    """Whether it is an ordinary file of some size, or nothing yet. The reader of captures is loaded later, behind the
    window's card."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return not file.parent.is_dir()  # there is no folder, so nothing will be read
    return stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST
