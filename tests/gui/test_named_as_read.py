"""What stands in lists and menus is to be read: frames of edited runs, sequences that ran last, what plays."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.engine.session.catalogue import catalog
from inspector.gui.dialogs.dialogs import name_of
from inspector.gui.state.offered import Offered
from inspector.gui.state.remembered import opened
from inspector.gui.window.bars.input_bar import InputBar
from inspector.gui.window.bars.line_texts import LineTexts
from inspector.gui.window.main_window import Window
from inspector.records import InputSpec, Load, Loaded
from inspector.records.edits import parse_edit
from tests.support.opened import finish
from tests.support.opened import opened as opened_window


@pytest.mark.parametrize("typed, words", [
    ("rnn.l0:h=0@34:", "rnn.l0:h = 0 from step 34 on"),
    ("rnn.l0:gate/forget[3]=0.5@10:20", "rnn.l0:gate/forget[3] = 0.5 at steps 10 to 19"),
    ("rnn.l0:h[2]=-1@4:5", "rnn.l0:h[2] = -1 at step 4"), ("blocks.0.attn:head[3]=mean@0:", "blocks.0.attn:head[3] = mean at every step"),
    ("input=x@5", "input = x at step 5"),
])  # fmt: skip
def test_an_edit_is_told_in_words(typed: str, words: str) -> None:
    edit = parse_edit(typed)
    assert edit.words == words and parse_edit(str(edit)) == edit


@pytest.mark.parametrize("spec, words", [
    (InputSpec(), "first example"), (InputSpec(value="a passage"), "a passage"),
    (InputSpec(kind="generated", value="noise", options={"steps": 12}), "generated noise, 12 steps"),
    (InputSpec(kind="text", value="Alice\nwas"), "'Alice\\nwas'"), (InputSpec(kind="ids", value="1 2 3"), "ids 1 2 3"),
    (InputSpec(kind="vectors", value="0 1; 2 3"), "numbers 0 1; 2 3"),
    (InputSpec(kind="file", value="/a/b/c.npy"), "c.npy"), (InputSpec(kind="sequences", value="subject"), "subject"),
])  # fmt: skip
def test_the_first_page_says_what_ran_last(spec: InputSpec, words: str) -> None:
    assert opened(Load(subject="m.py:make"), "m", spec).words == words


@pytest.fixture
def bar(qapp: QApplication) -> InputBar:
    made = InputBar()
    made.set_offered(Offered(catalog()))
    made.set_loaded(Loaded(subject="m", kind="tokens", examples=("one", "two"), default_text="the first", typed="text"))
    return made


def choose(bar: InputBar, kind: str) -> None:
    """As with the mouse, or the arrow keys."""
    at = bar.kind.findData(kind)
    bar.kind.setCurrentIndex(at)
    bar.kind.activated.emit(at)


def test_the_line_beside_an_example_has_no_text_typed_before(bar: InputBar) -> None:
    assert bar.line.text() == "the first" and bar.kind.currentData() == "example"
    choose(bar, "text")
    assert bar.line.text() == "the first", "to be changed"
    bar.line.clear()
    QTest.keyClicks(bar.line, "my own")
    for _ in range(2):
        choose(bar, "example")
        assert bar.line.text() == "the first" and not bar.typed
        assert bar.typed_spec() == InputSpec(kind="example", value="one")
        choose(bar, "text")
        assert bar.line.text() == "my own" and bar.typed_spec() == InputSpec(kind="text", value="my own")
    choose(bar, "file")
    assert bar.line.text() == "", "a text is no path"
    QTest.keyClicks(bar.line, "x.txt")
    bar.typed = False  # it has run
    choose(bar, "text")
    assert bar.line.text() == "my own"
    choose(bar, "file")
    assert bar.line.text() == "x.txt"


def test_what_has_not_run_stays_where_another_kind_is_chosen(bar: InputBar) -> None:
    bar.line.clear()
    QTest.keyClicks(bar.line, "1 2 3")
    choose(bar, "ids")
    assert bar.line.text() == "1 2 3" and bar.typed
    bar.examples.setCurrentIndex(1)
    choose(bar, "example")
    assert bar.line.text() == "" and not bar.typed, "of the second example there is no text"
    texts = LineTexts()
    texts.note("line", "")
    assert texts.chosen("", "a", typed=False) is not None and texts.chosen("", "a", typed=False) is None


@pytest.fixture
def window(qtbot: Any) -> Any:
    with opened_window(qtbot, background=False) as made:
        yield made


def test_the_entry_that_plays_says_its_key_and_what_it_does_next(window: Window, qtbot: Any) -> None:
    play = window.findChild(QAction, "action-playthesteps")
    assert isinstance(play, QAction) and play.text().endswith("\tSpace") and play.shortcut().isEmpty()
    assert name_of(play) == "Play the steps"
    play.trigger()
    assert window.session.sentence == "There are no steps to play yet." and name_of(play) == "Play the steps"
    window.open_sample("char-lstm", "", InputSpec(kind="text", value="Alice was beginning"))
    finish(window, qtbot)
    window.looking.move(steps={"step": 0})
    play.trigger()
    assert name_of(play) == "Stop playing"
    qtbot.waitUntil(lambda: (window.looking.position.step or 0) > 1, timeout=5000)
    play.trigger()
    assert name_of(play) == "Play the steps"
    window.looking.move(steps={"step": 17})
    QTest.keyClick(window, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: name_of(play) == "Play the steps", timeout=5000)


def test_widths_of_bars_outlive_a_start_in_a_narrow_window(window: Window, qtbot: Any) -> None:
    sides = window.docking.sides
    left, right = sides.bars
    window.resize(1380, 860)
    qtbot.wait(60)
    window.resizeDocks([left, right], [217, 270], Qt.Orientation.Horizontal)
    qtbot.waitUntil(lambda: (left.width(), right.width()) == (217, 270))
    window.resize(960, 860)
    qtbot.waitUntil(lambda: left.width() < 217)
    window.docking.remember(window.settings)
    kept = window.settings.text("widths of the bars")
    assert kept == sides.in_text() and kept.startswith("217/1380 270/1")
    sides._roomy = {}  # as at another start
    for damaged in ("", "217/1380", "x y", "0/0 9/1", "-1/5 2/3 4/5"):
        sides.take_text(damaged)
        assert not sides._roomy
    sides._settled = 0
    sides.take_text(kept)
    sides.widen()
    window.resize(1440, 860)
    qtbot.waitUntil(lambda: (left.width(), right.width()) == (217, 270), timeout=3000)
