"""Ask: what is typed is found, marked in every panel, and what tracks it is ranked and drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from opened import opened
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from inspector.capture import Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.ask import PERHAPS, WAITING
from inspector.gui.state.asked import asked_of
from inspector.gui.widgets.plots.match_bands import MatchBands
from inspector.gui.window.main_window import Window
from inspector.records import STEP_DOMAIN, Channel, Frame, Labels, Page, RunStart, RunStop

TEXT = ('it was said "so be it" and then "no" they left ' * 5)[:200]
INSIDE = np.array([TEXT[: t + 1].count('"') % 2 == 1 for t in range(len(TEXT))])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A text, and 6 units of which unit 4 is on inside quotes, two steps late."""
    made = tmp_path_factory.mktemp("ask") / "a.inspect"
    state = np.random.default_rng(0).normal(size=(len(TEXT), 6)).astype(np.float32) * 0.2
    state[2:, 4] += INSIDE[:-2]
    with Writer(made, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Labels(STEP_DOMAIN, tuple(TEXT), 0, 0))
        writer.write(Channel(name="l:h", kind="state", dims=("step", "unit"), shape=state.shape, title="h"))
        writer.write(Page("l:h", 0, (0, 0), state))
        writer.write(RunStop("done"))
    return made


@pytest.fixture
def stage(path: Any) -> Iterator[Stage]:
    with open_capture(path) as capture:
        made = Stage(capture, (1100, 640))
        yield made
        made.close()


def asked(panel: Any, text: str, kind: str = "Text") -> None:
    panel.field.setText(text)
    panel.kind.setCurrentText(kind)
    panel.ask()
    panel.complete()


def test_a_unit_that_tracks_quotes_is_ranked_first_and_drawn(stage: Stage) -> None:
    panel: Any = stage.panel("ask")
    assert panel.plots[0].titleLabel.lines == (WAITING,)
    asked(panel, '"[^"]*"', "Regular expression")
    assert panel.said().startswith(f"{TEXT.count(chr(34)) // 2} matches")
    best = panel.listed[0]
    assert (best.number, best.delay) == (4, 2)
    _, y = panel.curves[0].getData()
    np.testing.assert_allclose(y, stage.capture.array("l:h")[:, 4], rtol=1e-6)
    assert asked_of(stage.cursor).ranges == panel.job.ranges
    assert panel.plots[0]._matches.ranges.tolist() == [list(one) for one in panel.job.ranges]
    panel._chosen(2)
    third = panel.listed[2]
    assert stage.cursor.position.unit == third.number and panel.drawn_tracks()[0] is third
    inside = next(iter(panel.job.ranges))[0]
    rows = dict(panel.readout(stage.cursor.position.moved("step", inside)))
    assert rows[f"in a match [{inside}]"] == "yes"


@pytest.mark.parametrize(("size", "drawn"), [((1100, 640), 3), ((580, 186), 1)])
def test_no_sideways_bar_and_no_curve_too_low_to_be_read(
    stage: Stage, qtbot: Any, size: tuple[int, int], drawn: int
) -> None:
    panel: Any = stage.panel("ask")
    asked(panel, '"[^"]*"', "Regular expression")
    panel.resize(*size)
    qtbot.waitUntil(lambda: sum(plot.isVisible() for plot in panel.plots) == drawn, timeout=3000)
    qtbot.wait(30)
    assert panel.table.horizontalScrollBar().maximum() == 0
    assert min(plot.vb.height() for plot in panel.plots if plot.isVisible()) >= 36
    assert len(panel.drawn_tracks()) == drawn, "and the read-out tells of those that are drawn"
    panel.resize(1100, 640)
    qtbot.waitUntil(lambda: sum(plot.isVisible() for plot in panel.plots) == 3, timeout=3000)


def test_what_is_wrong_or_nowhere_is_said(stage: Stage) -> None:
    panel: Any = stage.panel("ask")
    for text, kind, said in (("(", "Regular expression", "no regular expression"), ("zebra", "Text", "no match"),
                             ("0-199", "Steps", "everywhere"), ("900", "Steps", "0 to 199")):  # fmt: skip
        asked(panel, text, kind)
        assert said in " ".join(panel.plots[0].titleLabel.lines), text
        assert not panel.listed and panel.state == "figure"
    asked(panel, "")
    assert asked_of(stage.cursor).ranges == ()


def test_ctrl_f_asks_and_the_strip_is_marked(qtbot: Any, path: Any) -> None:
    with opened(qtbot, background=False) as window:
        assert isinstance(window, Window)
        window.open_path(str(path))
        qtbot.waitUntil(lambda: window.looking.length == len(TEXT))
        next(a for a in window.menu_actions if a.text() == "&Ask the text…").trigger()
        panel: Any = window.panels.get("ask")
        assert "ask" in window.docking.seen
        QTest.keyClicks(panel.field, "said")
        QTest.keyClick(panel.field, Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: bool(panel.listed), timeout=20_000)
        strip = window.sequence.strip
        first = TEXT.index("said")
        assert np.flatnonzero(strip._matched)[:5].tolist() == [*range(first, first + 4), TEXT.index("said", first + 1)]
        states: Any = window.panels.get("states")
        window.docking.show_panel("states")
        qtbot.waitUntil(lambda: len(states.trace._matches.ranges) == TEXT.count("said"))


def test_matches_closer_than_a_pixel_are_one_band_with_the_share_that_matches() -> None:
    bands = MatchBands()
    bands.set_ranges(((0, 1), (4, 4), (90, 99)))
    assert bands.joined(-0.5, 200, 0.1).tolist() == [[-0.5, 1.5, 1], [3.5, 4.5, 1], [89.5, 99.5, 1]]
    assert bands.joined(-0.5, 200, 5).tolist() == [[-0.5, 4.5, 3 / 5], [89.5, 99.5, 1]]
    assert bands.joined(92, 95, 0.1).tolist() == [[92, 95, 1]]
    assert not len(bands.joined(20, 40, 0.1))


def test_matches_stay_marked_over_another_run_while_the_panel_is_behind_others(qtbot: Any, path: Any) -> None:
    with opened(qtbot, background=False) as window:
        window.open_path(str(path))
        qtbot.waitUntil(lambda: window.looking.length == len(TEXT))
        window.docking.show_panel("ask")
        panel: Any = window.panels.get("ask")
        QTest.keyClicks(panel.field, "said")
        QTest.keyClick(panel.field, Qt.Key.Key_Return)
        qtbot.waitUntil(lambda: bool(panel.listed), timeout=20_000)
        window.docking.show_panel("states")
        states: Any = window.panels.get("states")
        qtbot.waitUntil(lambda: not panel.on_screen and states.on_screen)
        window.open_path(str(path))  # the same sequence once more, as a run of it is
        assert asked_of(window.looking).ranges == ()
        qtbot.waitUntil(lambda: len(states.trace._matches.ranges) == TEXT.count("said"), timeout=20_000)
        assert not panel.listed and not panel.job.found  # what tracks them waits until it is seen
        window.docking.show_panel("ask")
        qtbot.waitUntil(lambda: bool(panel.listed), timeout=20_000)
        assert len(asked_of(window.looking).ranges) == TEXT.count("said")


def test_over_a_map_matches_leave_its_colours_and_over_curves_they_are_bands(stage: Stage) -> None:
    ask: Any = stage.panel("ask")
    asked(ask, "said")
    states: Any = stage.panel("states")
    states.redraw()
    first, last = ask.job.ranges[0]
    middle = (first + last) / 2
    for plot, is_map in ((states.row.plot, True), (states.trace, False)):
        pixels = {}
        for shown in (False, True):
            plot.show_matches(((first, last),) if shown else ())
            picture = states.figure.grab().toImage()
            ratio = picture.devicePixelRatio()
            low, high = plot.vb.viewRange()[1]
            at = [
                states.figure.mapFromScene(plot.vb.mapViewToScene(QPointF(middle, low + share * (high - low))))
                for share in (0.23, 0.45, 0.71)
            ]
            pixels[shown] = [picture.pixelColor(round(ratio * p.x()), round(ratio * p.y())).name() for p in at]
        assert plot._matches.over_map is is_map
        assert (pixels[False] == pixels[True]) is is_map, pixels


def test_the_arrow_is_above_the_column_by_which_the_rows_are_ordered(stage: Stage) -> None:
    panel: Any = stage.panel("ask")
    asked(panel, '"[^"]*"', "Regular expression")
    header = panel.table.horizontalHeader()
    falling, rising = Qt.SortOrder.DescendingOrder, Qt.SortOrder.AscendingOrder
    r = [abs(panel.table.rows.cells[row][1]) for row in panel.table.numbers.order]
    assert r == sorted(r, reverse=True) and len(r) > 3
    assert (header.sortIndicatorSection(), header.sortIndicatorOrder()) == (2, falling)
    panel.table.sorted_by.emit(-1)
    assert panel.table.numbers.order == list(range(len(r)))[::-1]
    assert (header.sortIndicatorSection(), header.sortIndicatorOrder()) == (2, rising)
    panel.table.sorted_by.emit(2)
    assert (header.sortIndicatorSection(), header.sortIndicatorOrder()) == (3, falling)


def test_a_text_that_looks_like_a_pattern_is_asked_about(stage: Stage) -> None:
    panel: Any = stage.panel("ask")
    asked(panel, '"[^"]*"')
    assert panel.said() == PERHAPS
    asked(panel, "nowhere")
    assert panel.said() == "no match"
    asked(panel, "no[wx]here", "Regular expression")
    assert panel.said() == "no match"


def test_saved_numbers_of_a_ranking_say_what_they_are(stage: Stage) -> None:
    panel: Any = stage.panel("ask")
    asked(panel, '"[^"]*"', "Regular expression")
    found = panel.data()
    number, delay, r = found["l:h"].T
    assert number[0] == panel.listed[0].number == 4 and delay[0] == 2
    assert abs(r).tolist() == sorted(abs(r).tolist(), reverse=True)
    assert panel.data_axes()["l:h"] == (("rank", "what"), ("number", "delay", "r")), "no row of it is a step"
