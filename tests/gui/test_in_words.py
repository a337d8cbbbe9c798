"""What a program that reads the screen is told: a name and a role of every control, and the values of what is painted."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from opened import opened
from PySide6.QtGui import QAccessible, QAccessibleInterface
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QLabel, QTabBar, QWidget
from pytestqt.qtbot import QtBot

from inspector.gui.panel.base import Panel
from inspector.gui.state.cursor import Cursor
from inspector.gui.widgets.described import describe_widgets
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.widgets.token_strip import TokenStrip
from inspector.gui.window.main_window import Window

Role, Text = QAccessible.Role, QAccessible.Text
SILENT = (Role.NoRole, Role.Client, Role.Separator, Role.ScrollBar, Role.ToolBar, Role.StatusBar)


def interface(widget: QWidget) -> QAccessibleInterface:
    found = QAccessible.queryAccessibleInterface(widget)
    assert found is not None, widget
    return found


@pytest.fixture(scope="module")
def window(qapp: QApplication, a_capture: Path) -> Iterator[Window]:
    """One that shows a capture, read by all tests of this file; it is hidden while none looks at it."""

    class Bot:
        def addWidget(self, _widget: QWidget) -> None: ...

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inspector.gui.state.session.Session.start_worker", lambda _session: None)
        with opened(Bot()) as made:
            made.open_path(str(a_capture))
            made.tick()
            made.panels.all()
            made.hide()
            yield made


def reached_by_tab(window: Window) -> list[QWidget]:
    found, one = [window.sequence.strip], window.sequence.strip.nextInFocusChain()
    while one is not None and one is not window.sequence.strip:
        tabbed = one.focusPolicy().value & 1 and one.focusProxy() is None
        spare = isinstance(one, QTabBar) and not one.count()  # Qt keeps bars for groups that are no longer
        if tabbed and not spare and (one.window() is window) and one.parent() is not None:
            found.append(one)
        one = one.nextInFocusChain()
    return found


def test_everything_that_tab_comes_to_has_a_name_and_a_role(window: Window) -> None:
    stops = reached_by_tab(window)
    assert len(stops) > 100
    nameless = []
    for one in stops:
        own = interface(one)
        if own.role() in SILENT or not own.text(Text.Name).strip():
            nameless.append(f"{type(one).__name__} in {place_of(one)}: {own.role()}")
    assert not nameless, "\n".join(nameless)


def place_of(widget: QWidget | None) -> str:
    """The names of what a widget is in."""
    found = []
    while widget is not None:
        found.append(widget.objectName() or type(widget).__name__)
        widget = widget.parentWidget()
    return " < ".join(found[1:5])


def test_the_strip_says_its_step_its_token_and_its_number(qtbot: QtBot) -> None:
    describe_widgets()
    cursor = Cursor()
    strip = TokenStrip(cursor, LIGHT)
    qtbot.addWidget(strip)
    said = interface(strip)
    assert said.role() == Role.Slider and said.text(Text.Name) == "The sequence, step by step"
    assert said.text(Text.Value) == "no sequence yet"
    strip.set_sequence(("a", "<b>", "c"), 3)
    cursor.set_lengths({"step": 3})
    strip.set_values(np.array([0.5, 0.03623402, np.nan]), "surprise")
    for step, expected in ((1, "step 1 '<b>' of 3, surprise 0.03623"), (2, "step 2 'c' of 3, surprise NaN")):
        cursor.move(step=step)
        assert said.text(Text.Value) == expected
        assert said.text(Text.Description).startswith(expected)


def test_a_panel_says_what_the_read_out_says_and_its_figure_what_is_drawn(window: Window) -> None:
    panel: Panel = window.panels["states"]
    window.docking.show_panel("states")
    window.looking.move(step=2, unit=1)
    panel.redraw()
    rows = panel.labelled_readout()
    assert rows and panel.state == "figure"
    said = interface(panel)
    assert (said.role(), said.text(Text.Name)) == (Role.Pane, "States")
    assert all(f"{what} {value}" in said.text(Text.Value) for what, value in rows[:3])
    drawn = interface(panel.figure)
    assert (drawn.role(), drawn.text(Text.Name)) == (Role.Chart, "Figure of States")
    title = " ".join(panel.plots[0].titleLabel.lines)
    assert title and title in drawn.text(Text.Description)


def test_the_timeline_says_its_frame(window: Window) -> None:
    said = interface(window.timeline.view)
    assert said.role() == Role.Slider and said.text(Text.Value).endswith("of 1 frame")


def test_interfaces_live_no_longer_than_their_widgets(qtbot: QtBot) -> None:
    describe_widgets()
    cursor = Cursor()
    for _ in range(50):
        strip = TokenStrip(cursor, LIGHT)
        assert interface(strip).text(Text.Value) == "no sequence yet"
        strip.deleteLater()
        del strip
        gc.collect()
    QApplication.processEvents()
    cursor.move(step=1)


def test_scrolled_figures_are_no_stop_of_their_own(window: Window) -> None:
    areas = [one for one in reached_by_tab(window) if type(one) is QAbstractScrollArea]
    assert not areas and not [one for one in reached_by_tab(window) if isinstance(one, QLabel)]
