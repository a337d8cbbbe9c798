"""The panel Pre-flight: its plots can be read in a low dock, however many sentences there are."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QApplication

import inspector
from inspector.capture import open_capture
from inspector.gui.export.offscreen import Stage
from inspector.gui.panels.preflight import PLOT
from inspector.gui.widgets.theme import LIGHT

TESTS = (
    "structure/causal",
    "structure/batch",
    "structure/order",
    "structure/repeat",
    "structure/query",
    "trial/learning_rate",
)
READABLE = 60


def test_every_plot_keeps_its_height_below_many_sentences(tmp_path: Path, qapp: QApplication) -> None:
    path = tmp_path / "a.inspect"
    inspector.run("first-digit-causal", "3141", out=str(path), only=list(TESTS)).close()
    with open_capture(path) as capture:
        stage = Stage(capture, (800, 280), LIGHT)
        panel = stage.panel("preflight")
        qapp.processEvents()
        drawn = [plot for plot in panel.plots if plot.isVisible()]
        assert len(panel.found) >= 6 and len(drawn) == 3
        assert panel.figure.height() >= panel.told.size().height() + len(drawn) * PLOT
        assert all(plot.vb.height() >= READABLE for plot in drawn), [plot.vb.height() for plot in drawn]
        stage.close()
