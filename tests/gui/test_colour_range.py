"""The range of the colours by mouse and by keys: on the colour bar, with how many numbers lie where."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from opened import opened
from panel_captures import channel, shown
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAccessible, QAction
from PySide6.QtTest import QTest

from inspector.capture import Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.colours import colours_of
from inspector.gui.panel.plot_menu import FULL_OF_ALL, PlotMenu, full_of_all
from inspector.gui.widgets.described import describe_widgets
from inspector.gui.widgets.images.colour_choice import AS_USUAL, DRAWN, OWN, ColourChoice
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.maps.colour_span import BINS, BOTH, HIGH, LOW, Span, counted
from inspector.gui.widgets.maps.colourbar import ColourBar
from inspector.gui.window.panel_asks import COLOURS
from inspector.records import Channel, Frame, Page, Place, RunStart, RunStop

VALUES = np.random.default_rng(0).exponential(1.0, (300, 7)).astype(np.float32)


def written(path: Path, scale: str, model: str = "Net") -> Path:
    with Writer(path, RunStart(run=path.stem, title="t", places=(Place(name="", module=model),))) as writer:
        writer.write(Frame(index=0))
        writer.write(Channel(name="l:h", kind="state", dims=("step", "unit"), shape=VALUES.shape, scale=scale))
        writer.write(Page("l:h", 0, (0, 0), VALUES))
        writer.write(RunStop("done"))
    return path


@pytest.fixture(params=["sequential", "diverging", "log"])
def panel(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    describe_widgets()  # before Qt makes interfaces of its own
    with open_capture(written(tmp_path / "a.inspect", request.param)) as capture:
        stage = Stage(capture, (800, 500))
        yield stage.panel("states")
        stage.close()


def at(panel: Any, share: float) -> QPoint:
    """A point of the colour bar, as a share of its height from below, in the viewport."""
    bar = panel.row.bar
    rect = bar._bar()
    scene: QPointF = bar.mapToScene(QPointF(rect.center().x(), rect.bottom() - share * rect.height()))
    return panel.figure.mapFromScene(scene)  # type: ignore[no-any-return]


def drag(panel: Any, start: float, end: float) -> None:
    """By the mouse, in small moves as a hand makes them."""
    view = panel.figure.viewport()
    QTest.mouseMove(view, at(panel, start))
    QTest.qWait(5)
    QTest.mousePress(view, Qt.MouseButton.LeftButton, pos=at(panel, start))
    for share in np.linspace(start, end, 9)[1:]:
        QTest.mouseMove(view, at(panel, float(share)))
        QTest.qWait(12)
    QTest.mouseRelease(view, Qt.MouseButton.LeftButton, pos=at(panel, end))
    QTest.qWait(60)


def number(levels: Levels, end: float) -> float:
    return 10.0**end if levels.log else end


def test_dragging_an_end_chooses_the_range_and_a_double_click_resets_it(panel: Any) -> None:
    bar, usual = panel.row.bar, panel.row.bar.levels
    span = Span.of(bar.given, usual)
    drag(panel, span.share(span.high), span.share(span.high) - 0.4)
    choice = panel.colour_of(usual.scale)
    wanted = span.high - 0.4 * span.width
    assert choice.span == OWN
    assert choice.high == pytest.approx(number(usual, bar.levels.high), rel=1e-6)
    assert bar.levels.high == pytest.approx(wanted, abs=0.06 * span.width)
    if usual.scale == "diverging":
        assert choice.low == -choice.high
    else:
        assert bar.levels.low == pytest.approx(usual.low, abs=1e-6)
    assert panel.row.map.levels.high == bar.levels.high, "the map has the same colours"
    QTest.mouseDClick(panel.figure.viewport(), Qt.MouseButton.LeftButton, pos=at(panel, 0.5))
    QTest.mouseRelease(panel.figure.viewport(), Qt.MouseButton.LeftButton, pos=at(panel, 0.5))
    QTest.qWait(60)
    assert panel.colour_of(usual.scale).span == DRAWN
    assert (bar.levels.low, bar.levels.high) == (usual.low, usual.high)


def test_by_keys_and_in_words(panel: Any) -> None:
    bar, usual = panel.row.bar, panel.row.bar.levels
    panel.looking.move(step=3, unit=1)
    QTest.keyClick(panel, Qt.Key.Key_C)
    assert panel.held_bar is bar and bar.in_hand
    QTest.keyClick(panel, Qt.Key.Key_Down)
    assert bar.levels.high < usual.high and panel.looking.position.unit == 1, "the cursor stays"
    value = QAccessible.queryAccessibleInterface(panel).text(QAccessible.Text.Value)
    assert value.startswith(f"colours from {bar.in_words().split()[2]} to ")
    high = bar.levels.high
    QTest.keyClick(panel, Qt.Key.Key_Up, Qt.KeyboardModifier.ShiftModifier)
    if usual.scale == "diverging":
        assert bar.levels.high < high and bar.levels.low == -bar.levels.high
    else:
        assert bar.levels.high == high and bar.levels.low > usual.low
    QTest.keyClick(panel, Qt.Key.Key_Home)
    assert panel.colour_of(usual.scale) == AS_USUAL and panel.looking.position.step == 3
    QTest.keyClick(panel, Qt.Key.Key_Escape)
    assert panel.held_bar is None and not bar.in_hand
    QTest.keyClick(panel, Qt.Key.Key_Down)
    assert panel.looking.position.unit == 2, "the keys are the cursor's again"


def test_keys_zoom_and_move_along_the_steps(panel: Any) -> None:
    panel.looking.move(step=100)
    QTest.keyClick(panel, Qt.Key.Key_W)
    low, high = panel.steps.bounds
    assert high - low == pytest.approx(0.8 * 300) and (100 - low) / (high - low) == pytest.approx(100.5 / 300)
    QTest.keyClick(panel, Qt.Key.Key_D)
    assert panel.steps.bounds == pytest.approx((low + 0.15 * (high - low), high + 0.15 * (high - low)))
    QTest.keyClick(panel, Qt.Key.Key_A)
    assert panel.steps.bounds == pytest.approx((low, high))
    QTest.keyClick(panel, Qt.Key.Key_S)
    assert panel.steps.bounds == pytest.approx((-0.5, 299.5))


def test_the_picture_of_a_file_has_the_bar_as_usual(panel: Any) -> None:
    from inspector.gui.export.figure_files import picture

    before = picture(panel)
    QTest.keyClick(panel, Qt.Key.Key_C)
    assert picture(panel) == before
    assert colours_of(panel.looking).text == ""


@pytest.mark.parametrize("columns", [40, 300, 5000])
def test_the_histogram_counts_the_numbers_of_the_columns(columns: int) -> None:
    values = np.random.default_rng(1).normal(size=(columns, 5))
    values[3, 2], values[5, 1] = np.nan, np.inf
    span = Span(-1.0, 1.0, -5.0, 5.0)
    seen: list[tuple[int, int]] = []

    def look(cut: tuple[int, int], cells: int) -> tuple[np.ndarray, np.ndarray]:
        assert cells == cut[1] - cut[0], "numbers as they are, not cells of several"
        seen.append(cut)
        return values[slice(*cut)], values[slice(*cut)]

    found = counted(look, columns, span, log=False)
    expected = np.zeros(BINS, int)
    for first, stop in seen:
        for value in values[first:stop].reshape(-1):
            if np.isfinite(value) and -5 <= value <= 5:
                expected[min(BINS - 1, int((value + 5) / 10 * BINS))] += 1
    assert found.tolist() == expected.tolist() and found.sum() > 0


def test_ends_stay_apart_and_on_the_axis() -> None:
    span = Span(2.0, 6.0, 0.0, 10.0)
    assert (span.nearest(2.2), span.nearest(5.9), span.nearest(4.0)) == (LOW, HIGH, BOTH)
    assert (span.moved(LOW, 100).low, span.moved(LOW, -100).low) == (pytest.approx(6.0 - 0.04), 0.0)
    assert (span.moved(HIGH, 100).high, span.moved(HIGH, -100).high) == (10.0, pytest.approx(2.04))
    both = span.moved(BOTH, 100)
    assert (both.low, both.high) == (6.0, 10.0)
    centred = Span(-2.0, 2.0, -5.0, 4.0, centred=True).moved(LOW, -1.0)
    assert (centred.low, centred.high) == (-3.0, 3.0)


def test_a_panel_without_a_colour_bar_leaves_the_key_alone(tmp_path: Path) -> None:
    with open_capture(written(tmp_path / "b.inspect", "log")) as capture:
        stage = Stage(capture, (800, 500))
        for key in ("openers", "preflight", "gradients"):
            empty: Any = stage.panel(key)
            QTest.keyClick(empty, Qt.Key.Key_C)
            assert empty.held_bar is None and empty.state == "empty"
        stage.close()


def test_a_range_in_numbers_stays_with_its_model_and_is_not_remembered(tmp_path: Path, qtbot: Any) -> None:
    one, again, other = (
        str(written(tmp_path / f"{name}.inspect", "sequential", model))
        for name, model in (("a", "Net"), ("b", "Net"), ("c", "Other"))
    )
    with opened(qtbot, background=False) as window:
        window.open_capture(one)
        store = colours_of(window.looking)
        store.choose("states", "sequential", ColourChoice("inferno", OWN, 0.5, 2.0))
        assert json.loads(window.settings.text(COLOURS)) == {"states": {"sequential": {"colours": "inferno"}}}
        window.open_capture(again)
        assert store.of("states", "sequential").span == OWN, "the same model, another checkpoint or input"
        window.open_capture(other)
        assert store.of("states", "sequential") == ColourChoice("inferno")


def test_the_gradient_is_as_high_as_what_the_plot_draws(panel: Any) -> None:
    drawn = panel.row.plot.vb.sceneBoundingRect()
    bar = panel.row.bar.mapRectToScene(panel.row.bar._bar())
    assert abs(bar.top() - drawn.top()) <= 8 and abs(bar.bottom() - drawn.bottom()) <= 8
    row = panel.row.plot.sceneBoundingRect()
    assert row.height() - bar.height() > 30, "the title and the axis below are no part of it"


def counts_of(bar: Any) -> Any:
    """The histogram that stands beside the bar while it is in the hand."""
    bar.hold(True)
    return bar._counts


def test_numbers_of_a_map_of_attention_are_counted_beside_its_colours(tmp_path: Path) -> None:
    weights = np.random.default_rng(1).dirichlet(np.ones(90), (1, 2000)).astype(np.float32)
    whole = channel("a:attention", "attention", ("head", "query", "key"), weights, limits=(0, 1))
    with shown(tmp_path, "attention", whole) as (_, panel):
        bar = panel.page.shown[0].bar
        found = counts_of(bar)
        rows = [row for start in np.linspace(0, 2000 - 64, 16).astype(int) for row in range(start, start + 64)]
        some = weights[0, rows]
        starts = np.unique(np.linspace(0, 90 - 64, 16).astype(int))
        expected = sum(np.histogram(some[:, s : s + 64], BINS, (0.0, bar.levels.high))[0] for s in starts)
        assert np.array_equal(found, expected) and found.sum() > 0


def test_cells_that_are_masked_or_lost_are_not_counted(tmp_path: Path) -> None:
    square = np.tril(np.full((1, 4, 4), 0.25, np.float32))
    square[0, 3, 0] = np.nan
    allowed = np.stack([np.zeros(4), np.arange(4)]).astype(np.uint16)
    parts = (channel("a:attention", "attention", ("head", "query", "key"), square, limits=(0, 1)),
             channel("a:attention/allowed", "attention", ("statistic", "query"), allowed))  # fmt: skip
    with shown(tmp_path, "attention", *parts) as (_, panel):
        assert counts_of(panel.page.shown[0].bar).sum() == 9, "ten keys are allowed, one of them is not known"


def test_a_range_of_steps_colours_the_trajectory(tmp_path: Path) -> None:
    points = np.random.default_rng(2).normal(size=(40, 2)).astype(np.float32)
    points[7] = np.nan
    way = channel("l:trajectory", "trajectory", ("step", "component"), points)
    with shown(tmp_path, "dynamics", way) as (_, panel):
        bar = panel.bar
        assert counts_of(bar).sum() == 39, "a step without a point is not counted"

        def colours() -> list[str]:
            return [spot.brush().color().name() for spot in panel.plane.dots.points()]

        before = colours()
        assert len(set(before)) > 30
        panel.choose_colours(bar.given.scale, ColourChoice(span=OWN, low=10.0, high=20.0))
        after = colours()
        assert len(set(after[:10])) == 1 and len(set(after[20:])) == 1, "steps beyond the range have its end's colour"
        assert len(set(after[9:20])) > 5 and after != before


@pytest.mark.parametrize("scale", ["sequential", "diverging", "log"])
def test_robust_leaves_outliers_out_and_one_full_range_is_the_same_numbers_in_all_maps(
    tmp_path: Path, scale: str
) -> None:
    random = np.random.default_rng(1)
    names, tables = ("input", "forget", "output"), []
    for size in (1, 2, 3):
        values = np.exp(random.normal(size=(300, 24))).astype(np.float32)
        values[100, size] = 1000 * size  # one number of 7,200
        tables.append(values)
    parts = [
        channel(f"l:gate/{name}", "gate", ("step", "unit"), values, scale=scale)
        for name, values in zip(names, tables, strict=True)
    ]
    with shown(tmp_path, "gates", *parts) as (_, panel):
        bars = [one for one in panel.scene.items() if isinstance(one, ColourBar) and one.isVisible()]
        store, everything = colours_of(panel.looking), np.concatenate(tables)

        def ranges(choice: str) -> list[tuple[float, float]]:
            menu = PlotMenu(panel)
            actions = {one.text(): one for one in menu.findChildren(QAction)}
            next(one for text, one in actions.items() if text.startswith(choice)).trigger()
            drawn = [bar.levels for bar in bars]
            return [(10**one.low, 10**one.high) if one.log else (one.low, one.high) for one in drawn]

        assert len(bars) == 3
        assert max(high for _, high in ranges("Robust")) < 200, "outliers are beyond"
        least = -3000.0 if scale == "diverging" else float(everything.min())
        np.testing.assert_allclose(ranges(FULL_OF_ALL), [(least, 3000.0)] * 3, rtol=1e-5)
        chosen = store.of("gates", scale)
        checked = [one.text() for one in PlotMenu(panel).findChildren(QAction) if one.isChecked()]
        assert FULL_OF_ALL in checked and "Own range…" not in checked
        assert chosen.span == OWN and sorted(high for _, high in ranges("Full: ")) == pytest.approx([1e3, 2e3, 3e3])


def test_maps_of_which_one_is_not_known_or_alone_have_no_range_of_all() -> None:
    known = Levels(0.0, 1.0, full=(-3.0, 4.0))
    assert full_of_all([known, replace(known, full=(-5.0, 2.0))]) == (-5.0, 4.0)
    assert full_of_all([known]) is None and full_of_all([known, Levels(0.0, 1.0)]) is None
