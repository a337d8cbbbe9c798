"""What a run computes beyond the default: switched on in a menu, remembered, sent with the next run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from inspector.gui.dialogs.dialogs import NAME
from inspector.gui.dialogs.options_dialog import OptionsDialog
from inspector.gui.state.needed import NOTHING_NEEDED, Needed
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.plain_text import clean, tooltip
from inspector.records import Catalog, Entry, split_request
from inspector.records.options import named_words, values_of, written


class ComputeMenu(QMenu):
    """Quantities that are not computed by default, to be switched on. `chosen(requests)` after each change."""

    chosen = Signal(tuple)
    offered = Signal()
    """The worker has said what there is, and the menu is filled."""
    opening = Signal()
    """The user asks for the model of the capture that is shown."""

    def __init__(self, settings: Settings, parent: QWidget) -> None:
        super().__init__("Compute &also", parent)
        self.setToolTipsVisible(True)
        self.settings = settings
        self.keys: dict[str, QAction] = {}
        self.settable: dict[str, QAction] = {}
        """The actions that ask for the options of a quantity, by its key."""
        self._needed, self._usable = NOTHING_NEEDED, True
        self.why = self.addAction("")
        self.why.setEnabled(False)
        self.opens = self.addAction("")
        self.opens.setObjectName("action-open-its-model")
        self.opens.triggered.connect(lambda _checked=False: self.opening.emit())
        self._line = self.addSeparator()
        self._say()
        self._waiting = self.addAction("The list is filled when the worker is ready")
        self._waiting.setEnabled(False)

    @property
    def wanted(self) -> tuple[str, ...]:
        """Requests that are switched on, from the settings: keys, with options after `@`."""
        text = self.settings.text("also")
        return tuple(request for request in text.split("\n" if "@" in text or "\n" in text else " ") if request)

    def offer(self, catalog: Catalog | None) -> list[QAction]:
        """Fill the menu from the worker's catalogue, once; returns the new actions."""
        if catalog is None or self.keys:
            return []
        self.removeAction(self._waiting)
        for entry in catalog.quantities:
            if entry.default:
                continue
            action = self.addAction(clean(_sentence(entry.summary or entry.key)))
            action.setObjectName(f"action-also-{entry.key}")
            action.setProperty(NAME, clean(f"Compute also {entry.key}: {entry.summary}"))
            cost = f" Cost: {entry.cost}" if entry.cost else ""
            action.setToolTip(tooltip(f"{entry.key}: from the next run on.{cost}"))
            action.setCheckable(True)
            action.setChecked(bool(self._request(entry.key)))
            action.toggled.connect(lambda on, key=entry.key: self._toggled(key, on))
            self.keys[entry.key] = action
            if entry.options:
                self._offer_options(entry)
        self._say()
        self.offered.emit()
        return [*self.keys.values(), *self.settable.values()]

    def say_needed(self, needed: Needed, *, usable: bool) -> None:
        """What the capture that is shown needs before more of it is computed; without a model nothing is `usable`."""
        if (needed, usable) != (self._needed, self._usable):
            self._needed, self._usable = needed, usable
            self._say()

    def _say(self) -> None:
        hidden = self._usable
        self.why.setText(clean(self._needed.why.replace("It needs", "This needs")).replace("&", "&&"))
        self.opens.setText(clean(f"{self._needed.button}…").replace("&", "&&"))
        self.why.setVisible(not hidden)
        self._line.setVisible(not hidden)
        self.opens.setVisible(not hidden and self._needed.load is not None)
        for action in (*self.keys.values(), *self.settable.values()):
            action.setEnabled(self._usable)

    def _offer_options(self, entry: Entry) -> None:
        """An entry below a quantity that asks for its options."""
        action = self.addAction(clean(f"      Options of {entry.key}…").replace("&", "&&"))
        action.setObjectName(f"action-options-{entry.key}")
        action.setProperty(NAME, clean(f"Compute also {entry.key}: options"))
        action.triggered.connect(lambda _checked=False: self._ask(entry))
        self.settable[entry.key] = action

    def _ask(self, entry: Entry) -> None:
        """Ask for the options of a quantity; it is computed with these from now on."""
        words = split_request(self._request(entry.key))[1]
        try:
            present = named_words(entry.options, words)
            values_of(entry.options, present)
        except ValueError:
            present = {}  # remembered from another version of the quantity
        title = f"Options: {entry.key}"
        dialog = OptionsDialog(title, _sentence(entry.summary), entry.options, present, self)
        if dialog.exec():
            self.set_options(entry, dialog.values())

    def set_options(self, entry: Entry, values: Mapping[str, object]) -> None:
        """Compute a quantity with these values of its options."""
        self._remember(entry.key, written(entry.key, entry.options, values))
        action = self.keys[entry.key]
        action.blockSignals(True)
        action.setChecked(True)
        action.blockSignals(False)
        self.chosen.emit(self.wanted)

    def _request(self, key: str) -> str:
        """The request for a quantity; "" where it is not requested."""
        return next((request for request in self.wanted if split_request(request)[0] == key), "")

    def switch_on(self, keys: Sequence[str]) -> None:
        """Switch some on, as if they were clicked."""
        for key in keys:
            if key in self.keys:
                self.keys[key].setChecked(True)
            else:
                self._toggled(key, True)

    def _toggled(self, key: str, on: bool) -> None:
        self._remember(key, key if on else "")
        self.chosen.emit(self.wanted)

    def _remember(self, key: str, request: str) -> None:
        others = [known for known in self.wanted if split_request(known)[0] != key]
        self.settings.set_text("also", "\n".join([*others, request] if request else others))


def _sentence(text: str) -> str:
    """A summary as a line of a menu: a capital at the front, unless a formula is there."""
    shown = clean(text).replace("&", "&&")
    first = shown.partition(" ")[0]
    return shown[:1].upper() + shown[1:] if first.strip(",:").replace("-", "").isalpha() else shown
