"""Positions in the panel Residual: maps, curves, and what is read where one points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from panel_captures import channel, shown

from inspector.gui.panel.attention.several_in_a_pixel import means_in_view
from inspector.records import Labels

ENCODING = np.arange(40, dtype=np.float32).reshape(10, 4) / 10 - 2
FREQUENCY = np.array([[1.0, 0.1, 0.01], [1.0001, 0.1, 0.01]])
SCORES = np.array([[0.0, -0.5, np.nan], [0.0, -0.125, -0.25]], np.float32)
SIMILAR = np.array([[1.0, 0.5], [1.0, 0.25], [1.0, 0.75]], np.float32)
PARTS = (
    channel("m:positions/encoding", "positions", ("position", "component"), ENCODING, title="encoding of positions",
            method="parameter 'p', added", scale="diverging"),
    channel("m:positions/similarity", "positions", ("statistic", "distance"), SIMILAR, title="similarity by distance",
            labels={"statistic": ("mean", "least", "largest")}),
    channel("m.a:positions/scores", "positions", ("head", "distance"), SCORES, title="score by distance",
            scale="diverging"),
    channel("m.a:positions/frequency", "positions", ("head", "pair"), FREQUENCY, title="rotary frequency",
            unit="rad/step", scale="log"),
)  # fmt: skip


def choose(panel: Any, title: str) -> None:
    panel.which.setCurrentIndex(panel.which.findText(title))


def test_a_map_of_an_encoding_says_what_it_is_and_what_is_pointed_at(tmp_path: Path) -> None:
    with shown(tmp_path, "residual", *PARTS) as (stage, panel):
        choose(panel, "encoding of positions")
        view = panel.positions
        assert view.map.isVisible() and not view.plot.isVisible() and not panel.row.plot.isVisible()
        assert "parameter 'p', added" in view.map.heading
        panel.pointed(view.map.plot, 2.1, 6.9)
        assert panel.readout(stage.cursor.position) == [("position 7, component 2", "1")]
        assert view.map.heading.startswith("position 7, component 2: 1")
        panel.pointed(view.map.plot, 9.0, 6.9)
        assert panel.readout(stage.cursor.position) == [], "beside the map"


def test_what_is_not_known_is_told_as_such(tmp_path: Path) -> None:
    with shown(tmp_path, "residual", *PARTS) as (stage, panel):
        choose(panel, "score by distance")
        panel.pointed(panel.positions.map.plot, 1, 0)
        assert panel.readout(stage.cursor.position) == [("head 0, distance 1", "-0.5")]
        panel.pointed(panel.positions.map.plot, 2, 0)
        ((_, told),) = panel.readout(stage.cursor.position)
        assert told == "NaN"


def test_similarity_has_three_named_curves_and_frequencies_of_equal_heads_are_one(tmp_path: Path) -> None:
    with shown(tmp_path, "residual", *PARTS) as (stage, panel):
        view = panel.positions
        choose(panel, "similarity by distance")
        assert [name for _, name in view.legend.entries] == ["mean", "least", "largest"]
        np.testing.assert_allclose([line.getData()[1] for line in view.lines[:3]], SIMILAR)
        panel.pointed(view.plot, 1.2, 0.0)
        assert panel.readout(stage.cursor.position)[1] == ("least, distance 1", "0.25")
        choose(panel, "rotary frequency")
        assert [line.isVisible() for line in view.lines[:3]] == [True, False, False] and not view.legend.entries
        np.testing.assert_allclose(view.lines[0].getData()[1], [0.0, -1.0, -2.0], atol=1e-9)
        axis = view.plot.getAxis("left")
        low, high = view.plot.vb.viewRange()[1]
        ((gap, ticks),) = axis.tickValues(low, high, 300)
        assert axis.tickStrings(ticks, 1.0, gap) == ["0.01", "0.1", "1"] and view.plot._labels[0] == "rad/step"
        choose(panel, "similarity by distance")
        assert view.plot.getAxis("left").tickStrings([0.5], 1.0, 0.5) == ["0.5"] and view.plot._labels[0] == "cosine"


def test_a_wave_that_is_faster_than_pixels_is_no_slow_one() -> None:
    """A sine of 12 positions at 13.6 to a pixel: taken from each pixel's first it is a wave of 100 pixels."""
    wave = np.sin(2 * np.pi * np.arange(4096) / 12.1)[:, None]
    cells, covered = means_in_view(wave, (0.0, 0.0, 1.0, 4096.0), (16, 300))
    assert cells.shape == (300, 1) and covered == (0.0, 0.0, 1.0, 4096.0)
    assert np.abs(wave[:: 4096 // 300]).max() > 0.99 and np.abs(cells).max() < 0.25
    edges = [n * 4096 // 300 for n in range(301)]
    for n in range(300):
        assert (
            abs(cells[n, 0] - sum(float(v) for v in wave[edges[n] : edges[n + 1], 0]) / (edges[n + 1] - edges[n]))
            < 1e-12
        )
    cells, covered = means_in_view(wave, (0.0, 99.5, 1.0, 200.0), (16, 300))
    assert covered == (0.0, 99.0, 1.0, 201.0), "zoomed, every position is drawn"
    np.testing.assert_array_equal(cells, wave[99:300])


def test_many_positions_are_their_means_in_both_directions_and_it_is_said(tmp_path: Path) -> None:
    values = np.add.outer(np.arange(1200.0), np.arange(40.0))
    cells, _ = means_in_view(values, (0.0, 0.0, 40.0, 1200.0), (20, 100))
    np.testing.assert_allclose(cells, values.reshape(100, 12, 20, 2).mean((1, 3)))
    values[7, 5] = np.nan
    cells, _ = means_in_view(values, (0.0, 0.0, 40.0, 1200.0), (20, 100))
    assert np.argwhere(np.isnan(cells)).tolist() == [[0, 2]]
    long = channel(
        "m:positions/encoding", "positions", ("position", "component"), values, title="encoding of positions"
    )
    with shown(tmp_path, "residual", long) as (_, panel):
        assert "mean of those in a pixel" in panel.positions.map.heading
    with shown(tmp_path / "few", "residual", *PARTS) as (_, panel):
        choose(panel, "encoding of positions")
        assert "in a pixel" not in panel.positions.map.heading


def test_positions_give_way_to_the_stream(tmp_path: Path) -> None:
    stream = channel("m:residual/norm", "residual", ("layer", "step"), np.ones((2, 5), np.float32),
                     labels={"layer": ("into 0", "0")}, title="norm")  # fmt: skip
    with shown(tmp_path, "residual", *PARTS, stream) as (_, panel):
        choose(panel, "encoding of positions")
        choose(panel, "norm")
        assert panel.row.plot.isVisible()
        assert not panel.positions.map.plot.isVisible() and not panel.positions.plot.isVisible()
        panel.set_theme(panel.theme)


def test_distances_are_written_without_the_numbers_of_their_columns(tmp_path: Path) -> None:
    many = np.linspace(-1, 1, 2 * 61, dtype=np.float32).reshape(2, 61)
    parts = (
        channel("m.a:positions/scores", "positions", ("head", "distance"), many, title="score by distance",
                domains={"distance": "distance"}),
        Labels("distance", tuple(str(n) for n in range(-30, 31)), -1),
    )  # fmt: skip
    with shown(tmp_path, "residual", *parts) as (_, panel):
        choose(panel, "score by distance")
        axis = panel.positions.map.plot.step_axis
        (spacing, values), *_ = axis.tickValues(-0.5, 60.5, 500.0)
        written = axis.tickStrings(values, 1.0, spacing)
        assert len(written) > 3 and written == [str(int(value) - 30) for value in values]
