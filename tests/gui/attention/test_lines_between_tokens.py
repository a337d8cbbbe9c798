"""Weights as lines from token to token: which are drawn, names, zoom, and what an alignment says."""

from __future__ import annotations

from typing import Any

import numpy as np
from head_views import CTRL, LEFT, WEIGHTS, T, hover, spot, wheel
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QStyleOptionGraphicsItem

# -- lines


def test_lines_are_the_strongest_weights_and_those_of_a_token_alone(panel: Any) -> None:
    panel.view.setCurrentText("Lines")
    QApplication.processEvents()
    lines = panel.lines
    assert lines.sentence.startswith("the 5 strongest of each query, 190 of 820 weights")
    panel.options.option("lines", "each 3").trigger()
    assert len(lines.links) == 3 * T - 3 and lines.sentence.startswith(
        "the 3 strongest of each query, 117 of 820 weights ≠ 0: "
    )
    assert {(2, 0), (2, 1), (2, 2)} <= set(zip(lines.links.queries.tolist(), lines.links.keys.tolist(), strict=True))
    panel.options.option("lines", "200").trigger()
    assert len(lines.links) == 200 and lines.sentence.startswith("the strongest 200 of 820 weights ≠ 0:")
    panel.options.option("lines", "50").trigger()
    largest = np.sort(WEIGHTS[0, 0].ravel())[-50:]
    np.testing.assert_allclose(np.sort(lines.links.weights), largest)
    hover(panel, spot(panel, lines, lines.place_of(0, 30)))
    assert lines.alone == (0, 30) and set(lines.links.queries) == {30} and len(lines.links) == 31
    assert "; 100 % of its weight" in lines.sentence or ": 100 % of its weight" in lines.sentence
    hover(panel, spot(panel, lines, lines.place_of(1, 8)))
    assert lines.alone == (1, 8) and set(lines.links.keys) == {8} and "key 8 alone" in lines.sentence
    hover(panel, QPoint(2, 2))
    assert lines.alone is None


def test_profiles_say_where_they_have_no_place(panel: Any) -> None:
    def said() -> str:
        panel.options.menu().aboutToShow.emit()
        action = next(one for one in panel.options.menu().actions() if one.text().startswith("Profiles"))
        assert action.isEnabled() == (action.text() == "Profiles")
        return str(action.text())

    assert said() == "Profiles"
    panel._added(2, 3)
    assert said() == "Profiles: beside one map, not beside several"
    panel.view.setCurrentText("Lines")
    assert said() == "Profiles: beside a map, not beside lines"
    panel.view.setCurrentText("Map")
    panel.options.option("several", "mean").trigger()
    panel.resize(900, 300)
    QApplication.processEvents()
    assert said().startswith("Profiles: needs a map of 400 pixels, here are ")


def test_short_names_leave_the_room_to_lines(panel: Any) -> None:
    panel.view.setCurrentText("Lines")
    QApplication.processEvents()
    lines, names = panel.lines, [f"w{n}" for n in range(T)]
    lines.set_weights(WEIGHTS[0, 0], names, names)
    narrow = lines.names_wide(0)
    lines.set_weights(WEIGHTS[0, 0], ["a long name of a token"] * T, names)
    assert narrow == lines.names_wide(1) < 60 < lines.names_wide(0) == 84
    assert lines.place_of(0, 0).x() == lines.area().left() + 90
    assert lines.place_of(1, 0).x() == lines.area().right() - narrow - 6


def test_lines_are_zoomed_dragged_and_named_without_overlap(panel: Any) -> None:
    panel.view.setCurrentText("Lines")
    QApplication.processEvents()
    lines = panel.lines
    at = spot(panel, lines, lines.place_of(0, 20))
    wheel(panel, at, 5)
    low, high = lines.view
    assert high - low < 0.5 and low < 20.5 / T < high
    view = panel.figure.viewport()
    QTest.mousePress(view, LEFT, pos=at)
    QTest.mouseMove(view, at + QPoint(0, 40))
    QTest.mouseRelease(view, LEFT, pos=at + QPoint(0, 40))
    assert lines.view[0] < low
    QTest.keyClick(panel, Qt.Key.Key_0, CTRL)
    assert lines.view == (0.0, 1.0)
    for height, room in ((3.0, 14.0), (6.0, 14.0), (20.0, 14.0)):
        named = lines.named(0, height, room)
        gaps = np.diff(sorted(named)) * height
        assert len(named) == len(set(named)) and (gaps >= room - 1e-9).all() and len(named) >= T * height / room / 3


def test_many_parallel_lines_are_lines_and_no_block(panel: Any) -> None:
    """300 steps that each look at the one before, in some 170 pixels: between any two lines there is ground."""
    many = 300
    diagonal = np.eye(many, k=-1) * 0.9 + np.tril(np.full((many, many), 1e-4))
    names = [f"w{n}" for n in range(many)]
    panel.resize(820, 300)
    panel.view.setCurrentText("Lines")
    QApplication.processEvents()
    lines = panel.lines
    lines.set_count(1, of_each=True)
    lines.set_weights(diagonal, names, names)
    height = lines.area().height()
    assert len(lines.links) == many and height / 6 < lines.drawn.sum() < height / 3 + 1 < many
    picture = panel.grab().toImage()
    middle = lines.mapToScene(lines.area().center())
    at = panel.figure.mapTo(panel, panel.figure.mapFromScene(middle))
    column = [picture.pixelColor(at.x(), at.y() + n).lightnessF() for n in range(-60, 60)]
    light = np.array(column) > max(column) - 0.08
    assert light.mean() > 0.3 and (np.diff(light.astype(int)) == 1).sum() > 15
    assert f": {lines.drawn.sum()} lines for {many}; " in lines.sentence
    lines.zoom(0.02, 0.5)
    assert lines.drawn.sum() == lines._in_view().sum() >= 6 and " lines for " not in lines.sentence
    strong = np.where(np.eye(many, k=-1) > 0, np.linspace(0.1, 0.9, many)[:, None], 0)
    lines.set_weights(strong, names, names)
    lines.show_whole()
    lines.set_cursor(151, None)
    drawn = set(lines.links.queries[lines.drawn].tolist())
    assert {299, 151} <= drawn and 150 not in drawn and 152 not in drawn


# -- alignments


def test_an_alignment_has_a_path_and_its_numbers(panel: Any) -> None:
    panel.view.setCurrentText("Alignment")
    keys, queries = panel.row.plot.path.getData()
    assert keys.tolist() == WEIGHTS[0, 0].argmax(-1).tolist() and queries.tolist() == list(range(T))
    np.testing.assert_allclose(panel.row.of_query.getData()[1], WEIGHTS[0, 0].sum(0), rtol=1e-5)
    np.testing.assert_allclose(panel.row.of_key.getData()[0], WEIGHTS[0, 0].max(-1), rtol=1e-6)
    assert f"focus {WEIGHTS[0, 0].max(-1).mean():.2f}, diagonality" in panel.row.heading
    panel.options.option("focus", "entropy").trigger()
    with np.errstate(all="ignore"):
        entropy = -np.nansum(WEIGHTS[0, 0] * np.log(WEIGHTS[0, 0]), -1)
    np.testing.assert_allclose(panel.row.of_key.getData()[0], entropy, rtol=1e-5, atol=1e-7)
    assert {name.rpartition(" ")[2] for name in panel.data()} >= {"coverage", "largest", "entropy", "path"}
    panel.view.setCurrentText("Map")
    assert panel.row.plot.path.getData()[0] is None or not len(panel.row.plot.path.getData()[0])


def test_a_long_token_keeps_its_number(panel: Any) -> None:
    panel.view.setCurrentText("Lines")
    lines = panel.lines
    lines.set_weights(WEIGHTS[0, 0], ["internationalisation"] * T, [f"w{n}" for n in range(T)])
    metrics = QFontMetricsF(lines.font())
    said = lines.fitting(0, 35, metrics, 84.0, every=True)
    assert said.startswith("int") and said.endswith("… 35") and metrics.horizontalAdvance(said) <= 84
    assert lines.fitting(1, 35, metrics, 84.0, every=True) == "w35 35"
    assert lines.fitting(1, 35, metrics, 84.0, every=False) == "w35"


def test_lines_of_the_cursor_are_above_the_others_and_not_pale(panel: Any) -> None:
    """A weak weight of the query at the cursor, over which strong ones of all others pass."""
    panel.view.setCurrentText("Lines")
    lines, count = panel.lines, 21
    weights = np.zeros((count, count))
    weights[np.arange(count), count - 1 - np.arange(count)] = 1.0
    weights[10] = 0.0
    weights[10, 10] = 0.3
    lines.set_weights(weights, ["q"] * count, ["k"] * count)
    lines.set_cursor(10, None)
    image = QImage(lines.size().toSize(), QImage.Format.Format_RGB32)
    image.fill(QColor("#ffffff"))
    with_painter = QPainter(image)
    lines.paint(with_painter, QStyleOptionGraphicsItem())
    with_painter.end()
    middle = 0.5 * (lines.place_of(0, 10) + lines.place_of(1, 10))
    there, accent, cursor = (
        image.pixelColor(round(middle.x()), round(middle.y())), QColor(lines.theme.accent), QColor(lines.theme.cursor),
    )  # fmt: skip

    def far(one: QColor) -> int:
        return abs(one.red() - there.red()) + abs(one.green() - there.green()) + abs(one.blue() - there.blue())

    assert far(cursor) < far(accent)
