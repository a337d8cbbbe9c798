"""What a run computes beyond the default, and what is the state of hand-written cells: chosen, remembered, sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QMenu,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from inspector.capture import Capture
from inspector.gui.dialogs.options_dialog import OptionsDialog
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.plain_text import clean, plain_label, tooltip
from inspector.records import CARRIED, STATE, Catalog, Entry, split_request
from inspector.records.options import named_words, values_of, written

if TYPE_CHECKING:
    from inspector.gui.window.main_window import Window

States = dict[str, tuple[str, ...]]
NO_RECURRENCE = (
    "This run has no hand-written recurrence: a loop of your own whose state had to be found. Torch's own layers and "
    "cells say themselves what their state is."
)


class ComputeMenu(QMenu):
    """Quantities that are not computed by default, to be switched on. `chosen(requests)` after each change."""

    chosen = Signal(tuple)

    def __init__(self, settings: Settings, parent: QWidget) -> None:
        super().__init__("Compute &also", parent)
        self.setToolTipsVisible(True)
        self.settings = settings
        self.keys: dict[str, QAction] = {}
        self.settable: dict[str, QAction] = {}
        """What asks for the options of a quantity, by its key."""
        self._waiting = self.addAction("The list comes when the worker is ready")
        self._waiting.setEnabled(False)

    @property
    def wanted(self) -> tuple[str, ...]:
        """Requests that are switched on, as remembered: keys, with options after `@`."""
        text = self.settings.text("also")
        return tuple(request for request in text.split("\n" if "@" in text or "\n" in text else " ") if request)

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
            cost = f" Cost: {entry.cost}" if entry.cost else ""
            action.setToolTip(tooltip(f"{entry.key}: from the next run on.{cost}"))
            action.setCheckable(True)
            action.setChecked(bool(self._request(entry.key)))
            action.toggled.connect(lambda on, key=entry.key: self._toggled(key, on))
            self.keys[entry.key] = action
            if entry.options:
                self._offer_options(entry)
        return [*self.keys.values(), *self.settable.values()]

    def _offer_options(self, entry: Entry) -> None:
        """An entry below a quantity that asks for its options."""
        action = self.addAction(clean(f"      Options of {entry.key}…").replace("&", "&&"))
        action.setObjectName(f"action-options-{entry.key}")
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
        """How a quantity is asked for; "" where it is not."""
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
    shown = clean(text).replace("&", "&&")
    return shown[:1].upper() + shown[1:]


def remembered_states(settings: Settings, subject: str) -> States:
    """Place → variables that the user named as the state, for one model; empty where nothing was chosen."""
    places = _all_states(settings).get(subject, {})
    if not isinstance(places, dict):
        return {}
    return {str(place): tuple(map(str, names)) for place, names in places.items() if isinstance(names, list)}


def remember_states(settings: Settings, subject: str, states: Mapping[str, Sequence[str]]) -> None:
    """Keep the choice for a model; an empty one forgets it."""
    known = {**_all_states(settings), subject: {place: list(names) for place, names in states.items()}}
    settings.set_text("states", json.dumps({name: places for name, places in known.items() if places}))


def _all_states(settings: Settings) -> dict[str, object]:
    try:
        found = json.loads(settings.text("states", "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def carried(capture: Capture) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Place → (all variables that its loop carries, those taken for its state)."""
    places = [domain.removeprefix(CARRIED) for domain in capture.label_domains if domain.startswith(CARRIED)]
    return {place: (capture.labels(CARRIED + place), capture.labels(STATE + place)) for place in places}


class StatesDialog(QDialog):
    """A check list a place: which of the variables that its loop carries are its state."""

    def __init__(
        self, places: Mapping[str, tuple[Sequence[str], Sequence[str]]], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("States of hand-written cells")
        self._found = {place: set(state) for place, (_, state) in places.items()}
        self.forget = False
        layout = QVBoxLayout(self)
        words = plain_label(
            "Each loop carries these variables from step to step. Tick those that are its state: Jacobians, lags and "
            "paths are taken over them, together. The choice is remembered for this model."
        )
        words.setWordWrap(True)
        self.tree = QTreeWidget()
        self.tree.setHeaderHidden(True)
        self.tree.setAccessibleName("Variables that loops carry")
        for place, (names, state) in places.items():
            top = QTreeWidgetItem(self.tree, [clean(place) or "model"])
            top.setData(0, Qt.ItemDataRole.UserRole, place)
            for name in names:
                item = QTreeWidgetItem(top, [clean(name)])
                item.setData(0, Qt.ItemDataRole.UserRole, name)
                item.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsUserCheckable)
                item.setCheckState(0, Qt.CheckState.Checked if name in state else Qt.CheckState.Unchecked)
        self.tree.expandAll()
        self.tree.itemChanged.connect(lambda _item, _column: self._check())
        self.problem = plain_label("")
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
        self.run = buttons.addButton("Run with these", QDialogButtonBox.ButtonRole.AcceptRole)
        reset = buttons.addButton("As found", QDialogButtonBox.ButtonRole.ResetRole)
        reset.setToolTip("Forget the choice for this model and run with what is found by itself")
        reset.clicked.connect(self._forget)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        for widget in (words, self.tree, self.problem, buttons):
            layout.addWidget(widget)
        self.resize(440, 380)

    def states(self) -> States:
        """Place → ticked variables, for the places where they are not what the run took."""
        if self.forget:
            return {}
        return {place: names for place, names in self._ticked().items() if set(names) != self._found[place]}

    def _ticked(self) -> States:
        role, found = Qt.ItemDataRole.UserRole, {}
        for i in range(self.tree.topLevelItemCount()):
            top = self.tree.topLevelItem(i)
            assert top is not None
            items = [top.child(j) for j in range(top.childCount())]
            ticked = [str(item.data(0, role)) for item in items if item.checkState(0) == Qt.CheckState.Checked]
            found[str(top.data(0, role))] = tuple(ticked)
        return found

    def _check(self) -> None:
        empty = next((place for place, names in self._ticked().items() if not names), None)
        self.run.setEnabled(empty is None)
        self.problem.setText("" if empty is None else clean(f"{empty or 'model'} needs at least one variable."))

    def _forget(self) -> None:
        self.forget = True
        self.accept()


def choose_states(window: Window) -> None:
    """Ask for the states of the run that is shown, remember them for its model, and run again."""
    session, capture = window.session, window.session.capture
    if capture is None or not session.can_run_again:
        window.fail("Run a model first; then the states that were found in it can be corrected.")
        return
    places = carried(capture)
    if not places:
        window.fail(NO_RECURRENCE)
        return
    dialog = StatesDialog(places, window)
    if dialog.exec():
        known = {} if dialog.forget else remembered_states(window.settings, session.subject)
        remember_states(window.settings, session.subject, {**known, **dialog.states()})
        session.again()


def compute_also(window: Window, keys: tuple[str, ...]) -> None:
    """A panel's offer was taken: compute these from now on, and at once where a model is open."""
    window.compute_menu.switch_on(keys)
    if window.session.can_run_again:
        window.session.analyse(keys)
    else:
        window.fail("Open the model of this capture and run it: what is missing will be computed in that run.")
