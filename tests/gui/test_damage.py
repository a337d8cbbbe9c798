"""Damage is seen: a bar above everything, hatched cells, marked steps, a line in every panel and below every figure."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captures import NAME, START, change, channel, flip, numbers, place_of, write
from damaged_pages import pages_of
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from inspector.capture import Difference, Writer, open_capture
from inspector.gui.export.figure_files import picture, save_data
from inspector.gui.export.offscreen import Stage
from inspector.gui.panel.damaged import damage_in
from inspector.gui.panel.registry import PANELS
from inspector.gui.widgets.charts.curves import Curves
from inspector.gui.widgets.gaps import Gaps, in_order
from inspector.gui.widgets.images.heatmap import Heatmap
from inspector.gui.widgets.images.quantise import Levels
from inspector.gui.widgets.plots.source import glance
from inspector.gui.widgets.theme import LIGHT, colour_table
from inspector.gui.widgets.token_strip import TokenStrip
from inspector.records import Channel, Frame, Page, RunStop

LISTS_OTHERS = "table"
"""It reads what other panels in sight have drawn, and counts what is not there (test_table_of_a_range.py)."""
NAN = QColor.fromRgb(int(colour_table("sequential")[255]))


@pytest.fixture(params=["one page of each channel", "every page", "never written"])
def harmed(request: pytest.FixtureRequest, a_capture: Path, tmp_path: Path) -> Path:
    """A copy of a capture with every kind of channel, harmed."""
    path = tmp_path / "harmed.inspect"
    shutil.copytree(a_capture, path)
    for n, pages in enumerate(pages_of(path).values()):
        if request.param == "never written":
            change(path, "DELETE FROM pages WHERE id = ?", (pages[len(pages) // 2 if len(pages) > 2 else 0],))
            continue
        chosen = pages if request.param == "every page" else pages[: 1 + n % 2][-1:]  # the first or the second
        for page in chosen:
            if place_of(path, page)[2]:
                flip(path, page, at=0)
    return path


def test_no_panel_breaks_over_what_is_not_known(harmed: Path, qtbot: Any, tmp_path: Path, stage_of: Any) -> None:
    stage, broken = stage_of(harmed), {}
    for key in PANELS:
        if key == LISTS_OTHERS:
            continue
        panel = stage.panel(key)
        panel.looking.move(step=150, unit=3, place="rnn.l0")
        panel.redraw()
        getattr(panel, "complete", lambda: None)()  # what is read beside the window
        panel.labelled_readout()
        if panel.state == "error":
            broken[key] = panel._error.toPlainText()
        elif panel.state == "figure":
            picture(panel, 1.0)
            assert panel.state == "figure", key
            assert bool(damage_in(panel)) == bool(stage.capture.damage), key
            for suffix in ("csv", "npz"):
                if panel.data():
                    save_data(panel, tmp_path / f"{key}.{suffix}")
    assert not broken, broken


def test_a_panel_knows_before_it_is_painted_what_it_is_painted_from(a_capture: Path, qtbot: Any, stage_of: Any) -> None:
    """Else damage that only the painting finds would be in no note."""
    stage = stage_of(a_capture)
    for key in PANELS:
        panel = stage.panel(key)
        if panel.state == "figure" and key != LISTS_OTHERS:
            getattr(panel, "complete", lambda: None)()
            with stage.capture.noting() as painted:
                picture(panel, 1.0)
            assert panel.read >= painted and panel.read, key


def test_the_retention_of_a_gate_is_lost_over_the_span_after_a_damaged_page(
    tmp_path: Path, a_capture: Path, qtbot: Any, stage_of: Any
) -> None:
    path = tmp_path / "a.inspect"
    shutil.copytree(a_capture, path)
    flip(path, pages_of(path)["rnn.l0:gate/forget"][1])
    panel = stage_of(path).panel("openers")
    panel.span.setValue(10)
    assert panel.kept.map._gaps == Gaps(damaged=(((100, 209), (0, 32)),))
    assert Gaps(damaged=(((5, 8), (0, 1)),)).reaching(0, 3, 20) == Gaps(damaged=(((2, 8), (0, 1)),))


def rendered(item: Heatmap, columns: int, rows: int) -> QImage:
    """A map, ten pixels a cell."""
    image = QImage(columns * 10, rows * 10, QImage.Format.Format_RGB32)
    image.fill(QColor("#123456"))
    painter = QPainter(image)
    painter.scale(10, 10)
    painter.translate(0.5, 0.5)
    item.paint(painter, None)  # type: ignore[arg-type]
    painter.end()
    return image


def looks(image: QImage, column: int, row: int) -> str:
    """What a cell shows: "value", "NaN", "missing" or "damaged"."""
    cell = image.copy(column * 10, row * 10, 10, 10)
    colours = {cell.pixelColor(x, y).name() for x in range(1, 9) for y in range(1, 9)}
    if colours == {QColor(LIGHT.grid).name()}:
        return "missing"
    if len(colours) > 1:
        assert QColor(LIGHT.base).name() in colours
        return "damaged"
    return "NaN" if colours == {NAN.name()} else "value"


def test_nan_missing_and_damaged_cells_are_told_apart(qtbot: Any) -> None:
    values = np.full((8, 3), 0.5, np.float32)
    values[1], values[4:6], values[6:] = np.nan, np.nan, np.nan
    item = Heatmap()
    item.set_source(
        lambda cut, _: (values[slice(*cut)],) * 2, 8, 3, Levels(0, 1), 1,
        Gaps(missing=(((4, 6), (0, 3)),), damaged=(((6, 8), (1, 3)),)),
    )  # fmt: skip
    image = rendered(item, 8, 3)
    assert [looks(image, column, 2) for column in range(8)] == [
        "value", "NaN", "value", "value", "missing", "missing", "damaged", "damaged",
    ]  # fmt: skip
    assert looks(image, 7, 0) == "NaN"
    item.set_order(np.array([1, 0, 2]))  # the row that is not damaged is now the second
    image = rendered(item, 8, 3)
    assert [looks(image, 7, row) for row in range(3)] == ["damaged", "NaN", "damaged"]


def test_gaps_follow_the_order_of_rows() -> None:
    rects = [((3, 5), (1, 3))]
    assert in_order(rects, None) == rects
    assert in_order(rects, [2, 0, 1]) == [((3, 5), (0, 1)), ((3, 5), (2, 3))]
    assert in_order(rects, [7, 8]) == []


def test_a_cell_of_many_steps_is_hatched_whole(qtbot: Any) -> None:
    """Where a cell stands for many steps of which one is damaged, nothing of it is shown as if it were NaN."""
    item = Heatmap()
    cells = np.full((10, 1), 0.5, np.float32)
    cells[3] = np.nan
    item.set_source(lambda cut, _: (cells, cells), 1000, 1, Levels(0, 1), 1, Gaps(damaged=(((350, 351), (0, 1)),)))
    image = QImage(200, 10, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    painter.scale(0.2, 10)
    painter.translate(0.5, 0.5)
    item.paint(painter, None)  # type: ignore[arg-type]
    painter.end()
    colours = {image.pixelColor(x, y).name() for x in range(200) for y in range(10)}
    assert NAN.name() not in colours and QColor(LIGHT.base).name() in colours


def test_the_legend_names_nan_only_where_a_model_made_it(tmp_path: Path, qtbot: Any) -> None:
    values = numbers(3000)
    path = write(tmp_path / "a.inspect", values, rows=300)
    flip(path, 4)
    with open_capture(path) as capture:
        assert glance(capture, capture.channels[NAME], 0)[1] is False
    values[2950, 2] = np.nan
    path = write(tmp_path / "b.inspect", values, rows=300)
    flip(path, 4)
    with open_capture(path) as capture:
        assert glance(capture, capture.channels[NAME], 0)[1] is True


def test_a_state_and_its_trace_are_marked(tmp_path: Path, qtbot: Any, stage_of: Any) -> None:
    path = write(tmp_path / "a.inspect", numbers())
    flip(path, 2)
    panel = stage_of(path).panel("states")
    assert panel.row.map._gaps == Gaps(damaged=(((8, 16), (0, 4)),))
    assert panel.row.bar._gaps.damaged and not panel.row.bar._special[0]
    assert panel.trace._bands.gaps == Gaps(damaged=(((8, 16), (0, 1)),))
    (one,) = damage_in(panel)
    assert one.channel == NAME


def test_lines_are_marked_and_a_damaged_line_is_not_called_nan(tmp_path: Path, qtbot: Any, stage_of: Any) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, START) as writer:
        for name in ("good", "bad"):
            writer.write(
                Channel(name=f"a:{name}", kind="jacobian", dims=("step",), shape=(20,), title=name, scale="log")
            )
            for start in (0, 10):
                writer.write(Page(f"a:{name}", 0, (start,), np.ones(10, np.float32)))
        writer.write(RunStop("done"))
    flip(path, 3)
    flip(path, 4)
    panel = stage_of(path).panel("jacobians")
    curves: Curves = panel.curves
    assert curves.plot._bands.gaps == Gaps(damaged=(((0, 20), (0, 1)),)) and curves.unseen == []


def test_a_line_that_is_still_being_written_is_marked_as_missing(tmp_path: Path, qtbot: Any, stage_of: Any) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, START) as writer:
        writer.write(Channel(name="a:norm", kind="gradient", dims=("step",), shape=(20,), title="norm", scale="log"))
        writer.write(Page("a:norm", 0, (10,), np.ones(10, np.float32)))
    panel = stage_of(path).panel("gradients")
    assert panel.curves.plot._bands.gaps == Gaps(missing=(((0, 10), (0, 1)),)) and not damage_in(panel)


def test_attention_of_a_damaged_head_is_hatched_in_the_map_and_in_its_thumbnail(
    tmp_path: Path, qtbot: Any, stage_of: Any
) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, START) as writer:
        writer.write(Channel(name="a:attention", kind="attention", dims=("head", "query", "key"), shape=(3, 8, 8)))
        for head in range(3):
            for query in (0, 4):
                writer.write(Page("a:attention", 0, (head, query, 0), np.full((1, 4, 8), 0.125, np.float32)))
        writer.write(RunStop("done"))
    flip(path, 4)
    panel = stage_of(path).panel("attention")
    assert panel.atlas._gaps == {(0, 1): (Gaps(damaged=(((0, 8), (4, 8)),)), (8, 8))}
    assert not panel.row.map._gaps
    panel.looking.move(head=1)
    assert panel.row.map._gaps == Gaps(damaged=(((0, 8), (4, 8)),))
    assert picture(panel, 1.0).width() > 0


def test_tokens_that_are_not_known_are_never_the_first_of_the_vocabulary(
    tmp_path: Path, a_capture: Path, qtbot: Any, stage_of: Any
) -> None:
    path = tmp_path / "a.inspect"
    shutil.copytree(a_capture, path)
    for page in pages_of(path)["output:token"]:
        flip(path, page, at=0)
    panel = stage_of(path).panel("outputs")
    panel.steps.set(0, 12)
    panel.looking.move(step=3)
    assert panel.words.isVisible()
    assert {panel.words.text(rank, step) for rank in range(3) for step in range(12)} == {"?"}
    assert [what for what, _ in panel.readout(panel.looking.position) if "output" in what] == [
        f"output {rank} [3]: ?" for rank in (1, 2, 3)
    ]


def test_counts_that_are_not_known_are_question_marks(
    tmp_path: Path, a_capture: Path, qtbot: Any, stage_of: Any
) -> None:
    path = tmp_path / "a.inspect"
    shutil.copytree(a_capture, path)
    flip(path, pages_of(path)["rnn.l0:health/h"][0], at=0)
    panel = stage_of(path).panel("health")
    shown = [panel.table.item(0, column).text() for column in range(1, 8)]
    assert shown[:3] == ["?"] * 3 and "?" not in shown[3:]


def test_the_strip_of_tokens_has_no_colour_where_a_number_is_not_known(tmp_path: Path, qtbot: Any) -> None:
    from inspector.gui.state.cursor import Cursor
    from inspector.gui.widgets.plots.source import drawable

    path = tmp_path / "a.inspect"
    with Writer(path, START) as writer:
        writer.write(Channel(name="a:count", kind="output", dims=("step",), shape=(20,), dtype="int64"))
        for start in (0, 10):
            writer.write(Page("a:count", 0, (start,), np.arange(start, start + 10)))
        writer.write(RunStop("done"))
    flip(path, 1)
    strip = TokenStrip(Cursor(), LIGHT)
    qtbot.addWidget(strip)
    with open_capture(path) as capture:
        strip.set_values(drawable(capture.array("a:count")), "count")
    assert [strip._share(step) is None for step in range(20)] == [True] * 10 + [False] * 10


def test_a_difference_is_hatched_where_either_run_is_damaged(tmp_path: Path, qtbot: Any) -> None:
    path = tmp_path / "a.inspect"
    with Writer(path, START) as writer:
        writer.write(channel())
        for frame in (0, 1):
            writer.write(Frame(index=frame))
            for start in (0, 8, 16):
                writer.write(Page(NAME, frame, (start, 0), np.full((8, 4), frame + 1, np.float32)))
        writer.write(RunStop("done"))
    flip(path, 1)
    with open_capture(path) as capture:
        stage = Stage(capture, (900, 600))
        panel = stage.panel("states")
        panel.set_capture(Difference(capture, 0, 1))  # type: ignore[arg-type]
        assert panel.state == "figure" and panel.row.map._gaps == Gaps(damaged=(((0, 8), (0, 4)),))
        assert [one.frame for one in damage_in(panel)] == [0]
        stage.close()


def test_no_mark_is_drawn_where_it_is_not_known(qtbot: Any) -> None:
    """Qt ends the process where it is to draw a mark at NaN."""
    from inspector.gui.widgets.charts.plane import Plane

    plane = Plane(LIGHT)
    plane.show_marks(np.array([np.nan, 1.0, 2.0]), np.array([0.0, np.inf, 3.0]), np.array([True, True, True]))
    np.testing.assert_array_equal(np.stack(plane.stable.getData()), [[2.0], [3.0]])


def test_lines_and_bars_of_what_is_not_known_are_not_those_of_0(qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.gui.widgets.charts.tokenbars import TokenBars
    from inspector.gui.widgets.maps import linesview
    from inspector.gui.widgets.maps.linesview import LinesView

    def drawn(weights: np.ndarray) -> set[str]:
        view = LinesView(LIGHT)
        view.resize(400, 80)
        view.set_weights(weights, "ab", "ab")
        image = QImage(400, 80, QImage.Format.Format_RGB32)
        image.fill(QColor("#123456"))
        painter = QPainter(image)
        view.paint(painter, None)  # type: ignore[arg-type]
        painter.end()
        first = int(view.place_of(0, 1).x())
        return {image.pixelColor(x, y).name() for x in range(first + 8, first + 20) for y in range(45, 75)}

    assert drawn(np.array([[1.0, 0.0], [0.0, 0.0]])) == {"#123456"}
    assert QColor(LIGHT.base).name() in drawn(np.array([[1.0, 0.0], [np.nan, np.nan]]))
    rows = np.full((4, 4), np.nan)
    rows[1] = 0.0
    view = LinesView(LIGHT)
    view.resize(400, 80)
    view.set_weights(rows, "abcd", "abcd")
    painted: list[QRectF] = []
    monkeypatch.setattr(linesview, "paint_gaps", lambda _painter, _theme, _bands, stubs: painted.extend(stubs))
    image = QImage(400, 80, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    view.paint(painter, None)  # type: ignore[arg-type]
    painter.end()
    own = [(view.place_of(0, row).y(), view.height_of(0) - 2) for row in (0, 2, 3)]
    assert [(stub.center().y(), stub.height()) for stub in painted] == own, "each in its own row"
    bars = TokenBars(LIGHT)
    bars.show(["a", "b"], np.array([0.0, np.nan]), [], np.nan, "mean")
    assert bars.plot.step_axis.names == ("a", "b ?")


def test_hatching_is_painted_inside_its_rectangle_at_any_scale(qtbot: Any) -> None:
    from inspector.gui.widgets.hatching import paint_gaps

    for scale in (0.01, 1.0, 7.0):
        image = QImage(300, 200, QImage.Format.Format_RGB32)
        image.fill(QColor("#123456"))
        painter = QPainter(image)
        painter.scale(scale, scale)
        paint_gaps(painter, LIGHT, (), (QRectF(50 / scale, 50 / scale, 100 / scale, 100 / scale),))
        painter.fillRect(QRectF(0, 0, 10 / scale, 10 / scale), QColor("#00ff00"))  # the painter is as it was
        painter.end()
        assert image.pixelColor(45, 100).name() == image.pixelColor(155, 100).name() == "#123456"
        assert image.pixelColor(5, 5).name() == "#00ff00"
        inside = {image.pixelColor(x, 100).name() for x in range(55, 145)}
        assert QColor(LIGHT.base).name() in inside and len(inside) > 1
