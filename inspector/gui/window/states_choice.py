"""The states of hand-written cells: chosen among the variables that a loop carries, remembered, and used in runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from inspector.capture import Capture
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.check_boxes import CheckBoxes
from inspector.gui.widgets.plain_text import clean, plain_label
from inspector.gui.window.parts import Parts
from inspector.records import CARRIED, STATE
from inspector.records.json_text import read_json

States = dict[str, tuple[str, ...]]
NO_RECURRENCE = (
    "This run has no hand-written recurrence: a loop of your own whose state had to be found. Torch's own layers and "
    "cells declare their state."
)


def remembered_states(settings: Settings, subject: str) -> States:
    """Place → variables that the user named as the state, for one model; empty where nothing was chosen."""
    places = _all_states(settings).get(subject, {})
    if not isinstance(places, dict):
        return {}
    return {str(place): tuple(map(str, names)) for place, names in places.items() if isinstance(names, list)}


def remember_states(settings: Settings, subject: str, states: Mapping[str, Sequence[str]]) -> None:
    """Store the choice for a model; an empty one removes it."""
    known = {**_all_states(settings), subject: {place: list(names) for place, names in states.items()}}
    settings.set_text("states", json.dumps({name: places for name, places in known.items() if places}))


def _all_states(settings: Settings) -> dict[str, object]:
    try:
        found = read_json(settings.text("states", "{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def carried(capture: Capture) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Place → (all variables that its loop carries, those taken for its state)."""
    places = [domain.removeprefix(CARRIED) for domain in capture.label_domains if domain.startswith(CARRIED)]
    return {place: (capture.labels(CARRIED + place), capture.labels(STATE + place)) for place in places}


class StatesDialog(QDialog):
    """A check list for each place: which of the variables that its loop carries are its state."""

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
        CheckBoxes(self.tree)
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
        reset.setToolTip("Forget the choice for this model and run with the states that are found")
        reset.clicked.connect(self._forget)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        for widget in (words, self.tree, self.problem, buttons):
            layout.addWidget(widget)
        self.resize(440, 380)

    def states(self) -> States:
        """Place → ticked variables, for the places where they differ from the run's."""
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


def choose_states(window: Parts) -> None:
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
