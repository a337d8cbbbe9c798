"""What a person reads that only one panel has: thumbnails, lines of attention, tokens in cells, histograms, tables."""

from __future__ import annotations

import html
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import cases_gradients
import cases_runs
import cases_units
import numpy as np
import pytest
from panel_captures import channel, shown
from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QApplication
from reading import NOTHING, Case, ColourReader

from inspector.gui.widgets.theme import LAST, colour_table

MAPPED = [case for group in (cases_units, cases_gradients) for case in group.CASES if case.maps]
MARKS_ROWS = {"states", "gates", "units", "openers", "attention", "lags", "bptt"}
"""Panels that mark the row of the cursor in their maps."""


def prepare(panel: Any, case: Case) -> None:
    for name, wanted in case.choose.items():
        box = getattr(panel, name)
        box.setCurrentText(wanted) if isinstance(wanted, str) else box.setValue(wanted)


@pytest.mark.parametrize("case", MAPPED, ids=str)
def test_pointing_at_a_cell_reads_the_number_of_that_cell(tmp_path: Path, case: Case) -> None:
    """The mouse is a little beside the middle of the cell; the cursor's lines cross there."""
    with shown(tmp_path, case.key, *case.parts, place=case.place) as (stage, panel):
        prepare(panel, case)
        stage.cursor.move(**({"head": case.at["head"]} if "head" in case.at else {}))
        for path, truth in case.maps.items():
            row = panel
            for word in path.split("."):
                row = row[int(word)] if word.isdecimal() else getattr(row, word)
            cells = [place for place, value in np.ndenumerate(truth) if value != NOTHING]
            for i, j in (cells[0], *cells[1 :: max(1, len(cells) // 5)], cells[-1]):
                panel.pointed(row.plot, j + 0.3, i - 0.3)
                number = f"{truth[i, j]:.10g}"
                texts = [value.split(",")[0].split()[0] for _, value in panel.labelled_readout()]
                assert number in texts, (
                    f"{case} {path}: {number} at row {i}, column {j} is not in {panel.labelled_readout()}"
                )
                if case.key in MARKS_ROWS:
                    assert row.plot._line.isVisible() and row.plot._line.value() == j
                    assert row.level_line.isVisible() and row.level_line.value() == i


def test_thumbnails_are_the_heads_in_their_places_queries_downward(tmp_path: Path) -> None:
    case = cases_units.ATTENTION
    with shown(tmp_path, "attention", *case.parts, place="attn") as (_, panel):
        image = panel.figure.grab().toImage()
        table = colour_table("attention")[: LAST + 1].astype(np.int64)
        rgb = np.stack([table >> shift & 255 for shift in (16, 8, 0)], -1)
        for (head, query, key), weight in np.ndenumerate(cases_units.WEIGHTS):
            cell = panel.atlas.cell_at(0, head)
            at = QPointF(
                cell.left() + (key + 0.5) / cases_units.KEYS * cell.width(),
                cell.top() + (query + 0.5) / cases_units.QUERIES * cell.height(),
            )
            colour = image.pixelColor(panel.figure.mapFromScene(panel.atlas.mapToScene(at)))
            away = np.sqrt(((rgb - [colour.red(), colour.green(), colour.blue()]) ** 2).sum(1))
            assert abs(away.argmin() / LAST - math.sqrt(weight)) < 0.03, (head, query, key)


def test_lines_of_attention_go_from_the_query_on_the_left_to_the_key_on_the_right(tmp_path: Path) -> None:
    weights = np.zeros((1, 3, 5))
    weights[0, 0, 4] = weights[0, 1, 2] = weights[0, 2, 2] = 1.0
    with shown(tmp_path, "attention", channel("attn:attention", "attention", ("head", "query", "key"), weights)) as (
        _,
        panel,
    ):
        panel.view.setCurrentText("Lines")
        QApplication.processEvents()  # the layout has other parts now
        image = panel.figure.grab().toImage()

        def drawn(query: int, key: int) -> bool:
            """Whether something is drawn a quarter of the way from a query to a key."""
            start, end = panel.lines.place_of(0, query), panel.lines.place_of(1, key)
            point = panel.figure.mapFromScene(panel.lines.mapToScene(start + 0.25 * (end - start)))
            return image.pixelColor(point).name() != panel.theme.window

        assert drawn(0, 4) and drawn(1, 2) and not drawn(0, 0) and not drawn(2, 0)


def test_tokens_stand_in_the_cells_of_their_steps_and_ranks(tmp_path: Path) -> None:
    with shown(tmp_path, "outputs", *cases_units.OUTPUTS.parts, place="") as (_, panel):
        steps, ranks = cases_units.IDS.shape
        placed = {(step, rank): panel.words.text(rank, step) for step in range(steps) for rank in range(ranks)}
        assert placed == {place: cases_units.SEEN[one] for place, one in np.ndenumerate(cases_units.IDS)}
        assert panel.words.isVisible() and panel.words.text(0, steps) == panel.words.text(ranks, 0) == ""


def test_bars_of_tokens_and_of_timescales_have_their_heights_and_places(tmp_path: Path) -> None:
    with shown(tmp_path, "openers", *cases_units.OPENERS.parts, place=cases_units.LAYER) as (_, panel):
        bars = panel.bars.bars.opts
        np.testing.assert_allclose(bars["height"], np.sort(cases_units.MEANS)[::-1])
        np.testing.assert_array_equal(bars["x"], range(4))
        assert [item.toPlainText() for item in panel.bars.counts] == ["×5", "×20", "×10", "×40"]
        mean = (cases_units.MEANS * cases_units.COUNTS).sum() / cases_units.COUNTS.sum()
        assert panel.bars.mean.value() == pytest.approx(mean)
        scales = panel.scales.bars.opts
        there = np.asarray(scales["x"])[np.asarray(scales["height"]) > 0]
        np.testing.assert_allclose(there, np.log10([2.5, 40.0]), atol=scales["width"])
        assert panel.scales.line.value() == pytest.approx(math.log10(cases_units.STEPS))


def test_sentences_of_gates_read_shares_and_runs_by_their_names(tmp_path: Path) -> None:
    with shown(tmp_path, "openers", *cases_units.OPENERS.parts, place=cases_units.LAYER) as (stage, panel):
        stage.cursor.move(unit=0)
        (_, layer), (_, unit) = panel.summary.columns
        assert "f is graded: near 1 in 10 %, near 0 in 40 % of steps" in unit
        assert "f near 1 and i near 0 over 3 steps from step 2: long-term memory" in unit
        assert "1 of 3 units have long-term memory" in layer
        assert "longest in unit 0: over 3 steps from step 2: long-term memory" in layer


def test_bars_of_ratios_stand_at_their_pair_of_layers(tmp_path: Path) -> None:
    with shown(tmp_path, "depth", *cases_gradients.DEPTH.parts) as (_, panel):
        bars = panel.bars.opts
        np.testing.assert_array_equal(bars["x"], [0, 1])
        np.testing.assert_allclose(10 ** np.asarray(bars["height"]), cases_gradients.RATIOS)


def test_marks_of_levels_stand_at_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with shown(tmp_path / "a", "truncation", *cases_gradients.TRUNCATION.parts, place="rnn.l0") as (_, panel):
        np.testing.assert_allclose([10 ** line.value() for line in panel.levels], [0.1, 0.01])
        np.testing.assert_allclose([10 ** line.value() for line in panel.marks], [4, 8, 4, 8])
    (tmp_path / "b").mkdir()
    with shown(tmp_path / "b", "lags", *cases_gradients.LAGS_CASE.parts, place="rnn.l0") as (_, panel):
        assert panel.horizon.isVisible() and panel.horizon.value() == 3 and panel.one.value() == 0
    (tmp_path / "c").mkdir()
    with shown(tmp_path / "c", "clipping", *cases_runs.CLIPPING.parts) as (_, panel):
        np.testing.assert_allclose([10 ** line.value() for line in (panel.line, panel.level)], 0.3)
        assert 10 ** panel.global_norm.value() == pytest.approx(4.0)
        x, y = panel.lines[0].getData()
        np.testing.assert_allclose(y, np.minimum(1, 10**x / 4.0))


def test_the_tables_say_which_name_is_missing(tmp_path: Path) -> None:
    table = channel("rnn.l0:jacobian/lag", "lag", ("statistic", "lag"), np.ones((2, 4)), scale="log", compare="ratio",
                    labels={"statistic": ("middle", "p10")})  # fmt: skip
    with pytest.raises(AssertionError, match=r"has no statistic 'mean'; along this axis it has middle, p10\."):
        shown(tmp_path, "lags", table).__enter__()


def test_units_of_curves_stand_at_the_axis_each_once(tmp_path: Path) -> None:
    line = np.arange(4.0)
    parts = [
        channel(f"output:{name}", "output", ("step",), line, unit=unit)
        for name, unit in (("a", "bit"), ("b", "nat"), ("c", "bit"), ("d", "1"))
    ]
    with shown(tmp_path, "outputs", *parts) as (_, panel):
        assert html.unescape(panel.curves.plot.getAxis("left").labelText) == "bit, nat"


def test_with_shut_gates_the_direct_path_ends_and_the_difference_is_all_that_arrives(tmp_path: Path) -> None:
    whole = 10.0 ** -np.arange(4.0)
    shut, rest = np.array([1.0, 0, 0, 0]), np.array([0.0, *whole[1:]])
    parts = [
        channel(f"rnn.l0:path/lag_{name}", "path", ("statistic", "lag"), np.stack((values, values, values)), title=name,
                scale="log", compare="ratio", labels={"statistic": ("p90", "p10", "median")})
        for name, values in (("direct", shut), ("whole", whole), ("difference", rest))
    ]  # fmt: skip
    with shown(tmp_path, "paths", *parts, place="rnn.l0") as (_, panel):
        drawn = {told: line.getData()[1] for line, told in panel.lags.legend.entries}
        np.testing.assert_array_equal(drawn["direct (median)"], [0, np.nan, np.nan, np.nan])
        np.testing.assert_allclose(drawn["whole (median)"], [0, -1, -2, -3])
        np.testing.assert_allclose(drawn["difference (median)"], [np.nan, -1, -2, -3])
        panel.pointed(panel.lags.plot, 2.0, 0.0)
        assert panel.labelled_readout()[:3] == [
            ("direct, median [lag 2]", "0"),
            ("whole, median [lag 2]", "0.01"),
            ("difference, median [lag 2]", "0.01"),
        ]
        low, high = panel.lags.plot.vb.viewRange()[1]
        assert low < -3 and high > 0 and low > -5


@pytest.mark.parametrize("how", ["by variance", "by similarity"])
def test_rows_in_another_order_are_named_pointed_at_and_marked_by_their_units(tmp_path: Path, how: str) -> None:
    values = np.random.default_rng(5).normal(size=(9, 5)) * [1.0, 5.0, 0.2, 3.0, 0.5]
    with shown(tmp_path, "states", channel("rnn.l0:h", "state", ("step", "unit"), values, scale="diverging")) as (
        stage,
        panel,
    ):
        panel.order.setCurrentText(how)
        QApplication.processEvents()
        order = [panel.unit_at(row) for row in range(5)]
        assert sorted(order) == list(range(5)) and order != list(range(5))
        if how == "by variance":
            assert order == [1, 3, 0, 4, 2]
        ColourReader(panel, panel.row).check(values.T[order], how)
        for row in range(5):
            panel.pointed(panel.row.plot, 6.0, float(row))
            assert panel.row.level_line.value() == row and stage.cursor.position.unit == order[row]
            ((_, number),) = panel.labelled_readout()
            assert float(number) == pytest.approx(values[6, order[row]])


def test_dots_of_saturation_are_pointed_at_as_they_are_drawn(tmp_path: Path) -> None:
    with shown(tmp_path, "gates", *cases_units.GATES.parts, place=cases_units.LAYER) as (stage, panel):
        for unit in range(cases_units.UNITS):
            _, right, left = cases_units.SHARES["forget"][:, unit]
            panel.pointed(panel.scatter, right + 0.002, left - 0.002)
            assert stage.cursor.position.unit == unit


def test_what_lies_beyond_the_limits_is_counted_in_a_word(tmp_path: Path) -> None:
    values = np.random.default_rng(6).normal(size=(64, 20))
    values[3, 4] = 50.0
    with shown(tmp_path, "states", channel("rnn.l0:h", "state", ("step", "unit"), values, scale="diverging")) as (
        _,
        panel,
    ):
        high = float(panel.row.bar._ticks()[2][1])
        share = 100 * (np.abs(values) > high).mean()
        ((_, note),) = panel.row.bar._notes()
        assert note.endswith(" % beyond") and float(note.split()[0]) == pytest.approx(share, rel=0.2) and high < 10


def test_in_a_backward_layer_what_is_felt_comes_before_where_it_came_from(tmp_path: Path) -> None:
    place, grid = "rnn.l0.reverse", np.arange(1.0, 11.0).reshape(2, 5)
    parts = [
        channel(f"{place}:h", "state", ("step", "unit"), np.zeros((7, 1))),
        channel(f"{place}:jacobian/lag_map", "map", ("start", "lag"), grid, title="by start",
                scale="log", compare="ratio", labels={"start": ("6", "4")}),
    ]  # fmt: skip
    with shown(tmp_path, "lags", *parts, place=place) as (stage, panel):
        panel.pointed(panel.row.plot, 3.0, 1.0)
        assert (stage.cursor.position.step, stage.cursor.position.key) == (1, 4)
        assert panel.labelled_readout() == [(f"by start [1, from 4]  {place}", "9")]


def test_parameters_whose_gradient_is_not_finite_are_marked_and_named(tmp_path: Path) -> None:
    parts = []
    for part in cases_runs.CLIPPING.parts:
        if getattr(part, "name", "") == "parameters:clipping/gradient_norm":
            part = replace(part, value=math.nan)
        parts.append(part)
    norms = cases_runs.NORMS.copy()
    norms[2, 1] = math.nan
    name = "parameters:clipping/norms"
    known = [
        one for one in parts if not (isinstance(one, tuple) and one[0].name in (name, "parameters:clipping/by_value"))
    ]
    table = channel(name, "clipping", ("statistic", "parameter"), norms, unit="bit", scale="log", compare="separate",
                    domains={"parameter": "trained parameter"}, labels={"statistic": cases_runs.NORM_NAMES})  # fmt: skip
    with shown(tmp_path, "clipping", *known, table) as (_, panel):
        assert panel.not_finite() == [1] and panel.broken.getData()[1].tolist() == [1.0]
        second = panel.parameters.titleLabel.lines[1]
        assert second.startswith("× NaN or infinite: 1 of 3; ")
        assert panel.effect.isVisible() and panel.effect.titleLabel.lines[1] == (
            f"the gradient of this run is not finite: {cases_runs.PARAMETERS[1]}"
        )
