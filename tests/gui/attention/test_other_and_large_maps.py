"""Maps beside that of the weights, and maps that are read in a thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from head_views import HEADS, LAYERS, WEIGHTS, indices, shown
from panel_captures import channel
from panel_captures import shown as shown_panel
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.capture import Capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.map_levels import MapLevels
from inspector.records import Labels

# -- other numbers over the same queries and keys


def test_other_maps_are_drawn_beside_that_of_the_head(tmp_path: Path, qtbot: Any) -> None:
    signed = np.random.default_rng(3).normal(size=(2, 6, 6)).astype(np.float32)
    flow = np.random.default_rng(4).random((1, 6, 6)).astype(np.float32)
    zeroed = np.random.default_rng(5).random((6, 6)).astype(np.float32)
    zeroed[5, 1] = np.nan
    weights = WEIGHTS[0, :2, :6, :6]
    every = ("head", "query", "key")
    parts = (
        channel("a:attention", "attention", every, weights, limits=(0, 1)),
        channel("a:attention/allowed", "attention", ("statistic", "query"), np.array([[0] * 6, range(6)], np.int32)),
        channel("a:attention/times_gradient", "attention_map", every, signed, scale="diverging", unit="nat", title="A × ∂L/∂A"),
        channel("a:attention/value_zeroing", "attention_map", ("query", "key"), zeroed, title="value zeroing"),
        channel("layers:attention/rollout", "attention_map", ("layer", "query", "key"), flow, title="rollout"),
        channel("a:attention/importance", "attention_head", ("statistic", "head"), np.array([[3.0, 1.0]]), title="importance",
                labels={"statistic": ("whole",)}),
        channel("a:attention/head_type", "attention_head", ("head",), np.array([1, 0], np.int32), title="head type",
                value_domain="head type"),
        Labels("head type", ("induction", "local"), -1),
    )  # fmt: skip
    with shown_panel(tmp_path, "attention", *parts, place="a") as (stage, panel):
        menu = panel.overview.menu
        menu.option("sort", "attention/importance/whole").trigger()
        menu.option("group", "attention/head_type").trigger()
        assert shown(panel) == [("induction", [(0, 1)]), ("local", [(0, 0)])]
        stage.cursor.move(head=1, step=4, key=2)
        for signal, expected, title in (
            ("attention/times_gradient", signed[1], "A × ∂L/∂A, head 1"),
            ("attention/value_zeroing", zeroed, "value zeroing, a"),
            ("attention/rollout", flow[0], "rollout, layer 0"),
        ):
            panel.options.option("beside", signal).trigger()
            assert panel.page.count == 2, signal
            other = panel.page.maps[1]
            cells, _ = other.map._look((0.0, 0.0, 6.0, 6.0), (6, 6))
            np.testing.assert_array_equal(np.isneginf(cells), np.triu(np.ones((6, 6), dtype=bool), 1))
            np.testing.assert_array_equal(cells[np.tril_indices(6)], expected[np.tril_indices(6)])
            assert other.heading.startswith(title) and f"{expected[4, 2]:.3g}" in other.heading
            (read,) = [value for what, value in panel.readout(panel.looking.position) if f" {4} → {2}  " in what]
            assert float(read.split()[0]) == pytest.approx(float(expected[4, 2]), rel=1e-6)
            assert other.plot._line.value() == 2 and other.plot.level_line.value() == 4
        assert panel.page.maps[0].bar._levels.scale == "attention"
        panel.options.option("beside", "attention/value_zeroing").trigger()
        stage.cursor.move(step=5, key=1)
        assert panel.state == "figure" and "[5] → [1]: NaN" in panel.page.maps[1].heading
        assert dict(panel.readout(panel.looking.position))["value zeroing 5 → 1  a"] == "NaN"
        stage.cursor.move(step=1, key=5)
        assert dict(panel.readout(panel.looking.position))["value zeroing 1 → 5  a"] == "masked"
        panel.options.option("beside", "attention/times_gradient").trigger()
        assert panel.page.maps[1].bar._levels.scale == "diverging" and panel.page.maps[1].bar.unit == "nat"
        panel.options.option("beside", "").trigger()
        assert panel.page.count == 1


def test_maps_of_a_chain_of_layers_are_offered_at_these_layers_alone(tmp_path: Path) -> None:
    dims, chain = ("layer", "query", "key"), np.stack([np.full((4, 4), 0.25, np.float32), np.eye(4, dtype=np.float32)])
    maps = [
        channel(f"{place}:attention", "attention", ("head", "query", "key"), np.full((1, 4, 4), 0.25, np.float32),
                domains={"query": "step", "key": "step"})
        for place in "abc"
    ]  # fmt: skip
    flow = channel("cross:attention/rollout", "attention_map", dims, chain, labels={"layer": ("b", "c")})
    with shown_panel(tmp_path, "attention", *maps, flow, place="a") as (stage, panel):
        assert panel.beside() == []
        for number, place in enumerate("bc"):
            stage.cursor.move(place=place)
            QApplication.processEvents()
            panel.redraw()
            QTest.qWait(20)
            assert [one.name for one in panel.beside()] == ["cross:attention/rollout"]
            panel.options.option("beside", "attention/rollout").trigger()
            cells, _ = panel.page.maps[1].map._look((0.0, 0.0, 4.0, 4.0), (4, 4))
            np.testing.assert_array_equal(cells, chain[number])


# -- what is read beside the window


def test_large_maps_are_read_in_a_thread_and_look_the_same(
    capture: Capture, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(capture, (1280, 760))
    at_once = stage.panel("attention")
    wanted, thumbnails = indices(at_once), dict(at_once.atlas._pictures)
    monkeypatch.setattr("inspector.gui.panel.map_levels.SMALL", 10)
    monkeypatch.setattr("inspector.gui.panels.attention.SMALL", 10)
    beside = stage.panel("attention")
    qtbot.waitUntil(lambda: not beside.levels.reader.busy and not beside._timer.isActive())
    assert beside.row.heading == at_once.row.heading and not beside.row.map._gaps
    np.testing.assert_array_equal(indices(beside), wanted)
    assert all((beside.atlas._pictures[key] == picture).all() for key, picture in thumbnails.items())
    stage.close()


def test_every_weight_of_what_is_zoomed_is_read_where_it_is_not_stored(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.gui.panel.map_levels.SMALL", 10)
    monkeypatch.setattr("inspector.analysis.attention.map_pyramid.MOST_CELLS", 200)
    from inspector.analysis.attention.map_source import MapChoice

    levels, choice = MapLevels(), MapChoice((("layers.1:attention", 2),))
    pyramid = levels.pyramid(capture, choice)
    levels.reader.wait()
    assert pyramid.complete and pyramid.base == 4
    look, part = levels.look(capture, choice, "maximum"), (3.0, 21.0, 8.0, 9.0)
    cells, rect = look(part, (80, 90))
    assert cells.shape == (3, 3) and rect == (0, 20, 12, 12), "at first as it is stored"
    levels.reader.wait()
    cells, (left, top, across, down) = look(part, (80, 90))
    rows, columns = slice(int(top), int(top + down)), slice(int(left), int(left + across))
    assert cells.shape == (down, across) and left <= 3 and top <= 21
    np.testing.assert_array_equal(cells[np.isfinite(cells)], WEIGHTS[1, 2, rows, columns][np.isfinite(cells)])
    levels.forget()


def test_a_figure_in_a_file_waits_for_what_is_read(
    capture: Capture, monkeypatch: pytest.MonkeyPatch, qtbot: Any
) -> None:
    monkeypatch.setattr("inspector.gui.panel.map_levels.SMALL", 10)
    monkeypatch.setattr("inspector.gui.panels.attention.SMALL", 10)
    from inspector.gui.export.figure_files import png_bytes

    stage = Stage(capture, (900, 500))
    panel = stage.panel("attention")
    panel.complete()
    assert len(panel.atlas._pictures) == LAYERS * HEADS and not panel.row.map._gaps and png_bytes(panel)
    stage.close()
    assert not panel.levels.reader.busy
