"""What is zoomed in maps and lines of attention, in maps of weights and in summaries over training stays over another
run, and is brought back by a session and by Continue; where nothing of it is there any more, everything is seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication

from inspector.gui.panel.map_options import LINES
from inspector.gui.state.remembered import last_place
from inspector.gui.widgets.maps.map_plot import MapPlot, moved_inside
from inspector.gui.widgets.theme import LIGHT
from inspector.gui.window.main_window import Window
from inspector.gui.window.zooms import zoom_again, zoomed_in
from inspector.records import InputSpec
from inspector.workspace.trainings import path_or_training
from tests.support.opened import finish, opened

TEXT = "Alice was beginning to get very tired of sitting by her sister on the bank"
KEYS, QUERIES = [50.5, 70.5], [51.5, 71.5]


def run(window: Window, qtbot: Any, text: str) -> None:
    window.run(InputSpec(kind="text", value=text))
    finish(window, qtbot)
    panel: Any = window.panels["attention"]
    drawn = (len(text), len(text))
    qtbot.waitUntil(lambda: drawn in (panel.page.maps[0].plot.size_of, panel.page.lines._weights.shape), timeout=20_000)
    QApplication.processEvents()


def attention(window: Window, qtbot: Any) -> Any:
    window.open_sample("char-transformer", "", InputSpec(kind="text", value=TEXT))
    finish(window, qtbot)
    return shown(window, qtbot, "attention")


def shown(window: Window, qtbot: Any, key: str) -> Any:
    window.docking.show_panel(key)
    panel: Any = window.panels[key]
    qtbot.waitUntil(lambda: panel.state == "figure", timeout=20_000)
    return panel


def as_lines(panel: Any, qtbot: Any) -> Any:
    panel.view.setCurrentText(LINES)
    qtbot.waitUntil(lambda: panel.page.lines.isVisible() and len(panel.page.lines.links) > 0, timeout=20_000)
    return panel.page.lines


def zoom(plot: Any, x: list[float], y: list[float]) -> None:
    with plot.vb.moved_by_user((True, True)):
        plot.vb.setRange(xRange=x, yRange=y, padding=0)
    QApplication.processEvents()


def test_a_map_keeps_its_zoom_over_runs_as_far_as_it_is_there(qtbot: Any) -> None:
    with opened(qtbot, background=False) as window:
        panel = attention(window, qtbot)
        plot = panel.page.maps[0].plot
        zoom(plot, KEYS, QUERIES)
        run(window, qtbot, TEXT)
        assert plot.vb.viewRange() == [KEYS, QUERIES]
        run(window, qtbot, TEXT[:60])
        assert plot.vb.viewRange() == [[39.5, 59.5], [39.5, 59.5]], "moved to the end that there is, no empty part"
        run(window, qtbot, TEXT[:30])
        assert plot.vb.viewRange() == [[-0.5, 29.5], [-0.5, 29.5]] and plot.whole, "nothing of it is there"
        run(window, qtbot, TEXT)
        assert plot.vb.viewRange() == [KEYS, QUERIES], "as the steps in view come back"
        panel.reset_view()
        run(window, qtbot, TEXT[:60])
        assert plot.vb.viewRange() == [[-0.5, 59.5], [-0.5, 59.5]]


def test_lines_of_attention_keep_the_tokens_in_view(qtbot: Any) -> None:
    with opened(qtbot, background=False) as window:
        panel = attention(window, qtbot)
        lines = as_lines(panel, qtbot)
        lines.zoom_to(37.0, 55.5)
        assert lines.view == (0.5, 0.75)
        run(window, qtbot, TEXT[:60])
        assert lines.tokens == (37.0, 55.5) and lines.view == pytest.approx((37 / 60, 55.5 / 60))
        run(window, qtbot, TEXT[:30])
        assert lines.view == (0.0, 1.0) and lines.tokens is None
        run(window, qtbot, TEXT)
        assert lines.view == (0.5, 0.75)
        lines.show_whole()
        run(window, qtbot, TEXT[:60])
        assert lines.view == (0.0, 1.0)


@pytest.mark.parametrize("view", ["map", "lines"])
def test_continue_and_sessions_bring_it_back(qtbot: Any, tmp_path: Path, view: str) -> None:
    def is_same(panel: Any) -> bool:
        if view == "lines":
            return bool(panel.page.lines.isVisible() and panel.page.lines.tokens == (37.0, 55.5))
        ranges = panel.page.maps[0].plot.vb.viewRange()
        return bool(ranges == [pytest.approx(KEYS), pytest.approx(QUERIES)])

    session = tmp_path / "a.session.json"
    with opened(qtbot, background=False) as window:
        panel = attention(window, qtbot)
        if view == "lines":
            as_lines(panel, qtbot).zoom_to(37.0, 55.5)
        else:
            zoom(panel.page.maps[0].plot, KEYS, QUERIES)
        window.sessions.save(session)
    with opened(qtbot, background=False) as again:
        place = last_place(again.settings)
        assert place is not None
        again.welcome.go_on(place)
        qtbot.waitUntil(lambda: "attention" in again.panels.made, timeout=20_000)
        qtbot.waitUntil(lambda: is_same(again.panels["attention"]), timeout=20_000)
        again.welcome.end()
    with opened(qtbot, background=False) as third:
        third.open_path(str(session))
        finish(third, qtbot)
        qtbot.waitUntil(lambda: is_same(third.panels["attention"]), timeout=20_000)


@pytest.mark.parametrize(("letters", "seen"), [(60, [39.5, 59.5]), (30, [-0.5, 29.5])], ids=["shorter", "far off"])
def test_a_session_with_a_shorter_text_shows_what_there_is(
    qtbot: Any, tmp_path: Path, letters: int, seen: list[float]
) -> None:
    session = tmp_path / "a.session.json"
    with opened(qtbot, background=False) as window:
        zoom(attention(window, qtbot).page.maps[0].plot, KEYS, QUERIES)
        window.sessions.save(session)
    told = json.loads(session.read_text())
    assert told["input"]["value"] == TEXT
    told["input"]["value"] = TEXT[:letters]
    session.write_text(json.dumps(told))
    with opened(qtbot, background=False) as window:
        window.open_path(str(session))
        finish(window, qtbot)
        panel: Any = shown(window, qtbot, "attention")
        qtbot.waitUntil(lambda: "attention" not in window.sessions._zooms, timeout=20_000)
        QApplication.processEvents()
        plot = panel.page.maps[0].plot
        assert plot.size_of == (letters, letters) and plot.vb.viewRange() == [seen, seen]


def test_summaries_over_training_keep_theirs(qtbot: Any) -> None:
    def zoomed(window: Window, qtbot: Any) -> bool:
        over = window.panels["lags"].over if "lags" in window.panels.made else None
        return bool(over is not None and over.on and over.column.zoomed == (100.0, 300.0) and held(over))

    def held(over: Any) -> bool:
        view = over.column.shown[1].plot.vb
        return bool(view.held[1] and view.viewRange()[1] == pytest.approx([-1.0, 40.0]))

    with opened(qtbot, background=False) as window:
        window.open_path(path_or_training("training-vanishing"))
        finish(window, qtbot)
        panel = shown(window, qtbot, "lags")
        panel.over.switch.setChecked(True)
        qtbot.waitUntil(lambda: len(panel.over.column.shown) > 1, timeout=20_000)
        QApplication.processEvents()
        with panel.over.column.shown[1].plot.vb.moved_by_user((False, True)):
            panel.over.column.shown[1].plot.vb.setRange(yRange=(-1.0, 40.0), padding=0)
        panel.over.column.shown[0].plot.vb.setXRange(100, 300, padding=0)
        assert zoomed(window, qtbot)
        kept = window.sessions.kept()["zooms"]["lags"]
        assert list(kept) == ["over"] and kept["over"]["iterations"] == [100.0, 300.0]
    with opened(qtbot, background=False) as again:
        place = last_place(again.settings)
        assert place is not None
        again.welcome.go_on(place)
        qtbot.waitUntil(lambda: zoomed(again, qtbot), timeout=20_000)
        again.welcome.end()


def test_iterations_that_are_not_there_do_not_make_plots_empty(qtbot: Any, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    with opened(qtbot, background=False) as window:
        log.write_text("step,loss\n" + "".join(f"{n},{1 / (n + 1)}\n" for n in range(100)))
        window.open_path(str(log))
        panel = shown(window, qtbot, "training")
        qtbot.waitUntil(lambda: window.session.reading is None, timeout=10_000)
        for wanted, seen in (([500.0, 600.0], (-1.0, 102.0)), ([20.0, 40.0], (20.0, 40.0))):
            assert zoom_again(panel, {"iterations": wanted}) == {}
            low, high = panel.column.shown[0].plot.vb.viewRange()[0]
            assert (low, high) == pytest.approx(seen, abs=1.0)


def test_a_range_of_a_plot_in_which_nothing_would_be_seen_is_left_out(
    stage_of: Callable[[Path], Any], a_capture: Path
) -> None:
    panel = stage_of(a_capture).panel("states")
    before = panel.trace.vb.viewRange()[1]
    far = {"plots": [[None, None], [None, [before[1] + 100, before[1] + 200]]]}
    zoom_again(panel, far)
    assert zoomed_in(panel) == {} and panel.trace.vb.viewRange()[1] == before


def test_parts_of_a_zoom_wait_for_the_figure_that_they_are_of(stage_of: Callable[[Path], Any], a_capture: Path) -> None:
    panel = stage_of(a_capture).panel("states")
    told = {"plots": [[None, None], [None, [0.0, 0.5]]], "over": {"iterations": [1.0, 2.0]}}
    assert zoom_again(panel, told) == {"over": told["over"]}
    assert zoomed_in(panel) == {"plots": told["plots"]}
    for nonsense in ({"maps": 3}, {"maps": [[1, 2]]}, {"lines": [2, 1]}, {"lines": "x"}, {"maps": [None]}):
        assert zoom_again(panel, nonsense) == {}


@pytest.mark.parametrize(
    ("wanted", "count", "found"),
    [
        ((2.0, 5.0), 10, (2.0, 5.0)),
        ((8.0, 12.0), 10, (5.5, 9.5)),
        ((-3.0, 1.0), 10, (-0.5, 3.5)),
        ((3.0, 30.0), 10, (-0.5, 9.5)),
        ((9.5, 12.0), 10, None),
        ((-4.0, -0.5), 10, None),
    ],
)
def test_a_range_moves_into_what_there_is(
    wanted: tuple[float, float], count: int, found: tuple[float, float] | None
) -> None:
    assert moved_inside(wanted, count) == found


def test_another_map_is_seen_whole(qtbot: Any) -> None:
    plot = MapPlot(LIGHT)
    plot.fit(40, 40)
    plot.zoom_to((10.0, 20.0), (10.0, 20.0))
    plot.fit(40, 40)
    assert plot.vb.viewRange() == [[10.0, 20.0], [10.0, 20.0]]
    plot.fit(40, 40, anew=True)
    plot.fit(60, 60)
    assert plot.whole and plot.vb.viewRange() == [[-0.5, 59.5], [-0.5, 59.5]]
