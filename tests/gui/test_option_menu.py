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


def test_choices_survive_that_somebody_asks_for_the_menus_of_actions(qtbot: Any) -> None:
    """PySide forgets what Qt made in a menu, with the wrapper of that menu."""
    menu = OptionMenu("Map", "Parts of the map")
    qtbot.addWidget(menu)
    menu.add_choice("sort", "Sort by", {"": "nothing"})
    for action in menu.menu().actions():
        assert action.menu() is not None
    picked: list[tuple[str, str]] = []
    menu.picked.connect(lambda choice, option: picked.append((choice, option)))
    menu.offer("sort", {"": "nothing", "entropy": "entropy"})
    menu.option("sort", "entropy").trigger()
    assert picked == [("sort", "entropy")] and menu.chosen("sort") == "entropy"
