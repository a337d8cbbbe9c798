"""Curves by step that are crowded: means and extremes of what shares two pixels, and every step where there is room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from panel_captures import channel, write_frames

from inspector.capture import open_capture
from inspector.gui.export.offscreen import Stage

STEPS = 6_000


def test_a_crowded_norm_is_its_mean_between_its_extremes(tmp_path: Path) -> None:
    values = np.exp(np.random.default_rng(0).normal(-3, 2, STEPS)).astype(np.float32)
    values[::100] = np.nan
    path = write_frames(tmp_path, channel("r:jacobian/spectral_norm", "jacobian", ("step",), values))
    with open_capture(path) as capture:
        stage = Stage(capture, (900, 600))
        panel: Any = stage.panel("jacobians")
        panel.curves.plot.vb.width = lambda: 600.0
        panel.redraw()
        (name,) = panel.curves.lines
        x, y = panel.curves.lines[name].getData()
        least, largest = (edge.getData()[1] for edge in panel.curves._bands[name].edges)
        parts = values.reshape(300, 20).astype(np.float64)
        np.testing.assert_allclose(x, np.arange(300) * 20 + 9.5)
        np.testing.assert_allclose(y, np.log10(np.nanmean(parts, 1)), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(least, np.log10(np.nanmin(parts, 1)), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(largest, np.log10(np.nanmax(parts, 1)), rtol=1e-5, atol=1e-6)
        low, high = panel.curves.plot.vb.viewRange()[1]
        assert low < least.min() and high > largest.max(), "extremes are in view"
        assert "mean and extremes" in " ".join(panel.curves.plot.titleLabel.lines)

        stage.steps.set(100, 400)
        panel.redraw()
        x, y = panel.curves.lines[name].getData()
        known = np.isfinite(y)
        np.testing.assert_allclose(10 ** y[known], values[x[known].astype(int)], rtol=1e-5)
        assert not panel.curves._bands[name].edges[0].getData()[0].size
        assert "extremes" not in " ".join(panel.curves.plot.titleLabel.lines)
        stage.close()
