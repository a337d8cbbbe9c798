"""The first page: what is on it, what its cards do, and what is remembered between two windows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.gui.app import make_window
from inspector.gui.panel.colours import colours_of
from inspector.gui.state.remembered import Opened, last_place, recent_models, remember_model
from inspector.gui.widgets.images.colour_choice import OWN, ColourChoice
from inspector.gui.widgets.tile_grid import TileGrid
from inspector.gui.window.main_window import Window
from inspector.gui.window.welcome.cards import OpenCard
from inspector.records import InputSpec
from inspector.workspace.sample_kinds import ELSEWHERE, by_kind, kind_of
from inspector.workspace.samples import list_samples
from tests.support.opened import finish, opened


@pytest.fixture
def window(qtbot: object) -> Iterator[Window]:
    with opened(qtbot, background=False, overview=False) as made:
        yield made


def card(window: Window, name: str) -> OpenCard:
    return next(one for one in window.welcome.page.cards if one.name == name)


def test_every_sample_of_this_package_is_in_one_group_of_its_kind() -> None:
    samples = list_samples()
    grouped = [sample for _, some in by_kind(samples) for sample in some]
    assert sorted(one.name for one in grouped) == sorted(one.name for one in samples)
    assert all(kind_of(sample) != ELSEWHERE for sample in samples if sample.module.startswith("sample_models."))


def test_a_run_is_gone_on_with_after_a_restart(window: Window, qtbot: object) -> None:
    window.welcome.open()
    assert window.welcome.seen and {one.name for one in window.welcome.page.cards} >= {s.name for s in list_samples()}
    window.open_sample("char-elman", "", InputSpec(kind="text", value="Alice"))
    finish(window, qtbot)
    assert not window.welcome.seen, "what was opened is not covered"
    window.looking.move(place="rnn.l0", step=3, unit=5)
    colours_of(window.looking).choose("states", "diverging", ColourChoice(span=OWN, low=-0.25, high=0.25))
    path = window.session.capture.path
    chosen = colours_of(window.looking).text
    window.close()

    with opened(qtbot, background=False, overview=False) as again:
        assert [(one.subject, one.value) for one in recent_models(again.settings)] == [("char-elman", "Alice")]
        again.welcome.open()
        QTest.mouseClick(card(again, "Continue where I was"), Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: again.session.loaded is not None, timeout=60_000)
        assert again.session.capture.path == path and not again.welcome.seen
        at = again.looking.position
        assert (at.place, at.step, at.unit) == ("rnn.l0", 3, 5)
        assert colours_of(again.looking).text == chosen and chosen
        assert again.session.can_run_again and again.session.spec.value == "Alice"
        again.run_again()
        finish(again, qtbot)
        assert again.session.capture.path != path and again.session.capture.labels("step") == tuple("Alice")
        shown, kept = again.session.capture.path, [one for one, _ in again.session.shown.kept()]
        assert {shown, path} == set(kept)
        again.welcome.clear()
        assert [one for one, _ in again.session.shown.kept()] == [shown], "what a window shows stays"
        again.welcome.end()


@pytest.mark.parametrize("kind", ["file", "noise", "many"])
def test_what_ran_last_stands_in_the_line_after_a_restart(
    window: Window, qtbot: object, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "own.txt").write_text("Alice was\n")
    value = str(tmp_path / "own.txt")
    specs = {
        "file": InputSpec(kind="file", value=value),
        "noise": InputSpec(kind="generated", value="noise", options={"steps": 12}),
        "many": InputSpec(kind="sequences", value=value, options={"lines": True}),
    }
    spec = specs[kind]
    window.open_sample("sunspots-gru" if kind == "noise" else "char-elman", "", spec)
    finish(window, qtbot)
    window.close()
    with opened(qtbot, background=False, overview=False) as again:
        again.welcome.open()
        QTest.mouseClick(card(again, "Continue where I was"), Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: again.session.loaded is not None, timeout=60_000)
        qtbot.waitUntil(lambda: again.input.entry is not None and again.input.entry.key == spec.kind, timeout=20_000)
        assert again.input.spec() == spec and not again.input.typed


def test_titles_sizes_and_curves_are_looked_up_beside_the_window(window: Window, qtbot: object) -> None:
    window.welcome.open()
    qtbot.waitUntil(lambda: window.welcome._look is None, timeout=60_000)
    assert all(one.sketch is not None and one.sketch.lines for one in window.welcome._trainings.values())
    assert window.welcome.kept is not None and window.welcome.kept.count == len(window.session.shown.kept())


def test_tab_stays_on_the_page_and_escape_leaves_it(window: Window, qapp: QApplication) -> None:
    window.welcome.open()
    page = window.welcome.page
    window.activateWindow()
    qapp.processEvents()
    next(iter(page.buttons.values())).setFocus()
    for _ in range(8):
        assert page.focusNextPrevChild(True)
        assert page.isAncestorOf(qapp.focusWidget())
    QTest.keyClick(page, Qt.Key.Key_Escape)
    assert not window.welcome.seen


def test_what_was_remembered_badly_is_left_out(window: Window, tmp_path: Path) -> None:
    window.settings.set_text("models", '[{"subject": 3}, {"nothing": 1}, "x"]')
    assert recent_models(window.settings) == []
    window.settings.set_text("models", "{not json")
    remember_model(window.settings, Opened("a.py:make", value="x"))
    remember_model(window.settings, Opened("b.py:make"))
    remember_model(window.settings, Opened("a.py:make", value="y"))
    assert [(one.subject, one.value) for one in recent_models(window.settings)] == [
        ("a.py:make", "y"),
        ("b.py:make", ""),
    ]
    for told in ("", "[]", '{"path": 3}', f'{{"path": "{tmp_path / "gone"}"}}'):
        window.settings.set_text("last", told)
        assert last_place(window.settings) is None


def test_a_window_that_loads_in_steps_keeps_its_size(qtbot: object, qapp: QApplication) -> None:
    window = make_window()
    qtbot.addWidget(window)
    window.session.start_worker = lambda: None
    window.show()
    qapp.processEvents()
    before, steps = window.size(), 0
    for _ in window.loading():
        qapp.processEvents()
        steps += 1
    assert steps >= 2 and window.size() == before, "docks that have no place yet do not widen it"
    window.close()


@pytest.mark.parametrize("width", [1280, 828, 1600, 1024])
def test_at_every_width_all_cards_of_a_group_are_whole(window: Window, qtbot: object, width: int) -> None:
    window.welcome.open()
    window.resize(width, 700)
    grids = window.welcome.page.findChildren(TileGrid)
    qtbot.waitUntil(lambda: all(grid.height() == grid.heightForWidth(grid.width()) for grid in grids), timeout=3000)
    for grid in grids:
        cards = grid.findChildren(OpenCard)
        assert cards and min(one.geometry().top() for one in cards) == 0
        assert all(grid.rect().contains(one.geometry()) for one in cards)
