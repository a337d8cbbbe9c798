"""Quantities that are off by default and states of hand-written cells: chosen in the window, remembered, sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from opened import finish, opened
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QDialogButtonBox

from inspector.capture import Writer, open_capture
from inspector.engine.registries import QUANTITIES
from inspector.engine.session.catalogue import entries
from inspector.gui.dialogs.options_dialog import OptionsDialog
from inspector.gui.panel.availability import why_not
from inspector.gui.panel.registry import PANELS
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.settings import Settings
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.option_fields import OptionFields
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.window.compute_menu import ComputeMenu
from inspector.gui.window.main_window import Window
from inspector.gui.window.states_choice import StatesDialog, carried, remember_states, remembered_states
from inspector.records import NEEDS, Catalog, Channel, Entry, Frame, InputSpec, Option, Page, RunStart, RunStop

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
    before = window.session.capture
    qtbot.mouseClick(panel._empty.button, Qt.MouseButton.LeftButton)
    finish(window, qtbot)
    assert window.session.also == ("bptt",)
    assert window.panels["bptt"] is panel and panel.state == "figure"  # drawn now, if another came to the front
    assert window.session.computed == ("bptt",) and window.session.capture is before, "the model did not run again"
    assert panel.computed and window.panels["jacobians"].channels(), "what was there stays"
    window.session.again()
    finish(window, qtbot)
    assert window.session.computed == ("bptt",) and panel.channels()
    window.compute_menu.keys["bptt"].setChecked(False)
    window.session.again()
    finish(window, qtbot)
    assert window.session.computed == ()
    qtbot.waitUntil(lambda: panel.state == "empty", timeout=5000)  # at the tick that shows the new run


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
    from inspector.gui.window.states_choice import NO_RECURRENCE, choose_states

    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice"))
    finish(window, qtbot)
    said: list[str] = []
    window.fail = lambda sentence, details="": said.append(sentence)
    choose_states(window)
    assert said == [NO_RECURRENCE]


def test_what_cannot_apply_to_the_model_is_not_offered(tmp_path: Path, qapp: QApplication) -> None:
    """No recurrence, no loss: said in one sentence instead of a button that brings nothing."""
    state = Channel(name="rnn:h", kind="state", dims=("step", "unit"), shape=(3, 2))
    score = Channel(name="output:probability", kind="output", dims=("step", "rank"), shape=(3, 2))
    loss = Channel(name="output:loss", kind="output", dims=("step",), shape=(3,))
    ids = Channel(name="input:token", kind="input", dims=("step",), shape=(3,))
    image = Channel(name="input:image", kind="input", dims=("channel", "row", "column"), shape=(1, 2, 2))
    cases = {
        "a text": ((state, loss, ids), {"picture": "picture", "bptt": ""}),
        "a picture": ((state, loss, ids, image), {"picture": ""}),
        "nothing": ((score, loss), {"bptt": "recurrence", "dynamics": "recurrence", "depth": "", "influence": ""}),
        "no loss": ((state, score), {"bptt": "loss", "truncation": "loss", "dynamics": "", "depth": "loss"}),
        "all": ((state, score, loss), {"bptt": "", "truncation": "", "depth": "", "picture": ""}),
    }
    for name, (channels, expected) in cases.items():
        path = tmp_path / f"{name}.inspect"
        with Writer(path, RunStart(run="r", title="t")) as writer:
            writer.write(Frame(index=0))
            for channel in channels:
                writer.write(channel)
                writer.write(Page(channel.name, 0, (0,) * len(channel.dims), np.zeros(channel.shape, np.float32)))
            with open_capture(path) as growing:
                assert why_not(growing, [("recurrence",)]) == "", "what is not there may still come"
            writer.write(RunStop("done"))
        with open_capture(path) as capture:
            for key, missing in expected.items():
                panel = PANELS[key](Cursor(), StepRange(), LIGHT)
                panel.know(entries(QUANTITIES))
                panel.set_capture(capture)
                assert panel.state == "empty" and panel.hint in panel._empty.text()
                assert panel._empty.button.isHidden() is bool(missing), (name, key)
                assert (NEEDS[missing] if missing else panel.hint) in panel._empty.text()
                panel.set_capture(None)
                panel.deleteLater()


def test_the_offer_goes_when_the_run_has_ended(window: Window, qtbot: object) -> None:
    for key in window.panels:
        if key not in ("bptt", "dynamics"):
            window.docks[key].close()
    window.open_sample("char-transformer", "", InputSpec(kind="text", value="Alice was"))
    finish(window, qtbot)
    for key in ("bptt", "dynamics"):
        page = window.panels[key]._empty
        assert page.isVisible() and page.button.isHidden(), key
        assert "No recurrence was found" in page.text()


def test_options_of_a_quantity_are_asked_for_remembered_and_run(window: Window, qtbot: object) -> None:
    window.open_sample("char-gru", "", InputSpec(kind="text", value="Alice"))
    finish(window, qtbot)
    menu = window.compute_menu
    (entry,) = [entry for entry in window.session.catalog.quantities if entry.key == "gradient/vectors"]
    assert "gradient/vectors" in menu.settable and "bptt" not in menu.settable, "only where there are options"
    dialog = OptionsDialog("t", "s", entry.options, {"steps": "1:3"}, window)
    buttons = dialog.findChild(QDialogButtonBox)
    assert [one.text().replace("&", "") for one in buttons.buttons()] == ["OK", "Cancel"]
    field = dialog.fields.fields["steps"]
    assert field.text() == "1:3"
    field.setText("3:1")
    dialog._accept()
    assert not dialog.problem.isHidden() and "expected FROM:TO" in dialog.problem.text()
    field.setText("0:2")
    dialog._accept()
    assert dialog.result() == OptionsDialog.DialogCode.Accepted
    menu.set_options(entry, dialog.values())
    assert menu.keys["gradient/vectors"].isChecked() and Settings().text("also") == "gradient/vectors@steps=0:2"
    window.run_again()
    finish(window, qtbot)
    values = window.session.capture.array("rnn.l0:gradient/h")
    assert np.isfinite(values[:2]).all() and np.isnan(values[2:]).all()
    menu.keys["gradient/vectors"].setChecked(False)
    assert menu.wanted == ()


def test_each_option_has_a_field_of_its_type(qapp: QApplication) -> None:
    options = (
        Option(name="n", type="int", default=3, low=1, high=9), Option(name="x", default=0.5), Option(name="on", type="bool", default=False),
        Option(name="c", type="choice", default="b", choices=("a", "b")), Option(name="t", type="text"),
        Option(name="at", type="int", default=0, low=0, of_value=("impulse",)), Option(name="more", type="texts"),
    )  # fmt: skip
    fields = OptionFields(options, in_a_row=True)
    assert [type(field).__name__ for field in fields.fields.values()] == [
        "QSpinBox",
        "QLineEdit",
        "QCheckBox",
        "QComboBox",
        "QLineEdit",
        "QSpinBox",
    ]
    assert fields.values() == {}, "defaults are not sent"
    fields.fields["n"].setValue(50)
    fields.fields["x"].setText("2e-3")
    fields.fields["on"].setChecked(True)
    fields.fields["c"].setCurrentIndex(0)
    fields.fields["at"].setValue(4)
    assert fields.values() == {"n": 9, "x": 2e-3, "on": True, "c": "a", "at": 4}
    fields.show_only("noise")
    assert "at" not in fields.values(), "not of this one"
    fields.fields["x"].setText("much")
    with pytest.raises(ValueError, match="x is 'much'; expected a number"):
        fields.values()
    fields.deleteLater()
