"""Quantities that are off by default and states of hand-written cells: chosen in the window, remembered, sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opened import finish, opened
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from inspector.gui.choices import ComputeMenu, StatesDialog, carried, remember_states, remembered_states
from inspector.gui.settings import Settings
from inspector.gui.window import Window
from inspector.records import Catalog, Entry, InputSpec

CATALOG = Catalog(
    torch="2", threads=1, devices=("cpu",),
    quantities=(Entry(key="a", summary="alpha & more", default=True), Entry(key="b/c", summary="beta"), Entry(key="d")),
)  # fmt: skip


@pytest.fixture
def window(qtbot: object, qapp: QApplication) -> Iterator[Window]:
    with opened(qtbot) as made:
        yield made
        made.compute_menu.settings.set_text("also", "")
        made.settings.set_text("states", "{}")


def test_the_menu_lists_what_is_off_and_remembers_what_was_chosen(window: Window) -> None:
    settings = Settings()
    menu = ComputeMenu(settings, window)
    told: list[tuple[str, ...]] = []
    menu.chosen.connect(told.append)
    assert menu.offer(None) == []
    assert [action.text() for action in menu.offer(CATALOG)] == ["Beta", "D"]
    assert menu.offer(CATALOG) == [], "once"
    menu.keys["b/c"].setChecked(True)
    menu.switch_on(["d"])
    assert told == [("b/c",), ("b/c", "d")]
    again = ComputeMenu(Settings(), window)
    again.offer(CATALOG)
    assert again.wanted == ("b/c", "d")
    assert again.keys["b/c"].isChecked()
    again.keys["d"].setChecked(False)
    assert again.wanted == ("b/c",)


def test_states_are_remembered_by_model(window: Window) -> None:
    settings = window.settings
    remember_states(settings, "x.py:make", {"rnn": ("h", "c")})
    remember_states(settings, "other", {"": ["s"]})
    assert remembered_states(Settings(), "x.py:make") == {"rnn": ("h", "c")}
    remember_states(settings, "x.py:make", {})
    assert remembered_states(settings, "x.py:make") == {}
    assert remembered_states(settings, "other") == {"": ("s",)}
    settings.set_text("states", "[broken")
    assert remembered_states(settings, "other") == {}


def test_a_panel_offers_what_is_off_and_it_comes(window: Window, qtbot: object) -> None:
    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice was"))
    finish(window, qtbot)
    panel = window.panels["bptt"]
    window.docks["bptt"].raise_()
    qtbot.waitUntil(lambda: panel._empty.button.isVisible(), timeout=3000)
    qtbot.mouseClick(panel._empty.button, Qt.MouseButton.LeftButton)
    finish(window, qtbot)
    assert window.session.also == ("bptt",)
    assert panel.state == "figure"
    assert "gradients" in window.session.computed
    assert window.panels["jacobians"].channels(), "the default ones are computed as well"
    window.compute_menu.keys["bptt"].setChecked(False)
    window.session.again()
    finish(window, qtbot)
    assert window.session.computed == ()
    assert panel.state == "empty"


def test_the_state_of_a_hand_written_cell_is_corrected(window: Window, qtbot: object) -> None:
    window.open_sample("ladder-lstm", "")
    finish(window, qtbot)
    capture = window.session.capture
    places = carried(capture)
    assert places
    (place, (names, state)), *_ = places.items()
    assert set(state) <= set(names)
    assert len(names) > 1
    dialog = StatesDialog(places, window)
    top = dialog.tree.topLevelItem(0)
    assert {top.child(i).text(0) for i in range(top.childCount())} == set(names)
    assert dialog.states() == {}
    for i in range(top.childCount()):
        top.child(i).setCheckState(0, Qt.CheckState.Unchecked)
    assert not dialog.run.isEnabled()
    top.child(0).setCheckState(0, Qt.CheckState.Checked)
    assert dialog.run.isEnabled()
    wanted = dialog.states()
    dialog.close()
    remember_states(window.settings, window.session.subject, wanted)
    window.session.again()
    finish(window, qtbot)
    assert window.session.capture.labels(f"state:{place}") == wanted[place] != state


def test_a_model_without_hand_written_cells_says_so(window: Window, qtbot: object) -> None:
    from inspector.gui.choices import NO_RECURRENCE, choose_states

    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice"))
    finish(window, qtbot)
    said: list[str] = []
    window.fail = lambda sentence, details="": said.append(sentence)
    choose_states(window)
    assert said == [NO_RECURRENCE]
