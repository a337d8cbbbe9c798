"""The keys of the window, and what each does."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from inspector.gui.dialogs.dialogs import name_of
from inspector.gui.dialogs.keys_dialog import KeysDialog

OTHER_KEYS = (
    ("← →", "one step back or on (Shift: ten)"),
    ("↑ ↓", "the unit or head before or after"),
    ("Ctrl+← →", "in Attention: the key before or after (Shift: ten)"),
    ("Home, End", "first and last step"),
    ("Space", "play the steps, stop"),
    ("mouse over a plot", "the cursor goes there; a lag, a rank or a token is marked and its values are shown"),
    ("wheel over a plot", "zoom around the mouse; with Shift up and down, with Ctrl both ways, over an axis along it"),
    ("drag in a plot", "move what is in view; with Shift draw a box to zoom into"),
    ("Double-click", "on a plot: show all of it again; on a token: replace it"),
    ("click on a name in a legend", "hide or show its curve; with Alt or Ctrl show it alone"),
    ("1 … 9", "hide or show the first to the ninth curve; with Alt show it alone"),
    ("W S, A D", "zoom the steps around the cursor, and move along them"),
    ("drag at a colour bar", "its ends, or both: the range of the colours; double click: as usual"),
    (
        "C",
        "the colour bar by keys: ↑ ↓ its upper end, with Shift the lower one, Home as usual, End what is in view; "
        "C the next, Esc done",
    ),
    ("Ctrl and drag on the strip", "choose steps for the table of what every curve does in them"),
    ("right button, Menu, Shift+F10", "copy, save, pin, edit, curves, colours, and what is shown"),
    ("Enter in the text", "run it"),
)
"""Keys that belong to no action."""


def keys_of(actions: Sequence[QAction]) -> list[tuple[str, str]]:
    """(key, what it does) of every action that has one, after those that belong to none."""
    own = [(action.shortcut().toString(), action.statusTip() or name_of(action)) for action in actions]
    return [*OTHER_KEYS, *(one for one in own if one[0])]


def show_keys(parent: QWidget, actions: Sequence[QAction]) -> None:
    """The keys, in a table that can be searched."""
    dialog = KeysDialog(keys_of(actions), parent)
    dialog.exec()
    dialog.deleteLater()
