"""Figures of a column of a paper, 85 × 60 mm: each has that size, and names what has no room in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.capture import open_capture
from inspector.gui.export.headless import left_out_of
from inspector.gui.export.look import size_of
from inspector.gui.export.offscreen import Stage
from inspector.gui.widgets.plots.stepplot import StepPlot

COLUMN = size_of("85x60mm")
LEAST = 36
"""Pixels of height of a plot in which anything can be read."""


def fitted(path: Path, key: str, size: tuple[int, int]) -> Any:
    """What is left out of a panel at a size, the size of its picture, and the heights of what its plots draw."""
    with open_capture(path) as capture:
        stage = Stage(capture, size)
        try:
            panel = stage.panel(key)
            stage.fit(panel)
            plots = [one for one in panel.figure.scene().items() if isinstance(one, StepPlot) and one.isVisible()]
            shown = panel.picture_size()
            return left_out_of(panel), (shown.width(), shown.height()), [plot.vb.height() for plot in plots]
        finally:
            stage.close()


@pytest.mark.parametrize(
    "key", ["paths", "units", "lens", "lags", "spectra", "dynamics", "gates", "openers", "states", "overview"]
)
def test_a_figure_has_the_size_that_was_asked_for(a_capture: Path, key: str) -> None:
    assert fitted(a_capture, key, COLUMN)[1] == COLUMN


@pytest.mark.parametrize(
    ("key", "gone"),
    [("paths", "the norms"), ("units", "where else they are on"), ("lens", "gates"), ("lags", "the map"),
     ("spectra", "its eigenvalues"), ("dynamics", "the trajectory")],
)  # fmt: skip
def test_plots_that_have_no_room_are_left_out_and_named(a_capture: Path, key: str, gone: str) -> None:
    said, _, heights = fitted(a_capture, key, COLUMN)
    assert gone in said and "had no room" in said
    assert heights and min(heights) >= LEAST, "what is drawn can be read"
    assert fitted(a_capture, key, (1200, 900))[0] == "", "a large one has all"
