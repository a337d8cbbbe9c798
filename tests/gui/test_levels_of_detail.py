"""What is drawn of a long run from its level of detail: every extreme, the last ones too, and gaps beside what is there."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from captures import NAME, START, channel
from panel_captures import SIZE
from PySide6.QtCore import QPointF

from inspector.capture import Capture, Writer, open_capture
from inspector.capture.reader import RAW_ROWS
from inspector.gui.export.offscreen import Stage
from inspector.gui.widgets.plots.source import line_of
from inspector.gui.widgets.theme import LAST, colour_table
from inspector.records import Channel, Frame, Page, RunStop

LENGTHS = (RAW_ROWS + 1, 2304, 5001)
"""One row in the last cell of the coarsest level; whole cells; a last cell that is smaller than the others."""
LINE = "rnn.l0:jacobian/n"


def write(
    path: Path, values: np.ndarray, cuts: list[tuple[int, int]], *, done: bool = True, open_too: bool = False
) -> Any:
    """A state of these numbers, and a line of its first unit, in pages of these rows in this order."""
    line = Channel(name=LINE, kind="jacobian", dims=("step",), shape=(len(values),), dtype="float64", scale="log")
    writer = Writer(path, START)
    writer.write(channel(dtype=str(values.dtype), units=values.shape[1], limits=(0, 1)))
    writer.write(line)
    writer.write(Frame(index=0))
    capture: Capture | None = None
    for start, stop in cuts:
        writer.write(Page(NAME, 0, (start, 0), values[start:stop]))
        writer.write(Page(LINE, 0, (start,), values[start:stop, 0].astype(np.float64)))
        if open_too:
            writer.flush()
            capture = capture or open_capture(path)
            capture.refresh()
            look(capture)
    if done:
        writer.write(RunStop("done"))
    writer.close()
    if capture is not None:
        capture.refresh()
    return capture if capture is not None else open_capture(path)


def look(capture: Capture) -> tuple[np.ndarray, np.ndarray]:
    """Minima and maxima in so few cells that the stored levels are read."""
    return capture.overview(NAME, size=(40, 100))


def pieces(steps: int, order: str) -> list[tuple[int, int]]:
    edges = [*range(0, steps, 700), steps]
    found = list(itertools.pairwise(edges))
    return {"in order": found, "last first": found[::-1], "shuffled": found[1::2] + found[::2]}[order]


@pytest.mark.parametrize("followed", [False, True])
@pytest.mark.parametrize("order", ["in order", "last first", "shuffled"])
@pytest.mark.parametrize("steps", LENGTHS)
def test_no_extreme_is_lost_wherever_it_is_and_whenever_its_page_came(
    tmp_path: Path, steps: int, order: str, followed: bool
) -> None:
    values = np.full((steps, 3), 0.5, np.float32)
    values[-1] = (1.0, 0.0, 0.5)
    values[0] = (0.0, 1.0, 0.5)
    values[steps // 3, 2] = 1.0
    with write(tmp_path / "a.inspect", values, pieces(steps, order), open_too=followed) as capture:
        low, high = look(capture)
        assert len(low) <= 40 and not np.isnan(low).any(), "every row has come"
        np.testing.assert_array_equal(high[-1], [1.0, 0.5, 0.5])
        np.testing.assert_array_equal(low[-1], [0.5, 0.0, 0.5])
        np.testing.assert_array_equal((low[0], high[0]), [[0, 0.5, 0.5], [0.5, 1, 0.5]])
        assert high[:, 2].argmax() == (steps // 3) * len(high) // steps and (high[:, 2] == 1).sum() == 1
        x, y = line_of(capture, LINE, -1, (-0.5, steps - 0.5))
        assert y[-1] == 1.0 and y[:2].min() == 0.0 and x[-1] == pytest.approx(steps - 1, abs=steps / 500)


@pytest.mark.parametrize("order", ["in order", "last first", "shuffled"])
def test_cells_that_two_pages_share_have_the_extremes_of_both(tmp_path: Path, order: str) -> None:
    """The drawing follows the run; whichever page comes second, the first one's rows count on."""
    steps, cuts = 5001, pieces(5001, order)
    values = np.full((steps, 3), 0.5, np.float32)
    for start, stop in cuts:
        values[start, 0], values[stop - 1, 1] = 1.0, 0.0
    with write(tmp_path / "a.inspect", values, cuts, open_too=True) as capture:
        low, high = look(capture)
        rows = -(-steps // len(high)) + np.arange(400)
        size = next(int(n) for n in rows if n % 4 == 0 and -(-steps // n) == len(high))
        ends = sorted(cuts)
        np.testing.assert_array_equal(np.flatnonzero(high[:, 0] == 1), sorted({start // size for start, _ in ends}))
        np.testing.assert_array_equal(np.flatnonzero(low[:, 1] == 0), sorted({(stop - 1) // size for _, stop in ends}))


@pytest.mark.parametrize("steps", LENGTHS)
def test_a_map_shows_its_last_step_at_its_right_edge(tmp_path: Path, steps: int) -> None:
    values = np.full((steps, 3), 0.1, np.float32)
    values[-1, 2] = 1.0
    with write(tmp_path / "a.inspect", values, pieces(steps, "last first")) as capture:
        stage = Stage(capture, SIZE)
        panel: Any = stage.panel("states")
        panel.cells.setCurrentText("extremes")
        image = panel.figure.grab().toImage()
        table = colour_table("sequential")
        for unit, wanted in ((0, False), (2, True)):
            edge = panel.figure.mapFromScene(panel.row.plot.vb.mapViewToScene(QPointF(steps - 0.51, unit)))
            colour = image.pixelColor(edge.x() - 1, edge.y()).rgb() & 0xFFFFFF
            assert (colour == int(table[LAST]) & 0xFFFFFF) is wanted, f"unit {unit}"
        stage.close()


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_a_region_beside_one_page_is_not_that_page_alone(tmp_path: Path, dtype: str) -> None:
    values = np.arange(1, 61).reshape(20, 3).astype(dtype)
    line = np.arange(20)
    path = tmp_path / "a.inspect"
    with write(path, values, [(4, 8), (12, 20)]) as capture:
        for first, stop in ((6, 11), (2, 6), (5, 7), (2, 11), (10, 14), (8, 12)):
            there = ((line >= 4) & (line < 8)) | (line >= 12)
            block = capture.block(NAME, region=(slice(first, stop), slice(1, 3)))
            assert block.shape == (stop - first, 2)
            known = there[first:stop]
            np.testing.assert_array_equal(np.asarray(block)[known], values[first:stop, 1:][known])
            unknown = np.ma.getmaskarray(block) if dtype == "int64" else np.isnan(block)
            np.testing.assert_array_equal(unknown, np.repeat(~known[:, None], 2, 1))
            np.testing.assert_array_equal(
                capture.known(NAME, region=(slice(first, stop), slice(1, 3))), np.repeat(known[:, None], 2, 1)
            )
