"""A button with a menu of options: what is on or off, and choices of one among several."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QToolButton

from inspector.gui.widgets.plain_text import clean, tooltip

ASIDE = ": "
"""Between the name of an option and why it cannot be chosen."""


class OptionMenu(QToolButton):
    """`changed()` when anything was chosen. Options have keys; what is chosen stays where it still exists."""

    changed = Signal()
    picked = Signal(str, str)
    """(choice, option): the user has chosen an option, or the same one again; before `changed`."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__()
        self.setText(f"{text} ▾")
        self.setStyleSheet("QToolButton::menu-indicator { image: none; }")  # Qt's own lies over the text
        self.setAccessibleName(name)
        self.setToolTip(tooltip(name))
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        self.setMenu(menu)
        self._menu = menu
        self._on: dict[str, QAction] = {}
        self._choices: dict[str, tuple[QMenu, QActionGroup]] = {}

    def add_switch(self, key: str, text: str, explained: str = "", *, on: bool = False) -> QAction:
        """Something that is on or off."""
        action = QAction(text, self)  # one that Qt makes is forgotten with its menu's wrapper
        self._menu.addAction(action)
        action.setCheckable(True)
        action.setChecked(on)
        action.setToolTip(tooltip(explained))
        action.toggled.connect(self.changed)
        self._on[key] = action
        return action

    def on(self, key: str) -> bool:
        """Whether it is on."""
        return self._on[key].isChecked()

    def allow(self, key: str, allowed: bool, why_not: str = "") -> None:
        """Whether it can be switched now; why not is said beside it."""
        action = self._on[key]
        name = action.text().partition(ASIDE)[0]
        action.setText(name if allowed or not why_not else f"{name}{ASIDE}{why_not}")
        action.setEnabled(allowed)

    def add_choice(self, key: str, title: str, options: Mapping[str, str]) -> None:
        """One of several, by their keys; the first is chosen."""
        menu = QMenu(title, self)  # as for switches
        self._menu.addMenu(menu)
        group = QActionGroup(menu)
        group.triggered.connect(lambda action: self.picked.emit(key, str(action.data())))
        group.triggered.connect(lambda _action: self.changed.emit())
        self._choices[key] = (menu, group)
        self.offer(key, options)

    def offer(self, key: str, options: Mapping[str, str]) -> None:
        """Other options for a choice."""
        menu, group = self._choices[key]
        if [(action.data(), action.text()) for action in group.actions()] == [
            (k, clean(v)) for k, v in options.items()
        ]:
            return
        kept = self.chosen(key) if group.actions() else None
        for action in group.actions():
            group.removeAction(action)
            menu.removeAction(action)
            action.deleteLater()
        for option, text in options.items():
            action = QAction(clean(text), self)
            menu.addAction(action)
            action.setCheckable(True)
            action.setData(option)
            action.setChecked(option == kept)
            group.addAction(action)
        if group.checkedAction() is None and group.actions():
            group.actions()[0].setChecked(True)

    def chosen(self, key: str) -> str:
        """The key of the option that is chosen; "" where there is none."""
        action = self._choices[key][1].checkedAction()
        return str(action.data()) if action is not None else ""

    def option(self, key: str, option: str) -> QAction:
        """The action that chooses an option."""
        return next(action for action in self._choices[key][1].actions() if action.data() == option)
