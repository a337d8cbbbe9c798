"""What cells of a map show where they stand for several steps, against plain loops; pinned cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from inspector.capture import Capture, Writer, open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.state.cursor import Position
from inspector.gui.state.pins import pins_of
from inspector.gui.widgets.images.means import BASE, mean_overview
from inspector.gui.widgets.maps.density import BINS, density_overview
from inspector.records import Channel, Frame, Page, RunStart, RunStop

STEPS, UNITS = 1000, 3
random = np.random.default_rng(1)
VALUES = random.uniform(-1, 1, (STEPS, UNITS)).astype(np.float32)
VALUES[500, 1], VALUES[700, 2] = np.nan, np.inf


def captured(path: Path) -> Capture:
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(
            Channel(name="rnn.l0:h", kind="state", dims=("step", "unit"), shape=VALUES.shape, scale="diverging")
        )
        writer.write(Page("rnn.l0:h", 0, (0, 0), VALUES))
        writer.write(RunStop("done"))
    return open_capture(path)


def test_means_of_cells_are_those_of_their_steps(tmp_path: Path) -> None:
    with captured(tmp_path / "a.inspect") as capture:
        look = mean_overview(capture, "rnn.l0:h", 0)
        for first, stop, cells in ((0, 1000, 31), (64, 960, 14), (3, 990, 50), (0, 1000, 1000), (0, 992, 2)):
            factor = -(-(stop - first) // cells)
            found, same = look((first, stop), cells)
            assert found is same
            expected = [
                VALUES[at : min(stop, at + factor)].astype(np.float64).mean(0) for at in range(first, stop, factor)
            ]
            np.testing.assert_allclose(found, expected, atol=1e-6)
        assert -(-1000 // 31) % BASE != 0 and (960 - 64) // 14 % BASE == 0  # both ways were taken


def test_density_is_the_share_of_units_at_each_value(tmp_path: Path) -> None:
    with captured(tmp_path / "a.inspect") as capture:
        found, _ = density_overview(capture, "rnn.l0:h", 0, -1.0, 1.0)((0, STEPS), 10)
        for cell in range(10):
            part = VALUES[cell * 100 : (cell + 1) * 100].astype(np.float64)
            counts, _ = np.histogram(part[np.isfinite(part)], bins=BINS, range=(-1, 1))
            np.testing.assert_allclose(found[cell], counts[::-1] / counts.sum(), atol=2 / 300)  # numbers at an edge
            assert abs(found[cell].sum() - 1) < 1e-9


def test_a_pin_marks_its_cell_and_keeps_it_in_another_order(tmp_path: Path) -> None:
    with captured(tmp_path / "a.inspect") as capture:
        stage = Stage(capture, (800, 400))
        panel = stage.panel("states")
        pins = pins_of(panel.looking)
        assert not pins.add(Position(place="rnn.l0", unit=2).moved("step", 40))
        assert panel.pin_cells.shown == ((40, 2, 1),)
        panel.order.setCurrentText("by variance")
        assert panel.pin_cells.shown == ((40, panel.row_of(2), 1),)
        assert panel.readout_at(pins.all[0])[0][0].startswith("h[40, 2]")
        panel.cells.setCurrentText("density")
        assert panel.pin_cells.shown == () and panel.state == "figure"
        panel.cells.setCurrentText("extremes")
        assert panel.pin_cells.shown and panel.state == "figure"
        pins.clear()
        stage.close()


def test_means_are_right_wherever_the_view_ends_and_as_the_run_goes_on(tmp_path: Path) -> None:
    values = random.uniform(-1, 1, (700, UNITS)).astype(np.float32)
    with Writer(tmp_path / "b.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Channel(name="rnn.l0:h", kind="state", dims=("step", "unit"), shape=(None, UNITS)))
        there = np.full_like(values, np.nan)
        for start, stop in ((0, 300), (300, 331), (500, 520), (331, 500), (520, 700)):  # one of them leaves a gap
            writer.write(Page("rnn.l0:h", 0, (start, 0), values[start:stop]))
            writer.flush()
            there[start:stop] = values[start:stop]
            with open_capture(tmp_path / "b.inspect") as capture:
                once_more = mean_overview(capture, "rnn.l0:h", 0)
                length = capture.extent("rnn.l0:h", 0)[0]
                for first, end in ((256, length), (0, length), (64, 221), (0, 93)):
                    for cells in (3, 5, 16):
                        found, _ = once_more((first, end), cells)
                        width = -(-(end - first) // len(found))
                        expected = [there[at : min(end, at + width)].mean(0) for at in range(first, end, width)]
                        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_sums_that_are_kept_follow_a_run_that_goes_on(tmp_path: Path) -> None:
    with Writer(tmp_path / "c.inspect", RunStart(run="r", title="t")) as writer:
        writer.write(Channel(name="rnn.l0:h", kind="state", dims=("step", "unit"), shape=(None, UNITS)))
        there = np.full((900, UNITS), np.nan)
        writer.flush()
        with open_capture(tmp_path / "c.inspect") as capture:
            for start, stop in ((0, 70), (70, 75), (400, 500), (75, 400), (500, 900)):
                part = random.uniform(-1, 1, (stop - start, UNITS)).astype(np.float32)
                there[start:stop] = part
                writer.write(Page("rnn.l0:h", 0, (start, 0), part))
                writer.flush()
                capture.refresh()
                length = capture.extent("rnn.l0:h", 0)[0]
                for first in (0, 32, 64):
                    cells = -(-(length - first) // 32)
                    found, _ = mean_overview(capture, "rnn.l0:h", 0)((first, length), cells)
                    width = -(-(length - first) // cells)
                    expected = [there[at : min(length, at + width)].mean(0) for at in range(first, length, width)]
                    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_what_cells_are_is_said_again_as_the_panel_becomes_wide(tmp_path: Path, qtbot: Any) -> None:
    """700 steps share pixels in a narrow panel, and each has its own in a wide one."""
    path = tmp_path / "a.inspect"
    with Writer(path, RunStart(run="r", title="t")) as writer:
        writer.write(Frame(index=0))
        writer.write(Channel(name="l:h", kind="state", dims=("step", "unit"), shape=(700, 3), scale="diverging"))
        writer.write(Page("l:h", 0, (0, 0), VALUES[:700]))
        writer.write(RunStop("done"))
    with open_capture(path) as capture:
        stage = Stage(capture, (360, 400))
        panel = stage.panel("states")
        assert "cells are means of steps" in panel.row.plot.titleLabel.lines[0] and panel.banded.dense
        stage.steps.set(99.5, 149.5)  # fifty steps, which have pixels of their own
        assert "cells" not in panel.row.plot.titleLabel.lines[0]
        stage.steps.set(-0.5, 699.5)
        assert "cells are means of steps" in panel.row.plot.titleLabel.lines[0]
        panel.resize(1200, 400)
        qtbot.waitUntil(lambda: "cells" not in panel.row.plot.titleLabel.lines[0], timeout=2000)
        assert not panel.banded.dense and "mean and extremes" not in panel.trace.titleLabel.lines[0]
        stage.close()
