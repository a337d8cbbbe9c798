"""Rows of a decoder that runs, differences of two runs, and odd maps: empty, one token, NaN, nothing but masked keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from panel_captures import channel, shown

from inspector.capture import Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.map_options import VIEWS
from inspector.gui.widgets.maps.head_map import thinned
from inspector.gui.widgets.theme import MASKED, NOT_A_NUMBER
from inspector.records import Channel, Frame, Labels, Page, RunStart

KEYS = 7
ROWS = np.random.default_rng(0).dirichlet(np.ones(KEYS), 9).astype(np.float32)
MAP = {"limits": (0, 1), "domains": {"query": "step", "key": "step"}}


def maps(weights: np.ndarray, name: str = "a:attention") -> Any:
    return channel(name, "attention", ("head", "query", "key"), weights, **MAP)


def drawn(panel: Any) -> np.ndarray:
    """The colour numbers of the large map."""
    columns, rows = panel.row.plot.size_of
    cells, _ = panel.row.map._look((0.0, 0.0, float(columns), float(rows)), (columns, rows))
    found: np.ndarray = panel.row.map._levels.index(cells)
    return found


def test_an_alignment_grows_row_by_row_and_stays_zoomed(tmp_path: Path, qtbot: Any) -> None:
    name = "decoder:attention/rows"
    with Writer(tmp_path / "a.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Labels("step", tuple("abcdefg"), -1))
        writer.write(Channel(name=name, kind="attention", dims=("head", "query", "key"), shape=(1, None, None), limits=(0, 1),
                             domains={"query": "query", "key": "step"}))  # fmt: skip

        def more(first: int, stop: int) -> None:
            for row in range(first, stop):
                writer.write(Page(name, 0, (0, row, 0), ROWS[None, row : row + 1]))
            writer.flush()

        more(0, 2)
        with open_capture(tmp_path / "a.inspect") as capture:
            stage = Stage(capture, (1000, 700))
            panel = stage.panel("attention")
            panel.view.setCurrentText("Alignment")
            for first, stop in ((2, 3), (3, 5), (5, 9)):
                np.testing.assert_allclose(panel.row.of_query.getData()[1], ROWS[:first].sum(0), rtol=1e-6)
                assert panel.row.plot.path.getData()[0].tolist() == ROWS[:first].argmax(1).tolist()
                assert panel.row.plot.vb.viewRange()[1] == [-0.5, first - 0.5], "all rows are in view"
                assert f"focus {ROWS[:first].max(1).mean():.2f}" in panel.row.heading
                more(first, stop)
                panel.refresh(capture.refresh())
            panel.row.plot.vb.setRange(xRange=(1, 4), yRange=(1, 4), padding=0)
            panel.redraw()
            assert panel.row.plot.vb.viewRange() == [[1, 4], [1, 4]]
            stage.close()


def test_differences_of_two_runs_have_signs_and_no_mask(tmp_path: Path) -> None:
    first, second = (np.tril(np.random.default_rng(n).random((2, 6, 6))).astype(np.float32) for n in (1, 2))
    with shown(tmp_path, "attention", maps(first), maps(second), difference=True) as (stage, panel):
        assert panel.differs and panel.row.bar._levels.scale == "diverging"
        largest = np.abs(second - first)[0].max()
        assert (panel.row.bar._levels.low, panel.row.bar._levels.high) == pytest.approx((-largest, largest))
        stage.cursor.move(step=4, key=1)
        difference = second[0, 4, 1] - first[0, 4, 1]
        assert panel.row.heading.endswith(f"[4] → [1]: {difference:.3g}"), "no rank of a difference"
        assert not panel.options._on["without_first"].isEnabled()
        for view in VIEWS:
            panel.view.setCurrentText(view)
            assert panel.state == "figure", view


ODD = {
    "one token": np.ones((1, 1, 1)),
    "no key": np.zeros((1, 3, 0)),
    "NaN rows": np.where(np.arange(5)[:, None] == 2, np.nan, np.full((2, 5, 5), 0.2)),
    "only NaN": np.full((1, 4, 4), np.nan),
    "zeros": np.zeros((1, 4, 6)),
    "one query": np.full((3, 1, 20), 0.05),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.filterwarnings("error")
def test_odd_maps_are_drawn_in_every_view_with_every_option(tmp_path: Path, name: str) -> None:
    parts = [maps(ODD[name].astype(np.float32))]
    with shown(tmp_path, "attention", *parts) as (stage, panel):
        stage.cursor.move(step=0, key=0)
        for view in VIEWS:
            panel.view.setCurrentText(view)
            for switch in ("log", "without_first"):
                panel.options._on[switch].trigger()
                assert panel.state == "figure" and not panel.figure.grab().isNull(), (view, switch)
                panel.options._on[switch].trigger()
        panel.view.setCurrentText("Map")
        stage.cursor.move(step=min(2, ODD[name].shape[1] - 1), key=0)
        panel.figure.grab()
        assert panel.state == "figure" and panel.labelled_readout() is not None
        if name == "NaN rows":
            assert (drawn(panel)[2] == NOT_A_NUMBER).all() and not (drawn(panel)[3] == NOT_A_NUMBER).any()
            assert panel.row.heading.endswith("[2] → [0]: NaN")
            assert panel.row.bar._special[0], "the legend says what the colour means"


def test_a_long_profile_keeps_its_ends_and_its_gaps() -> None:
    numbers = np.random.default_rng(5).random(10_000)
    numbers[6_000:] = np.nan
    numbers[123], numbers[4_567] = 7.0, -3.0
    at, drawn_ones = thinned(numbers)
    assert len(at) == len(drawn_ones) <= 2_400 and np.nanmax(drawn_ones) == 7.0 and np.nanmin(drawn_ones) == -3.0
    assert abs(at[np.nanargmax(drawn_ones)] - 123) < 10 and np.isnan(drawn_ones[at > 6_010]).all()


def test_a_map_of_masked_keys_only_is_masked_and_never_zero(tmp_path: Path) -> None:
    nothing = channel("a:attention/allowed", "attention", ("statistic", "query"), np.full((2, 4), -1, np.int32))
    with shown(tmp_path, "attention", maps(np.zeros((1, 4, 4), np.float32)), nothing) as (stage, panel):
        assert (drawn(panel) == MASKED).all() and panel.row.bar._levels.masked
        stage.cursor.move(step=1, key=1)
        assert panel.row.heading.endswith("masked")
        panel.view.setCurrentText("Lines")
        assert panel.lines.sentence == "no weight above 0"
        panel.view.setCurrentText("Alignment")
        assert panel.row.heading.endswith("no row has a weight")


def test_the_rows_of_a_decoder_that_ran_do_not_replace_its_map(tmp_path: Path) -> None:
    """The rows lie along an axis of their own, to which pointing at the map would turn."""
    dims, keys = ("head", "query", "key"), {"limits": (0, 1)}
    rows = channel(
        "d:attention/rows", "attention", dims, ROWS[None, :4], domains={"query": "query", "key": "step"}, **keys
    )
    whole = channel(
        "d:attention", "attention", dims, ROWS[None], domains={"query": "answer step", "key": "step"}, **keys
    )
    with shown(tmp_path, "attention", rows, whole) as (_, panel):
        assert panel.row.plot.size_of == (KEYS, len(ROWS))
        panel.pointed(panel.row.plot, 2.0, 6.0)
        assert panel.looking.axis == "answer step" and panel.looking.position.step == 6
        assert panel.row.plot.size_of == (KEYS, len(ROWS)) and panel.axes.box.count() == 1


def test_pointing_at_a_place_keeps_the_axis_along_which_it_is_shown(tmp_path: Path) -> None:
    weights = ROWS[None]
    parts = [
        channel(
            name, "attention", ("head", "query", "key"), weights, limits=(0, 1), domains={"query": axis, "key": "step"}
        )
        for name, axis in (("d:attention", "answer step"), ("d:attention/again", "step"))
    ]
    with shown(tmp_path, "attention", *parts) as (_, panel):
        panel.axes.use("step")
        panel.redraw()
        panel.pointed(panel.row.plot, 2.0, 6.0)
        assert panel.looking.axis == "step" and panel.maps()[0].name == "d:attention/again"


def test_a_zoomed_map_is_drawn_within_its_axes(tmp_path: Path) -> None:
    with shown(tmp_path, "attention", maps(np.full((1, 9, 9), 1.0))) as (_, panel):
        before = panel.figure.grab().toImage()
        panel.row.plot.vb.setRange(xRange=(1.2, 4.4), yRange=(1.2, 4.4), padding=0)
        after = panel.figure.grab().toImage()
        area = panel.figure.mapFromScene(panel.row.plot.vb.sceneBoundingRect()).boundingRect()
        filled = before.pixelColor(area.center())
        assert after.pixelColor(area.center()) == filled
        for x, y in ((area.center().x(), area.bottom() + 6), (area.left() - 6, area.center().y())):
            assert after.pixelColor(x, y) != filled, (x, y)
