"""Pins, cursor, choices and zoom are the same again: in a session that is opened, and by Continue after a restart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from inspector.gui.state.pins import pins_of
from inspector.gui.state.remembered import Place, last_place
from inspector.gui.window.main_window import Window
from inspector.gui.window.welcome.where_left import remember_view
from inspector.gui.window.zooms import zoom_again, zoomed_in
from inspector.records import InputSpec
from inspector.records.saved_session import SavedSession
from tests.support.opened import finish, opened


def arranged(window: Window, qtbot: Any) -> None:
    """A run, looked at closely."""
    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice was beginning"))
    finish(window, qtbot)
    window.docking.show_panel("states")
    states: Any = window.panels["states"]
    qtbot.waitUntil(lambda: states.state == "figure", timeout=10_000)
    states.order.setCurrentText("by variance")
    looking = window.looking
    for step, unit in ((2, 7), (11, 4)):
        looking.move(step=step, unit=unit, place="rnn.l0")
        assert not pins_of(looking).add(looking.position)
    looking.move(step=9, unit=5)
    with states.trace.vb.moved_by_user((False, True)):
        states.trace.vb.setRange(yRange=(-0.25, 0.5), padding=0)
    window.steps.set(1.5, 14.5)
    QApplication.processEvents()


def same(window: Window, qtbot: Any) -> None:
    states: Any = window.panels["states"]
    qtbot.waitUntil(lambda: len(pins_of(window.looking).all) == 2, timeout=60_000)
    qtbot.waitUntil(lambda: states.trace.vb.held[1], timeout=60_000)
    assert states.trace.vb.viewRange()[1] == pytest.approx([-0.25, 0.5])
    assert states.order.currentText() == "by variance"
    found = [(pin.position.step, pin.position.unit, pin.position.place) for pin in pins_of(window.looking).all]
    assert found == [(2, 7, "rnn.l0"), (11, 4, "rnn.l0")]
    at = window.looking.position
    assert (at.step, at.unit, at.place) == (9, 5, "rnn.l0") and window.steps.bounds == (1.5, 14.5)
    assert states.isVisible()


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_continue_brings_back_all_that_a_session_does(qtbot: Any, process: bool) -> None:
    with opened(qtbot, background=False, process=process) as window:
        arranged(window, qtbot)
        path = window.session.capture.path
    with opened(qtbot, background=False, process=process) as again:
        place = last_place(again.settings)
        assert place is not None
        again.welcome.open()
        again.welcome.go_on(place)
        qtbot.waitUntil(lambda: again.session.loaded is not None, timeout=60_000)
        same(again, qtbot)
        assert again.session.capture.path == path, "nothing was run for it"
        again.welcome.end()


def test_a_window_that_is_closed_while_it_continues_forgets_nothing(qtbot: Any) -> None:
    with opened(qtbot, background=False, process=True) as window:
        arranged(window, qtbot)
        before = last_place_of(window)
    with opened(qtbot, background=False, process=True) as again:
        again.welcome.open()
        again.welcome.go_on(last_place(again.settings))
        assert again.session.loaded is None, "its model is being opened"
        again.welcome.end()
        assert last_place_of(again) == before
    with opened(qtbot, background=False, process=True) as last:
        place = last_place(last.settings)
        assert place is not None and place.model.subject == "char-elman"
        last.welcome.go_on(place)
        same(last, qtbot)
        last.welcome.end()


def last_place_of(window: Window) -> Place:
    remember_view(window)
    place = last_place(window.settings)
    assert place is not None
    return replace(place, model=replace(place.model, title=""))


def test_zoom_and_choices_of_a_panel_that_is_not_looked_at_stay_kept(qtbot: Any, tmp_path: Path) -> None:
    zooms = {"bptt": {"plots": [[None, [0.0, 1.0]]]}}
    kept = SavedSession(choices={"bptt": {"A list": "x"}}, zooms=zooms)
    with opened(qtbot, background=False) as window:
        window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice"))
        finish(window, qtbot)
        window.sessions.bring_back(kept)
        assert window.sessions.kept()["zooms"] == {}, "they are of the next capture"
        window.run(InputSpec(kind="text", value="was beginning"))
        finish(window, qtbot)
        found = window.sessions.kept()
        assert found["zooms"]["bptt"] == zooms["bptt"] and found["choices"]["bptt"]["A list"] == "x"
        window.run(InputSpec(kind="text", value="another run"))  # ranges of one run are not those of the next
        finish(window, qtbot)
        qtbot.waitUntil(lambda: "bptt" not in window.sessions.kept()["zooms"], timeout=10_000)


def test_a_session_keeps_the_zoom_of_plots(qtbot: Any, tmp_path: Path) -> None:
    with opened(qtbot, background=False) as window:
        arranged(window, qtbot)
        window.sessions.save(tmp_path / "a.session.json")
        states: Any = window.panels["states"]
        states.trace.vb.reset()
        pins_of(window.looking).clear()
        window.looking.move(step=0, unit=0)
        states.order.setCurrentIndex(0)
        window.open_path(str(tmp_path / "a.session.json"))
        finish(window, qtbot)
        same(window, qtbot)


def test_a_zoom_is_plain_numbers_and_nonsense_is_left_out(stage_of: Callable[[Path], Any], a_capture: Path) -> None:
    stage = stage_of(a_capture)
    panel = stage.panel("states")
    assert zoomed_in(panel) == {}
    with panel.trace.vb.moved_by_user((False, True)):
        panel.trace.vb.setRange(yRange=(0.0, 2.0), padding=0)
    told = zoomed_in(panel)
    assert told == {"plots": [[None, None], [None, [0.0, 2.0]]]}
    panel.trace.vb.reset()
    for wanted in (
        None, [], {"plots": 3}, {"plots": [[None, [0, 1]]]}, {"plots": [None, [None, [1, 0]]]}, {"iterations": "x"},
        {"plots": [[None, None], [None, [float("nan"), 1]]]}, {"plots": [[[0, 1], None], [[0, 1], None]]},
    ):  # fmt: skip
        zoom_again(panel, wanted)
        assert zoomed_in(panel) == {}, wanted
    zoom_again(panel, told)
    assert zoomed_in(panel) == told


def test_iterations_in_view_of_a_training_are_kept(qtbot: Any, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("step,loss\n" + "".join(f"{n},{1 / (n + 1)}\n" for n in range(100)))
    with opened(qtbot, background=False) as window:
        window.open_path(str(log))
        qtbot.waitUntil(lambda: window.session.reading is None, timeout=10_000)
        panel: Any = window.panels["training"]
        qtbot.waitUntil(lambda: panel.state == "figure", timeout=10_000)
        panel.column.zoomed = (20.0, 40.0)
        panel.redraw()
    with opened(qtbot, background=False) as again:
        place = last_place(again.settings)
        assert place is not None and place.path == str(log)
        again.welcome.go_on(place)
        qtbot.waitUntil(lambda: again.panels["training"].column.zoomed is not None, timeout=10_000)
        assert again.panels["training"].column.zoomed == (20.0, 40.0)
        again.welcome.end()
