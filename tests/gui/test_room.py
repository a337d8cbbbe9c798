"""What takes room, and what it leaves to the others: columns of pins, long values, titles, summaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import opened
from PySide6.QtCore import QRectF, Qt, QTimer
from PySide6.QtGui import QFontMetricsF
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QInputDialog, QLabel, QPlainTextEdit

from inspector.capture import Writer
from inspector.gui.dialogs.text_dialog import ask_for_text
from inspector.gui.panel.missing import NOTHING, why_empty
from inspector.gui.state.background import Rest
from inspector.gui.state.cursor import Cursor, Position
from inspector.gui.state.pins import Pin, pins_of
from inspector.gui.widgets.plots.titled_plot import TitledPlot
from inspector.gui.widgets.summary_text import FLAGS, LINES, cut_to
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.widgets.token_strip import TokenStrip
from inspector.gui.window.docking.side_docks import Readout
from inspector.gui.window.docking.side_widths import MOST_FOR_PINS
from inspector.gui.window.docking.side_widths import NARROWEST as NARROWEST_LEFT
from inspector.gui.window.main_window import Window
from inspector.records import Channel, Frame, Page, RunStart, RunStop


@pytest.fixture
def window(qtbot: Any, a_capture: Path) -> Iterator[Window]:
    with opened(qtbot, background=False) as made:
        made.resize(1280, 800)
        made.open_capture(str(a_capture))
        yield made


def test_a_long_value_leaves_half_of_a_row_to_its_name(qtbot: Any) -> None:
    table = Readout()
    qtbot.addWidget(table)
    table.resize(230, 300)
    table.show()
    table.show_pins((), fixed=False)
    table.show_rows([("direct path alone, how", "exact; 25 evenly spaced starts of 299; lags up to 299"), ("x", "1")])
    assert table.columnWidth(1) <= table.viewport().width() // 2 + 1
    assert table.rowHeight(0) > 2 * table.rowHeight(1), "it wraps instead"


def test_columns_of_pins_are_in_view_and_the_bar_is_narrow_again_without_them(window: Window, qtbot: Any) -> None:
    dock, pins = window.docks["numbers"], pins_of(window.looking)
    qtbot.wait(100)
    before = dock.width()
    window.looking.move(step=1, unit=0)
    for step in (3, 5, 7, 9):
        pins.add(replace(window.looking.position, step=step))
    qtbot.waitUntil(lambda: dock.width() > before, timeout=5000)
    needed = window.readout.needs
    assert dock.width() >= min(needed, int(MOST_FOR_PINS * window.width())) - 8
    pins.clear()
    qtbot.waitUntil(lambda: abs(dock.width() - before) < 8, timeout=5000)


def test_a_summary_is_cut_at_a_word_and_says_so(qapp: QApplication) -> None:
    metrics = QFontMetricsF(qapp.font())
    words = " ".join(f"word{n}" for n in range(60))
    assert cut_to("a few words", metrics, 400) == "a few words"
    cut = cut_to(words, metrics, 400)
    assert cut.endswith(" …") and words.startswith(cut.removesuffix(" …"))
    more = words[: len(cut) + 8].rsplit(" ", 1)[0] + " …"

    def lines(text: str) -> int:
        height = metrics.boundingRect(QRectF(0, 0, 400, 1e6), FLAGS, text).height()
        return round(height / metrics.lineSpacing())

    assert lines(cut) == LINES < lines(more)


def test_a_title_is_not_written_over_its_neighbour(qtbot: Any) -> None:
    import pyqtgraph as pg

    view = pg.GraphicsLayoutWidget()
    qtbot.addWidget(view)
    view.resize(300, 140)
    plots = [TitledPlot(), TitledPlot()]
    for column, plot in enumerate(plots):
        view.addItem(plot, row=0, col=column)
        plot.title_in(LIGHT.text, "gradient of the parameters by module, nat")
    view.show()
    qtbot.wait(50)
    first, second = (plot.titleLabel for plot in plots)
    text = first.item.mapRectToScene(first.item.boundingRect())
    assert text.right() <= second.mapRectToScene(second.boundingRect()).left() + 1


def test_an_empty_panel_says_that_the_run_has_nothing_of_it(window: Window, qtbot: Any, tmp_path: Path) -> None:
    with Writer(tmp_path / "few.inspect", RunStart(run="r", title="few")) as writer:
        writer.write(Frame(index=0))
        writer.write(Channel(name="output:loss", kind="loss", dims=("step",), shape=(None,)))
        writer.write(Page("output:loss", 0, (0,), np.ones(3, np.float32)))
        writer.write(RunStop("done"))
    window.open_capture(str(tmp_path / "few.inspect"))
    window.docking.show_panel("jacobians")
    panel = window.panels["jacobians"]
    assert panel.state == "empty"
    panel.say_remaining(Rest())  # as in a window whose model has made the run
    assert why_empty(panel) == ([NOTHING], False)


def test_the_map_of_depth_is_in_view_beside_the_parameters(window: Window, qtbot: Any) -> None:
    window.docking.show_panel("depth")
    panel: Any = window.panels["depth"]
    panel.resize(826, 290)
    panel.figure.resize(826, 290)
    qtbot.wait(50)
    drawn = panel.of(("step", "layer")), panel.of(("statistic", "module"))
    assert None not in drawn
    places = {name: panel.figure.ci.items[item] for name, item in (("m", panel.parameters), ("s", panel.row.plot))}
    assert {cell[0] for cell in places["m"]} == {cell[0] for cell in places["s"]}, "in the same row"


def test_log_and_comparison_are_not_there_before_the_panels(qtbot: Any) -> None:
    from inspector.gui.app import make_window

    window = make_window()
    qtbot.addWidget(window)
    window.show()
    assert not window.docks["log"].isVisible() and not window.docks["comparison"].isVisible()
    window.close()


def test_a_strip_stays_where_it_was_scrolled_to_while_the_same_text_runs_again(qtbot: Any) -> None:
    cursor = Cursor()
    strip = TokenStrip(cursor, LIGHT)
    qtbot.addWidget(strip)
    strip.resize(300, 30)
    names = tuple("abcdefghij" * 30)
    strip.set_sequence(names, 300)
    cursor.move(step=100)
    strip._left += 150
    scrolled = strip._left
    for steps in (0, 40, 120, 300):
        strip.set_sequence(names[:steps], steps)
    assert strip._left == scrolled
    strip.set_sequence((), 0)
    strip.set_sequence(tuple("zyxw" * 80), 320)
    assert strip.step_at(0) != 0 and strip._left <= strip._edges[100] < strip._left + strip.width(), "another text"


@pytest.mark.parametrize("keys", ["Ctrl+Return", "Tab"])
def test_a_text_can_be_written_and_agreed_to_without_a_mouse(qtbot: Any, qapp: QApplication, keys: str) -> None:
    seen: list[str] = []

    def write() -> None:
        box: Any = qapp.activeModalWidget()
        assert isinstance(box, QInputDialog)
        seen.extend(label.text() for label in box.findChildren(QLabel) if label.textFormat() == Qt.TextFormat.PlainText)
        field = box.findChild(QPlainTextEdit)
        field.setFocus()
        QTest.keyClicks(field, "here")
        if keys == "Tab":
            QTest.keyClick(field, Qt.Key.Key_Tab)
            assert not field.hasFocus() or field.toPlainText() == "here"
            box.accept()
        else:
            QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)

    QTimer.singleShot(200, write)
    parent = QLabel()
    qtbot.addWidget(parent)
    parent.show()
    assert ask_for_text(parent, "Note", "About <b>unit</b>:") == "here"
    assert seen == ["About <b>unit</b>:"]


def test_a_comparison_gives_the_bars_at_the_sides_their_room_back(window: Window, qtbot: Any, a_capture: Path) -> None:
    left, right = window.docks["open"], window.docks["numbers"]
    pins = pins_of(window.looking)
    window.looking.move(step=1, unit=0)
    for step in (3, 5):
        pins.add(replace(window.looking.position, step=step))
    qtbot.waitUntil(lambda: right.width() >= min(window.readout.needs, int(MOST_FOR_PINS * window.width())) - 8)
    before = left.width()
    window.comparing.begin(str(a_capture))
    window.resizeDocks([left], [NARROWEST_LEFT], Qt.Orientation.Horizontal)  # as rows of panels that need more room do
    qtbot.waitUntil(lambda: left.width() < before - 10, timeout=5000)
    window.comparing.end()
    qtbot.waitUntil(lambda: abs(left.width() - before) <= 2, timeout=5000)
    window.resizeDocks([left], [before - 20], Qt.Orientation.Horizontal)
    qtbot.wait(200)
    chosen = left.width()
    assert chosen < before, "what somebody chooses without a comparison stays"


def test_a_token_and_its_number_are_in_two_lines_where_pins_have_columns(qtbot: Any) -> None:
    table = Readout()
    qtbot.addWidget(table)
    table.resize(384, 400)
    table.show()
    qtbot.wait(50)
    pins = (Pin(1, Position()), Pin(2, Position()))
    table.show_pins(pins, fixed=False)
    rows = [
        ("[…] from earlier steps to it: most", *["238 't': 0.006813"] * 3),
        ("∂L/∂h […]  model", *["1.973 nat"] * 3),
    ]
    table.show_rows(rows)
    assert table.horizontalScrollBar().maximum() == 0 and table.needs <= 384
    assert table.rowHeight(0) > table.rowHeight(1)
