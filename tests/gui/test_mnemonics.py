"""Alt and a letter chooses one entry: no two of a menu, a menu bar or a dialog have the same letter underlined."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from PySide6.QtWidgets import QAbstractButton, QLabel, QMenu, QWidget

from inspector.gui.dialogs.export_dialog import ExportDialog
from inspector.gui.panel.plot_menu import PlotMenu
from inspector.gui.window.main_window import Window
from inspector.records import InputSpec
from tests.support.opened import finish, opened

FEWEST_MENUS, FEWEST_ENTRIES = 30, 200
PANELS = [("gates", "Gates"), ("lags", "Lags")]


def letter(text: str) -> str:
    """The one after a single &, "" for none; what stands behind a tab is a key."""
    shown = text.partition("\t")[0].replace("&&", "")
    return shown.partition("&")[2][:1].casefold()


def shared(texts: Iterable[str]) -> dict[str, list[str]]:
    """The letters that several texts have."""
    found: dict[str, list[str]] = {}
    for text in texts:
        if letter(text):
            found.setdefault(letter(text), []).append(text)
    return {one: several for one, several in found.items() if len(several) > 1}


def entries(menu: QMenu) -> list[str]:
    menu.aboutToShow.emit()
    return [action.text() for action in menu.actions() if action.isVisible()]


def own_menus(window: Window) -> list[QMenu]:
    """Every menu of the window and of its panels, also those that are filled as they open."""
    found: list[QMenu] = []
    while more := [menu for menu in window.findChildren(QMenu) if menu not in found]:
        for menu in more:
            entries(menu)
        found += more
    return found


@pytest.mark.parametrize("sample", ["char-transformer", "char-lstm"])
def test_no_two_entries_of_a_menu_share_a_letter(qtbot: Any, sample: str) -> None:
    with opened(qtbot, background=False) as window:
        window.open_sample(sample, "", InputSpec(kind="text", value="Alice was beginning"))
        finish(window, qtbot)
        assert not shared(action.text() for action in window.menuBar().actions())
        menus = own_menus(window)
        assert len(menus) > FEWEST_MENUS and sum(len(menu.actions()) for menu in menus) > FEWEST_ENTRIES
        assert {menu.title(): found for menu in menus if (found := shared(entries(menu)))} == {}
        window.looking.move(step=3, unit=1, key=2)
        for panel in window.panels.made.values():
            for plot in (None, *panel.plots):
                for menu in (top := PlotMenu(panel, plot), *top.findChildren(QMenu)):
                    assert not shared(entries(menu)), (panel.key, menu.title())
                top.deleteLater()


def test_every_entry_of_the_view_menu_has_a_letter(qtbot: Any) -> None:
    with opened(qtbot, background=False) as window:
        view = next(menu for menu in own_menus(window) if menu.title() == "&View")
        assert [text for text in entries(view) if text and not letter(text)] == []


def test_no_two_fields_of_a_dialog_share_a_letter(qtbot: Any) -> None:
    dialog = ExportDialog(PANELS, "lags", 1, (0, 39))
    qtbot.addWidget(dialog)
    texts = [one.text() for one in dialog.findChildren(QWidget) if isinstance(one, QLabel | QAbstractButton)]
    assert sum(bool(letter(text)) for text in texts) > 5
    assert shared(texts) == {}


def test_letters_are_those_that_are_underlined() -> None:
    assert [letter(text) for text in ("&Open", "R&&D", "R&&D &x", "&Reset view\tCtrl+&0", "plain")] == [
        "o",
        "",
        "x",
        "r",
        "",
    ]
