"""Long series: mean and extremes of what shares a pixel, and the units that are pinned as curves beside each other."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from inspector.capture import open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.state.pins import pins_of
from inspector.gui.widgets.charts.bands import bands


def test_bands_are_the_extremes_and_the_mean_of_each_part() -> None:
    values = np.random.default_rng(0).normal(size=103).astype(np.float32)
    values[10:20], values[25] = np.nan, np.inf
    x, low, mean, high = bands(values, 7, 10)
    parts = [values[at : at + 11] for at in range(0, 103, 11)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n, part in enumerate(parts):
            known = part[np.isfinite(part)].astype(np.float64)
            told = (known.min(), known.mean(), known.max()) if len(known) else (np.nan,) * 3
            np.testing.assert_allclose((low[n], mean[n], high[n]), told, rtol=1e-6)
            assert x[n] == 7 + np.arange(11 * n, 11 * n + len(part)).mean()
    assert [len(one) for one in bands(values[:0], 0, 5)] == [0, 0, 0, 0]


def test_pinned_units_are_drawn_with_that_of_the_cursor_and_a_crowded_trace_as_bands(a_capture: Path) -> None:
    with open_capture(a_capture) as capture:
        stage = Stage(capture, (900, 600))
        panel: Any = stage.panel("states")
        state = capture.array("rnn.l0:h")
        for unit in (3, 9):
            stage.cursor.move(step=1, unit=unit, place="rnn.l0")
            pins_of(stage.cursor).add(stage.cursor.position)
        stage.cursor.move(unit=5)
        for line, unit in zip(panel.lines, (5, 3, 9), strict=False):
            np.testing.assert_allclose(line.getData()[1], state[:, unit], rtol=1e-6)
        assert [name for _, name in panel.legend.entries] == ["unit 5", "unit 3", "unit 9"]
        panel.trace.vb.width = lambda: 100.0
        panel._show_traces()
        x, y = panel.line.getData()
        assert len(y) == 50 and panel.edges[0][0].getData()[1].min() == state[:, 5].min()
        assert "extremes" in panel.trace.titleLabel.lines[0]
        np.testing.assert_allclose(y[3], state[18:24, 5].mean(), rtol=1e-5)
        assert x[0] == 2.5
        pins_of(stage.cursor).clear()
        assert panel.trace.titleLabel.lines[0].startswith("unit 5")
        stage.close()
