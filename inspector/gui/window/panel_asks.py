"""What a panel asks its window for, by its menu: pictures and numbers as files, words, a range of colours."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from inspector.capture import CaptureError
from inspector.gui.dialogs.explain_dialog import ExplainDialog
from inspector.gui.dialogs.range_dialog import RangeDialog
from inspector.gui.panel.colours import colours_of
from inspector.gui.state.chosen_steps import chosen_of
from inspector.gui.window.saving import save_panel

if TYPE_CHECKING:
    from inspector.gui.panel.base import Panel
    from inspector.gui.window.asking import Asking

PICTURES, NUMBERS = "PNG (*.png);;SVG (*.svg);;PDF (*.pdf)", "NPZ (*.npz);;CSV (*.csv);;JSON (*.json)"
COLOURS = "colours"
"""The name of the choice in the settings."""
TITLES = {"copy": "Copy figure", "save": "Save figure…", "numbers": "Save numbers…"}
"""What a panel asks for → its text in the menu of all panels."""


def answer(window: Asking, key: str, panel: Panel) -> None:
    """Do what a panel asks for from now on."""
    panel.picturing.connect(lambda what: export_of(window, what)(key, panel))
    panel.explaining.connect(lambda title, text: _show(ExplainDialog(title, text, window)))
    panel.ranging.connect(partial(_ask_range, window))


def remember_colours(window: Asking) -> None:
    """The colours of maps that were chosen last, and from now on what is chosen, without ranges in numbers."""
    store = colours_of(window.looking)
    store.take_text(window.settings.text(COLOURS))
    store.changed.connect(lambda _key: window.settings.set_text(COLOURS, store.lasting))


def show_chosen_steps(window: Asking) -> None:
    """The table of a range of steps comes forward when one was drawn on a strip."""
    chosen_of(window.looking).wanted.connect(lambda: window.docking.show_panel("table"))


def export_of(window: Asking, what: str) -> Callable[[str, Panel], None]:
    """How a panel is copied or saved."""
    from inspector.gui.export import figure_files as export

    save = {"save": (export.save_figure, PICTURES), "numbers": (export.save_data, NUMBERS)}.get(what)
    if save is None:
        return lambda _key, panel: _copy(window, panel)
    return lambda key, panel: save_panel(window, panel, key, *save)


def _ask_range(window: Asking, asked: Any) -> None:
    low, high, log, then = asked
    _show(RangeDialog(low, high, log=log, then=then, parent=window))


def _show(dialog: Any) -> None:
    dialog.setWindowModality(Qt.WindowModality.NonModal)
    dialog.show()
    dialog.raise_()


def _copy(window: Asking, panel: Panel) -> None:
    from inspector.gui.export.figure_files import copy_figure, forget_clipboard

    try:
        copy_figure(panel)
    except CaptureError as problem:
        window.fail(str(problem))
        return
    application = QApplication.instance()
    assert application is not None
    application.aboutToQuit.connect(forget_clipboard)
