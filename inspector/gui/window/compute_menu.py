"""What a run computes beyond the default: switched on in a menu, remembered, sent with the next run."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from inspector.gui.state.settings import Settings
from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.records import Catalog


class ComputeMenu(QMenu):
    """Quantities that are not computed by default, to be switched on. `chosen(keys)` after each change."""

    chosen = Signal(tuple)

    def __init__(self, settings: Settings, parent: QWidget) -> None:
        super().__init__("Compute &also", parent)
        self.setToolTipsVisible(True)
        self.settings = settings
        self.keys: dict[str, QAction] = {}
        self._waiting = self.addAction("The list comes when the worker is ready")
        self._waiting.setEnabled(False)

    @property
    def wanted(self) -> tuple[str, ...]:
        """Keys that are switched on, as remembered."""
        return tuple(key for key in self.settings.text("also").split(" ") if key)

    def offer(self, catalog: Catalog | None) -> list[QAction]:
        """Fill the menu from the worker's catalogue, once; the actions that are new."""
        if catalog is None or self.keys:
            return []
        self.removeAction(self._waiting)
        for entry in catalog.quantities:
            if entry.default:
                continue
            action = self.addAction(clean(_sentence(entry.summary or entry.key)))
            action.setObjectName(f"action-also-{entry.key}")
            action.setToolTip(tooltip(f"{entry.key}: from the next run on"))
            action.setCheckable(True)
            action.setChecked(entry.key in self.wanted)
            action.toggled.connect(lambda on, key=entry.key: self._toggled(key, on))
            self.keys[entry.key] = action
        return list(self.keys.values())

    def switch_on(self, keys: Sequence[str]) -> None:
        """Switch some on, as if they were clicked."""
        for key in keys:
            if key in self.keys:
                self.keys[key].setChecked(True)
            else:
                self._toggled(key, True)

    def _toggled(self, key: str, on: bool) -> None:
        others = [known for known in self.wanted if known != key]
        self.settings.set_text("also", " ".join([*others, key] if on else others))
        self.chosen.emit(self.wanted)


def _sentence(text: str) -> str:
    shown = clean(text).replace("&", "&&")
    return shown[:1].upper() + shown[1:]
