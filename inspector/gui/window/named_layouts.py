"""Window ▸ Layouts: arrangements of the docks under names of the user's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QInputDialog, QMenu

from inspector.gui.widgets.plain_text import clean
from inspector.gui.window.docking.layouts import arrange, check, describe
from inspector.records.json_text import read_json
from inspector.records.unreadable import why_unreadable

if TYPE_CHECKING:
    from inspector.gui.window.asking import Asking

KEPT = "layouts"
MOST, LONGEST = 40, 60
"""Layouts that are kept, and letters of a name."""


class NamedLayouts:
    """A menu with the layouts by name, and what saves and removes them."""

    def __init__(self, window: Asking) -> None:
        self._window = window
        self.menu = QMenu("&Layouts", window)
        self.menu.setObjectName(KEPT)
        self.menu.aboutToShow.connect(self.fill)
        self.fill()

    def known(self) -> dict[str, Any]:
        """The layouts by name, in the order of the alphabet; what cannot be read of the settings is left out."""
        try:
            found = read_json(self._window.settings.text(KEPT, "{}"))
        except ValueError:
            return {}
        named = found.items() if isinstance(found, dict) else ()
        return {name: layout for name, layout in sorted(named) if isinstance(name, str)}

    def fill(self) -> None:
        """List them."""
        self.menu.clear()
        known = self.known()
        for name in known:
            action = QAction(clean(name).replace("&", "&&"), self.menu)
            action.triggered.connect(lambda _checked=False, name=name: self.use(name))
            self.menu.addAction(action)
        if known:
            self.menu.addSeparator()
        self.menu.addAction("&Save layout as…", self.ask)
        self.menu.addAction("&Remove a layout…", self.ask_to_remove).setEnabled(bool(known))

    def ask(self) -> None:
        """Ask for a name, and keep the present layout under it; one of that name is replaced."""
        name, accepted = QInputDialog.getText(self._window, "Save layout", "Name of the layout:")
        if accepted and name.strip():
            self.save(name.strip()[:LONGEST])

    def save(self, name: str) -> None:
        """Keep the present layout under a name."""
        known = self.known()
        if name not in known and len(known) >= MOST:
            self._window.fail(f"{MOST} layouts are kept already: remove one first.")
            return
        self._store({**known, name: describe(self._window.docking)})
        if why := self._window.settings.not_kept():
            self._window.fail(f"The layout {name} could not be saved. {why}")
            return
        self._window.say(f"The layout is kept as {name}: Window ▸ Layouts.")

    def use(self, name: str) -> None:
        """Arrange the docks so."""
        try:
            layout = check(self.known()[name])
        except KeyError:
            self._window.fail(f"The layout {name} cannot be used: another window has deleted it.")
            return
        except ValueError as problem:
            self._window.fail(f"The layout {name} cannot be used: {why_unreadable(problem)}.")
            return
        arrange(self._window.docking, layout)
        self._window.say(f"The layout {name} is shown.")

    def ask_to_remove(self) -> None:
        """Ask which is to be forgotten."""
        names = list(self.known())
        name, accepted = QInputDialog.getItem(self._window, "Remove a layout", "Layout:", names, 0, False)
        if accepted:
            self.remove(name)

    def remove(self, name: str) -> None:
        """Forget it."""
        self._store({known: layout for known, layout in self.known().items() if known != name})

    def _store(self, layouts: dict[str, Any]) -> None:
        self._window.settings.set_text(KEPT, json.dumps(layouts))
        self.fill()
