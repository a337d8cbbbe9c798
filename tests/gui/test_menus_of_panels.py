"""The menus that list all panels fit on a small screen: panels stand in submenus, each in one."""

from __future__ import annotations

from typing import get_args

import pytest
from opened import opened
from PySide6.QtWidgets import QMenu
from pytestqt.qtbot import QtBot

from inspector.gui.panel.menu_groups import MENU_GROUPS, MenuGroup
from inspector.gui.panel.registry import ordered
from inspector.gui.widgets.plain_text import clean

LOWEST = 700
"""Pixels of height that the desktop of a screen of 800 has beside its own bars."""


def inside(menu: QMenu) -> list[str]:
    """Titles of a menu's entries, without what opens a key."""
    return [action.text().replace("&", "") for action in menu.actions() if not action.isSeparator()]


def test_every_group_has_a_title_and_every_panel_that_is_shipped_a_group_of_its_own_kind() -> None:
    assert set(MENU_GROUPS) == set(get_args(MenuGroup.__value__ if hasattr(MenuGroup, "__value__") else MenuGroup))
    assert [key for key, kind in ordered() if kind.menu_group == "other"] == []


def test_no_menu_is_higher_than_a_small_screen_and_every_panel_is_in_one_submenu(qtbot: QtBot) -> None:
    with opened(qtbot) as window:
        menus = {menu.title().replace("&", ""): menu for menu in window.findChildren(QMenu)}
        titles = sorted(clean(kind.title) for kind in window.panels.kinds.values())
        for name in ("Panels", "Window"):
            menu = menus[name]
            groups = [sub for sub in menu.findChildren(QMenu) if sub.title() in MENU_GROUPS.values()]
            assert menu.sizeHint().height() < LOWEST
            assert max(sub.sizeHint().height() for sub in groups) < LOWEST
            assert sorted(text for sub in groups for text in inside(sub)) == titles
            assert not set(titles) & set(inside(menu)), "in a submenu alone"


@pytest.mark.parametrize("key", ["lags", "weights"])
def test_a_panel_is_shown_and_hidden_in_its_submenu(qtbot: QtBot, key: str) -> None:
    with opened(qtbot) as window:
        action = window.docks[key].toggleViewAction()
        was = window.docks[key].isHidden()
        action.trigger()
        assert window.docks[key].isHidden() != was
