"""Single points are dots, sorted rows carry their units' numbers, the strip shows what is not known and what changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from captures import NAME, START, write
from opened import opened
from PySide6.QtGui import QColor, QImage

from inspector.capture import Difference, Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.state.cursor import Cursor
from inspector.gui.state.settings import Settings
from inspector.gui.widgets.gaps import Gaps
from inspector.gui.widgets.plots.stepplot import curve
from inspector.gui.widgets.theme import LIGHT, NOT_A_NUMBER, colour_table
from inspector.gui.widgets.token_strip import TokenStrip
from inspector.gui.window.bars.sequence_row import SequenceRow
from inspector.records import Channel, Frame, Page, RunStop

NAN = QColor.fromRgb(int(colour_table("sequential")[NOT_A_NUMBER])).name()


def test_a_point_that_no_line_reaches_is_a_dot(qtbot: Any) -> None:
    line = curve(LIGHT, 0)
    line.setData(np.arange(6), np.array([0.0, 1.0, np.nan, 7.0, np.nan, 2.0]))
    assert line.scatter.isVisible() and line.scatter.getData()[0].tolist() == [3.0, 5.0]
    assert line.dataBounds(1) == (0.0, 7.0)
    line.setData(np.arange(3), np.array([0.0, 1.0, 2.0]))
    assert not line.scatter.isVisible()
    line.setData(np.zeros(1), np.ones(1))
    assert line.scatter.isVisible()
    line.setData(np.arange(2), np.full(2, np.nan))
    assert not line.scatter.isVisible()


def test_a_sorted_map_has_the_numbers_of_its_units_at_the_ticks(tmp_path: Path, qtbot: Any) -> None:
    random = np.random.default_rng(0)
    values = (random.normal(size=(50, 8)) * np.array([1, 8, 2, 7, 3, 6, 4, 5])).astype(np.float32)
    with open_capture(write(tmp_path / "a.inspect", values, rows=50)) as capture:
        stage = Stage(capture, (900, 600))
        panel = stage.panel("states")
        axis = panel.row.plot.getAxis("left")
        assert axis.tickStrings([0.0, 2.0], 1.0, 2.0) == ["0", "2"]
        panel.order.setCurrentText("by variance")
        shown = axis.tickStrings([0.0, 1.0, 7.0], 1.0, 1.0)
        assert shown == [str(panel.unit_at(row)) for row in (0, 1, 7)] and shown != ["0", "1", "7"]
        panel.order.setCurrentText("as they are")
        assert axis.tickStrings([0.0, 2.0], 1.0, 2.0) == ["0", "2"]
        stage.close()


def colours(strip: TokenStrip, step: int) -> set[str]:
    image: QImage = strip.grab().toImage()
    left, right = int(strip._edges[step]) + 2, int(strip._edges[step + 1]) - 2
    return {image.pixelColor(x, y).name() for x in range(left, right) for y in range(5, strip.height() - 5)}


def test_the_strip_shows_nan_and_hatches_what_is_damaged(qtbot: Any) -> None:
    strip = TokenStrip(Cursor(), LIGHT)
    qtbot.addWidget(strip)
    strip.resize(400, 30)
    strip.set_sequence(("aaaa", "bbbb", "cccc"), 3)
    strip.set_values(np.array([1.0, np.nan, np.nan]), "loss", gaps=Gaps(damaged=(((2, 3), (0, 1)),)))
    assert NAN in colours(strip, 1) and NAN not in colours(strip, 0)
    assert len(colours(strip, 2)) > 1 and len(colours(strip, 2) - colours(strip, 0)) > 1
    strip.set_values(None, "")
    assert NAN not in colours(strip, 1)


def test_the_strip_of_a_difference_is_coloured_by_it_and_says_so(tmp_path: Path, qtbot: Any) -> None:
    loss = Channel(name="output:loss", kind="output", dims=("step",), shape=(3,), title="loss", compare="difference")
    many = Channel(name="output:many", kind="output", dims=("step",), shape=(3,), title="many", compare="separate")
    with Writer(tmp_path / "a.inspect", START) as writer:
        for one in (loss, many):
            writer.write(one)
        for frame, values in ((0, [1.0, 5.0, 3.0]), (1, [1.0, 2.0, 6.0])):
            writer.write(Frame(index=frame))
            for one in (loss, many):
                writer.write(Page(one.name, frame, (0,), np.array(values, np.float32)))
        writer.write(RunStop("done"))
    cursor = Cursor()
    row = SequenceRow(cursor, LIGHT, Settings())
    qtbot.addWidget(row)
    with open_capture(tmp_path / "a.inspect") as capture:
        cursor.set_length(3)
        row.grown(capture, 3, frozenset())
        row.colour_by.setCurrentText("output:loss")
        plain = [row.strip._share(step) for step in range(3)]
        row.show_difference(Difference(capture, 0, 1))
        changed = [row.strip._share(step) for step in range(3)]
        assert abs(changed[0]) < 0.05 and changed[1] < -0.5 and changed[2] > 0.5
        assert row.of_runs.text() == "Δ" and "Δ" in row.strip._caption
        row.colour_by.setCurrentText("output:many")
        assert row.of_runs.text() == "frame 1" and row.strip._caption.endswith("in frame 1")
        row.colour_by.setCurrentText("output:loss")
        row.show_difference(None)
        assert [row.strip._share(step) for step in range(3)] == plain and row.of_runs.isHidden()
        row.forget()


def test_the_readout_forgets_a_panel_that_an_empty_one_covers(tmp_path: Path, qtbot: Any) -> None:
    path = write(tmp_path / "a.inspect", np.ones((9, 4), np.float32))
    with opened(qtbot, background=False) as window:
        window.open_capture(str(path))
        window.docks["states"].raise_()
        qtbot.waitUntil(lambda: window.panels["states"].state == "figure")
        window.looking.move(step=1, unit=1, place=NAME.partition(":")[0])

        def headings() -> set[str]:
            cells = (window.readout.item(row, 0) for row in range(window.readout.rowCount()))
            return {cell.text() for cell in cells if cell is not None}

        qtbot.waitUntil(lambda: "States" in headings())
        window.docks["gates"].raise_()
        qtbot.waitUntil(lambda: "States" not in headings())
