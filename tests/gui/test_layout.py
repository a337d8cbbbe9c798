"""How the window is arranged: tabs that can all be read, one panel enlarged, numbers of what is seen, faults in painting."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from panel_captures import channel, write_frames
from PySide6.QtCore import QEvent
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QTabBar, QToolTip

from inspector.capture import CaptureError
from inspector.gui.app import begin, make_window
from inspector.gui.export.figure_files import save_figure
from inspector.gui.widgets.images.heatmap import Heatmap
from inspector.gui.widgets.plots.axes import StepAxis
from inspector.gui.widgets.plots.legend import Legend
from inspector.gui.widgets.plots.stepplot import StepPlot, curve
from inspector.gui.window.docking.docks import ON_OCCASION
from inspector.gui.window.main_window import Window


@pytest.fixture
def window(qtbot: object, qapp: QApplication, a_capture: Path) -> Iterator[Window]:
    hooks = sys.excepthook
    made = make_window()
    qtbot.addWidget(made)
    made.choose_overview(on=False)
    made.session.start_worker = lambda: None
    made.resize(1280, 720)
    made.show()
    qapp.processEvents()
    begin(made, [], demo=False)
    sys.excepthook = hooks
    made.open_capture(str(a_capture))
    made.looking.move(step=3, unit=2, place="rnn.l0")
    qtbot.wait(150)
    yield made
    made.close()
    from PySide6.QtCore import qInstallMessageHandler

    qInstallMessageHandler(None)


def bars(window: Window) -> list[QTabBar]:
    return [bar for bar in window.findChildren(QTabBar) if bar.parent() is window and bar.isVisible()]


def test_every_title_of_every_panel_is_read_whole_at_1280(window: Window) -> None:
    shown = {}
    for bar in bars(window):
        for i in range(bar.count()):
            shown[bar.tabText(i)] = bar.tabRect(i).right() <= bar.width()
            assert bar.tabToolTip(i)
    assert set(shown) == {panel.title for key, panel in window.panels.items() if key not in ON_OCCASION}
    assert all(shown.values()), shown


def test_a_tab_tells_what_its_panel_shows_with_formulas(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(QToolTip, "showText", lambda _at, text, *_: told.append(text))
    bar = next(bar for bar in bars(window) if "States" in [bar.tabText(i) for i in range(bar.count())])
    at = next(bar.tabRect(i).center() for i in range(bar.count()) if bar.tabText(i) == "States")
    QApplication.sendEvent(bar, QHelpEvent(QEvent.Type.ToolTip, at, bar.mapToGlobal(at)))
    hint, formula = window.panels["states"].hint, "hidden state: h"
    assert told == [f"<qt>{hint}<br>{formula}</qt>"], "once, as bars with room for their tabs show none by themselves"


def test_the_log_comes_to_the_front_when_it_is_asked_for(window: Window, qtbot: object) -> None:
    log = window.docks["log"]
    assert log.isHidden() and "log" not in window.docking.bars
    log.toggleViewAction().trigger()
    qtbot.waitUntil(lambda: not log.visibleRegion().isEmpty(), timeout=3000)
    log.toggleViewAction().trigger()
    assert log.isHidden()


@pytest.mark.parametrize(("steps", "expected"), [(1, [0]), (2, [0, 1]), (3, [0, 1, 2]), (4, [0, 1, 2, 3])])
def test_few_steps_are_all_numbered(qapp: QApplication, steps: int, expected: list[int]) -> None:
    axis = StepAxis("bottom")
    for width in (120.0, 420.0, 900.0):
        ticks = {round(v) for _, values in axis.tickValues(-0.5, steps - 0.5, width) for v in values}
        assert ticks == set(expected), width


def test_one_panel_gets_the_room_of_all_and_gives_it_back(window: Window, qapp: QApplication) -> None:
    docks = window.docks
    before = {key: docks[key].isHidden() for key in window.panels}
    height = docks["states"].height()
    window.docking.enlarge("states")
    qapp.processEvents()
    assert docks["states"].height() > 1.5 * height
    assert docks["jacobians"].isHidden()
    window.docking.enlarge("states")
    qapp.processEvents()
    assert {key: docks[key].isHidden() for key in window.panels} == before
    assert abs(docks["states"].height() - height) < 40


def test_numbers_are_those_of_the_panels_that_are_seen(window: Window, qtbot: object) -> None:
    def headings() -> list[str]:
        table = window.readout
        return [table.item(i, 0).text() for i in range(table.rowCount()) if not table.item(i, 1).text()]

    qtbot.waitUntil(lambda: headings() == ["States", "Jacobians"], timeout=3000)
    window.docks["gates"].raise_()
    qtbot.waitUntil(lambda: headings() == ["Gates", "Jacobians"], timeout=3000)
    assert window.readout.rowCount() <= 25


@pytest.mark.parametrize("part", ["image", "axis"])
def test_a_fault_in_painting_ends_nothing_but_its_panel(
    window: Window, qtbot: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, part: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("nothing can be painted")

    states, jacobians = window.panels["states"], window.panels["jacobians"]
    assert states.state == jacobians.state == "figure"
    with monkeypatch.context() as broken:
        if part == "image":
            for image in ("_grown", "_whole"):
                broken.setattr(Heatmap, image, fail)
            states.redraw()
        else:
            broken.setattr(StepAxis, "tickStrings", fail)
            states.plots[0].step_axis.set_names(("x",) * 40)
        states.figure.viewport().repaint()
        qtbot.waitUntil(lambda: states.state == "error", timeout=3000)
        assert "nothing can be painted" in states._error.toPlainText()
        if part == "image":
            assert jacobians.state == "figure"
            states.redraw()
            with pytest.raises(CaptureError, match="nothing can be painted"):
                save_figure(states, tmp_path / "states.png")
            qtbot.wait(50)
    states.redraw()
    states.figure.viewport().repaint()
    qtbot.wait(50)
    assert states.state == "figure", "what can be painted again is shown again"


def test_a_legend_stands_above_the_curves_in_as_many_rows_as_it_takes(window: Window, qapp: QApplication) -> None:
    panel = window.panels["jacobians"]
    plot: StepPlot = panel.plots[0]
    lines = [curve(panel.theme, n) for n in range(12)]
    legend = Legend(plot, lines, [f"<b>a rather long name {n}</b>" for n in range(12)])
    qapp.processEvents()
    low = legend.mapRectToScene(legend.boundingRect()).bottom()
    assert low <= plot.vb.sceneBoundingRect().top() + 0.5
    assert legend.boundingRect().height() > 30
    legend.clear()
    assert legend.boundingRect().height() == 0


def test_the_whole_sequence_brings_back_plots_with_axes_of_their_own(window: Window, qtbot: object) -> None:
    window.docks["lags"].raise_()
    panel = window.panels["lags"]
    qtbot.waitUntil(lambda: "lags" in window.docking.seen, timeout=3000)
    qtbot.wait(50)
    before = [plot.vb.viewRange()[0] for plot in panel.plots]
    for plot in panel.plots:
        plot.vb.setXRange(2, 5, padding=0)
    window.show_all_steps()
    assert [plot.vb.viewRange()[0] for plot in panel.plots] == before


def colours(window: Window) -> dict[str, str]:
    return {bar.tabText(i): bar.tabTextColor(i).name() for bar in bars(window) for i in range(bar.count())}


@pytest.mark.parametrize("how", ["reset", "enlarge and back", "float and back"])
def test_tabs_of_empty_panels_stay_pale_whatever_moves_the_docks(
    window: Window, qapp: QApplication, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(window.panels["gates"], "channels", list)
    monkeypatch.setattr(type(window.panels["gates"]), "found_in", classmethod(lambda *_: []))
    window.docking.label_tabs()
    before = colours(window)
    assert before["Gates"] == window.theme.muted != before["Jacobians"]
    if how == "reset":
        window.docking.reset()
    elif how == "enlarge and back":
        window.docking.enlarge("states")
        qapp.processEvents()
        assert colours(window)["Gates"] == window.theme.muted
        window.docking.enlarge("states")
    else:
        window.docking.bars["gates"].buttons["float"].click()
        qapp.processEvents()
        window.docking.bars["gates"].buttons["float"].click()
    qapp.processEvents()
    assert colours(window) == before


def test_tabs_are_pale_of_the_capture_that_was_opened_last(window: Window, tmp_path: Path, qapp: QApplication) -> None:
    """Of one with states the tab of maps is pale, of one with maps that of states: also where no dock has moved."""
    dims = ("head", "query", "key")
    (tmp_path / "states").mkdir()
    (tmp_path / "maps").mkdir()
    states = write_frames(tmp_path / "states", channel("r:h", "state", ("step", "unit"), np.zeros((3, 2), np.float32)))
    maps = write_frames(tmp_path / "maps", channel("a:attention", "attention", dims, np.full((1, 3, 3), 1 / 3)))
    pale, black = window.theme.muted, window.theme.text
    for path, expected in ((states, (black, pale)), (maps, (pale, black)), (states, (black, pale))):
        window.open_capture(str(path))
        qapp.processEvents()
        assert (colours(window)["States"], colours(window)["Attention"]) == expected


def test_a_panel_that_floats_has_its_title_and_does_not_lie_where_it_was(window: Window, qapp: QApplication) -> None:
    dock, bar = window.docks["states"], window.docking.bars["states"]
    before = dock.mapToGlobal(dock.rect().topLeft())
    assert not bar.title.isVisible(), "its tab says it"
    bar.buttons["float"].click()
    qapp.processEvents()
    away = dock.pos() - before
    assert dock.isFloating() and bar.title.isVisible() and away.x() > 20 and away.y() > 20
    bar.buttons["float"].click()
    qapp.processEvents()
    assert not bar.title.isVisible()
