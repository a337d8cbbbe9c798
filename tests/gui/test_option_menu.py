"""Menus of options keep what they are made of."""

from __future__ import annotations

from typing import Any

from inspector.gui.widgets.option_menu import OptionMenu


def test_switches_belong_to_the_button_and_work(qtbot: Any) -> None:
    """Those that belonged to its menu were deleted while a panel was in use."""
    menu = OptionMenu("Map", "Parts of the map")
    qtbot.addWidget(menu)
    switch = menu.add_switch("log", "Logarithmic")
    assert switch.parent() is menu and switch in menu.menu().actions()
    with qtbot.waitSignal(menu.changed):
        switch.trigger()
    assert menu.on("log")
