"""Colours that follow what a map has in view, against the same numbers cut out of the array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import channel, shown
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest

from inspector.capture import open_capture
from inspector.gui.export.figure_files import picture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.colours import Colours, colours_of
from inspector.gui.panel.plot_menu import PlotMenu
from inspector.gui.widgets.images.colour_choice import AS_USUAL, IN_VIEW, OWN, ROBUST, ColourChoice
from inspector.gui.widgets.maps.colourbar import IN_SIGHT
from inspector.records import ViewAt

FOLLOWING = ColourChoice(span=IN_VIEW)
SCALES = ["sequential", "diverging", "log"]


def still(panel: Any) -> None:
    """Until the range of every map of a panel has been read."""
    QTest.qWait(30)
    for _ in range(200):
        waiting = [one for one in (getattr(item, "in_view", None) for item in panel.scene.items()) if one is not None]
        if not any(one._still.isActive() or one._more.isActive() for one in waiting):
            break
        QTest.qWait(20)
    QTest.qWait(20)


def growing(steps: int = 300, units: int = 7) -> Any:
    """Numbers that grow along the steps, of both signs, with what is no number among them."""
    random = np.random.default_rng(0)
    values = (random.normal(size=(steps, units)) * np.linspace(0.1, 50, steps)[:, None]).astype(np.float32)
    values[steps // 2, 1], values[steps // 2, 2] = np.nan, -np.inf
    return values


def expected(part: Any, scale: str) -> tuple[float, float]:
    """(low, high) on the axis of the colours, by numpy."""
    known = part[np.isfinite(part)].astype(np.float64)
    if scale == "log":
        known = np.log10(known[known > 0])
    if scale == "diverging":
        return -float(np.abs(known).max()), float(np.abs(known).max())
    return float(known.min()), float(known.max())


def ends(bar: Any) -> tuple[float, float]:
    return bar.levels.low, bar.levels.high


@pytest.mark.parametrize("scale", SCALES)
def test_the_range_is_that_of_the_steps_and_units_in_view(tmp_path: Path, scale: str) -> None:
    values = growing() if scale != "log" else np.abs(growing()) + np.float32(0.01)
    with shown(tmp_path, "states", channel("l:h", "state", ("step", "unit"), values, scale=scale)) as (_, panel):
        bar, usual = panel.row.bar, ends(panel.row.bar)
        panel.choose_colours(scale, FOLLOWING)
        still(panel)
        least, most = expected(values, scale)
        assert ends(bar) == pytest.approx((max(least, most - (usual[1] - usual[0])) if scale == "log" else least, most))
        panel.steps.set(99.5, 199.5)
        still(panel)
        assert ends(bar) == pytest.approx(expected(values[100:200], scale))
        panel.steps.set(9.5, 29.5)
        with panel.row.plot.vb.moved_by_user((False, True)):
            panel.row.plot.vb.setYRange(1.6, 3.4, padding=0)
        still(panel)
        assert ends(bar) == pytest.approx(expected(values[10:30, 2:4], scale))
        assert ends(panel.row.map) == ends(bar), "the map has the colours of its bar"
        panel.choose_colours(scale, AS_USUAL)
        assert ends(bar) == usual and IN_SIGHT not in str(bar._notes())


def test_it_waits_until_the_view_stands_still(tmp_path: Path) -> None:
    values = growing()
    with shown(tmp_path, "states", channel("l:h", "state", ("step", "unit"), values)) as (_, panel):
        panel.choose_colours("sequential", FOLLOWING)
        still(panel)
        before, look = ends(panel.row.bar), panel.row.map._overview
        looks: list[tuple[int, int]] = []

        def noted(cut: tuple[int, int], cells: int) -> Any:
            looks.append(cut)
            return look(cut, cells)

        panel.row.map._overview = noted
        for first in range(5):
            panel.steps.set(first, first + 50.0)
            assert ends(panel.row.bar) == before and not looks, "nothing is read while it moves"
        still(panel)
        assert looks and ends(panel.row.bar) == pytest.approx(expected(values[4:55], "sequential"))


@pytest.mark.parametrize("scale", ["sequential", "diverging"])
def test_a_view_of_one_number_and_one_of_none(tmp_path: Path, scale: str) -> None:
    values = growing(120, 3)
    values[:40], values[40:80] = 2.5, np.nan
    with shown(tmp_path, "states", channel("l:h", "state", ("step", "unit"), values, scale=scale)) as (_, panel):
        bar, usual = panel.row.bar, ends(panel.row.bar)
        panel.choose_colours(scale, FOLLOWING)
        panel.steps.set(4.5, 29.5)
        still(panel)
        assert ends(bar) == ((-2.5, 2.5) if scale == "diverging" else (2.0, 3.0))
        panel.steps.set(44.5, 69.5)
        still(panel)
        assert ends(bar) == usual and not bar.levels.of_view, "without a number the range is the usual one"


def test_each_map_has_its_own_and_cells_that_are_not_there_do_not_count(tmp_path: Path) -> None:
    small, large = growing(), 10 * growing()
    parts = [
        channel(f"l:gate/{name}", "gate", ("step", "unit"), v) for name, v in (("input", small), ("forget", large))
    ]
    with shown(tmp_path, "gates", *parts) as (_, panel):
        colours_of(panel.looking).choose("gates", "sequential", FOLLOWING)
        panel.steps.set(19.5, 59.5)
        still(panel)
        found = sorted(ends(row.bar) for row in panel.rows if row.bar.isVisible())
        wanted = sorted(expected(one[20:60], "sequential") for one in (small, large))
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
        row = panel.rows[0]
        row.map._covers = ([((30, 60), (0, 7))], [])
        row.map.in_view.settle()
        assert ends(row.bar) == pytest.approx(expected(small[20:30], "sequential"))


def test_a_part_of_a_map_of_attention(tmp_path: Path) -> None:
    weights = np.random.default_rng(1).dirichlet(np.ones(90), (1, 90)).astype(np.float32)
    whole = channel("a:attention", "attention", ("head", "query", "key"), weights, limits=(0, 1))
    with shown(tmp_path, "attention", whole) as (_, panel):
        one = panel.page.shown[0]
        panel.choose_colours("attention", FOLLOWING)
        with one.plot.vb.moved_by_user((True, True)):
            one.plot.vb.setRange(xRange=(9.5, 19.5), yRange=(29.5, 49.5), padding=0)
        still(panel)
        (left, right), (top, bottom) = ((round(a + 0.5), round(b + 0.5)) for a, b in one.plot.vb.viewRange())
        assert (right - left) < 40 and (bottom - top) < 40
        assert ends(one.bar) == pytest.approx(expected(weights[0, top:bottom, left:right], "sequential"), rel=1e-6)
        assert not one.bar.says_as(one.bar), "what maps have in view is told at each"


def test_the_bar_says_so_and_keys_choose_it(tmp_path: Path) -> None:
    with shown(tmp_path, "states", channel("l:h", "state", ("step", "unit"), growing())) as (_, panel):
        QTest.keyClick(panel, Qt.Key.Key_C)
        QTest.keyClick(panel, Qt.Key.Key_End)
        still(panel)
        assert panel.colour_of("sequential") == FOLLOWING
        panel.steps.set(9.5, 29.5)
        still(panel)
        assert [text for _, text in panel.row.bar._notes()][:1] == [IN_SIGHT]
        assert panel.row.bar.levels.beyond == (True, True) and "beyond" not in str(panel.row.bar._notes())
        assert panel.row.bar.in_words().endswith(f", {IN_SIGHT}")
        QTest.keyClick(panel, Qt.Key.Key_Home)
        assert panel.colour_of("sequential") == AS_USUAL
        actions = {one.text(): one for one in PlotMenu(panel).findChildren(QAction)}
        next(one for text, one in actions.items() if text.startswith("In view")).trigger()
        assert panel.colour_of("sequential") == FOLLOWING


def test_what_is_in_view_now_stays(tmp_path: Path) -> None:
    values = np.abs(growing()) + np.float32(0.01)
    with shown(tmp_path, "states", channel("l:h", "state", ("step", "unit"), values, scale="log")) as (_, panel):
        panel.steps.set(199.5, 249.5)
        still(panel)
        actions = {one.text(): one for one in PlotMenu(panel).findChildren(QAction)}
        actions["Own range: what is in view now"].trigger()
        choice, (low, high) = panel.colour_of("log"), expected(values[200:250], "log")
        assert (choice.span, choice.low, choice.high) == (OWN, pytest.approx(10**low), pytest.approx(10**high))
        panel.steps.set(9.5, 29.5)
        still(panel)
        assert ends(panel.row.bar) == pytest.approx((low, high)) and not panel.row.bar.levels.of_view


def test_a_bar_without_a_map_does_not_offer_it(tmp_path: Path) -> None:
    points = np.random.default_rng(2).normal(size=(40, 2)).astype(np.float32)
    with shown(tmp_path, "dynamics", channel("l:trajectory", "trajectory", ("step", "component"), points)) as (
        _,
        panel,
    ):
        usual = ends(panel.bar)
        panel.choose_colours(panel.bar.given.scale, FOLLOWING)
        assert ends(panel.bar) == usual
        panel.choose_colours(panel.bar.given.scale, AS_USUAL)
        QTest.keyClick(panel, Qt.Key.Key_C)
        QTest.keyClick(panel, Qt.Key.Key_End)
        assert panel.colour_of(panel.bar.given.scale) == AS_USUAL


def test_it_is_kept_in_sessions_and_between_starts() -> None:
    store, again = Colours(), Colours()
    store.choose("states", "diverging", FOLLOWING)
    store.choose("gates", "sequential", ColourChoice(span=ROBUST))
    assert store.as_data()["states"] == {"diverging": {"range": "view"}}
    again.take_text(store.lasting)
    assert again.of("states", "diverging") == FOLLOWING and again.text == store.text


def test_a_figure_in_a_file_has_the_range_of_its_steps(tmp_path: Path) -> None:
    values = growing()
    with shown(tmp_path, "states", channel("l:h", "state", ("step", "unit"), values)) as (_, first):
        path = first.capture.path
    with open_capture(path) as capture:
        stage = Stage(capture, (800, 500))
        at = ViewAt(steps=(50, 99), colours='{"states": {"sequential": {"range": "view"}}}')
        panel: Any = stage.panel("states", at=at)
        stage.fit(panel)
        drawn = picture(panel)
        assert ends(panel.row.bar) == pytest.approx(expected(values[50:100], "sequential"))
        still(panel)
        assert picture(panel) == drawn, "it waited for the range"
        stage.close()


def test_words_in_cells_have_the_colours_of_the_range(tmp_path: Path) -> None:
    chances = np.sort(np.random.default_rng(3).uniform(0.2, 0.6, (12, 3)).astype(np.float32))[:, ::-1]
    dims = ("step", "rank")
    parts = (channel("output:top", "output", dims, np.ascontiguousarray(chances), limits=(0, 1)),
             channel("output:tokens", "output", dims, np.zeros((12, 3), np.int32), value_domain="class"))  # fmt: skip
    seen: list[Any] = []
    with shown(tmp_path, "outputs", *parts) as (_, panel):
        set_texts = panel.words.set_texts

        def noted(word: Any, index: Any, table: Any) -> None:
            seen.append(index)
            set_texts(word, index, table)

        panel.words.set_texts = noted
        panel.choose_colours(panel.row.bar.given.scale, FOLLOWING)
        still(panel)
        drawn = panel.row.map.levels
        assert drawn.of_view and ends(panel.row.bar) == pytest.approx(expected(chances, "sequential"))
        assert np.array_equal(seen[-1], drawn.index(chances.T)) and not np.array_equal(seen[-1], seen[0])
