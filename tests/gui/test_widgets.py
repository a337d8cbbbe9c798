"""Colours, levels, thumbnails, tokens: the parts that pictures are made of."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtGui import QColor, QImage, QPainter

import inspector.gui
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.step_range import StepRange
from inspector.gui.widgets.charts.rankplot import RankPlot
from inspector.gui.widgets.images.quantise import Levels, extreme, levels_of
from inspector.gui.widgets.maps.atlas import CELL, thumbnail
from inspector.gui.widgets.plain_text import clean, clean_block, escaped, plain_label, token, tooltip
from inspector.gui.widgets.plots.axes import LogAxis, StepAxis, ValueAxis
from inspector.gui.widgets.plots.stepplot import SMOOTH, WIDE, curve, decimated, isolated, logarithm
from inspector.gui.widgets.summary_text import SummaryText
from inspector.gui.widgets.theme import DARK, INFINITE, LAST, LIGHT, MASKED, NOT_A_NUMBER, colour_table
from inspector.gui.widgets.token_strip import TokenStrip


def test_colour_indices_keep_nan_and_infinity_apart() -> None:
    index = Levels(0.0, 1.0).index(np.array([0.0, 1.0, -5.0, 5.0, np.nan, np.inf, -np.inf]))
    assert list(index) == [0, LAST, 0, LAST, NOT_A_NUMBER, INFINITE, INFINITE]
    assert Levels(0.0, 1.0, masked=True).index(np.array([-np.inf]))[0] == MASKED


def test_robust_limits_say_what_they_clip() -> None:
    values = np.concatenate((np.random.default_rng(0).normal(size=10_000), [1e6]))
    levels = levels_of(values, "sequential", None)
    assert levels.high < 10 and 0 < levels.clipped < 0.02
    even = levels_of(values, "diverging", None)
    assert even.low == -even.high
    assert levels_of(values, "sequential", (0, 1)).clipped == 0


@pytest.mark.parametrize("values", [np.full(5, np.nan), np.zeros(0), np.full(3, 7.0), np.array([-1.0, 0.0])])
@pytest.mark.parametrize("scale", ["sequential", "diverging", "log"])
def test_levels_of_degenerate_data(values: np.ndarray, scale: str) -> None:
    levels = levels_of(values, scale, None)
    assert np.isfinite([levels.low, levels.high]).all() and levels.low < levels.high


@pytest.mark.parametrize("scale", ["sequential", "diverging", "log", "attention"])
def test_colour_maps_are_perceptually_uniform_enough(scale: str) -> None:
    table = colour_table(scale)[: LAST + 1]
    red, green, blue = (((table >> shift) & 255) / 255 for shift in (16, 8, 0))
    light = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    halves = [light] if scale != "diverging" else [light[: LAST // 2], light[LAST // 2 :][::-1]]
    for half in halves:
        assert (np.diff(half) > -0.01).all() and half[-1] - half[0] > 0.3


def test_extremes_of_a_cell() -> None:
    low, high = np.array([-3.0, -1.0, np.nan]), np.array([1.0, 2.0, np.nan])
    np.testing.assert_array_equal(extreme(low, high, "diverging"), [-3, 2, np.nan])
    np.testing.assert_array_equal(extreme(low, high, "sequential"), [1, 2, np.nan])


def test_thumbnails_keep_the_largest_weight_and_nan() -> None:
    weights = np.zeros((500, 500))
    weights[250, 3] = 1.0
    assert thumbnail(weights).shape == (CELL, CELL) and thumbnail(weights).max() == LAST
    weights[7] = np.nan
    assert (thumbnail(weights) == NOT_A_NUMBER).any()
    assert thumbnail(np.ones((1, 3))).shape == (CELL, CELL)


def test_curves_keep_gaps_and_extremes() -> None:
    x, y = decimated(np.array([0.0, -1.0]), np.array([1.0, 3.0]), 10.0, 5.0)
    np.testing.assert_array_equal(y, [0, 1, -1, 3])
    assert list(x) == [12.0, 12.0, 17.0, 17.0]
    np.testing.assert_array_equal(np.isnan(logarithm(np.array([1.0, 0.0, -1.0, np.nan, np.inf]))), [False] + [True] * 4)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("<s>", "<s>"),
        (" ", "␣"),
        ("\n", "↵"),
        ("", "∅"),
        (" the", "␣the"),
        ("a\u202eb", "a⟨202e⟩b"),
        ("\x00", "⟨0000⟩"),
        ("日", "日"),
    ],
)
def test_tokens_are_seen_as_they_are(raw: str, shown: str) -> None:
    assert token(raw) == shown


def test_text_from_outside_is_plain(qapp: object) -> None:
    label = plain_label("<img src=file:///dev/zero>")
    assert label.text() == "<img src=file:///dev/zero>" and label.textFormat().name == "PlainText"
    assert escaped("<s>") == "&lt;s&gt;" and tooltip("<b>").startswith("<qt>&lt;")
    assert len(clean("x" * 5000)) == 2000
    block = clean_block("x" * 1_000_000 + "\n" + "y\n" * 400_000)
    assert len(block) <= 200_000 and max(map(len, block.split("\n"))) <= 2000


def test_no_label_with_outside_text_is_made_bare() -> None:
    bare = ("QLabel", "QMessageBox", "QTextEdit")
    for path in Path(inspector.gui.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(name in text for name in bare) else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in bare:
                assert path.name == "plain_text.py", f"{path.name}:{node.lineno} makes a bare {node.func.id}"


def test_the_cursor_clamps_and_tells_once(qapp: object) -> None:
    cursor = Cursor()
    told: list[object] = []
    cursor.moved.connect(lambda new, old: told.append(new))
    cursor.set_length(10)
    cursor.move(step=50)
    assert cursor.position.step == 9
    cursor.move(step=9)
    assert len(told) == 1
    cursor.set_length(3)
    assert cursor.position.step == 2
    cursor.advance(-7)
    assert cursor.position.step == 0
    cursor.move(step=None)
    assert cursor.position.step is None
    cursor.move(steps={"answer step": 7})
    assert cursor.position.at("answer step") == 7, "the length of that axis is not known yet"


def test_the_step_range_stays_inside(qapp: object) -> None:
    steps = StepRange()
    steps.set_length(100)
    assert steps.bounds == (-0.5, 99.5)
    steps.set(-50, 10)
    assert steps.bounds == (-0.5, 59.5)
    steps.set(40, 41)
    assert steps.bounds[1] - steps.bounds[0] == 2
    steps.show_all()
    steps.set_length(200)
    assert steps.bounds == (-0.5, 199.5)


def test_the_range_waits_where_the_steps_of_another_run_are_to_come(qapp: object) -> None:
    steps, seen = StepRange(), []
    steps.set_length(300)
    steps.changed.connect(lambda low, high: seen.append((low, high)))
    steps.keep()
    steps.set_length(0)
    assert steps.bounds == (-0.5, 299.5) and not seen, "the picture of the run before is drawn as it was"
    steps.set_length(20_000)
    assert seen == [(-0.5, 19_999.5)]
    steps.set(4_000, 5_000)
    steps.keep()
    steps.set_length(0)
    assert steps.bounds == (4_000, 5_000)
    steps.set_length(20_000)
    assert steps.bounds == (4_000, 5_000)
    steps.forget()  # another model
    steps.set_length(0)
    steps.set_length(8_000)
    assert steps.bounds == (-0.5, 7_999.5), "all of it, though there would be these steps too"


def test_the_strip_paints_only_what_is_seen_and_finds_steps(qtbot: object) -> None:
    cursor = Cursor()
    strip = TokenStrip(cursor, LIGHT)
    qtbot.addWidget(strip)
    strip.resize(400, 30)
    strip.set_sequence([f"<{i}>" for i in range(100_000)], 100_000)
    strip.set_values(np.random.default_rng(0).random(100_000), "surprise")
    cursor.set_length(100_000)
    cursor.move(step=99_999)
    strip.set_theme(DARK)
    image = strip.grab().toImage()
    assert len({image.pixel(x, 15) for x in range(0, 400, 3)}) > 3
    assert strip.step_at(395) in (99_998, 99_999)
    strip.set_sequence([], 0)
    strip.grab()
    assert strip.step_at(5) is None


@pytest.mark.parametrize("size", [40, 90, 400])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.05, 1.05), (-3e-5, 7e-5), (1e30, 4e31), (99.9, 100.1)])
def test_plain_axes_have_two_labels_or_more_and_room_for_each(qapp: object, low: float, high: float, size: int) -> None:
    ((_, values),) = ValueAxis("left").tickValues(low, high, size)
    assert 2 <= len(values) <= max(5, size / 18)
    near = 1e-9 * (high - low)
    assert all(low - near <= value <= high + near for value in values)
    assert len(values) == 2 or np.diff(values).min() * size / (high - low) > 12


@pytest.mark.parametrize("size", [200, 600, 1400, 3000])
@pytest.mark.parametrize("steps", [2, 5, 12, 400])
def test_axes_of_steps_have_two_labels_or_more_however_wide(qapp: object, steps: int, size: int) -> None:
    """Where few steps are far from each other, pyqtgraph's round numbers are parts of a step."""
    values = [value for _, level in StepAxis("bottom").tickValues(0.0, steps - 1.0, size) for value in level]
    assert len(values) >= 2 and all(float(value).is_integer() for value in values)


def test_axes_of_rows_count_whole_ones(qapp: object) -> None:
    for rows in (1, 2, 7, 2000):
        ((_, values),) = ValueAxis("left", whole=True).tickValues(rows - 0.5, -0.5, 90)
        assert values and all(float(value).is_integer() for value in values)


@pytest.mark.parametrize(
    ("low", "high"), [(0.02, 0.15), (-0.15, 0.15), (-0.7, 0.25), (0.0, 0.013), (-9, 1), (-0.9, 1.3), (-60, 3)]
)
def test_logarithmic_axes_never_have_one_label_alone(qapp: object, low: float, high: float) -> None:
    for size in (40, 60, 200):
        axis = LogAxis("left")
        ((spacing, values),) = axis.tickValues(low, high, size)
        assert len(values) > 1, (low, high, size)
        assert np.diff(values).min() * size / (high - low) > 8, "labels do not touch"
        shown = axis.tickStrings(values, 1.0, spacing)
        assert len(set(shown)) == len(shown), shown


@pytest.mark.parametrize("reach", [0.01, 0.06, 0.1, 0.17])
@pytest.mark.parametrize("size", [120, 600])
def test_narrow_logarithmic_axes_have_numbers_above_and_below_1(qapp: object, reach: float, size: int) -> None:
    ((_, values),) = LogAxis("left").tickValues(-reach, reach, size)
    assert min(values) < -0.3 * reach and max(values) > 0.3 * reach
    assert np.diff(values).min() * size / (2 * reach) > 12, "labels do not touch"


def test_points_that_no_line_reaches(qapp: object) -> None:
    nan = np.nan
    y = np.array([nan, 1, nan, 2, 3, nan, 4, 4, nan, 5])
    x = np.array([0, 1, 2, 3, 4, 5, 6, 6, 7, 8.0])
    assert list(np.flatnonzero(isolated(x, y))) == [1, 6, 7, 9]
    assert isolated(x[:0], y[:0]).shape == (0,)


def test_long_lines_are_painted_many_times_faster_than_they_were_asked_for(qapp: object, qtbot: object) -> None:
    import time

    import pyqtgraph as pg

    view = pg.PlotWidget()
    qtbot.addWidget(view)
    view.resize(900, 500)
    view.show()
    values = np.random.default_rng(0).normal(size=2400)
    line = curve(LIGHT, 0, width=1.8)
    view.addItem(line)

    def painted() -> float:
        start = time.perf_counter()
        view.viewport().repaint()
        return time.perf_counter() - start

    for count in (WIDE, SMOOTH, len(values)):
        line.setData(np.arange(count), values[:count])
        assert line.opts["pen"].widthF() == (1.8 if count == WIDE else 1.0)
        assert line.opts["antialias"] is (count <= SMOOTH)
    line.setData(np.arange(1200), values[:1200])
    qapp.processEvents()
    took = min(painted() for _ in range(3))
    view.removeItem(line)
    view.addItem(pg.PlotDataItem(values[:600], pen=pg.mkPen("#000000", width=1.8), antialias=True))
    assert 3 * took < painted(), "half as many points, as wide and smooth as was asked, take much longer"
    line.setPen(pg.mkPen("#ffffff", width=3))
    assert line.opts["pen"].widthF() == 1.0
    line.setData([0.0, 1.0], [0.0, 1.0])
    assert line.opts["pen"].widthF() == 3.0, "a short line is as wide as was asked"
    line.setData(np.arange(2400), np.arange(2400.0))
    assert line.opts["pen"].widthF() == 3.0 and line.opts["antialias"], "and so is one that goes one way"


def test_a_dense_line_has_no_gaps_where_it_is_nearly_flat(qapp: object, qtbot: object) -> None:
    """A profile of 16,000 keys that falls at once and then shakes by less than a pixel: each column of pixels has it."""
    import pyqtgraph as pg

    view = pg.PlotWidget(background="#ffffff")
    qtbot.addWidget(view)
    view.resize(900, 110)
    shaking = 1e-4 + 5e-6 * np.random.default_rng(0).normal(size=2400)
    line = curve(LIGHT, 0)
    view.addItem(line)
    line.setData(np.arange(2400.0), np.where(np.arange(2400) < 6, 6e-4, shaking))
    view.getPlotItem().vb.setRange(xRange=(0, 2400), yRange=(0, 6.3e-4), padding=0)
    view.show()
    qapp.processEvents()
    image = view.grab().toImage()
    inside = view.getPlotItem().vb.sceneBoundingRect().toRect().adjusted(3, 3, -3, -12)
    painted = [
        any(
            image.pixelColor(x, y).blue() - image.pixelColor(x, y).red() > 60
            for y in range(inside.top(), inside.bottom())
        )
        for x in range(inside.left(), inside.right())
    ]
    assert len(painted) > 700 and all(painted)


def test_the_cursor_comes_back_to_its_step_when_a_run_is_made_again() -> None:
    cursor = Cursor()
    cursor.set_length(300)
    cursor.move(step=120)
    cursor.set_length(0)
    assert cursor.position.step is None, "the new capture is empty at first"
    cursor.set_length(64)
    assert cursor.position.step == 63
    cursor.set_length(300)
    assert cursor.position.step == 120
    cursor.set_length(64)
    cursor.move(step=5)
    cursor.set_length(300)
    assert cursor.position.step == 5, "where the user went meanwhile counts"


def test_a_cursor_that_comes_back_is_told_from_one_that_was_moved() -> None:
    cursor, asked = Cursor(), []
    cursor.moved.connect(lambda new, old: asked.append((new.step, not cursor.settling)))
    for length in (300, 0, 64, 300):
        cursor.set_length(length)
        if not asked:
            cursor.move(step=120)
    assert asked == [(120, True), (None, False), (63, False), (120, False)]


@pytest.mark.parametrize("order", ["cursor first", "sequence first", "while it grows"])
def test_the_strip_shows_the_cursor_in_another_sequence(qtbot: object, order: str) -> None:
    """A run of fewer steps pulls the cursor to its last one; what grows is not scrolled back from under the user."""
    cursor = Cursor()
    cursor.set_length(300)
    strip = TokenStrip(cursor, LIGHT)
    qtbot.addWidget(strip)
    strip.resize(400, 30)
    strip.set_sequence(list("a" * 300), 300)
    cursor.move(step=290)
    shorter = list("b" * 120)
    if order == "cursor first":
        cursor.set_length(120)
        strip.set_sequence(shorter, 120)
    elif order == "sequence first":
        strip.set_sequence(shorter, 120)
        cursor.set_length(120)
    else:
        for length in (2, 50, 120):
            cursor.set_length(length)
            strip.set_sequence(shorter[:length], length)
    assert cursor.position.step == 119
    assert strip.step_at(0) <= 119 <= strip.step_at(399)
    strip._left = 0
    strip.set_sequence([*shorter, "b"], 121)
    assert strip.step_at(0) == 0


def test_a_strip_measures_its_tokens_again_only_where_they_are_others(qtbot: object) -> None:
    strip = TokenStrip(Cursor(), LIGHT)
    qtbot.addWidget(strip)
    strip.resize(400, 30)
    names = ["wide token", "b", "c"]
    strip.set_sequence(tuple(names), 3)
    before = strip._edges
    strip.set_sequence(tuple(names), 3)
    assert strip._edges is before, "the same text, read once more"
    for names, steps in ((("wide token", "b", "d"), 3), (("wide token", "b", "d", "e"), 4), ((), 4), (("b",), 1)):
        strip.set_sequence(names, steps)
        fresh = TokenStrip(Cursor(), LIGHT)
        qtbot.addWidget(fresh)
        fresh.resize(400, 30)
        fresh.set_sequence(names, steps)
        assert list(strip._edges) == list(fresh._edges)


def test_marks_of_many_ranks_are_smaller(qapp: object) -> None:
    plot = RankPlot(LIGHT, label="|λ|", bottom="rank", log=False, level=1.0)
    sizes = {}
    for count in (1, 256, 257):
        plot.show_values(np.linspace(0.0, 1.0, count))
        sizes[count] = plot.line.opts["symbolSize"]
    assert sizes == {1: 5, 256: 5, 257: 3}


def test_a_summary_that_is_too_long_is_cut_within_its_own_area(qapp: object) -> None:
    summary = SummaryText(LIGHT)
    summary.resize(120, summary.maximumHeight())
    summary.set_text("Ågjpqy " * 60)
    height = int(np.ceil(summary.boundingRect().height()))
    image = QImage(120, height + 20, QImage.Format.Format_ARGB32)
    image.fill(QColor("white"))
    painter = QPainter(image)
    summary.paint(painter, None, None)  # type: ignore[arg-type]
    painter.end()
    inked = [y for y in range(image.height()) if any(image.pixelColor(x, y) != QColor("white") for x in range(120))]
    assert inked and inked[0] >= 1 and height - 8 < inked[-1] < height - 1
